"""calibration (P_cal): of the attempts said to be 80 % sure, do 80 % succeed?"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from typing import Final

from otel_reliability.config import Settings
from otel_reliability.metrics._support.sums import ExactSum
from otel_reliability.metrics.base import DEFAULTS
from otel_reliability.metrics.predictability.samples import ConfidenceMetric, samples
from otel_reliability.model.reading import MetricSpec

BINS: Final = 10
EDGES: Final = (*(index * 0.1 for index in range(BINS)), 1.0)
"""The floats of numpy.linspace(0, 1, 11): the fourth is 0.30000000000000004, so a confidence of 0.3 is in the third bin."""


def bin_of(confidence: float) -> int | None:
    """The bin [lo, hi) of a confidence; the last is closed. None outside 0 to 1.

    >>> bin_of(0.0), bin_of(0.3), bin_of(0.5), bin_of(1.0), bin_of(1.5)
    (0, 2, 5, 9, None)
    """
    if not 0.0 <= confidence <= 1.0:
        return None
    return min(bisect_right(EDGES, confidence) - 1, BINS - 1)


def calibration(confidences: Sequence[float | None], outcomes: Sequence[float]) -> float | None:
    """P_cal = 1 − ECE, ECE = Σ over ten equal bins of n_b/N · |accuracy_b − mean confidence_b|, pooled over all tasks.

    n_b/N · |accuracy − mean confidence| is |successes − Σ confidences| / N, which is what is summed. A confidence outside
    0 to 1 falls in no bin but stays in N, as in the reference. None where no attempt has a confidence.

    >>> calibration([0.9, 0.2], [1, 0])
    0.85
    """
    found = list(samples(confidences, outcomes))
    gaps: list[list[float]] = [[] for _ in range(BINS)]
    for confidence, success in found:
        index = bin_of(confidence)
        if index is not None:
            gaps[index].append(success - confidence)
    return 1.0 - math.fsum(abs(math.fsum(gap)) for gap in gaps) / len(found) if found else None


class Calibration(ConfidenceMetric):
    """`calibration` over the window. State: a count, and of each bin the exact sum of success − confidence.

    References: M. P. Naeini, G. F. Cooper, M. Hauskrecht, *Obtaining Well Calibrated Probabilities Using Bayesian Binning*
    (2015).
    """

    __slots__ = ("_gaps",)

    spec = MetricSpec(
        name="calibration",
        title="Calibration (P_cal)",
        family="predictability",
        direction="higher",
        description="Whether as many runs succeed as their confidence promised.",
        formula="1 − Σ over ten equal bins of n_b/N · |accuracy_b − mean confidence_b|",
        evidence="1 run with a confidence and a known outcome",
        source="HAL reliability, evaluation methodology: P_cal",
        improve="If it promises too much, ask it for reasons against its answer before it states a confidence.",
        interval="comparison",
    )

    def __init__(self, settings: Settings = DEFAULTS) -> None:
        super().__init__(settings)
        self._gaps = tuple(ExactSum() for _ in range(BINS))

    def count_sample(self, confidence: float, success: bool, sign: int) -> None:
        index = bin_of(confidence)
        if index is not None:
            self._gaps[index].add(float(success), sign)
            self._gaps[index].add(confidence, -sign)

    def estimate(self) -> float | None:
        return 1.0 - math.fsum(abs(gap.value) for gap in self._gaps) / self._runs
