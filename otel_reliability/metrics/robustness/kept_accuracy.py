"""What is left of an agent's accuracy under a perturbation: the one formula behind the three robustness metrics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from otel_reliability.config import Settings
from otel_reliability.metrics._support.outcomes import passes, told
from otel_reliability.metrics.base import DEFAULTS, Metric
from otel_reliability.metrics.evidence import OUTCOME
from otel_reliability.model.reading import NO_EVIDENCE, Reading
from otel_reliability.model.row import BASELINE, Row


def kept_share(passes: int, runs: int, baseline_passes: int, baseline_runs: int) -> float | None:
    """min(accuracy under the condition / baseline accuracy, 1); None without runs of both or a baseline above 0.

    >>> kept_share(2, 4, 4, 4), kept_share(4, 4, 1, 4), kept_share(2, 2, 0, 2)
    (0.5, 1.0, None)
    """
    if not runs or not baseline_passes:
        return None
    return min(passes / runs / (baseline_passes / baseline_runs), 1.0)


def kept_accuracy(perturbed: Sequence[float], baseline: Sequence[float]) -> float | None:
    """The share of its baseline accuracy that the agent keeps, from the outcomes of its runs under a condition and without.

    This is R_fault, R_struct and R_prompt, by what disturbed the runs. Accuracies are over the runs of all tasks together;
    an outcome below 1 is a failure.

    >>> kept_accuracy([1, 0, 0, 0], [1, 1, 1, 1])
    0.25
    """
    return kept_share(passes(perturbed), len(perturbed), passes(baseline), len(baseline))


class KeptAccuracy(Metric):
    """The share of its baseline accuracy that the agent keeps under `condition`. State: four integers.

    The only metrics that perturbed runs move. The runs of a reading are those of both sides; its note tells them apart.
    """

    __slots__ = ("_by_status", "_passed", "_runs")

    wants = OUTCOME

    of_outcomes = True

    condition: ClassVar[str]

    def __init__(self, settings: Settings = DEFAULTS) -> None:
        super().__init__(settings)
        self._by_status = 0
        self._runs = {self.condition: 0, BASELINE: 0}
        self._passed = {self.condition: 0, BASELINE: 0}

    def add(self, row: Row) -> None:
        self._move(row, 1)

    def evict(self, row: Row) -> None:
        self._move(row, -1)

    def _move(self, row: Row, step: int) -> None:
        success = row.success
        if success is not None and row.condition in self._runs:
            self._by_status += step * row.by_status
            self._runs[row.condition] += step
            self._passed[row.condition] += step * success

    def read(self) -> Reading:
        runs, baseline = self._runs[self.condition], self._runs[BASELINE]
        value = kept_share(self._passed[self.condition], runs, self._passed[BASELINE], baseline)
        if value is None:
            return NO_EVIDENCE
        reading = Reading(value, runs + baseline, note=f"{runs} {self.condition}, {baseline} baseline")
        return told(reading, self._by_status)
