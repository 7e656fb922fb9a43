"""Settings: frozen values, from code, a mapping (a YAML file's), or the environment.

Every field has its default here, its limits in its type, its meaning beneath it, and its environment variable by rule: the
path of the field in upper case behind `OTEL_RELIABILITY_` (`assembly.idle_timeout` is `OTEL_RELIABILITY_ASSEMBLY_IDLE_TIMEOUT`).
Durations are seconds as numbers here, and are written like `10m` or `1h30m` outside. `docs/configuration.md` is made from this
file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Final, Literal

from otel_reliability.loading import Contradiction, load, load_environment, settle
from otel_reliability.quantities import Bytes, Count, HexKey, OneOf, Points, Real, Regex, Seconds, Share, Weight

PREFIX: Final = "OTEL_RELIABILITY_"
NOT_SETTINGS: Final = frozenset({"OTEL_RELIABILITY_LOUD"})
"""Environment variables of ours that are no settings of an engine."""
SERVICE_PREFIX: Final = PREFIX + "SERVICE_"
"""What the service's own variables begin with; they are no settings of an engine either."""
KAFKA_PREFIX: Final = PREFIX + "KAFKA_"
"""The same of the workers on Kafka."""
SIGNALS: Final = ("path", "calls", "failed_calls", "output_tokens", "reply_tokens", "largest_input", "outcome")


@dataclass(frozen=True, slots=True)
class WindowSettings:
    """Which runs count now: the last `last` runs, and/or those of the last `period` seconds."""

    name: str = "recent"
    """What the window is called in readings; each window has another name."""
    last: Count | None = None
    """The number of runs."""
    period: Seconds | None = None
    """The time up to the end of the agent's latest run."""

    def contradiction(self) -> Contradiction | None:
        """A window has to end somewhere."""
        if self.last is None and not self.period:
            return Contradiction("last", self.last, "a window, without a period", "give last, period or both")
        return None


@dataclass(frozen=True, slots=True)
class AssemblySettings:
    """From spans to runs."""

    linger: Seconds = 2.0
    """Seconds that a run whose root has ended waits for stragglers."""
    idle_timeout: Seconds = 600.0
    """Seconds without a span after which a run whose root never came is closed."""
    reopen: Seconds = 60.0
    """Seconds after closing in which a late span reopens the run."""
    remember: Seconds = 900.0
    """Seconds, at least, for which the ids of closed runs are remembered."""
    span_limit: Count = 10_000
    """Spans after which a run is closed at once."""
    open_runs: Count = 50_000
    """Open runs; above, the heaviest are closed."""
    open_bytes: Bytes = 512 * 1024 * 1024
    """Estimated bytes of spans of open runs; above, the heaviest are closed."""
    reopenable_bytes: Bytes = 128 * 1024 * 1024
    """Estimated bytes of spans kept of closed runs; above, the oldest can no longer be reopened."""
    closed_ids: Count = 2_000_000
    """Span ids of closed runs that are remembered."""
    other_spans: Count = 1_000_000
    """Spans of other kinds whose ids are kept for parent chains."""
    parallel: Literal["canonical", "as_started"] = "canonical"
    """The order of calls within a parallel group: by name, or by the clock."""
    run_key: str | None = None
    """An attribute whose value groups spans into runs where no agent span does."""

    def contradiction(self) -> Contradiction | None:
        """What can be reopened must be remembered."""
        if self.remember < self.reopen:
            return Contradiction("remember", self.remember, f"at least `reopen` ({self.reopen:g} s)", "raise it")
        return None


@dataclass(frozen=True, slots=True)
class OutcomeSettings:
    """When a run is a success."""

    reward_threshold: float = 1.0
    """`reliability.run.reward` from which a run is a success."""
    fallback: Literal["none", "status"] = "none"
    """`status` counts an end without error as success, and every reading that rests on it says so."""
    evaluations: tuple[str, ...] = ("task_success", "success", "correctness", "goal_completion")
    """Names of evaluations that tell the outcome."""


@dataclass(frozen=True, slots=True)
class MetricSettings:
    """How metrics count."""

    group_by: Literal["task", "none"] = "task"
    """Whether path metrics are computed per task, or over all runs of the window together."""
    retry_threshold: Count = 3
    """Retries of one call from which a run explodes: the fourth attempt exceeds 3."""
    min_runs: Count = 5
    """Runs below which there is no score, tier or badge (2 in reports)."""
    min_coverage: Points = 60.0
    """Points of the 100 whose parts must have evidence for a score."""
    pressure_flag: Share = 0.8
    """Mean token budget pressure above which the flag `token_pressure_high` is set."""
    profile: Literal["published", "hal-harness"] = "published"
    """Which form of the evaluation metrics: as published, or as their authors' code computes them today."""


@dataclass(frozen=True, slots=True)
class SessionSettings:
    """Session scores."""

    idle: Seconds = 1800.0
    """Seconds without a run after which a session is scored."""
    derive: bool = True
    """Whether loop_detection and tool_correctness are derived from the runs where no evaluation gives them."""
    weights: Mapping[str, Weight] = field(default_factory=dict[str, float])
    """Signal weights, merged over confidence 1, loop_detection 1, tool_correctness 0.8, coherence 1."""


@dataclass(frozen=True, slots=True)
class ToolSettings:
    """Which tools change the world, and how names are cleaned. Patterns are shell globs."""

    effects: tuple[str, ...] = ()
    """Tools that change the world, whatever their names say."""
    reads: tuple[str, ...] = ()
    """Tools that only look."""
    helpers: tuple[str, ...] = ("TodoWrite", "TodoRead", "ToolSearch", "Skill")
    """Tools by which an agent organises itself: they change nothing that counts."""
    ignore: tuple[str, ...] = ()
    """Tools that are no step."""
    rename: Mapping[str, str] = field(default_factory=dict[str, str])
    """Pattern → name: `fetch_page_*` → `fetch_page` makes variants one tool."""
    soft_errors: tuple[Regex, ...] = ()
    """Regular expressions on a captured result that make the call a failed one."""


