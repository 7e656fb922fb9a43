"""robustness (R_Rob): how much of its accuracy the agent keeps when it is disturbed, in one number."""

from __future__ import annotations

from collections.abc import Mapping

from otel_reliability.metrics._support.aggregates import aggregate
from otel_reliability.metrics._support.means import mean_of_present
from otel_reliability.metrics.base import Derived
from otel_reliability.model.reading import MetricSpec, Reading


def robustness(fault: float | None, structure: float | None, prompt: float | None) -> float | None:
    """R_Rob: the mean of R_fault, R_struct and R_prompt, over those that exist.

    >>> robustness(0.5, 0.75, 0.25), robustness(None, 0.5, None)
    (0.5, 0.5)
    """
    return mean_of_present((fault, structure, prompt))


class Robustness(Derived):
    """R_Rob, from the readings of its parts. The reading names the parts that existed.

    >>> Robustness().derive({"fault_robustness": Reading(0.5, 8), "prompt_robustness": Reading(1.0, 6)})
    Reading(value=0.75, runs=8, parts=('fault_robustness', 'prompt_robustness'), note='')

    References: HAL Reliability, *Methodology*, "Robustness".
    """

    __slots__ = ()

    spec = MetricSpec(
        name="robustness",
        title="Robustness (R_Rob)",
        family="robustness",
        unit="{ratio}",
        low=0.0,
        high=1.0,
        direction="higher",
        description="How much of its accuracy the agent keeps when it is disturbed.",
        formula="mean of R_fault, R_struct and R_prompt over those that exist",
        evidence="any of its parts",
        source="HAL reliability, evaluation methodology: R_Rob",
        improve="Look at its lowest part first.",
    )
    needs = ("fault_robustness", "structure_robustness", "prompt_robustness")

    def derive(self, readings: Mapping[str, Reading]) -> Reading:
        return aggregate(self.needs, readings, robustness)
