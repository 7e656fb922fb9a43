"""predictability (R_Pred): can the agent's own confidence be relied on, in one number?"""

from __future__ import annotations

from otel_reliability.metrics._support.aggregates import Composite
from otel_reliability.model.reading import MetricSpec


def predictability(brier_score: float | None) -> float | None:
    """R_Pred = P_brier, which holds calibration and refinement both.

    >>> predictability(0.975)
    0.975
    """
    return brier_score


class Predictability(Composite):
    """R_Pred, from the reading of the Brier score.

    >>> from otel_reliability.model.reading import Reading
    >>> Predictability().derive({"brier_score": Reading(0.9, 12)})
    Reading(value=0.9, runs=12, parts=('brier_score',), note='')

    References: HAL Reliability, *Methodology*, "Predictability".
    """

    __slots__ = ()

    spec = MetricSpec(
        name="predictability",
        title="Predictability (R_Pred)",
        family="predictability",
        direction="higher",
        description="Whether the agent's own confidence can be relied on.",
        formula="P_brier",
        evidence="1 run with a confidence and a known outcome",
        source="HAL reliability, evaluation methodology: R_Pred",
        improve="Inspect calibration and discrimination: which of the two is poor?",
        interval="comparison",
    )
    needs = ("brier_score",)
    formula = staticmethod(predictability)
