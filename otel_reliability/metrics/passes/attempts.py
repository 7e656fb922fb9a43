"""graceful_degradation and variance_amplification, of each task's attempts in the order in which
they began.
"""

from __future__ import annotations

from abc import abstractmethod
from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import isqrt
from typing import TypeAlias

from otel_reliability.config import Settings
from otel_reliability.metrics._support.sums import Counts
from otel_reliability.metrics._support.task_outcomes import TaskOutcomes
from otel_reliability.metrics.base import DEFAULTS, OUTCOME, UNDISTURBED, Metric, noted
from otel_reliability.model.reading import NO_DATA, MetricSpec, Reading
from otel_reliability.model.row import OTHER_TASK, Row

Attempt: TypeAlias = tuple[int, str, bool]
"""(start, run id, success): attempts compare by when they began."""


def attempts_of(rows: Iterable[Row]) -> dict[str | None, list[bool]]:
    """Return the outcomes of each task's attempts (undisturbed runs of known outcome) in order.

    Where any run names a task, those that name none are left out; where none does, all are attempts
    at one task, None.
    """
    found: dict[str | None, list[Attempt]] = {}
    for row in rows:
        if row.success is not None and row.undisturbed and row.task != OTHER_TASK:
            found.setdefault(row.task, []).append((row.start_ns, row.run_id, row.success))
    if len(found) > 1:
        found.pop(None, None)
    return {
        task: [success for _, _, success in sorted(attempts)] for task, attempts in found.items()
    }


TaskNumbers: TypeAlias = tuple[int, ...]
"""Number of attempts at a task, and the numbers they give."""


def worst_of(
    worst: Callable[[Iterable[int]], int], tasks: Mapping[TaskNumbers, int], at: int = 1
) -> Reading:
    """Return the worst of one number over tasks, given how many tasks have the same numbers.

    >>> worst_of(min, {(4, 60): 2, (3, 90): 1})
    Reading(value=60.0, runs=11, parts=(), note='worst of 3 tasks')
    """
    if not tasks:
        return NO_DATA
    count = sum(tasks.values())
    runs = sum(numbers[0] * many for numbers, many in tasks.items())
    note = f"worst of {count} tasks" if count > 1 else ""
    return Reading(float(worst(numbers[at] for numbers in tasks)), runs, note=note)


class WorstTask(Metric):
    """A metric that depends on the order of each task's attempts, and reports the worst task: the
    least number.

    State: one entry a run. Reading computes the numbers of the tasks that changed since the last
    one. Where no run names a task, the window is taken as attempts at one.
    """

    __slots__ = ("_by_status", "_changed", "_numbers", "_tasks", "_worst")

    requires = UNDISTURBED | OUTCOME

    of_outcomes = True

    def __init__(self, settings: Settings = DEFAULTS) -> None:
        super().__init__(settings)
        self._by_status = 0
        self._tasks: dict[str | None, list[Attempt]] = {}
        self._changed: dict[str | None, None] = {}
        self._numbers: dict[str | None, TaskNumbers] = {}
        self._worst = Counts[TaskNumbers]()

    @abstractmethod
    def numbers(self, outcomes: Sequence[bool]) -> TaskNumbers:
        """Return the numbers of the attempts at one task, of which there is at least one."""

    def count(self, row: Row, sign: int) -> None:
        if row.task == OTHER_TASK:
            return
        self._by_status += sign * row.by_status
        attempts = self._tasks.setdefault(row.task, [])
        attempt = (row.start_ns, row.run_id, row.success is True)
        if sign > 0:
            insort(attempts, attempt)
        else:
            del attempts[bisect_left(attempts, attempt)]
        self._changed[row.task] = None

    def value(self) -> Reading:
        return noted(worst_of(min, self.tasks()), self._by_status)

    def tasks(self) -> Mapping[TaskNumbers, int]:
        """Return how many tasks have the same numbers."""
        for task in self._changed:
            self._renew(task)
        self._changed = {}
        return self._worst or ({self._numbers[None]: 1} if None in self._numbers else {})

    def _renew(self, task: str | None) -> None:
        old = self._numbers.pop(task, None)
        attempts = self._tasks[task]
        if old is not None and task is not None:
            self._worst.count(old, -1)
        if not attempts:
            del self._tasks[task]
            return
        outcomes = [success for _, _, success in attempts]
        new = self._numbers[task] = (len(outcomes), *self.numbers(outcomes))
        if task is not None:
            self._worst.count(new)


def graceful_degradation(outcomes: Sequence[bool]) -> int:
    """100 · Σ i·pass_i / Σ i over the positions i = 1 … N of at least one attempt, rounded half
    away from zero.

    A late failure costs more than an early one: an agent that fails first and recovers is the more
    graceful.

    >>> (
    ...     graceful_degradation([False, True, True, True]),
    ...     graceful_degradation([True, True, True, False]),
    ... )
    (90, 60)
    """
    total = len(outcomes) * (len(outcomes) + 1) // 2
    held = sum(position for position, passed in enumerate(outcomes, 1) if passed)
    return (200 * held + total) // (2 * total)


class GracefulDegradation(WorstTask):
    """`graceful_degradation` of the least graceful task of the window."""

    __slots__ = ()

    spec = MetricSpec(
        name="graceful_degradation",
        title="Graceful degradation",
        family="passes",
        unit="{percent}",
        high=100.0,
        direction="higher",
        description=(
            "100 when every attempt at a task passed; late failures cost most. Of several "
            "tasks the worst."
        ),
        formula="round(100 · Σ i·pass_i / Σ i) over the attempts i = 1 … N in their order",
        required_data="1 run with a known outcome",
        source="mcptest, reliability reporting: graceful_degradation",
        improve=(
            "Late failures mean that something wears out: memory, quota, context, a changed "
            "service."
        ),
    )

    def numbers(self, outcomes: Sequence[bool]) -> TaskNumbers:
        return (graceful_degradation(outcomes),)


def variance_amplification(passed: int, runs: int) -> int:
    """100 · (population standard deviation of at least one attempt) / 0.5, rounded half away from
    zero.

    0: all end alike; 100: half and half. With c passes of n it is 200·√(c(n − c)) / n, rounded in
    whole numbers.

    >>> variance_amplification(3, 4), variance_amplification(2, 4), variance_amplification(4, 4)
    (87, 100, 0)
    """
    doubled = isqrt(160_000 * passed * (runs - passed) // (runs * runs))
    return (doubled + 1) // 2


class VarianceAmplification(TaskOutcomes):
    """`variance_amplification` of the flakiest task of the window; where no run names a task, the
    window is attempts at one.
    """

    __slots__ = ()

    spec = MetricSpec(
        name="variance_amplification",
        title="Variance amplification",
        family="passes",
        unit="{percent}",
        high=100.0,
        direction="lower",
        description=(
            "How flaky the attempts at a task are: 0 all end alike, 100 half and half. Of "
            "several tasks the worst."
        ),
        formula="round(100 · population standard deviation of pass / 0.5)",
        required_data="1 run with a known outcome",
        source="mcptest, reliability reporting: variance_amplification",
        improve="Compare a passing and a failing attempt of the flakiest task, step by step.",
    )

    def value(self) -> Reading:
        found: Counter[TaskNumbers] = Counter()
        for (runs, passed), tasks in self.attempted().items():
            found[runs, variance_amplification(passed, runs)] += tasks
        return self.noted(worst_of(max, found))
