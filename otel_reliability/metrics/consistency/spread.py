"""confidence_consistency (C_conf) and resource_consistency (C_res): how far attempts at a task
spread.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable

from otel_reliability.metrics._support.group_metric import TaskMean
from otel_reliability.metrics._support.run_group import RunGroup, Share
from otel_reliability.metrics._support.sums import mean_of_present, units
from otel_reliability.metrics.base import CONFIDENCE, TASK, UNDISTURBED
from otel_reliability.model.reading import MetricSpec
from otel_reliability.model.row import Row


class Spread:
    """Count, sum and sum of squares of whole numbers: enough for a coefficient of variation.

    The coefficient is a ratio, so the unit of the numbers (nanoseconds, `sums.units`) does not
    matter, as long as it is one.

    >>> spread = Spread()
    >>> for cost in (1, 2, 3):
    ...     spread.count(cost)
    >>> spread.variation()
    0.5
    >>> spread.count(3, -1)
    >>> round(spread.variation(), 6)
    0.471405
    """

    __slots__ = ("_count", "_squares", "_total")

    def __init__(self) -> None:
        self._count = self._total = self._squares = 0

    def count(self, value: int, sign: int = 1) -> None:
        """Count a value that enters (1) or leaves (-1)."""
        self._count += sign
        self._total += sign * value
        self._squares += sign * value * value

    def variation(self) -> float | None:
        """Sample standard deviation (K − 1) over mean; None with fewer than 2 values or without a
        mean above 0.
        """
        n = self._count
        total = self._total
        if n < 2 or total <= 0:
            return None
        return math.sqrt(n * (n * self._squares - total * total) / ((n - 1) * total * total))


class Spreads(RunGroup):
    """The spread of each kind of amount of one task's runs."""

    __slots__ = ("_amounts", "_spreads")

    def __init__(self, amounts: Callable[[Row], tuple[int | None, ...]], kinds: int) -> None:
        super().__init__()
        self._amounts = amounts
        self._spreads = tuple([Spread() for _ in range(kinds)])

    def count(self, row: Row, sign: int) -> None:
        for spread, amount in zip(self._spreads, self._amounts(row), strict=True):
            if amount is not None:
                spread.count(amount, sign)

    def share(self) -> Share | None:
        variation = mean_of_present([spread.variation() for spread in self._spreads])
        return None if variation is None else Share((math.exp(-variation),), 1, self.runs)


class SpreadMean(TaskMean[Spreads]):
    """exp(−mean CV over the kinds of amounts that can be compared): per task, then the mean over
    tasks.

    State: for each kind a count, a sum and a sum of squares in whole numbers, a task. Reading
    computes the tasks that changed.
    """

    __slots__ = ()

    kinds = 1

    def new_group(self) -> Spreads:
        return Spreads(self.amounts, self.kinds)

    @abstractmethod
    def amounts(self, row: Row) -> tuple[int | None, ...]:
        """Return the whole numbers of each kind that a run has."""


class ConfidenceConsistency(SpreadMean):
    """C_conf: exp(−s / mean) of the confidences of a task's attempts, s with K − 1, then the mean
    over tasks.

    All attempts count, whatever their outcome; those without a confidence are left out. A task
    needs 2 confidences and a mean above 0. It is no part of `consistency`.
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
        required_data="2 runs of one task with a confidence, of a mean above 0",
        source="HAL reliability, evaluation methodology: C_conf",
        improve="Ask for the confidence in the same words and at the same point of each run.",
        interval="tasks",
    )

    def amounts(self, row: Row) -> tuple[int | None, ...]:
        return (None if row.confidence is None else units(row.confidence),)


class ResourceConsistency(SpreadMean):
    """C_res: exp(−mean CV over the kinds that a task has data of), CV with K − 1, then the mean
    over tasks.

    The kinds are money, duration, model calls, tool calls, failed tool calls, and the mean duration
    of a model call. Each needs 2 amounts and a mean above 0. All attempts count, whatever their
    outcome. An amount of 0 is missing, for most meters report 0 for *not measured*; but no failed
    call is a fact.

    >>> from otel_reliability.testing import row
    >>> metric = ResourceConsistency()
    >>> for cost in (1.0, 2.0, 3.0, 0.0):
    ...     metric.add(row(task="refund", cost=cost, start_ns=0, end_ns=0))
    >>> print(f"{metric.value().value:.4f}")
    0.6065
    """

    __slots__ = ()

    kinds = 6

    spec = MetricSpec(
        name="resource_consistency",
        title="Resource consistency (C_res)",
        family="consistency",
        direction="higher",
        description=(
            "Whether attempts at a task take about the same money, time, model calls, tool "
            "calls, errors and latency."
        ),
        formula="mean over tasks of exp(−mean CV over the kinds with data), CV with K − 1",
        required_data="2 runs of one task",
        source="HAL reliability, evaluation methodology: C_res",
        improve=(
            "Find the kind that varies most, then the runs at its ends: retries and detours "
            "cost first."
        ),
        interval="tasks",
    )

    def amounts(self, row: Row) -> tuple[int | None, ...]:
        return (
            units(row.cost) if row.cost else None,
            max(row.end_ns - row.start_ns, 0) or None,
            row.model_calls or None,
            row.tool_calls or None,
            row.failed_calls,
            row.latency_ns or None,
        )
