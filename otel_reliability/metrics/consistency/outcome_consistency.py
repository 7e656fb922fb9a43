"""outcome_consistency (C_out) and outcome_agreement: do repeated attempts at a task end alike?"""

from __future__ import annotations

from typing import Final

from otel_reliability.config import Settings
from otel_reliability.metrics._support.sums import clamp
from otel_reliability.metrics._support.task_outcomes import TaskOutcomes, mean_over_tasks
from otel_reliability.metrics.base import DEFAULTS
from otel_reliability.model.reading import MetricSpec, Reading

EPSILON: Final = 1e-8


def agreement(passed: int, runs: int) -> float | None:
    """(2p̂ − 1)² of one task: 1 when all attempts end alike, 0 at half and half. None with fewer
    than 2 attempts.

    >>> agreement(5, 5), round(agreement(4, 5), 2), agreement(2, 4)
    (1.0, 0.36, 0.0)
    """
    return (2.0 * passed / runs - 1.0) ** 2 if runs >= 2 else None


class OutcomeAgreement(TaskOutcomes):
    """The mean agreement of the tasks with at least 2 attempts, each task weighing the same.

    Unlike C_out as published it differs between 99 of 100 and 50 of 100.

    >>> from otel_reliability.testing import row
    >>> from otel_reliability.model.run import Outcome
    >>> metric = OutcomeAgreement()
    >>> for task, outcome in (
    ...     *[("a", "success")] * 4,
    ...     ("a", "failure"),
    ...     *[("b", "failure")] * 2,
    ...     ("c", "success"),
    ... ):
    ...     metric.add(row(task=task, outcome=Outcome(outcome)))
    >>> metric.value()[:2]
    (0.68, 7)
    """

    __slots__ = ()

    spec = MetricSpec(
        name="outcome_agreement",
        title="Outcome agreement",
        family="consistency",
        direction="higher",
        description=(
            "How far the outcomes of repeated attempts at a task lean to one side: 1 all "
            "alike, 0 half and half."
        ),
        formula="mean over tasks of (2p̂ − 1)²",
        required_data="2 runs of one task with a known outcome",
        source="HAL reliability, code of its authors: C_out as computed today",
        improve="Inspect the tasks nearest to half and half: there the agent decides by chance.",
        interval="tasks",
    )

    def value(self) -> Reading:
        return self.noted(mean_over_tasks(self.repeated(), agreement))


def sameness(passed: int, runs: int) -> float | None:
    """C_out of one task: 1 − s² / (p̂(1 − p̂) + 1e-8), s² the sample variance (K − 1), cut to [0,
    1].

    s² is K/(K − 1) times p̂(1 − p̂), so the ratio exceeds 1 for any mixed task and the value is 0:
    one failure in a hundred counts as much as fifty. (Only where p̂(1 − p̂) comes near 1e-8 · K
    does it rise above 0.)

    >>> sameness(5, 5), sameness(0, 5), sameness(4, 5), sameness(1, 1)
    (1.0, 1.0, 0.0, None)
    """
    if runs < 2:
        return None
    share = passed / runs
    variance = passed * (runs - passed) / (runs * (runs - 1))
    return clamp(1.0 - variance / (share * (1.0 - share) + EPSILON))


class OutcomeConsistency(TaskOutcomes):
    """C_out: the mean of the tasks with at least 2 attempts, each task weighing the same.

    Under `published` this is the share of unanimous tasks; under `hal-harness` it is
    `outcome_agreement`.
    """

    __slots__ = ("_of_task",)

    spec = MetricSpec(
        name="outcome_consistency",
        title="Outcome consistency (C_out)",
        family="consistency",
        direction="higher",
        description=(
            "Whether repeated attempts at a task end alike: as published, the share of "
            "unanimous tasks."
        ),
        formula=(
            "mean over tasks of 1 − s²/(p̂(1 − p̂) + 1e-8), s² with K − 1, cut to [0, 1]; "
            "hal-harness: (2p̂ − 1)²"
        ),
        required_data="2 runs of one task with a known outcome",
        source="HAL reliability, evaluation methodology: C_out",
        improve=(
            "Inspect the tasks with mixed outcomes: what did the runs that failed do differently?"
        ),
        interval="tasks",
    )

    def __init__(self, settings: Settings = DEFAULTS) -> None:
        super().__init__(settings)
        self._of_task = sameness if settings.metrics.profile == "published" else agreement

    def value(self) -> Reading:
        return self.noted(mean_over_tasks(self.repeated(), self._of_task))
