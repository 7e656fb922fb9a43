"""fault_robustness (R_fault): how much of its accuracy the agent keeps when tools and services fail, as a share."""

from __future__ import annotations

from otel_reliability.metrics.robustness.kept_accuracy import KeptAccuracy
from otel_reliability.model.reading import MetricSpec


class FaultRobustness(KeptAccuracy):
    """R_fault over the window: min(accuracy of the fault runs / baseline accuracy, 1)."""

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
