"""Settings: frozen values, from code, a mapping (a YAML file's), or the environment.

Every field has its default here, its limits in its type, its meaning below it, and its environment
variable by rule: the path of the field in upper case behind `OTEL_RELIABILITY_`
(`assembly.idle_timeout` is `OTEL_RELIABILITY_ASSEMBLY_IDLE_TIMEOUT`). Durations are seconds as
numbers here, and are written like `10m` or `1h30m` outside. `docs/reference/settings.md` and the
JSON schema are generated from this file.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Annotated, ClassVar, Final, Literal, Self, TypeAlias

from msgspec import Meta, Struct
from msgspec.structs import force_setattr, replace

from otel_reliability.errors import ConfigurationError
from otel_reliability.loading import (
    SIZE,
    Count,
    HexKey,
    Internal,
    InternalSeconds,
    Points,
    Seconds,
    Text,
    Url,
    Weight,
    load,
    load_environment,
    shown,
)

PREFIX: Final = "OTEL_RELIABILITY_"
NOT_SETTINGS: Final = frozenset({"OTEL_RELIABILITY_LOUD"})
"""Environment variables of ours that are no settings of an engine."""
SERVICE_PREFIX: Final = PREFIX + "SERVICE_"
"""Prefix of the service's own variables."""
KAFKA_PREFIX: Final = PREFIX + "KAFKA_"
"""Prefix of the variables of the workers on Kafka."""
TraceUrl: TypeAlias = Annotated[
    str,
    Meta(
        pattern=r"^https?://[^/:\s].*\{trace_id\}",
        extra={
            "allowed": "a URL that contains {trace_id}",
            "remedy": "write it like http://jaeger:16686/trace/{trace_id}",
        },
    ),
]
BASE_PATH: Final = r"^(/[A-Za-z0-9._~-]+)+$"
BasePath: TypeAlias = Annotated[
    str,
    Meta(
        pattern=BASE_PATH,
        extra={
            "allowed": "a path that begins with / and does not end with it",
            "remedy": "write it like /reliability",
        },
    ),
]


class WindowSettings(Struct, frozen=True):
    """A window: the last `last` runs, and/or those of the last `period` seconds."""

    name: Text = "recent"
    """Name of the window in readings; each window has another name."""
    last: Count | None = None
    """Number of runs."""
    period: Seconds | None = None
    """Time up to the end of the agent's latest run."""

    def __post_init__(self) -> None:
        """Check that the window ends somewhere."""
        if self.last is None and not self.period:
            raise ConfigurationError(
                "last", None, "a window, without a period", "set last, period or both"
            )


class ObjectiveSettings(Struct, frozen=True):
    """Objective of an agent: `success` or `errors`, over a period."""

    agent: Text = "*"
    """Pattern of the agent's name; the first objective that matches an agent holds for it."""
    success: Annotated[float, Meta(gt=0, lt=1)] | None = None
    """Least share of the runs with a known outcome that succeed, such as 0.95."""
    errors: Annotated[float, Meta(gt=0, lt=1)] | None = None
    """Greatest share of the runs that end in an error, such as 0.02; it needs no outcomes."""
    period: Seconds = 30 * 86_400.0
    """Time over which it is to hold, at least a day."""

    def __post_init__(self) -> None:
        """Check that it says one thing, over days."""
        if self.period < 86_400:
            raise ConfigurationError(
                "period", self.period, "a duration of at least a day", "write it like 30d"
            )
        if (self.success is None) == (self.errors is None):
            given = {"success": self.success, "errors": self.errors}
            raise ConfigurationError(
                "success", given, "either success or errors", "set one of the two"
            )


