"""confidence_consistency (C_conf): is the agent equally sure of itself in each attempt at a task?"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

from otel_reliability.config import Settings
from otel_reliability.metrics._support.exact import units
from otel_reliability.metrics._support.groups import RunGroup, Share, TaskMean, of_one_task
from otel_reliability.metrics._support.means import mean_of_present, present
from otel_reliability.metrics.consistency.spread import Spread, variation
from otel_reliability.metrics.data import CONFIDENCE, TASK, UNDISTURBED
from otel_reliability.model.reading import MetricSpec
from otel_reliability.model.row import Row


def steadiness(variation: float | None) -> float | None:
    """exp(−CV): 1 for no variation, towards 0 as it grows; None for None.

    >>> steadiness(0.0), steadiness(None)
    (1.0, None)
    """
    return None if variation is None else math.exp(-variation)


def confidence_consistency(tasks: Iterable[Sequence[float | None]]) -> float | None:
    """C_conf: exp(−s / mean) of the confidences of a task's attempts, s with K − 1, then the mean over tasks.

    All attempts count, whatever their outcome; those without a confidence are left out. A task needs 2 confidences and a
    mean above 0. It is no part of `consistency`.

    >>> round(confidence_consistency([[0.8, 0.8, 0.8], [0.5, 1.0, None]]), 4)
    0.8121
    """
    return mean_of_present(steadiness(variation(present(confidences))) for confidences in tasks)


class _Confidences(RunGroup):
    __slots__ = ("_spread",)

    def __init__(self) -> None:
        super().__init__()
        self._spread = Spread()

    def add(self, row: Row) -> None:
        if row.confidence is not None:
            self._spread.add(units(row.confidence))

    def evict(self, row: Row) -> None:
        if row.confidence is not None:
            self._spread.evict(units(row.confidence))

    def share(self) -> Share | None:
        return of_one_task(steadiness(self._spread.variation()), self.runs)


class ConfidenceConsistency(TaskMean[_Confidences]):
    """C_conf over the window: per task, then the mean over tasks with 2 confidences, each weighing the same.

    State: exact sums of confidences and of their squares, one pair a task. Reading computes the tasks that changed.

    >>> from otel_reliability.metrics.examples import row
    >>> metric = ConfidenceConsistency()
    >>> for confidence in (0.5, None, 1.0):
    ...     metric.add(row(task="refund", confidence=confidence))
    >>> print(f"{metric.value().value:.4f}", metric.value().runs)
    0.6241 2

    References: HAL Reliability, *Methodology*, "Confidence Consistency".
    """

    __slots__ = ()

    requires = UNDISTURBED | TASK | CONFIDENCE

    spec = MetricSpec(
        name="confidence_consistency",
        title="Confidence consistency (C_conf)",
        family="consistency",
        direction="higher",
        description="Whether the agent is equally sure of itself in each attempt at a task.",
        formula="mean over tasks of exp(−s/mean of confidence), s with K − 1",
        evidence="2 runs of one task with a confidence, of a mean above 0",
        source="HAL reliability, evaluation methodology: C_conf",
        improve="Ask for the confidence in the same words and at the same point of each run.",
        interval="tasks",
    )

    def new_group(self, settings: Settings) -> Callable[[], _Confidences]:
        return _Confidences

    def counts(self, row: Row) -> bool:
        return row.confidence is not None and super().counts(row)
