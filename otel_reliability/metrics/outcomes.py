"""How attempts ended: as plain numbers, and counted per task."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Final, TypeAlias, TypeVar

from otel_reliability.config import Settings
from otel_reliability.metrics.base import DEFAULTS, Metric
from otel_reliability.metrics.evidence import OUTCOME, UNDISTURBED
from otel_reliability.model.reading import NO_EVIDENCE, Reading
from otel_reliability.model.row import OTHER_TASK, Row

V = TypeVar("V")

Shape: TypeAlias = tuple[int, int]
"""(attempts, passes) of one task."""


def passes(outcomes: Iterable[float]) -> int:
    """How many of the outcomes are successes: those that reach 1. A partial reward is a failure.

    >>> passes([1, 0.9, 0, True])
    2
    """
    return sum(outcome >= 1 for outcome in outcomes)


def one_sided(runs: int, known: int, passed: int) -> bool:
    """Whether only failures are known, because an end without error tells no success: then nothing says how often runs pass.

    >>> one_sided(runs=5, known=2, passed=0), one_sided(runs=5, known=5, passed=0), one_sided(runs=5, known=2, passed=1)
    (True, False, False)
    """
    return not passed and known < runs


ENDS_COUNT: Final = "counts ends without error as success"
"""The note of a reading that rests on `outcome.fallback: status`."""


def told(reading: Reading, by_status: int) -> Reading:
    """A reading that says so where any of its successes is no more than an end without error.

    >>> told(Reading(0.5, 4, note="k = 2"), by_status=1).note
    'k = 2; counts ends without error as success'
    """
    if not by_status or reading.value is None:
        return reading
    return reading._replace(note=f"{reading.note}; {ENDS_COUNT}" if reading.note else ENDS_COUNT)


class TaskOutcomes(Metric):
    """A metric that needs no more of each task than how many attempts there were, and how many passed.

    Baseline runs with a known outcome count. State: two integers a task, and how many tasks have each shape; tasks that
    changed are sorted in anew at the next read. Reading costs as many steps as there are different shapes, not tasks.
    """

    __slots__ = ("_by_status", "_changed", "_held", "_shapes", "_tasks")

    wants = UNDISTURBED | OUTCOME

    of_outcomes = True

    def __init__(self, settings: Settings = DEFAULTS) -> None:
        super().__init__(settings)
        self._by_status = 0
        self._tasks: dict[str | None, list[int]] = {}
        self._changed: set[str | None] = set()
        self._held: dict[str | None, Shape] = {}
        self._shapes: dict[Shape, int] = {}

    def add(self, row: Row) -> None:
        success = row.success
        if success is not None and row.baseline and row.task != OTHER_TASK:
            self._move(row, 1, success)

    def evict(self, row: Row) -> None:
        success = row.success
        if success is not None and row.baseline and row.task != OTHER_TASK:
            self._move(row, -1, -success)

    def repeated(self) -> Mapping[Shape, int]:
        """How many tasks have each shape. Runs without a task id are left out: they are repeats of nothing."""
        for task in self._changed:
            self._renew(task)
        self._changed.clear()
        return self._shapes

    def attempted(self) -> Mapping[Shape, int]:
        """The same; but where no run names a task, the window is taken as attempts at one."""
        shapes = self.repeated()
        return {self._held[None]: 1} if not shapes and None in self._held else shapes

    def told(self, reading: Reading) -> Reading:
        """The reading, with a note where it rests on ends without error."""
        return told(reading, self._by_status)

    def _move(self, row: Row, runs: int, passed: int) -> None:
        counts = self._tasks.get(row.task)
        if counts is None:
            counts = self._tasks[row.task] = [0, 0]
        counts[0] += runs
        counts[1] += passed
        self._by_status += runs * row.by_status
        self._changed.add(row.task)

    def _renew(self, task: str | None) -> None:
        old, (runs, passed) = self._held.pop(task, None), self._tasks[task]
        if runs:
            self._held[task] = (runs, passed)
        else:
            del self._tasks[task]
        if task is not None:
            recount(self._shapes, old, self._held.get(task))


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