class AssemblySettings(Struct, frozen=True):
    """Rebuilding runs from spans."""

    linger: Seconds = 2.0
    """Seconds without a span of the trace after which a run whose root has ended is closed."""
    idle_timeout: Seconds = 600.0
    """Seconds without a span after which a run whose root never arrived is closed."""
    reopen: Seconds = 60.0
    """Seconds after closing in which a late span reopens the run."""
    parallel: Literal["canonical", "as_started"] = "canonical"
    """Order of calls within a parallel group: by name, or by the clock."""
    run_key: Text | None = None
    """Attribute whose value groups spans into runs where no agent span does."""

    remember: InternalSeconds = 900.0
    """Seconds, at least, for which the ids of closed runs are remembered."""

    def __post_init__(self) -> None:
        """Remember at least what can be reopened."""
        force_setattr(self, "remember", max(self.remember, self.reopen))


class OutcomeSettings(Struct, frozen=True):
    """When a run is a success."""

    reward_threshold: float = 1.0
    """`reliability.run.reward` from which a run is a success."""
    fallback: Literal["none", "status"] = "none"
    """`status` counts an end without error as success; every reading based on it states this."""
    evaluations: tuple[Text, ...] = ("task_success", "success", "correctness", "goal_completion")
    """Names of evaluations that decide the outcome."""


class MetricSettings(Struct, frozen=True):
    """Rules by which metrics count."""

    group_by: Literal["task", "none"] = "task"
    """`task`: path metrics are computed per task; `none`: over all runs of the window together."""
    retry_threshold: Count = 3
    """Retries of one call from which a run is a retry explosion: the fourth attempt exceeds 3."""
    min_runs: Count = 5
    """Runs below which there is no score, tier or badge (2 in reports)."""
    min_coverage: Points = 60.0
    """Points of the 100 whose parts must have data for a score."""
    missing: Literal["left_out", "as_zero"] = "left_out"
    """Rule by which the score counts parts without data: it leaves them out, or counts them as 0,
    as though nothing varied.
    """
    profile: Literal["published", "hal-harness"] = "published"
    """Form of the evaluation metrics: as published, or as their authors' code computes them today.
    """

    pressure_flag: ClassVar[float] = 0.8
    """Mean token budget pressure above which the flag `token_pressure_high` is set."""


class InputSettings(Struct, frozen=True):
    """Which runs have equivalent inputs."""

    group: Literal["auto", "off"] = "auto"
    """`auto`: runs without a task id are grouped by what the user asked, from a vector that is kept
    of it; no text is. `off`: requests are not read, and nothing is kept of them.
    """


class SessionSettings(Struct, frozen=True):
    """Session scores."""

    idle: Seconds = 1800.0
    """Seconds without a run after which a session closes and is scored."""
    derive: bool = True
    """True if loop_detection and tool_correctness are derived from the runs where no evaluation
    gives them.
    """
    weights: Mapping[str, Weight] = {}
    """Signal weights, merged over confidence 1, loop_detection 1, tool_correctness 0.8, coherence
    1.
    """


class ToolSettings(Struct, frozen=True):
    """Which tools change the world, and how names are cleaned. Patterns are shell globs."""

    effects: tuple[Text, ...] = ()
    """Tools that change the world, whatever their names say."""
    reads: tuple[Text, ...] = ()
    """Tools that only read."""
    effect_key: Mapping[str, Text] = {}
    """Tool name pattern (before `rename`) → the argument that names what a call changes. Calls of a
    matching tool with the same value of it are one effect, whatever else differs: `{edit: path}`
    makes two edits of one file the same effect.
    """
    helpers: tuple[Text, ...] = ("TodoWrite", "TodoRead", "ToolSearch", "Skill")
    """Tools by which an agent organises itself: they change nothing that counts."""
    ignore: tuple[Text, ...] = ()
    """Tools that are no step."""
    rename: Mapping[str, Text] = {}
    """Pattern → name: `fetch_page_*` → `fetch_page` makes variants one tool."""
    soft_errors: tuple[Text, ...] = ()
    """Regular expressions on a captured result; a match makes the call a failed one."""

    def __post_init__(self) -> None:
        """Check the regular expressions."""
        for index, pattern in enumerate(self.soft_errors):
            try:
                re.compile(pattern)
            except re.error as error:
                remedy = f"{error}; write it as for Python's re, with \\ before a literal sign"
                raise ConfigurationError(
                    f"soft_errors[{index}]", pattern, "a regular expression", remedy
                ) from None


