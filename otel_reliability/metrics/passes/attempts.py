"""The attempts at each task in the order in which they began."""

from __future__ import annotations

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
