"""The attempts at each task in the order in which they began."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable
from typing import TypeAlias

from otel_reliability.model.row import OTHER_TASK, Row

Attempt: TypeAlias = tuple[int, str, bool]
"""(start, run id, success): attempts compare by when they began."""


def attempt_of(row: Row) -> Attempt | None:
    """The attempt that a row is; None for a perturbed run, or one whose outcome is unknown."""
    success = row.success
    if success is None or not row.baseline or row.task == OTHER_TASK:
        return None
    return (row.start_ns, row.run_id, success)


def attempts_of(rows: Iterable[Row]) -> dict[str | None, list[bool]]:
    """The outcomes of each task's attempts in order. Where any run names a task, those that name none are left out;
    where none does, all are attempts at one task, None.
    """
    found: dict[str | None, list[Attempt]] = {}
    for row in rows:
        attempt = attempt_of(row)
        if attempt is not None:
            found.setdefault(row.task, []).append(attempt)
    if len(found) > 1:
        found.pop(None, None)
    return {task: [success for _, _, success in sorted(attempts)] for task, attempts in found.items()}


class Attempts:
    """The same, kept up to date as rows come and go: one entry a run, and which tasks changed."""

    __slots__ = ("_tasks", "changed")

    def __init__(self) -> None:
        self._tasks: dict[str | None, list[Attempt]] = {}
        self.changed: set[str | None] = set()
        """Tasks whose attempts are not what they were when this was last cleared."""

    def add(self, row: Row) -> bool:
        """A row enters. False: it is no attempt."""
        attempt = attempt_of(row)
        if attempt is None:
            return False
        insort(self._tasks.setdefault(row.task, []), attempt)
        self.changed.add(row.task)
        return True

    def evict(self, row: Row) -> bool:
        """A row that was added leaves. False: it is no attempt."""
        attempt = attempt_of(row)
        if attempt is None:
            return False
        attempts = self._tasks[row.task]
        del attempts[bisect_left(attempts, attempt)]
        self.changed.add(row.task)
        if not attempts:
            del self._tasks[row.task]
        return True

    def outcomes(self, task: str | None) -> list[bool]:
        """The outcomes of one task's attempts, in order."""
        return [success for _, _, success in self._tasks.get(task, ())]
