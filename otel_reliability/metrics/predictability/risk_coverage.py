"""risk_coverage (P_rc): if only its surest answers were taken, how much better than at random would they be?"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

from otel_reliability.config import Settings
from otel_reliability.metrics._support.sums import clamp
from otel_reliability.metrics.base import DEFAULTS, Profile
from otel_reliability.metrics.predictability.samples import Block, RankedSamples, blocks, samples, totals
from otel_reliability.model.reading import MetricSpec

EPSILON: Final = 1e-8
GRID: Final = 100


def selective_gain(found: Sequence[Block], profile: Profile = "published") -> float | None:
    """P_rc of blocks of equally confident samples, the most confident first.

    Under `hal-harness` one class gives 1.0, even where every answer is wrong, because nothing could be gained.
    """
    runs, failures = totals(found)
    if not runs:
        return None
    if profile == "published":
        return _gain(found, runs, failures, _mean_risk) if 0 < failures < runs else None
    return _gain(found, runs, failures, _grid_risk)


def risk_coverage(
    confidences: Sequence[float | None], outcomes: Sequence[float], profile: Profile = "published"
) -> float | None:
    """P_rc = 1 − (A − A*) / (A_rand − A* + 1e-8), cut to [0, 1]; pooled over the attempts of all tasks.

    A is the mean, over i = 1 … N, of the error share among the i most confident attempts; A* the same with the
    successes first; A_rand the error share. Of attempts that tie in confidence any order is possible: they count with
    their expected share. 1 is a perfect choice, 0 one no better than chance, or worse. None for one class.

    `hal-harness` takes 100 coverages from 0 to 1 and the trapezoid rule instead of i/N.

    >>> risk_coverage([0.9, 0.8, 0.3, 0.1], [1, 1, 0, 0])
    1.0
    >>> risk_coverage([0.5, 0.4], [0, 0]), risk_coverage([0.5, 0.4], [0, 0], "hal-harness")
    (None, 1.0)
    """
    return selective_gain(blocks(samples(confidences, outcomes)), profile)


def _gain(found: Sequence[Block], runs: int, failures: int, area: Callable[[Sequence[float]], float]) -> float:
    observed = area(_risks(found))
    optimal = area(_risks([(1.0, runs - failures, 0), (0.0, failures, failures)]))
    possible = failures / runs - optimal
    return 1.0 if possible <= EPSILON else clamp(1.0 - (observed - optimal) / (possible + EPSILON))


def _risks(found: Sequence[Block]) -> list[float]:
    """The expected error share among the i surest, for i = 1 … N."""
    risks: list[float] = []
    before = 0
    for _, block, failed in found:
        taken = len(risks)
        risks += [(before + step * failed / block) / (taken + step) for step in range(1, block + 1)]
        before += failed
    return risks


def _mean_risk(risks: Sequence[float]) -> float:
    return math.fsum(risks) / len(risks)


def _grid_risk(risks: Sequence[float]) -> float:
    """The trapezoid rule over numpy.linspace(0, 1, 100); a coverage that holds no sample takes the first."""
    step = 1.0 / (GRID - 1)
    coverages = [*(index * step for index in range(GRID - 1)), 1.0]
    heights = [risks[max(1, int(coverage * len(risks))) - 1] for coverage in coverages]
    return math.fsum((coverages[i + 1] - coverages[i]) * (heights[i] + heights[i + 1]) / 2 for i in range(GRID - 1))


class RiskCoverage(RankedSamples):
    """`risk_coverage` over the window: O(N) after the sort of its D distinct confidences.

    References: Y. Geifman, G. Uziel, R. El-Yaniv, *Bias-Reduced Uncertainty Estimation for Deep Neural Classifiers* (2019).
    """

    __slots__ = ("_profile",)

    spec = MetricSpec(
        name="risk_coverage",
        title="Risk–coverage (P_rc)",
        family="predictability",
        direction="higher",
        description="How much is gained by taking only the agent's surest answers: 1 the best choice, 0 no better than chance.",
        formula="1 − (A − A*) / (A_rand − A* + 1e-8), cut to [0, 1]; A: mean error share among the i surest, i = 1 … N",
        evidence="a successful and a failed run, both with a confidence",
        source="HAL reliability, evaluation methodology: P_rc",
        improve="Its surest failures cost most: inspect the failed runs of the highest confidence.",
        interval="comparison",
    )

    def __init__(self, settings: Settings = DEFAULTS) -> None:
        super().__init__(settings)
        self._profile: Profile = settings.metrics.profile

    def formula(self, found: Sequence[Block]) -> float | None:
        return selective_gain(found, self._profile)
