"""fault_robustness (R_fault): how much of its accuracy the agent keeps when tools and services fail, as a share."""

from __future__ import annotations

from otel_reliability.metrics.robustness.kept_accuracy import KeptAccuracy
from otel_reliability.model.reading import MetricSpec


class FaultRobustness(KeptAccuracy):
    """R_fault over the window: min(accuracy of the fault runs / baseline accuracy, 1).

    Accuracies are over the runs of all tasks together; no value without runs of both sides, or where no baseline run
    succeeds. State: four integers.

    >>> from otel_reliability.metrics.examples import row
    >>> from otel_reliability.model.run import Outcome
    >>> metric = FaultRobustness()
    >>> for condition, outcome in (("baseline", "success"), ("fault", "success"), ("fault", "failure")):
    ...     metric.add(row(condition=condition, outcome=Outcome(outcome)))
    >>> metric.read()
    Reading(value=0.5, runs=3, parts=(), note='2 fault, 1 baseline')

    References: HAL Reliability, *Methodology*, "Fault Robustness".
    """

    __slots__ = ()

    condition = "fault"
    spec = MetricSpec(
        name="fault_robustness",
        title="Fault robustness (R_fault)",
        family="robustness",
        unit="{ratio}",
        low=0.0,
        high=1.0,
        direction="higher",
        description="How much of its accuracy the agent keeps when tools and services fail.",
        formula="min(accuracy under the condition / baseline accuracy, 1)",
        evidence="a run marked reliability.condition=fault and a successful baseline run, outcomes known",
        source="HAL reliability, evaluation methodology: R_fault",
        improve="Give failed calls a bounded retry and a way round, and let the agent say when a tool is down.",
    )
