"""outcome_agreement: how far the outcomes of a task lean to one side."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from otel_reliability.metrics.means import mean_of_present
from otel_reliability.metrics.outcomes import passes


def agreement(passed: int, runs: int) -> float | None:
    """(2p̂ − 1)² of one task: 1 when all attempts end alike, 0 at half and half. None with fewer than 2 attempts.

    >>> agreement(5, 5), round(agreement(4, 5), 2), agreement(2, 4)
    (1.0, 0.36, 0.0)
    """
    return (2.0 * passed / runs - 1.0) ** 2 if runs >= 2 else None


def outcome_agreement(tasks: Iterable[Sequence[float]]) -> float | None:
    """The mean agreement of the tasks with at least 2 attempts, each task weighing the same.

    Unlike C_out as published it tells 99 of 100 from 50 of 100. `tasks` holds the outcomes of the attempts at each task;
    an outcome below 1 is a failure.

    >>> round(outcome_agreement([[1, 1, 1, 1, 0], [0, 0]]), 2)
    0.68
    """
    return mean_of_present(agreement(passes(outcomes), len(outcomes)) for outcomes in tasks)
