"""Attempts at each task: how many there were, and how many of them passed."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TypeAlias

from otel_reliability.config import Settings
from otel_reliability.metrics._support.sums import Counts
from otel_reliability.metrics.base import DEFAULTS, OUTCOME, UNDISTURBED, Metric, noted
from otel_reliability.model.reading import NO_DATA, Reading
from otel_reliability.model.row import OTHER_TASK, Row

Shape: TypeAlias = tuple[int, int]
"""(attempts, passes) of one task."""


class TaskOutcomes(Metric):
    """A metric that needs no more of each task than how many attempts there were, and how many
    passed.

    State: two integers a task, and how many tasks have each (attempts, passes). Reading costs as
    many steps as there are different such pairs, not tasks.
    """

    __slots__ = ("_by_status", "_shapes", "_tasks")

    requires = UNDISTURBED | OUTCOME

    of_outcomes = True

    def __init__(self, settings: Settings = DEFAULTS) -> None:
        super().__init__(settings)
        self._by_status = 0
        self._tasks: dict[str | None, Shape] = {}
        self._shapes = Counts[Shape]()

    def repeated(self) -> Mapping[Shape, int]:
        """Return how many tasks have each shape. Runs without a task id are left out: they are
        repeats of nothing.
        """
        return self._shapes

    def attempted(self) -> Mapping[Shape, int]:
        """Return the same; but where no run names a task, the window is taken as
        attempts at one.
        """
        return self._shapes or ({self._tasks[None]: 1} if None in self._tasks else {})

    def noted(self, reading: Reading) -> Reading:
        """Return the reading, with a note where it rests on ends without error."""
        return noted(reading, self._by_status)

    def count(self, row: Row, sign: int) -> None:
        task = row.task
        if task == OTHER_TASK:
            return
        self._by_status += sign * row.by_status
        old = self._tasks.get(task)
        runs, passed = old or (0, 0)
        new = (runs + sign, passed + sign * (row.success is True))
        if new[0]:
            self._tasks[task] = new
        else:
            del self._tasks[task]
        if task is not None:
            if new[0]:
                self._shapes.count(new)
            if old is not None:
                self._shapes.count(old, -1)


def mean_over_tasks(
    shapes: Mapping[Shape, int], of_task: Callable[[int, int], float | None]
) -> Reading:
    """Return the mean of a number of (passes, attempts) over the tasks for which it exists, each
    task weighing the same.

    >>> mean_over_tasks(
    ...     {(4, 2): 1, (2, 2): 3, (1, 1): 9},
    ...     lambda passed, runs: passed / runs if runs > 1 else None,
    ... )
    Reading(value=0.875, runs=10, parts=(), note='')
    """
    values: list[float] = []
    tasks = 0
    attempts = 0
    for (runs, passed), count in shapes.items():
        value = of_task(passed, runs)
        if value is not None:
            values.append(value * count)
            tasks += count
            attempts += runs * count
    return Reading(math.fsum(values) / tasks, attempts) if tasks else NO_DATA
