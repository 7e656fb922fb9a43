"""Settings: frozen values, from code, a mapping (a YAML file's), or the environment.

Every field has its default here, its meaning beneath it, and its environment variable by rule: the path of the field in
upper case behind `OTEL_RELIABILITY_` (`assembly.idle_timeout` is `OTEL_RELIABILITY_ASSEMBLY_IDLE_TIMEOUT`). Durations are
seconds as numbers here, and are written like `10m` or `1h30m` outside.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True, slots=True)
class WindowSettings:
    """Which runs count now: the last `last` runs, and/or those of the last `period` seconds."""

    name: str = "recent"
    last: int | None = 100
    period: float | None = None


@dataclass(frozen=True, slots=True)
class AssemblySettings:
    """From spans to runs (DESIGN §3)."""

    linger: float = 2.0
    """Seconds that a run whose root has ended waits for stragglers."""
    idle_timeout: float = 600.0
    """Seconds without a span after which a run whose root never came is closed."""
    reopen: float = 60.0
    """Seconds after closing in which a late span reopens the run."""
    remember: float = 900.0
    """Seconds, at least, for which the ids of closed runs are remembered."""
    span_limit: int = 10_000
    """Spans after which a run is closed at once."""
    open_runs: int = 50_000
    """Open runs; above, the heaviest are closed."""
    open_bytes: int = 512 * 1024 * 1024
    """Estimated bytes of spans of open runs; above, the heaviest are closed."""
    reopenable_bytes: int = 128 * 1024 * 1024
    """Estimated bytes of spans kept of closed runs; above, the oldest can no longer be reopened."""
    closed_ids: int = 2_000_000
    """Span ids of closed runs that are remembered."""
    other_spans: int = 1_000_000
    """Spans of other kinds whose ids are kept for parent chains."""
    parallel: Literal["canonical", "as_started"] = "canonical"
    """The order of calls within a parallel group: by name, or by the clock."""
    run_key: str | None = None
    """An attribute whose value groups spans into runs where no agent span does."""


@dataclass(frozen=True, slots=True)
class OutcomeSettings:
    """When a run is a success (DESIGN §3.8)."""

    reward_threshold: float = 1.0
    """`reliability.run.reward` from which a run is a success."""
    fallback: Literal["none", "status"] = "none"
    """`status` counts an end without error as success, and every reading that rests on it says so."""
    evaluations: tuple[str, ...] = ("task_success", "success", "correctness", "goal_completion")
    """Names of evaluations that tell the outcome."""


@dataclass(frozen=True, slots=True)
class MetricSettings:
    """How metrics count (DESIGN §4.2, §5)."""

    group_by: Literal["task", "none"] = "task"
    """Whether path metrics are computed per task, or over all runs of the window together."""
    retry_threshold: int = 3
    """Retries of one call from which a run explodes: the fourth attempt exceeds 3."""
    min_runs: int = 5
    """Runs below which there is no score, tier or badge (2 in reports)."""
    min_coverage: float = 60.0
    """Points of the 100 whose parts must have evidence for a score."""
    pressure_flag: float = 0.8
    """Mean token budget pressure above which the flag `token_pressure_high` is set."""
    profile: Literal["published", "hal-harness"] = "published"
    """Which form of the evaluation metrics: as published, or as their authors' code computes them today."""


@dataclass(frozen=True, slots=True)
class SessionSettings:
    """Session scores (DESIGN §5.3)."""

    idle: float = 1800.0
    """Seconds without a run after which a session is scored."""
    derive: bool = True
    """Whether loop_detection and tool_correctness are derived from the runs where no evaluation gives them."""
    weights: Mapping[str, float] = field(default_factory=dict)
    """Signal weights, merged over confidence 1, loop_detection 1, tool_correctness 0.8, coherence 1."""


@dataclass(frozen=True, slots=True)
class ToolSettings:
    """Which tools change the world (DESIGN §5.6), and how names are cleaned. Patterns are shell globs."""

    effects: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    helpers: tuple[str, ...] = ("TodoWrite", "TodoRead", "ToolSearch", "Skill")
    ignore: tuple[str, ...] = ()
    """Tools that are no step."""
    rename: Mapping[str, str] = field(default_factory=dict)
    """Pattern → name: `fetch_page_*` → `fetch_page` makes variants one tool."""
    soft_errors: tuple[str, ...] = ()
    """Regular expressions on a captured result that make the call a failed one."""


@dataclass(frozen=True, slots=True)
class MappingSettings:
    """Attributes of yours that say what a convention cannot: attribute keys, first that is there."""

    agent: tuple[str, ...] = ()
    session: tuple[str, ...] = ()
    task: tuple[str, ...] = ()
    outcome: tuple[str, ...] = ()
    confidence: tuple[str, ...] = ()
    cost: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LimitSettings:
    """Ceilings (DESIGN §4.4). Each has a counter of what hit it."""

    agents: int = 400
    tools: int = 200
    tasks: int = 1_000
    sessions: int = 50_000
    paths: int = 1_000
    """Distinct paths a group in pairwise metrics; the latest count."""
    agent_idle: float = 86_400.0
    """Seconds after which an agent without runs expires."""
    recent_runs: int = 20
    """Whole runs kept an agent, for pages."""
    evaluations: int = 10_000
    """Evaluations that wait for their run, for at most ten minutes."""


@dataclass(frozen=True, slots=True)
class ChangeSettings:
    """Change detection (DESIGN §5.7)."""

    enabled: bool = True
    signals: tuple[str, ...] = ("path", "calls", "failed_calls", "output_tokens", "largest_input", "outcome")
    runs_per_false_alarm: float = 10_000.0
    reference: str | None = None
    """A recording whose first 40 units are the reference."""


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings of one engine."""

    windows: tuple[WindowSettings, ...] = (WindowSettings(),)
    assembly: AssemblySettings = AssemblySettings()
    outcome: OutcomeSettings = OutcomeSettings()
    metrics: MetricSettings = MetricSettings()
    sessions: SessionSettings = SessionSettings()
    tools: ToolSettings = ToolSettings()
    mapping: MappingSettings = MappingSettings()
    limits: LimitSettings = LimitSettings()
    change: ChangeSettings = ChangeSettings()
    agent_key: tuple[str, ...] = ()
    """Resource or span attributes that are part of an agent's identity, such as service.version."""
    context_limits: Mapping[str, int] = field(default_factory=dict)
    """Model name pattern → context window in tokens."""
    hash_key: str | None = None
    """Key of the argument hashes, hexadecimal; random per process if absent."""
