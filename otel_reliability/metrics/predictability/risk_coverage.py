"""risk_coverage (P_rc): if only its surest answers were taken, how much better than at random would
they be?
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from otel_reliability.config import Settings
from otel_reliability.metrics._support.sums import clamp
from otel_reliability.metrics.base import DEFAULTS, Profile
from otel_reliability.metrics.predictability.samples import Block, RankedSamples
from otel_reliability.model.reading import MetricSpec

EPSILON: Final = 1e-8
GRID: Final = 100


def _risks(blocks: Sequence[Block]) -> list[float]:
    """Return the expected error share among the i surest, for i = 1 … N."""
    risks: list[float] = []
    before = 0
    for runs, failed in blocks:
        surer = len(risks)
        risks += [(before + step * failed / runs) / (surer + step) for step in range(1, runs + 1)]
        before += failed
    return risks


def _mean_risk(risks: Sequence[float]) -> float:
    return math.fsum(risks) / len(risks)


def _grid_risk(risks: Sequence[float]) -> float:
    """Return the area by the trapezoid rule over numpy.linspace(0, 1, 100); a coverage without a
    sample has the first's risk.
    """
    step = 1.0 / (GRID - 1)
    coverages = [*(index * step for index in range(GRID - 1)), 1.0]
    heights = [risks[max(1, int(coverage * len(risks))) - 1] for coverage in coverages]
    return math.fsum(
        (coverages[i + 1] - coverages[i]) * (heights[i] + heights[i + 1]) / 2
        for i in range(GRID - 1)
    )


class RiskCoverage(RankedSamples):
    """P_rc = 1 − (A − A*) / (A_rand − A* + 1e-8), cut to [0, 1]; pooled over the attempts of all
    tasks.

    A is the mean, over i = 1 … N, of the error share among the i most confident attempts; A* the
    same with the successes first; A_rand the error share. Of attempts that tie in confidence any
    order is possible: they count with their expected share. 1 is a perfect choice, 0 one no better
    than chance, or worse. No value for one class.

    `hal-harness` takes 100 coverages from 0 to 1 and the trapezoid rule instead of i/N. There one
    class gives 1.0, even where every answer is wrong, because nothing could be gained. The cost is
    O(N) after the sort of the D distinct confidences.

    >>> metric, reference = (
    ...     RiskCoverage(),
    ...     RiskCoverage(Settings.load(metrics={"profile": "hal-harness"})),
    ... )
    >>> metric.formula([(1, 0), (1, 0), (2, 2)], successes=2, failures=2)
    1.0
    >>> [one.formula([(2, 2)], successes=0, failures=2) for one in (metric, reference)]
    [None, 1.0]

    References: Y. Geifman, G. Uziel, R. El-Yaniv, *Bias-Reduced Uncertainty Estimation for Deep
    Neural Classifiers* (2019).
    """

    __slots__ = ("_profile",)

    spec = MetricSpec(
        name="risk_coverage",
        title="Risk–coverage (P_rc)",
        family="predictability",
        direction="higher",
        description=(
            "How much is gained by taking only the agent's surest answers: 1 the best "
            "choice, 0 no better than chance."
        ),
        formula=(
            "1 − (A − A*) / (A_rand − A* + 1e-8), cut to [0, 1]; A: mean error share among "
            "the i surest, i = 1 … N"
        ),
        required_data="a successful and a failed run, both with a confidence",
        source="HAL reliability, evaluation methodology: P_rc",
        improve="Its surest failures cost most: inspect the failed runs of the highest confidence.",
        interval="comparison",
    )

    def __init__(self, settings: Settings = DEFAULTS) -> None:
        super().__init__(settings)
        self._profile: Profile = settings.metrics.profile

    def formula(self, blocks: Sequence[Block], successes: int, failures: int) -> float | None:
        if self._profile == "published" and not (successes and failures):
            return None
        area = _mean_risk if self._profile == "published" else _grid_risk
        observed = area(_risks(blocks))
        optimal = area(_risks([(successes, 0), (failures, failures)]))
        possible = failures / (successes + failures) - optimal
        return (
            1.0 if possible <= EPSILON else clamp(1.0 - (observed - optimal) / (possible + EPSILON))
        )
