"""structure_robustness (R_struct): how much of its accuracy the agent keeps when the form of its input changes, as a share."""

from __future__ import annotations

from otel_reliability.metrics.robustness.kept_accuracy import KeptAccuracy
from otel_reliability.model.reading import MetricSpec


class StructureRobustness(KeptAccuracy):
    """R_struct over the window: min(accuracy of the structure runs / baseline accuracy, 1).

    Accuracies are over the runs of all tasks together; no value without runs of both sides, or where no baseline run
    succeeds. State: four integers.

    >>> from otel_reliability.metrics.examples import row
    >>> from otel_reliability.model.run import Outcome
    >>> metric = StructureRobustness()
    >>> for condition, outcome in (("baseline", "success"), ("structure", "success"), ("structure", "failure")):
    ...     metric.add(row(condition=condition, outcome=Outcome(outcome)))
    >>> metric.read()
    Reading(value=0.5, runs=3, parts=(), note='2 structure, 1 baseline')

    References: HAL Reliability, *Methodology*, "Structural Robustness".
    """

    __slots__ = ()

    condition = "structure"
    spec = MetricSpec(
        name="structure_robustness",
        title="Structure robustness (R_struct)",
        family="robustness",
        unit="{ratio}",
        low=0.0,
        high=1.0,
        direction="higher",
        description="How much of its accuracy the agent keeps when the form of its input changes.",
        formula="min(accuracy under the condition / baseline accuracy, 1)",
        evidence="a run marked reliability.condition=structure and a successful baseline run, outcomes known",
        source="HAL reliability, evaluation methodology: R_struct",
        improve="Parse inputs by schema, not by position, and test with renamed fields and other orders.",
    )
