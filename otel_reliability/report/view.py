"""The view of a report: plain values, built once from readings and windows, that every format and
every page renders.

The JSON report is its serialisation (`json.plain`): a field that has its default is left out, and
so is a field marked `HIDDEN`, which only terminals and pages draw. Its schema is
docs/reference/report.schema.json.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from otel_reliability.change.result import Result
from otel_reliability.contrast.parting import Ends
from otel_reliability.contrast.sample import Sample
from otel_reliability.metrics.passes.summary import ReliabilitySummary
from otel_reliability.metrics.stability.tables import (
    Decision,
    Divergence,
    TaskEffects,
    TaskRow,
    ToolUse,
)
from otel_reliability.metrics.stability.tier import Tier
from otel_reliability.metrics.success.verdict import Verdict
from otel_reliability.model.run import AgentKey, Run
from otel_reliability.statistics.contrast import Detectable
from otel_reliability.windows.session_scores import SessionScores

VERSION: Final = 1
"""Version of the JSON document: raised when a field changes its meaning or goes; new fields come
without.
"""
HIDDEN: Final[Mapping[str, bool]] = {"json": False}
"""Metadata of a field that is not part of the JSON document."""
MERGED: Final[Mapping[str, bool]] = {"merged": True}
"""Metadata of a value whose items are fields of the object itself in JSON."""
CALLED_VERDICT: Final[Mapping[str, str]] = {"name": "verdict"}
"""Metadata of a result under the name that version 1 of the JSON document has for it."""


class Instant(int):
    """Unix time in nanoseconds; RFC 3339 in JSON."""


# --- Numbers --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ReadingView:
    """A value, the runs behind it and its interval at 95 % confidence. `value` None: not enough
    data, which is neither 0 nor 1.

    `parts` names what an aggregate was made of, `note` limits or explains the value.
    """

    value: float | None
    runs: int
    parts: tuple[str, ...] = ()
    note: str = ""
    low: float | None = None
    high: float | None = None
    method: str = ""


@dataclass(frozen=True, slots=True)
class TaskAttempts:
    """The attempts at one task (None: all runs) with a known outcome."""

    task_id: str | None
    summary: ReliabilitySummary = field(metadata=MERGED)
    passed: int = field(metadata=HIDDEN)


@dataclass(frozen=True, slots=True)
class Passes:
    """pass^k and pass@k by k over tasks, and the attempts at each task."""

    pass_hat_k: Mapping[str, float | None]
    pass_at_k: Mapping[str, float | None]
    runs: int
    tasks: Sequence[TaskAttempts]


# --- Findings -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Cost:
    """The points that one part lowers the score by, of the most it can; `points` None: not enough
    data.

    With some parts not assessed, the others count for more: all points sum to 100 − score.
    """

    name: str
    points: float | None
    most: float


@dataclass(frozen=True, slots=True)
class ScoreReason:
    """One cause in words: its subject, the points it costs (None: it is no part of the score), a
    sentence and details.
    """

    title: str
    points: float | None
    sentence: str
    details: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ExplodingRun:
    """A run that retried a failing call too often, with the tokens and seconds of its retries."""

    run_id: str
    trace_id: str
    tool: str | None
    retries: int
    tokens: int
    seconds: float


@dataclass(frozen=True, slots=True)
class FullRun:
    """A run that came near the context limit."""

    run_id: str
    trace_id: str
    token_pressure: float


@dataclass(frozen=True, slots=True)
class UnusualRun:
    """A run whose path is far from those of the others of its task."""

    run_id: str
    trace_id: str
    path_distance: float
    task: str | None = field(metadata=HIDDEN)
    steps: int = field(metadata=HIDDEN)


@dataclass(frozen=True, slots=True)
class Findings:
    """The runs, tools and steps behind the numbers; each list begins with what to inspect first."""

    costs: tuple[Cost, ...]
    reasons: tuple[ScoreReason, ...]
    tools: tuple[ToolUse, ...]
    divergences: tuple[Divergence, ...]
    decisions: tuple[Decision, ...]
    exploding_runs: tuple[ExplodingRun, ...]
    runs_nearest_limit: tuple[FullRun, ...]
    runs_unlike_others: tuple[UnusualRun, ...]
    tasks_by_effects: tuple[TaskEffects, ...]


@dataclass(frozen=True, slots=True)
class Gap:
    """Data that `runs` of `of` runs lack: the numbers that need it, and how to add it."""

    missing: str
    unlocks: str
    remedy: str
    runs: int
    of: int


@dataclass(frozen=True, slots=True)
class QualityFinding:
    """A flaw of telemetry (`model.flaws`) in `count` of `of` runs, or `count` spans of a recording:
    the numbers that it affects, and what to change at the source.

    `decisive`: it can turn a verdict.
    """

    kind: str
    finding: str
    count: int
    of: int
    unit: str
    affects: str
    remedy: str
    decisive: bool


# --- Compression of the context -------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CompressionEffect:
    """Number of the calls before a compression, and of those after it, that failed, were retries or
    were repeats.

    `p` is the probability of so large a difference by chance, adjusted for the number of
    differences (Holm).
    """

    name: str
    before: int
    calls_before: int
    after: int
    calls_after: int
    p: float
    more_than_chance: bool


@dataclass(frozen=True, slots=True)
class CompressionView:
    """The compressions of an agent's context: those that succeeded, in how many `runs` of how many,
    and those that failed.

    Tokens are sums over those that report both. `compared` runs have calls before and after their
    first compression; `effects` compare these, and are absent for fewer than 5 runs.
    """

    compressions: int
    failed: int
    runs: int
    of: int
    tokens_before: int
    tokens_after: int
    compared: int
    effects: tuple[CompressionEffect, ...]


# --- Change of behaviour --------------------------------------------------------------------------


BEHAVIOUR: Final = "behaviour"
"""The kind of a mark of a change of behaviour."""


@dataclass(frozen=True, slots=True)
class ChangeMark:
    """A change of behaviour: about when it began, and its sentence; or a change point, of this
    `kind`.
    """

    since: Instant
    sentence: str
    kind: str = BEHAVIOUR


@dataclass(frozen=True, slots=True)
class ChangeView:
    """The result of change detection for an agent.

    `evidence` is what stands behind the sentence: alarms of one recording, tests of two. `state` is
    one of changed, watching, learning, none (no result) or off; `since` is the command line that
    shows the agent since its last change; `acknowledged`: whether a user has acknowledged the last
    one.
    """

    result: Result = field(metadata=CALLED_VERDICT)
    sentence: str
    state: str = field(metadata=HIDDEN)
    note: str = ""
    evidence: Mapping[str, Any] = field(default_factory=dict[str, Any], metadata=MERGED)
    marks: tuple[ChangeMark, ...] = field(default=(), metadata=HIDDEN)
    since: str = field(default="", metadata=HIDDEN)
    acknowledged: bool = field(default=False, metadata=HIDDEN)


# --- Failures over time ---------------------------------------------------------------------------


class End(NamedTuple):
    """The end of the run of this number (from 1), and what it worked on: its task, else the number
    of its kind of request.
    """

    run_id: str
    end_ns: int
    start_ns: int
    number: int
    failed: bool
    by_error: bool | None
    work: str | int | None


@dataclass(frozen=True, slots=True)
class FailureShift:
    """The cut of the runs of an agent into those before and those after, whose shares of failures
    differ by more than chance.

    `since` and `run` are when the first run after it began, and its number. `failed` of `runs` are
    those before and after. `p` is the probability of so good a cut anywhere if the same failures
    came in random order. `by_error`: all failed by an error, and no outcome is known. `other_work`:
    other work may be why, as runs of one task or kind of request fail no more often than before.
    """

    since: Instant
    run: int
    failed: tuple[int, int]
    runs: tuple[int, int]
    p: float
    by_error: bool
    other_work: bool
    sentence: str

    @property
    def is_worse(self) -> bool:
        """Return whether a larger share fails since then."""
        return self.failed[1] * self.runs[0] > self.failed[0] * self.runs[1]


# --- Groups of runs that do the same work ---------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RequestGroup:
    """The runs of an agent that do the same kind of work: those of a task, of an input that the
    telemetry names, or with alike requests (`kind`: task, input or requests).

    `id` is the name of the task or the input, else a letter that the group keeps; `name` the same,
    or the one that a person gave it. `known` runs have a known outcome. `retries`, `tokens` and
    `cost` (USD) are means over the runs that have them; `trend` is the success rate of the later
    half of the runs less that of the earlier half. `trace_ids` are examples: failed runs, then
    unusual ones.
    """

    id: str
    kind: str
    name: str | None
    runs: int
    known: int
    success_rate: float | None
    error_rate: float | None
    distinct_paths: int | None
    path_entropy: float | None
    retries: float | None
    tokens: float | None
    cost: float | None
    trend: float | None
    usual_path: tuple[str, ...]
    trace_ids: tuple[str, ...]


# --- One agent, all agents ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ScorePoint:
    """The score when the newest run had ended at `ns`."""

    ns: int
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentView:
    """One agent: its verdict, every reading with the runs behind it, the findings, the missing
    data, the flaws of its telemetry and the caveats.

    `success_rate` and `error_rate` are the values of these metrics. `grade` is the tier by whose
    colour and rank the agent is shown: the worse of success and stability. `runs` leaves perturbed
    runs out; `start` and `end` are those of its first and last run. `runs_left_out` counts the runs
    that did not fit into the window. `why` is what failing runs have in common, the strongest
    first, and `why_note` what was contrasted, or why nothing was; `contrasts` are the same of runs
    that stand out. `request_groups` are the kinds of
    work, the one that goes wrong most first. `price_table` is the version and the date of the list
    prices behind costs that no telemetry reports; empty without costs. Of the hidden fields,
    `first_run` is the id of the run that began first, `history` is the score over time (oldest
    first), `recent` the last whole runs (oldest first), `exceeding` a line for each open run beyond
    a bound, `task_outcomes` (passed, known) by task, `paths` the number of baseline runs by (task,
    path), `path_ends` how many of them fail; `distances` are path distances by run id, `pressures`
    the shares of the context window that runs filled, `retry_threshold` the setting that counted
    retry explosions.
    """

    key: AgentKey = field(metadata=MERGED)
    verdict: Verdict
    grade: Tier | None
    success_rate: float | None
    error_rate: float | None
    runs: int
    perturbed_runs: Mapping[str, int]
    start: Instant
    end: Instant
    runs_left_out: int
    score: float | None
    score_coverage: float | None
    score_note: str
    tier: Tier | None
    badge: str | None
    flags: tuple[str, ...]
    outcomes: Mapping[str, int]
    metrics: Mapping[str, ReadingView]
    evaluation: Mapping[str, Any]
    passes: Passes
    sessions: Sequence[SessionScores]
    tasks: Sequence[TaskRow]
    findings: Findings
    missing: Sequence[Gap]
    data_quality: Sequence[QualityFinding]
    caveats: Sequence[str]
    change: ChangeView | None = None
    shift: FailureShift | None = None
    compression: CompressionView | None = None
    why: Sequence[WhyFinding] = ()
    why_note: str = ""
    contrasts: Sequence[ContrastView] = ()
    request_groups: Sequence[RequestGroup] = ()
    price_table: str = ""

    first_run: str = field(metadata=HIDDEN)
    task_count: int = field(metadata=HIDDEN)
    one_sided: bool = field(metadata=HIDDEN)
    task_outcomes: Mapping[str | None, tuple[int, int]] = field(metadata=HIDDEN)
    paths: Mapping[tuple[str | None, tuple[str, ...]], int] = field(metadata=HIDDEN)
    path_ends: Mapping[tuple[str | None, tuple[str, ...]], Ends] = field(metadata=HIDDEN)
    distances: Mapping[str, float] = field(metadata=HIDDEN)
    pressures: Mapping[str, float] = field(metadata=HIDDEN)
    retry_threshold: int = field(metadata=HIDDEN)
    samples: Sequence[Sample] = field(default=(), metadata=HIDDEN)
    history: Sequence[ScorePoint] = field(default=(), metadata=HIDDEN)
    ends: Sequence[End] = field(default=(), metadata=HIDDEN)
    recent: Sequence[Run] = field(default=(), metadata=HIDDEN)
    exceeding: Sequence[str] = field(default=(), metadata=HIDDEN)

    @property
    def agent(self) -> str:
        return self.key.agent

    @property
    def passed(self) -> int:
        return self.outcomes["success"]

    @property
    def known(self) -> int:
        """The runs with a known outcome."""
        return self.outcomes["success"] + self.outcomes["failure"]


@dataclass(frozen=True, slots=True)
class ComparedReading:
    """One number before and after. `change` is None where either side has no value;
    `more_than_chance` None: not tested.
    """

    change: float | None
    result: str = field(metadata=CALLED_VERDICT)
    more_than_chance: bool | None
    before: ReadingView
    after: ReadingView


@dataclass(frozen=True, slots=True)
class WhyFinding:
    """Feature that failing runs have in common: a kind of feature, the tools or values that it is
    about, and its sentence.

    `shares` are the shares of runs that fail, with the feature and without it, `runs` how many runs
    these are; of a number, its means over the failing runs and the others. `p` is adjusted for the
    number of features, `p_within` the same within tasks (else input groups). `traces` show it.
    """

    feature: str
    names: tuple[str, ...]
    sentence: str
    shares: tuple[float | None, float | None]
    runs: tuple[int, int]
    p: float
    p_within: float | None
    traces: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ContrastView:
    """Features that some runs have in common: the slowest (`slow`), the most expensive (`costly`)
    or those least like the others (`unlike`). `note` is what was contrasted, or why nothing was;
    the shares and means of a finding are of these runs in the place of failing ones.
    """

    question: str
    note: str
    findings: Sequence[WhyFinding]


@dataclass(frozen=True, slots=True)
class GroupView:
    """A set of runs that is compared: the value that all have (a model, a version, a prompt), or
    `before` and `now`; when its first run began, and that run's trace.
    """

    name: str
    runs: int
    start: Instant
    trace_id: str


@dataclass(frozen=True, slots=True)
class SideView:
    """The runs of one side of which a feature is known, how many have it (None for a number), and
    the share or the mean.
    """

    runs: int
    having: int | None
    value: float | None


@dataclass(frozen=True, slots=True)
class DifferenceView:
    """A feature that differs between two sets of runs by more than chance: its kind, the tools or
    values that it is about, and its sentence.

    `p` is adjusted for the number of features. `run_ids` and `trace_ids` are the runs that show it
    most clearly.
    """

    feature: str
    names: tuple[str, ...]
    sentence: str
    before: SideView
    after: SideView
    p: float
    run_ids: tuple[str, ...]
    trace_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Chance:
    """The test behind `more_than_chance`: the level over all numbers compared, and the correction
    for their number.
    """

    level: float
    correction: str
    compared: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentComparison:
    """An agent of both recordings: what differs between its runs, and every number that either has.

    `groups` are the two sets of runs, the earlier first. `differs` None: there are too few runs to
    compare. `sentence` says the same in words, as every surface shows it, with the size of
    difference that the runs could have shown where nothing differs (`detectable`: of a share, and
    of a mean in standard deviations). `shared_tasks` is the share of runs whose task the other side
    has too, None where not all tasks are known.
    """

    key: AgentKey = field(metadata=MERGED)
    groups: tuple[GroupView, GroupView]
    sentence: str
    differs: bool | None
    differences: Sequence[DifferenceView]
    detectable: Detectable | None
    shared_tasks: float | None
    metrics: Mapping[str, ComparedReading]
    chance: Chance
    old: AgentView = field(metadata=HIDDEN)
    new: AgentView = field(metadata=HIDDEN)


@dataclass(frozen=True, slots=True)
class Baseline:
    """The agents of both recordings, and those of one only."""

    agents: Sequence[AgentComparison]
    only_before: Sequence[AgentKey]
    only_after: Sequence[AgentKey]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportView:
    """A report on a recording.

    - `agents`: one view an agent, in the order of their keys.
    - `spans`: the spans by disposition; `span_reasons`: the same by disposition and reason.
    - `problems`: lines and spans that could not be read, by reason; `attributes_refused`:
      attributes with values out of range.
    - `data_quality`: flaws of spans that belong to no run.
    - `notes`: the limits that were reached, a sentence each.
    """

    version: int = field(default=0)
    agents: Sequence[AgentView]
    spans: Mapping[str, int]
    span_reasons: Mapping[str, Mapping[str, int]]
    problems: Mapping[str, int]
    attributes_refused: Mapping[str, Mapping[str, int]]
    data_quality: Sequence[QualityFinding]
    notes: Sequence[str]
    baseline: Baseline | None = None
