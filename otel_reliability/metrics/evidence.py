"""What evidence a row carries: a window does not even ask metrics about rows that hold nothing for them."""

from __future__ import annotations

from typing import Final

from otel_reliability.model.row import BASELINE, Row
from otel_reliability.model.run import Outcome

UNDISTURBED: Final = 1
"""No perturbation was tried on it."""
PATH: Final = 2
"""Its path is known."""
CALLS: Final = 4
"""Its tool calls are known."""
TASK: Final = 8
"""It is an attempt at a task that is told, perhaps at one beyond the ceiling."""
LIKENESS: Final = 16
"""It names a branch, or an input that others may have had."""
OUTCOME: Final = 32
"""It is known to be a success or a failure."""
CONFIDENCE: Final = 64
"""It says how sure the agent was."""
PRESSURE: Final = 128
"""It tells how full the context window was."""
JUDGED: Final = 256
"""Somebody looked for violations."""

_SUCCESS, _FAILURE = Outcome.SUCCESS, Outcome.FAILURE


def carried(row: Row) -> int:
    """The sum of what a row carries.

    >>> from otel_reliability.metrics.examples import row
    >>> carried(row("search", task="refund")) & (TASK | OUTCOME) == TASK
    True
    """
    found = 0
    if row.condition == BASELINE:
        found = UNDISTURBED
    if row.path is not None:
        found += PATH
    if row.retries is not None:
        found += CALLS
    if row.task is not None:
        found += TASK + LIKENESS
    elif row.input_class is not None or row.branches:
        found += LIKENESS
    outcome = row.outcome
    if outcome is _SUCCESS or outcome is _FAILURE:
        found += OUTCOME
    if row.confidence is not None:
        found += CONFIDENCE
    if row.pressure is not None:
        found += PRESSURE
    if row.violations is not None:
        found += JUDGED
    return found
