"""outcome_agreement: how far the outcomes of a task lean to one side."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from otel_reliability.metrics._support.means import mean_of_present
from otel_reliability.metrics._support.outcomes import TaskOutcomes, mean_over_tasks, passes
from otel_reliability.model.reading import MetricSpec, Reading


def agreement(passed: int, runs: int) -> float | None:
    """(2p̂ − 1)² of one task: 1 when all attempts end alike, 0 at half and half. None with fewer than 2 attempts.

    >>> agreement(5, 5), round(agreement(4, 5), 2), agreement(2, 4)
    (1.0, 0.36, 0.0)
    """
    return (2.0 * passed / runs - 1.0) ** 2 if runs >= 2 else None


def outcome_agreement(tasks: Iterable[Sequence[float]]) -> float | None:
    """The mean agreement of the tasks with at least 2 attempts, each task weighing the same.

    Unlike C_out as published it differs between 99 of 100 and 50 of 100. `tasks` holds the outcomes of the attempts at each task;
    an outcome below 1 is a failure.

    >>> round(outcome_agreement([[1, 1, 1, 1, 0], [0, 0]]), 2)
    0.68
    """
    return mean_of_present(agreement(passes(outcomes), len(outcomes)) for outcomes in tasks)


class OutcomeAgreement(TaskOutcomes):
    """(2p̂ − 1)² over the window: per task, then the mean over tasks of at least 2 runs, each weighing the same.

    State: two integers a task. Reading costs as many steps as tasks have different (attempts, passes).

    >>> from otel_reliability.metrics.examples import row
    >>> from otel_reliability.model.run import Outcome
    >>> metric = OutcomeAgreement()
    >>> for outcome in ("success", "success", "success", "failure"):
    ...     metric.add(row(task="refund", outcome=Outcome(outcome)))
    >>> metric.value()
    Reading(value=0.25, runs=4, parts=(), note='')

    References: the code behind HAL Reliability, *Methodology*, as it computes "Outcome Consistency" today.
    """

    __slots__ = ()

    spec = MetricSpec(
        name="outcome_agreement",
        title="Outcome agreement",
        family="consistency",
        direction="higher",
        description="How far the outcomes of repeated attempts at a task lean to one side: 1 all alike, 0 half and half.",
        formula="mean over tasks of (2p̂ − 1)²",
        evidence="2 runs of one task with a known outcome",
        source="HAL reliability, code of its authors: C_out as computed today",
        improve="Inspect the tasks nearest to half and half: there the agent decides by chance.",
        interval="tasks",
    )

    def value(self) -> Reading:
        return self.noted(mean_over_tasks(self.repeated(), agreement))
