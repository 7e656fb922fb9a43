"""Numbers that stand for the worst task: a target on them holds for every task."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

from otel_reliability.config import Settings
from otel_reliability.metrics.base import DEFAULTS, Metric
from otel_reliability.metrics.evidence import OUTCOME, UNDISTURBED
from otel_reliability.metrics.outcomes import recount, told
from otel_reliability.metrics.passes.attempts import Attempts
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
    """A metric that looks at the order of each task's attempts, and answers for the worst task: the least number.

    State: one entry a run. Reading looks through the attempts of the tasks that changed since the last one; the others keep
    their numbers. Where no run names a task, the window is taken as attempts at one.
    """

    __slots__ = ("_attempts", "_by_status", "_numbers", "_tasks")

    wants = UNDISTURBED | OUTCOME

    of_outcomes = True

    def __init__(self, settings: Settings = DEFAULTS) -> None:
        super().__init__(settings)
        self._attempts = Attempts()
        self._by_status = 0
        self._numbers: dict[str | None, Numbers] = {}
        self._tasks: dict[Numbers, int] = {}

    @abstractmethod
    def numbers(self, outcomes: Sequence[bool]) -> Numbers:
        """What the attempts at one task, of which there is at least one, give."""

    def add(self, row: Row) -> None:
        if self._attempts.add(row):
            self._by_status += row.by_status

    def evict(self, row: Row) -> None:
        if self._attempts.evict(row):
            self._by_status -= row.by_status

    def read(self) -> Reading:
        return told(worst_of(min, self.tasks()), self._by_status)

    def tasks(self) -> Mapping[Numbers, int]:
        """How many tasks have the same numbers."""
        for task in self._attempts.changed:
            self._renew(task)
        self._attempts.changed.clear()
        if self._tasks or None not in self._numbers:
            return self._tasks
        return {self._numbers[None]: 1}

    def _renew(self, task: str | None) -> None:
        old = self._numbers.pop(task, None)
        outcomes = self._attempts.outcomes(task)
        if outcomes:
            self._numbers[task] = (len(outcomes), *self.numbers(outcomes))
        if task is not None:
            recount(self._tasks, old, self._numbers.get(task))
