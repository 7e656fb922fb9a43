"""predictability (R_Pred): can the agent's own confidence be relied on, in one number?"""

from __future__ import annotations

from collections.abc import Mapping

from otel_reliability.metrics._support.aggregates import aggregate
from otel_reliability.metrics.base import Derived
from otel_reliability.model.reading import MetricSpec, Reading


def predictability(brier_score: float | None) -> float | None:
    """R_Pred = P_brier, which holds calibration and refinement both.

    >>> predictability(0.975)
    0.975
    """
    return brier_score


class Predictability(Derived):
    """R_Pred, from the reading of the Brier score.

    >>> Predictability().derive({"brier_score": Reading(0.9, 12)})
    Reading(value=0.9, runs=12, parts=('brier_score',), note='')

    References: HAL Reliability, *Methodology*, "Predictability".
    """

    __slots__ = ()

    spec = MetricSpec(
        name="predictability",
        title="Predictability (R_Pred)",
        family="predictability",
        unit="{ratio}",
        low=0.0,
        high=1.0,
        direction="higher",
        description="Whether the agent's own confidence can be relied on.",
        formula="P_brier",
        evidence="1 run with a confidence and a known outcome",
        source="HAL reliability, evaluation methodology: R_Pred",
        improve="Look at calibration and discrimination: which of the two is poor?",
    )
    needs = ("brier_score",)

    def derive(self, readings: Mapping[str, Reading]) -> Reading:
        return aggregate(self.needs, readings, predictability)