class SpanRule(Struct, frozen=True, kw_only=True):
    """A rule for spans of your own: the spans that it matches, what they are, and the attribute
    keys of their parts.

    A span must match `name`, `scope` and every pattern of `attributes`; the first rule that matches
    decides. A tool or an agent without a key for its name is called by what the one `*` of `name`
    stands for.
    """

    kind: Literal["agent", "workflow", "chain", "model", "tool", "handoff", "retrieval", "other"]
    """Kind of the spans; `other` spans are no step."""
    name: Text = "*"
    """Pattern of the span's name, a shell glob."""
    scope: Text = "*"
    """Pattern of the name of the instrumentation scope."""
    attributes: Mapping[str, Text] = {}
    """Attribute key → pattern of its value as text."""
    agent: Text | None = None
    """Key of the agent's name; of a hand-off, of the agent that takes over."""
    tool: Text | None = None
    """Key of the tool's name."""
    arguments: Text | None = None
    """Key of the arguments of a tool call."""
    result: Text | None = None
    """Key of the result of a tool call."""
    model: Text | None = None
    """Key of the model's name."""
    input_tokens: Text | None = None
    """Key of the input tokens, cached ones included."""
    output_tokens: Text | None = None
    """Key of the output tokens."""
    session: Text | None = None
    """Key of the conversation's id."""
    task: Text | None = None
    """Key of what makes two runs attempts at the same work."""
    outcome: Text | None = None
    """Key of the outcome: a boolean, or a word like `success` or `failed`; of a run, or of a tool
    or model call.
    """


class MappingSettings(Struct, frozen=True):
    """Attributes of yours that hold what a convention does not: attribute keys, of which the first
    present is read.
    """

    agent: tuple[Text, ...] = ()
    """The agent's name."""
    session: tuple[Text, ...] = ()
    """The conversation a run belongs to."""
    task: tuple[Text, ...] = ()
    """Task: what makes two runs attempts at the same work."""
    outcome: tuple[Text, ...] = ()
    """True if the run succeeded."""
    confidence: tuple[Text, ...] = ()
    """Confidence of the agent, from 0 to 1."""
    cost: tuple[Text, ...] = ()
    """Cost of the run."""
    outcome_key: tuple[Text, ...] = ()
    """A business key (a ticket, an order) by which an outcome can name the run later; kept as a
    keyed hash.
    """
    spans: tuple[SpanRule, ...] = ()
    """Meaning of spans of your own. `inspect` proposes rules for a recording."""