@dataclass(frozen=True, slots=True)
class MappingSettings:
    """Attributes of yours that say what a convention cannot: attribute keys, first that is there."""

    agent: tuple[str, ...] = ()
    """The agent's name."""
    session: tuple[str, ...] = ()
    """The conversation a run belongs to."""
    task: tuple[str, ...] = ()
    """What makes two runs attempts at the same work."""
    outcome: tuple[str, ...] = ()
    """Whether the run succeeded."""
    confidence: tuple[str, ...] = ()
    """How sure the agent was, from 0 to 1."""
    cost: tuple[str, ...] = ()
    """What the run cost."""


@dataclass(frozen=True, slots=True)
class LimitSettings:
    """Ceilings. Each has a counter of what hit it."""

    agents: Count = 400
    """Agents with series of their own, ever; the rest are counted together."""
    tools: Count = 200
    """Tool names an agent that attributes name; in paths every name counts."""
    tasks: Count = 1_000
    """Tasks an agent that are told apart."""
    sessions: Count = 50_000
    """Open sessions."""
    rows: Count = 100_000
    """Runs a window, whatever its rule says; the newest stay."""
    paths: Count = 1_000
    """Distinct paths a group in pairwise metrics; the latest count."""
    agent_idle: Seconds = 86_400.0
    """Seconds after which an agent without runs expires."""
    recent_runs: Count = 20
    """Whole runs kept an agent, for pages."""
    evaluations: Count = 10_000
    """Evaluations that wait for their run, for at most ten minutes."""


@dataclass(frozen=True, slots=True)
class ChangeSettings:
    """Change detection."""

    enabled: bool = True
    """Whether change is looked for."""
    signals: tuple[Annotated[str, OneOf(SIGNALS)], ...] = SIGNALS
    """What is watched."""
    runs_per_false_alarm: Annotated[float, Real(1)] = 10_000.0
    """Runs, on average, from one false alarm to the next."""
    reference: str | None = None
    """A recording whose first 40 units are an agent's reference; agents are matched by service, environment and name, else by
    name alone where only one agent there has it."""


@dataclass(frozen=True, slots=True)
class TelemetrySettings:
    """What is emitted."""

    standard_metrics: bool = False
    """Whether the semantic conventions' own `gen_ai.invoke_agent.*` are emitted too, for instrumentations that do not."""


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings of one engine. Made from whatever source, they are checked as a whole.

    >>> Settings.load({"assembly": {"linger": "5s"}}, {"OTEL_RELIABILITY_ASSEMBLY_LINGER": "500ms"}).assembly.linger
    0.5
    >>> Settings.load({"windows": [{"last": 50}, {"name": "day", "period": "10 min"}]})
    Traceback (most recent call last):
    ...
    otel_reliability.errors.ConfigurationError: windows[1].period: '10 min' is not a duration;
    write it like 10m, 1h30m or 250ms, or as a number of seconds, from 0.
    """

    windows: tuple[WindowSettings, ...] = (WindowSettings("recent", last=100),)
    """Which runs count now; each agent has each of these windows."""
    assembly: AssemblySettings = AssemblySettings()
    outcome: OutcomeSettings = OutcomeSettings()
    metrics: MetricSettings = MetricSettings()
    sessions: SessionSettings = SessionSettings()
    tools: ToolSettings = ToolSettings()
    mapping: MappingSettings = MappingSettings()
    limits: LimitSettings = LimitSettings()
    change: ChangeSettings = ChangeSettings()
    telemetry: TelemetrySettings = TelemetrySettings()
    agent_key: tuple[str, ...] = ()
    """Resource or span attributes that are part of an agent's identity, such as service.version."""
    context_limits: Mapping[str, Count] = field(default_factory=dict[str, int])
    """Model name pattern → context window in tokens."""
    hash_key: HexKey | None = field(default=None, repr=False)
    """Key of the argument hashes, hexadecimal; random per process if absent."""

    def __post_init__(self) -> None:
        """Check every field; whoever gave text, a mapping or a list has them converted."""
        settle(self)

    @classmethod
    def load(
        cls, file: Mapping[str, object] | None = None, env: Mapping[str, str] | None = None, **code: object
    ) -> Settings:
        """From a file's mapping, over it the environment, over that what code gives. Lists and mappings replace those below."""
        loaded = cls.from_environment(env or {}, base=cls.from_mapping(file or {}))
        return cls.from_mapping(code, base=loaded)

    @classmethod
    def from_mapping(cls, mapping: Mapping[str, object], *, base: Settings | None = None) -> Settings:
        """From nested mappings, as a YAML file holds them; the rest from `base`."""
        return load(cls, mapping, base=base)

    @classmethod
    def from_environment(cls, env: Mapping[str, str], *, base: Settings | None = None) -> Settings:
        """From `OTEL_RELIABILITY_…` variables; the rest from `base`."""
        ours = {name: value for name, value in env.items() if not name.startswith((SERVICE_PREFIX, KAFKA_PREFIX))}
        return load_environment(cls, ours, PREFIX, base=base, others=NOT_SETTINGS)

    def contradiction(self) -> Contradiction | None:
        """Windows are told apart by name."""
        if not self.windows:
            return Contradiction(
                "windows", self.windows, "a list of at least one window", "leave it out for the last 100 runs"
            )
        name, count = Counter(window.name for window in self.windows).most_common(1)[0]
        return Contradiction("windows", name, "the name of one window only", "give each its own") if count > 1 else None
