"""resource_consistency (C_res): do attempts at a task cost about the same?"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from otel_reliability.config import Settings
from otel_reliability.metrics._support.exact import units
from otel_reliability.metrics._support.groups import RunGroup, Share, TaskMean, of_one_task
from otel_reliability.metrics._support.means import mean_of_present, present
from otel_reliability.metrics.consistency.confidence_consistency import steadiness
from otel_reliability.metrics.consistency.spread import Spread, variation
from otel_reliability.model.reading import MetricSpec
from otel_reliability.model.row import Row

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
