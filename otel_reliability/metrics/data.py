"""The data that a row has: a window passes a row to those metrics only for which its data is enough (`Metric.requires`)."""

from __future__ import annotations

from typing import Final

from otel_reliability.model.row import BASELINE, Row
from otel_reliability.model.run import Outcome

UNDISTURBED: Final = 1
"""It has no perturbation."""
PATH: Final = 2
"""Its path is known."""
CALLS: Final = 4
"""Its tool calls are known."""
TASK: Final = 8
"""It is an attempt at a known task, perhaps at one beyond the limit of tasks."""
LIKENESS: Final = 16
"""It names a branch, or an input that other runs may have."""
OUTCOME: Final = 32
"""It is known to be a success or a failure."""
CONFIDENCE: Final = 64
"""The agent's confidence is known."""
PRESSURE: Final = 128
"""It is known how full the context window was."""
EVALUATED: Final = 256
"""It was evaluated for violations."""

_SUCCESS, _FAILURE = Outcome.SUCCESS, Outcome.FAILURE


def data_of(row: Row) -> int:
    """Return the sum of the flags of the data that a row has.

    >>> from otel_reliability.metrics.examples import row
    >>> data_of(row("search", task="refund")) & (TASK | OUTCOME) == TASK
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
        found += EVALUATED
    return found
