"""Outcomes of attempts: as plain numbers, and counted per task."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Final, TypeAlias, TypeVar

from otel_reliability.config import Settings
from otel_reliability.metrics.base import DEFAULTS, SumMetric
from otel_reliability.metrics.data import OUTCOME, UNDISTURBED
from otel_reliability.model.reading import NO_EVIDENCE, Reading
from otel_reliability.model.row import OTHER_TASK, Row

V = TypeVar("V")

Shape: TypeAlias = tuple[int, int]
"""(attempts, passes) of one task."""


def passes(outcomes: Iterable[float]) -> int:
    """Return the number of successes among the outcomes: those that reach 1. A partial reward is a failure.

    >>> passes([1, 0.9, 0, True])
    2
    """
    return sum(outcome >= 1 for outcome in outcomes)


ENDS_COUNT: Final = "counts ends without error as success"
"""The note of a reading that rests on `outcome.fallback: status`."""


def noted(reading: Reading, by_status: int) -> Reading:
    """A reading that says so where any of its successes is no more than an end without error.

    >>> noted(Reading(0.5, 4, note="k = 2"), by_status=1).note
    'k = 2; counts ends without error as success'
    """
    if not by_status or reading.value is None:
        return reading
    return reading._replace(note=f"{reading.note}; {ENDS_COUNT}" if reading.note else ENDS_COUNT)


class TaskOutcomes(SumMetric):
    """A metric that needs no more of each task than how many attempts there were, and how many passed.

    Baseline runs with a known outcome count. State: two integers a task, and how many tasks have each (attempts, passes).
    Reading costs as many steps as there are different such pairs, not tasks.
    """

    __slots__ = ("_by_status", "_shapes", "_tasks")

    requires = UNDISTURBED | OUTCOME

    of_outcomes = True

    def __init__(self, settings: Settings = DEFAULTS) -> None:
        super().__init__(settings)
        self._by_status = 0
        self._tasks: dict[str | None, Shape] = {}
        self._shapes: dict[Shape, int] = {}

    def repeated(self) -> Mapping[Shape, int]:
        """Return how many tasks have each shape. Runs without a task id are left out: they are repeats of nothing."""
        return self._shapes

    def attempted(self) -> Mapping[Shape, int]:
        """Return the same; but where no run names a task, the window is taken as attempts at one."""
        return self._shapes or ({self._tasks[None]: 1} if None in self._tasks else {})

    def noted(self, reading: Reading) -> Reading:
        """Return the reading, with a note where it rests on ends without error."""
        return noted(reading, self._by_status)

    def count(self, row: Row, sign: int) -> None:
        success, task = row.success, row.task
        if success is None or not row.baseline or task == OTHER_TASK:
            return
        self._by_status += sign * row.by_status
        old = self._tasks.get(task)
        runs, passed = old or (0, 0)
        new = (runs + sign, passed + sign * success)
        if new[0]:
            self._tasks[task] = new
        else:
            del self._tasks[task]
        if task is not None:
            recount(self._shapes, old, new if new[0] else None)


def recount(counts: dict[V, int], old: V | None, new: V | None) -> None:
    """One that was `old` is `new` now; None: it was not there, or is no more.

    >>> counts = {"a": 1}
    >>> recount(counts, "a", "b")
    >>> counts
    {'b': 1}
    """
    if new is not None:
        counts[new] = counts.get(new, 0) + 1
    if old is not None:
        counts[old] -= 1
        if not counts[old]:
            del counts[old]


def mean_over_tasks(shapes: Mapping[Shape, int], of_task: Callable[[int, int], float | None]) -> Reading:
    """The mean of a number of (passes, attempts) over the tasks for which it exists, each task weighing the same.

    >>> mean_over_tasks({(4, 2): 1, (2, 2): 3, (1, 1): 9}, lambda passed, runs: passed / runs if runs > 1 else None)
    Reading(value=0.875, runs=10, parts=(), note='')
    """
    values: list[float] = []
    tasks, attempts = 0, 0
    for (runs, passed), count in shapes.items():
        value = of_task(passed, runs)
        if value is not None:
            values.append(value * count)
            tasks += count
            attempts += runs * count
    return Reading(math.fsum(values) / tasks, attempts) if tasks else NO_EVIDENCE
