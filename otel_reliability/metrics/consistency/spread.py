"""confidence_consistency (C_conf) and resource_consistency (C_res): how far attempts at a task spread."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from otel_reliability.config import Settings
from otel_reliability.metrics._support.exact import units
from otel_reliability.metrics._support.groups import RunGroup, Share, TaskMean, of_one_task
from otel_reliability.metrics._support.means import mean_of_present, present
from otel_reliability.metrics.data import CONFIDENCE, TASK, UNDISTURBED
from otel_reliability.model.reading import MetricSpec
from otel_reliability.model.row import Row


class Spread:
    """Count, sum and sum of squares of whole numbers: enough for a coefficient of variation.

    The coefficient is a ratio, so the unit of the numbers (nanoseconds, `exact.units`) does not matter, as long as it is one.

    >>> spread = Spread()
    >>> for cost in (1, 2, 3):
    ...     spread.add(cost)
    >>> spread.variation()
    0.5
    >>> spread.evict(3)
    >>> round(spread.variation(), 6)
    0.471405
    """

    __slots__ = ("count", "squares", "total")

    def __init__(self) -> None:
        self.count = 0
        self.total = 0
        self.squares = 0

    def add(self, value: int) -> None:
        """A value enters."""
        self.count += 1
        self.total += value
        self.squares += value * value

    def evict(self, value: int) -> None:
        """A value that was added leaves."""
        self.count -= 1
        self.total -= value
        self.squares -= value * value

    def variation(self) -> float | None:
        """Sample standard deviation (K − 1) over mean; None with fewer than 2 values or without a mean above 0."""
        n, total = self.count, self.total
        if n < 2 or total <= 0:
            return None
        return math.sqrt(n * (n * self.squares - total * total) / ((n - 1) * total * total))


def variation(values: Iterable[float]) -> float | None:
    """Sample standard deviation (K − 1) over mean of plain numbers; None with fewer than 2 or without a mean above 0.

    >>> variation([1, 2, 3])
    0.5
    """
    spread = Spread()
    for value in values:
        spread.add(units(float(value)))
    return spread.variation()


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


ERRORS: Final = "errors"
KINDS: Final = ("cost", "time", "model_calls", "actions", ERRORS, "latency")
"""What an attempt can cost: money, duration, model calls, tool calls, failed tool calls, mean duration of a model call."""


def is_evidence(kind: str, amount: float) -> bool:
    """Return whether an attempt's amount of a resource counts: 0 is missing, for most meters report 0 for *not measured*.

    Errors keep their zeros: no failed call is a fact.

    >>> is_evidence("cost", 0.0), is_evidence("errors", 0)
    (False, True)
    """
    return amount > 0 or (kind == ERRORS and amount == 0)


def resource_consistency(tasks: Iterable[Mapping[str, Sequence[float | None]]]) -> float | None:
    """C_res: exp(−mean CV over the kinds a task has evidence of), CV with K − 1, then the mean over tasks.

    Each task maps kinds (`KINDS`) to one amount an attempt. A kind needs 2 amounts and a mean above 0. All attempts
    count, whatever their outcome.

    >>> round(resource_consistency([{"cost": [1, 2, 3], "errors": [0, 0, 0]}]), 4)
    0.6065
    """
    return mean_of_present(_of_task(task) for task in tasks)


def _of_task(task: Mapping[str, Sequence[float | None]]) -> float | None:
    kinds = (variation(_evidence(kind, task.get(kind, ()))) for kind in KINDS)
    return steadiness(mean_of_present(kinds))


def _evidence(kind: str, amounts: Sequence[float | None]) -> list[float]:
    return [amount for amount in present(amounts) if is_evidence(kind, amount)]


def amounts(row: Row) -> tuple[int | None, ...]:
    """Return the cost of a run, in the order of `KINDS`, where it counts: whole numbers, each kind in a unit of its own."""
    return (
        units(row.cost) if row.cost else None,
        max(row.end_ns - row.start_ns, 0) or None,
        row.model_calls or None,
        row.tool_calls or None,
        row.failed_calls,
        row.latency_ns or None,
    )


class _Resources(RunGroup):
    __slots__ = ("_spreads",)

    def __init__(self) -> None:
        super().__init__()
        self._spreads = tuple(Spread() for _ in KINDS)

    def add(self, row: Row) -> None:
        for spread, amount in zip(self._spreads, amounts(row), strict=True):
            if amount is not None:
                spread.add(amount)

    def evict(self, row: Row) -> None:
        for spread, amount in zip(self._spreads, amounts(row), strict=True):
            if amount is not None:
                spread.evict(amount)

    def share(self) -> Share | None:
        kinds = mean_of_present(spread.variation() for spread in self._spreads)
        return of_one_task(steadiness(kinds), self.runs)


class ResourceConsistency(TaskMean[_Resources]):
    """C_res over the window: per task, then the mean over tasks that have a kind of resource to compare.

    State: for each kind of resource a count, a sum and a sum of squares in whole numbers, a task. Reading computes the tasks
    that changed.

    >>> from otel_reliability.metrics.examples import row
    >>> metric = ResourceConsistency()
    >>> for cost in (1.0, 2.0, 3.0):
    ...     metric.add(row(task="refund", start_ns=0, end_ns=0, cost=cost))
    >>> print(f"{metric.value().value:.4f}")
    0.6065

    References: HAL Reliability, *Methodology*, "Resource Consistency".
    """

    __slots__ = ()

    spec = MetricSpec(
        name="resource_consistency",
        title="Resource consistency (C_res)",
        family="consistency",
        direction="higher",
        description="Whether attempts at a task take about the same money, time, model calls, tool calls, errors and latency.",
        formula="mean over tasks of exp(−mean CV over the kinds with evidence), CV with K − 1",
        evidence="2 runs of one task",
        source="HAL reliability, evaluation methodology: C_res",
        improve="Find the kind that varies most, then the runs at its ends: retries and detours cost first.",
        interval="tasks",
    )

    def new_group(self, settings: Settings) -> Callable[[], _Resources]:
        return _Resources
