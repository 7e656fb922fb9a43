"""Everything a report tells of one agent, gathered once: the renderers only write it down."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from otel_reliability.config import Settings
from otel_reliability.metrics import SPECS
from otel_reliability.metrics.base import one_sided
from otel_reliability.metrics.passes import PassAtK, PassHatK, ReliabilitySummary, summaries
from otel_reliability.metrics.sessions import gauges
from otel_reliability.metrics.stability.badge import badge_text
from otel_reliability.metrics.stability.task_table import TaskRow, task_table
from otel_reliability.metrics.stability.tiers import Tier, tier_of
from otel_reliability.metrics.uncertainty import intervals
from otel_reliability.model.reading import MetricSpec, Reading
from otel_reliability.model.row import Row
from otel_reliability.model.run import AgentKey, Outcome
from otel_reliability.report.findings import Findings, findings_of
from otel_reliability.statistics.intervals import Interval
from otel_reliability.windows.recent_sessions import LAST, RecentSessions
from otel_reliability.windows.session import SessionScores
from otel_reliability.windows.window import AgentWindow

ALL_SPECS: Final[Mapping[str, MetricSpec]] = {spec.name: spec for spec in (*SPECS, *gauges.SPECS)}
"""Every number of a scorecard that has a name, in the order of reports."""


class Passes(NamedTuple):
    """What several attempts tell: the series by k, and the summary of each task (None: the runs are attempts at one)."""

    hat: Mapping[int, Reading]
    at: Mapping[int, Reading]
    summaries: Mapping[str | None, ReliabilitySummary]


class Scorecard(NamedTuple):
    """One agent. Times are those of its first run's start and its last run's end; `runs` leaves perturbed runs out.

    - `left_out`: how many of its runs the window left out because there were too many.
    - `outcomes`: how many of the runs ended how; `by_status`: successes that are no more than an end without error.
    - `intervals`: within which bounds a number lies, by metric; empty where they were not asked for.
    """

    key: AgentKey
    runs: int
    perturbed: Mapping[str, int]
    start_ns: int
    end_ns: int
    left_out: int
    readings: Mapping[str, Reading]
    outcomes: Mapping[Outcome, int]
    by_status: int
    tasks: Sequence[TaskRow]
    passes: Passes
    sessions: Sequence[SessionScores]
    findings: Findings
    rows: Sequence[Row]
    intervals: Mapping[str, Interval]

    @property
    def score(self) -> float | None:
        """The reliability score; None: its reading's note says what is missing."""
        return self.readings["score"].value

    @property
    def tier(self) -> Tier | None:
        """The grade of the score."""
        return None if self.score is None else tier_of(self.score)

    @property
    def badge(self) -> str | None:
        """The badge line, without the half that is not ours."""
        return None if self.score is None else badge_text(self.score)

    @property
    def flags(self) -> tuple[str, ...]:
        """The flags that are set."""
        return self.readings["flag"].parts

    @property
    def known(self) -> int:
        """How many outcomes are known."""
        return self.outcomes.get(Outcome.SUCCESS, 0) + self.outcomes.get(Outcome.FAILURE, 0)

    @property
    def one_sided(self) -> bool:
        """Whether only failures are known: no pass rate can be had."""
        return one_sided(self.runs, self.known, self.outcomes.get(Outcome.SUCCESS, 0))


def scorecard(
    key: AgentKey, window: AgentWindow, sessions: Sequence[SessionScores], settings: Settings, most_for_intervals: int
) -> Scorecard:
    """The scorecard of an agent whose window holds at least one run.

    Intervals cost some 3 ms a run, so they are computed for windows of at most `most_for_intervals` runs.
    """
    rows = window.rows()
    baseline = [row for row in rows if row.baseline]
    readings = {**window.readings(), **_session_readings(sessions)}
    return Scorecard(
        key=key,
        runs=len(baseline),
        perturbed=Counter(row.condition for row in rows if not row.baseline),
        start_ns=min(row.start_ns for row in rows),
        end_ns=rows[-1].end_ns,
        left_out=window.turnover + window.refused,
        readings=readings,
        outcomes=Counter(row.outcome for row in baseline),
        by_status=sum(row.by_status for row in baseline),
        tasks=task_table(rows, settings),
        passes=_passes(window, rows),
        sessions=sessions,
        findings=findings_of(window, rows, readings, settings),
        rows=rows,
        intervals=intervals(rows, settings) if len(rows) <= most_for_intervals else {},
    )


def by_task(rows: Sequence[Row]) -> dict[str | None, list[Row]]:
    """The baseline runs of each task; under None those without one."""
    tasks: dict[str | None, list[Row]] = {}
    for row in rows:
        if row.baseline:
            tasks.setdefault(row.task, []).append(row)
    return tasks


def _passes(window: AgentWindow, rows: Sequence[Row]) -> Passes:
    if window.one_sided:
        return Passes({}, {}, {})
    return Passes(_series(window, "pass_hat_k"), _series(window, "pass_at_k"), summaries(rows))


def _series(window: AgentWindow, name: str) -> Mapping[int, Reading]:
    metric = window.metric(name)
    return metric.by_k() if isinstance(metric, PassAtK | PassHatK) else {}


def _session_readings(sessions: Sequence[SessionScores]) -> dict[str, Reading]:
    """As a running engine tells them: of the last 100 sessions."""
    recent = RecentSessions()
    for scores in sessions[-LAST:]:
        recent.put(scores)
    return recent.readings()
