"""brier_score (P_brier), which is predictability (R_Pred): how near is the confidence to the
outcome?
"""

from __future__ import annotations

from otel_reliability.config import Settings
from otel_reliability.metrics._support.sums import ExactSum
from otel_reliability.metrics.base import DEFAULTS, Composite
from otel_reliability.metrics.predictability.samples import ConfidenceMetric
from otel_reliability.model.reading import MetricSpec


class BrierScore(ConfidenceMetric):
    """P_brier = 1 − mean of (c − y)², pooled over attempts of all tasks. Higher is better; 0.75 is
    a constant ½.

    State: a count and the exact sum of the squared errors.

    >>> from otel_reliability.testing import row
    >>> from otel_reliability.model.run import Outcome
    >>> metric = BrierScore()
    >>> metric.add(row(confidence=0.9, outcome=Outcome.SUCCESS))
    >>> metric.add(row(confidence=0.2, outcome=Outcome.FAILURE))
    >>> metric.value().value
    0.975

    References: G. W. Brier, *Verification of Forecasts Expressed in Terms of Probability* (1950).
    """

    __slots__ = ("_errors",)

    spec = MetricSpec(
        name="brier_score",
        title="Brier score (P_brier)",
        family="predictability",
        direction="higher",
        description=(
            "How close the agent's confidence comes to what happened; 0.75 is what a "
            "constant ½ gets."
        ),
        formula="1 − mean (c − y)²",
        required_data="1 run with a confidence and a known outcome",
        source="HAL reliability, evaluation methodology: P_brier",
        improve="Inspect calibration and discrimination: which of the two is poor?",
        interval="runs",
    )

    def __init__(self, settings: Settings = DEFAULTS) -> None:
        super().__init__(settings)
        self._errors = ExactSum()

    def count_sample(self, confidence: float, success: bool, sign: int) -> None:
        self._errors.add((confidence - success) ** 2, sign)

    def estimate(self) -> float | None:
        return 1.0 - self._errors.mean(self._runs)


class Predictability(Composite):
    """R_Pred = P_brier, which holds calibration and refinement both.

    >>> from otel_reliability.model.reading import Reading
    >>> Predictability().derive({"brier_score": Reading(0.9, 12)})
    Reading(value=0.9, runs=12, parts=('brier_score',), note='')
    """

    spec = MetricSpec(
        name="predictability",
        title="Predictability (R_Pred)",
        family="predictability",
        direction="higher",
        description="Whether the agent's own confidence can be relied on.",
        formula="P_brier",
        required_data="1 run with a confidence and a known outcome",
        source="HAL reliability, evaluation methodology: R_Pred",
        improve="Inspect calibration and discrimination: which of the two is poor?",
        interval="comparison",
    )
    needs = ("brier_score",)