class LimitSettings(Struct, frozen=True):
    """Memory of an engine. The limits that protect memory derive from it in proportion; each has a
    counter of what hit it.

    Of the other fields, those with default 0 are derived, and the rest are constants: they change
    numbers. Tests set them.
    """

    memory: Annotated[
        int,
        Meta(
            ge=1 << 20,
            extra={
                "units": SIZE,
                "allowed": "a size of at least 1MiB",
                "remedy": "write it like 512MiB",
            },
        ),
    ] = 1 << 30
    """Bytes that an engine may hold, estimated."""
    agents: Internal = 0
    """Agents with series of their own; the rest are counted together."""
    open_runs: Internal = 0
    """Open runs; above, the heaviest are closed."""
    open_bytes: Internal = 0
    """Estimated bytes of spans of open runs; above, the heaviest are closed."""
    reopenable_bytes: Internal = 0
    """Estimated bytes of spans of closed runs; above, the oldest can no longer be reopened."""
    closed_ids: Internal = 0
    """Remembered span ids of closed runs."""
    other_spans: Internal = 0
    """Spans of other kinds whose ids are kept for parent chains."""
    sessions: Internal = 0
    """Sessions, open or remembered."""
    evaluations: Internal = 0
    """Evaluations that wait for their run, for at most ten minutes."""
    span_limit: Internal = 10_000
    """Spans per run; longer runs are closed with reason `span_limit`."""
    tools: Internal = 200
    """Tool names per agent that attributes show; in paths every name counts."""
    tasks: Internal = 1_000
    """Tasks per agent that are distinguished."""
    rows: Internal = 100_000
    """Runs per window, whatever its rule says; the newest stay."""
    paths: Internal = 1_000
    """Distinct paths per group in pairwise metrics; the latest count."""
    recent_runs: Internal = 20
    """Whole runs kept per agent for the UI."""
    agent_idle: InternalSeconds = 86_400.0
    """Seconds after which an agent without runs expires."""

    def __post_init__(self) -> None:
        """Derive what is not given."""
        for name, size in BYTES_PER.items():
            if not getattr(self, name):
                force_setattr(self, name, max(1, self.memory // size))


BYTES_PER: Final[Mapping[str, int]] = {
    "agents": 52 << 10,
    "open_runs": 20 << 10,
    "open_bytes": 2,
    "reopenable_bytes": 8,
    "closed_ids": 512,
    "other_spans": 1 << 10,
    "sessions": 20 << 10,
    "evaluations": 100 << 10,
}
"""Bytes of `limits.memory` for which a limit grows by one."""


class ChangeSettings(Struct, frozen=True):
    """Change detection."""

    enabled: bool = True
    """True if behaviour is monitored for changes."""
    runs_per_false_alarm: Annotated[float, Meta(ge=1)] = 10_000.0
    """Runs, on average, from one false alarm to the next."""
    reference: Text | None = None
    """Recording of at least 60 observations that is an agent's reference; agents are matched by
    service, environment and name, or by name alone where only one agent in it has that name.
    """


class WatchSettings(Struct, frozen=True):
    """Bounds of open runs: one that exceeds a bound is reported while it runs. Without any, only
    windows bound it.
    """

    tokens: Count | None = None
    """Input and output tokens."""
    cost: Annotated[float, Meta(gt=0)] | None = None
    """Cost in USD."""
    calls: Count | None = None
    """Tool calls."""
    duration: Seconds | None = None
    """Seconds from its first span to its last."""
    failing_streak: Count | None = None
    """Retries of one failing call in a row."""
    repeats: Count | None = None
    """Calls that repeat one that succeeded, without a change in between."""
    factor: Annotated[float, Meta(ge=0)] = 2.0
    """Multiple of the greatest value in the agent's window, of 50 runs or more, that bounds an open
    run; 0: no such bound.
    """


class TelemetrySettings(Struct, frozen=True):
    """Metrics to emit."""

    standard_metrics: bool = False
    """True if the semantic conventions' own `gen_ai.invoke_agent.*` and
    `gen_ai.execute_tool.duration` are emitted too, for instrumentations that do not.
    """


class UISettings(Struct, frozen=True):
    """Addresses of the UI, and those that pages, reports and alerts link to."""

    url: Url | None = None
    """Address of the UI as people open it, such as `https://reliability.example.com`; alerts then
    link to it.
    """
    trace_url: TraceUrl | None = None
    """Address of a trace in your trace store, with `{trace_id}` in place of its id; pages and
    reports then link to it.
    """
    hosts: tuple[Text, ...] = ()
    """Further names under which browsers open the UI. Without a token, requests to it and to the
    API under other names of public DNS are refused.
    """
    base_path: BasePath | None = None
    """Path below which a reverse proxy has the UI and the API, such as `/reliability`; whether it
    passes the path on or removes it.
    """
    proxies: tuple[Text, ...] = ()
    """Addresses and networks of reverse proxies whose `X-Forwarded-Prefix` is used as the base
    path, such as `10.0.0.0/8`.
    """


class Settings(Struct, frozen=True):
    """All settings of one engine, validated as a whole.

    >>> Settings.load(
    ...     {"assembly": {"linger": "5s"}}, {"OTEL_RELIABILITY_ASSEMBLY_LINGER": "500ms"}
    ... ).assembly.linger
    0.5
    >>> Settings.load({"windows": [{"last": 50}, {"name": "day", "period": "10 min"}]})
    Traceback (most recent call last):
    ...
    otel_reliability.errors.ConfigurationError: windows[1].period: '10 min' is not a duration;
    write it like 10m, 1h30m or 250ms.
    """

    windows: tuple[WindowSettings, ...] = (WindowSettings("recent", last=100),)
    """Which runs count now; each agent has each of these windows."""
    assembly: AssemblySettings = AssemblySettings()
    outcome: OutcomeSettings = OutcomeSettings()
    metrics: MetricSettings = MetricSettings()
    inputs: InputSettings = InputSettings()
    sessions: SessionSettings = SessionSettings()
    tools: ToolSettings = ToolSettings()
    mapping: MappingSettings = MappingSettings()
    limits: LimitSettings = LimitSettings()
    change: ChangeSettings = ChangeSettings()
    telemetry: TelemetrySettings = TelemetrySettings()
    ui: UISettings = UISettings()
    watch: WatchSettings = WatchSettings()
    objectives: tuple[ObjectiveSettings, ...] = ()
    """Objectives, by pattern of agents; without one, an agent is failing where it
    fails more often than it succeeds.
    """
    agent_key: tuple[Text, ...] = ()
    """Resource or span attributes that are part of an agent's identity, such as service.version."""
    context_limits: Mapping[str, Count] = {}
    """Model name pattern → context window in tokens."""
    estimate_cost: bool = True
    """True if a model call whose cost is not reported costs its tokens at the list price of its
    model (`prices` extra).
    """
    hash_key: HexKey | None = None
    """Key of the argument hashes, hexadecimal; random per process if absent."""

    foreign_prefixes: ClassVar[tuple[str, ...]] = (SERVICE_PREFIX, KAFKA_PREFIX)
    """Prefixes of variables that are no settings of this class."""

    def __post_init__(self) -> None:
        """Check that windows have different names."""
        if not self.windows:
            raise ConfigurationError(
                "windows", [], "a list of at least one window", "leave it out for the last 100 runs"
            )
        name, count = Counter(window.name for window in self.windows).most_common(1)[0]
        if count > 1:
            names = [window.name for window in self.windows]
            raise ConfigurationError(
                "windows", names, "a list of windows with different names", f"rename one {name!r}"
            )

    def of_agent(self, name: str) -> Settings:
        """Return the settings with no objective but the agent's own.

        >>> both = Settings.load(
        ...     {"objectives": [{"agent": "refund*", "success": 0.95}, {"errors": 0.1}]}
        ... )
        >>> [one.errors for agent in ("refunds", "faq") for one in both.of_agent(agent).objectives]
        [None, 0.1]
        """
        if not self.objectives:
            return self
        own = self.objective_of(name)
        return replace(self, objectives=() if own is None else (own,))

    def objective_of(self, name: str) -> ObjectiveSettings | None:
        """Return the objective of an agent, the first one whose pattern matches."""
        return next((one for one in self.objectives if fnmatchcase(name, one.agent)), None)

    def __repr__(self) -> str:
        """Return the settings without the key."""
        return shown(self, without="hash_key")

    @classmethod
    def load(
        cls,
        file: Mapping[str, object] | None = None,
        env: Mapping[str, str] | None = None,
        **code: object,
    ) -> Self:
        """Return the settings of a file's mapping, overridden by the environment, overridden by
        code.

        Lists and mappings replace those below. Raises `ConfigurationError`.
        """
        return load(cls, code, base=cls.from_environment(env or {}, base=load(cls, file or {})))

    @classmethod
    def from_environment(cls, env: Mapping[str, str], *, base: Self | None = None) -> Self:
        """Return the settings of `OTEL_RELIABILITY_…` variables; the rest is taken from `base`."""
        ours = {
            name: value for name, value in env.items() if not name.startswith(cls.foreign_prefixes)
        }
        return load_environment(cls, ours, PREFIX, base=base, others=NOT_SETTINGS)
