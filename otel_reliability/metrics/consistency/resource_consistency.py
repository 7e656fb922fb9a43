"""resource_consistency (C_res): do attempts at a task cost about the same?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from otel_reliability.metrics.consistency.confidence_consistency import steadiness
from otel_reliability.metrics.consistency.spread import variation
from otel_reliability.metrics.means import mean_of_present, present

ERRORS: Final = "errors"
KINDS: Final = ("cost", "time", "model_calls", "actions", ERRORS, "latency")
"""What an attempt can cost: money, duration, model calls, tool calls, failed tool calls, mean duration of a model call."""


def is_evidence(kind: str, amount: float) -> bool:
    """Whether an attempt's amount of a resource counts: 0 is missing, for most meters report 0 for *not measured*.

    Errors keep their zeros: no failed call is a fact.

    >>> is_evidence("cost", 0.0), is_evidence("errors", 0)
    (False, True)
    """
    return amount > 0 or (kind == ERRORS and amount == 0)


def resource_consistency(tasks: Iterable[Mapping[str, Sequence[float | None]]]) -> float | None:
    """C_res: exp(−mean CV over the kinds a task has evidence of), CV with K − 1, then the mean over tasks.

    Each task maps kinds (`KINDS`) to one amount an attempt. A kind needs 2 amounts and a mean above 0. All attempts
    count, whatever their outcome.

    >>> round(resource_consistency([{"cost": [1, 2, 3], "errors": [0, 0, 0]}]), 4)
    0.6065
    """
    return mean_of_present(_of_task(task) for task in tasks)


def _of_task(task: Mapping[str, Sequence[float | None]]) -> float | None:
    kinds = (variation(_evidence(kind, task.get(kind, ()))) for kind in KINDS)
    return steadiness(mean_of_present(kinds))


def _evidence(kind: str, amounts: Sequence[float | None]) -> list[float]:
    return [amount for amount in present(amounts) if is_evidence(kind, amount)]
