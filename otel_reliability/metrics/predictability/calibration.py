"""calibration (P_cal): of the attempts said to be 80 % sure, do 80 % succeed?"""

from __future__ import annotations

import math
from bisect import bisect_right
from typing import Final

from otel_reliability.config import Settings
from otel_reliability.metrics._support.sums import ExactSum
from otel_reliability.metrics.base import DEFAULTS
from otel_reliability.metrics.predictability.samples import ConfidenceMetric
from otel_reliability.model.reading import MetricSpec

BINS: Final = 10
EDGES: Final = (*(index * 0.1 for index in range(BINS)), 1.0)
"""The floats of numpy.linspace(0, 1, 11): the fourth is 0.30000000000000004, so a confidence of 0.3
is in the third bin.
"""


def bin_of(confidence: float) -> int:
    """Return the bin [lo, hi) of a confidence of 0 to 1; the last is closed.

    >>> bin_of(0.0), bin_of(0.3), bin_of(0.5), bin_of(1.0)
    (0, 2, 5, 9)
    """
    return min(bisect_right(EDGES, confidence), BINS) - 1


class Calibration(ConfidenceMetric):
    """P_cal = 1 − ECE, ECE = Σ over ten equal bins of n_b/N · |accuracy_b − mean confidence_b|,
    pooled over all tasks.

    n_b/N · |accuracy − mean confidence| is |successes − Σ confidences| / N, which is what is
    summed. State: a count, and of each bin the exact sum of success − confidence.

    References: M. P. Naeini, G. F. Cooper, M. Hauskrecht, *Obtaining Well Calibrated Probabilities
    Using Bayesian Binning* (2015).
    """

    __slots__ = ("_gaps",)

    spec = MetricSpec(
        name="calibration",
        title="Calibration (P_cal)",
        family="predictability",
        direction="higher",
        description="Whether as many runs succeed as their confidence promised.",
        formula="1 − Σ over ten equal bins of n_b/N · |accuracy_b − mean confidence_b|",
        required_data="1 run with a confidence and a known outcome",
        source="HAL reliability, evaluation methodology: P_cal",
        improve=(
            "If it promises too much, ask it for reasons against its answer before it states "
            "a confidence."
        ),
        interval="comparison",
    )

    def __init__(self, settings: Settings = DEFAULTS) -> None:
        super().__init__(settings)
        self._gaps = tuple(ExactSum() for _ in range(BINS))

    def count_sample(self, confidence: float, success: bool, sign: int) -> None:
        gap = self._gaps[bin_of(confidence)]
        gap.add(float(success), sign)
        gap.add(confidence, -sign)

    def estimate(self) -> float | None:
        return 1.0 - math.fsum(abs(gap.value) for gap in self._gaps) / self._runs
