"""How attempts ended: as plain numbers, and counted per task."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

from otel_reliability.model.reading import NO_EVIDENCE, Reading
from otel_reliability.model.row import OTHER_TASK, Row

Shape: TypeAlias = tuple[int, int]
"""(attempts, passes) of one task."""


def passes(outcomes: Iterable[float]) -> int:
    """How many of the outcomes are successes: those that reach 1. A partial reward is a failure.

    >>> passes([1, 0.9, 0, True])
    2
    """
    return sum(outcome >= 1 for outcome in outcomes)


class OutcomeTally:
    """The baseline runs with a known outcome, counted per task. Integers only; a read costs as many steps as there are
    different shapes, not tasks.

    Runs without a task id stand apart: `shapes` leaves them out, for they are repeats of nothing.
    """

    __slots__ = ("_tasks", "shapes")

    def __init__(self) -> None:
        self._tasks: dict[str | None, Shape] = {}
        self.shapes: Counter[Shape] = Counter()
        """How many tasks have each shape."""

    def tasks(self) -> Mapping[Shape, int]:
        """How many tasks have each shape; where no run names a task, the runs count as attempts at one."""
        if self.shapes or None not in self._tasks:
            return self.shapes
        return {self._tasks[None]: 1}

    def add(self, row: Row) -> None:
        """A row enters; without a known outcome, or perturbed, it is no evidence."""
        self._move(row, 1)

    def evict(self, row: Row) -> None:
        """A row that was added leaves."""
        self._move(row, -1)

    def _move(self, row: Row, step: int) -> None:
        success = row.success
        if success is None or not row.baseline or row.task == OTHER_TASK:
            return
        runs, passed = self._tasks.get(row.task, (0, 0))
        moved = (runs + step, passed + step * success)
        if row.task is not None:
            self._reshape((runs, passed), moved)
        if moved[0]:
            self._tasks[row.task] = moved
        else:
            del self._tasks[row.task]

    def _reshape(self, old: Shape, new: Shape) -> None:
        if new[0]:
            self.shapes[new] += 1
        if old[0]:
            self.shapes[old] -= 1
            if not self.shapes[old]:
                del self.shapes[old]


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
