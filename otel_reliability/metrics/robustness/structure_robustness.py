"""structure_robustness (R_struct): how much of its accuracy the agent keeps when the form of its input changes, as a share."""

from __future__ import annotations

from otel_reliability.metrics.robustness.kept_accuracy import KeptAccuracy
from otel_reliability.model.reading import MetricSpec


class StructureRobustness(KeptAccuracy):
    """R_struct over the window: min(accuracy of the structure runs / baseline accuracy, 1)."""

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
