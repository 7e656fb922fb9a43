"""loops: does the agent repeat calls that already succeeded?"""

from __future__ import annotations

from otel_reliability.config import Settings
from otel_reliability.metrics.base import DEFAULTS, SumMetric
from otel_reliability.metrics.data import CALLS, UNDISTURBED
from otel_reliability.metrics.stability.arguments import arguments_note
from otel_reliability.model.reading import NO_EVIDENCE, MetricSpec, Reading
from otel_reliability.model.row import BASELINE, Row


class Loops(SumMetric):
    """Repeats per run: calls of the same tool with the same arguments after a success (and, where known, the same result).

    Beside it the share of runs with any. A retry repeats a *failed* call and is counted apart. Needs 1 run with observable
    tools. State: integers.

    >>> from otel_reliability.metrics.examples import row
    >>> loops = Loops()
    >>> for repeats in (0, 0, 3, 1):
    ...     loops.add(row(repeats=repeats))
    >>> loops.value().value, loops.companion_values()[0].value
    (1.0, 0.5)

    References: this project; repetition without progress is what loop detectors of agent frameworks look for.
    """

    __slots__ = ("_looping", "_repeats", "_runs", "_unknown")

    requires = UNDISTURBED | CALLS

    spec = MetricSpec(
        name="loops",
        title="Repeated calls per run",
        family="stability",
        unit="{call}",
        high=None,
        direction="lower",
        description="How many calls per run repeat one that already succeeded, with the same arguments.",
        formula="Σ repeats / n",
        evidence="1 run with observable tools",
        source="this project",
        improve="Give the agent its earlier results back (they may have left its context), and limit its turns.",
        interval="runs",
    )
    companions = (
        MetricSpec(
            name="loop_share",
            title="Share of looping runs",
            family="stability",
            direction="lower",
            description="The share of runs that repeat a call that already succeeded.",
            formula="runs with a repeat / n",
            evidence="1 run with observable tools",
            source="this project",
            improve="As for repeated calls per run.",
            interval="share",
        ),
    )

    def __init__(self, settings: Settings = DEFAULTS) -> None:
        super().__init__(settings)
        self._runs = self._looping = self._repeats = self._unknown = 0

    def count(self, row: Row, sign: int) -> None:
        if row.retries is not None and row.condition == BASELINE:
            self._runs += sign
            self._unknown += sign * (not row.arguments_known)
            if row.retries.repeats:
                self._looping += sign
                self._repeats += sign * row.retries.repeats

    def value(self) -> Reading:
        return self._over_runs(self._repeats)

    def companion_values(self) -> tuple[Reading, ...]:
        return (self._over_runs(self._looping),)

    def _over_runs(self, count: int) -> Reading:
        if not self._runs:
            return NO_EVIDENCE
        return Reading(count / self._runs, self._runs, note=arguments_note(self._unknown, self._runs))
