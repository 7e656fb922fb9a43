"""Numbers that stand for the worst task: a target on them holds for every task."""

from __future__ import annotations

from abc import abstractmethod
from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

from otel_reliability.config import Settings
from otel_reliability.metrics._support.outcomes import noted, recount
from otel_reliability.metrics.base import DEFAULTS, Metric
from otel_reliability.metrics.data import OUTCOME, UNDISTURBED
from otel_reliability.metrics.passes.attempts import Attempt, attempt_of
from otel_reliability.model.reading import NO_EVIDENCE, Reading
from otel_reliability.model.row import Row

Numbers: TypeAlias = tuple[int, ...]
"""How many attempts a task had, and the numbers they give."""


def worst_of(worst: Callable[[Iterable[int]], int], tasks: Mapping[Numbers, int], at: int = 1) -> Reading:
    """The worst of one number over tasks, given how many tasks have the same numbers.

    >>> worst_of(min, {(4, 60): 2, (3, 90): 1})
    Reading(value=60.0, runs=11, parts=(), note='worst of 3 tasks')
    """
    if not tasks:
        return NO_EVIDENCE
    count = sum(tasks.values())
    runs = sum(numbers[0] * many for numbers, many in tasks.items())
    note = f"worst of {count} tasks" if count > 1 else ""
    return Reading(float(worst(numbers[at] for numbers in tasks)), runs, note=note)


class WorstTask(Metric):
    """A metric that depends on the order of each task's attempts, and reports the worst task: the least number.

    State: one entry a run. Reading computes the numbers of the tasks that changed since the last one. Where no run names a
    task, the window is taken as attempts at one.
    """

    __slots__ = ("_by_status", "_changed", "_numbers", "_tasks", "_worst")

    requires = UNDISTURBED | OUTCOME

    of_outcomes = True

    def __init__(self, settings: Settings = DEFAULTS) -> None:
        super().__init__(settings)
        self._by_status = 0
        self._tasks: dict[str | None, list[Attempt]] = {}
        self._changed: dict[str | None, None] = {}
        self._numbers: dict[str | None, Numbers] = {}
        self._worst: dict[Numbers, int] = {}

    @abstractmethod
    def numbers(self, outcomes: Sequence[bool]) -> Numbers:
        """Return the numbers of the attempts at one task, of which there is at least one."""

    def add(self, row: Row) -> None:
        attempt = attempt_of(row)
        if attempt is not None:
            self._by_status += row.by_status
            insort(self._tasks.setdefault(row.task, []), attempt)
            self._changed[row.task] = None

    def evict(self, row: Row) -> None:
        attempt = attempt_of(row)
        if attempt is not None:
            self._by_status -= row.by_status
            attempts = self._tasks[row.task]
            del attempts[bisect_left(attempts, attempt)]
            self._changed[row.task] = None

    def value(self) -> Reading:
        return noted(worst_of(min, self.tasks()), self._by_status)

    def tasks(self) -> Mapping[Numbers, int]:
        """Return how many tasks have the same numbers."""
        for task in self._changed:
            self._renew(task)
        self._changed = {}
        return self._worst or ({self._numbers[None]: 1} if None in self._numbers else {})

    def _renew(self, task: str | None) -> None:
        old = self._numbers.pop(task, None)
        attempts = self._tasks[task]
        if attempts:
            outcomes = [success for _, _, success in attempts]
            self._numbers[task] = (len(outcomes), *self.numbers(outcomes))
        else:
            del self._tasks[task]
        if task is not None:
            recount(self._worst, old, self._numbers.get(task))
