"""Bands of a session's score, in words."""

from __future__ import annotations

from bisect import bisect_right
from typing import Final

CUTS: Final = (0.3, 0.5, 0.7, 0.9)

RELIABILITY_BANDS: Final = (
    "High risk — session contains catastrophic failures",
    "Elevated risk — multiple traces with significant issues",
    "Moderate risk — some traces show concerning behavior",
    "Generally reliable — minor risk in a few traces",
    "Highly reliable — no elevated risk in any trace",
)

CONSISTENCY_BANDS: Final = (
    "Unstable — multiple signals compounding across traces",
    "High instability — frequent or severe deviations",
    "Moderate instability — some traces deviate noticeably",
    "Generally consistent — minor fluctuations",
    "Highly consistent — smooth operation across all traces",
)


def reliability_band(score: float) -> str:
    """Return the band of an agent_reliability score: from 0.9, 0.7, 0.5, 0.3 and below, without gaps between.

    >>> reliability_band(0.695)
    'Moderate risk — some traces show concerning behavior'
    """
    return RELIABILITY_BANDS[bisect_right(CUTS, score)]


def consistency_band(score: float) -> str:
    """Return the band of an agent_consistency score, by the same cuts.

    >>> consistency_band(0.9)
    'Highly consistent — smooth operation across all traces'
    """
    return CONSISTENCY_BANDS[bisect_right(CUTS, score)]
