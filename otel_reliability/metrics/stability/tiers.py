"""The four grades of a score."""

from __future__ import annotations

import enum
import math
from typing import Final

PLACES: Final = 9
"""Decimal places of a score that count when it is rounded: below them is only the noise of adding floats."""


class Tier(enum.Enum):
    """A grade: its least whole number, its sign, and its meaning."""

    STABLE = (80, "🟢", "Behaviour is consistent and predictable.")
    VARIABLE = (60, "🟡", "Some variance: inspect what costs most before going to production.")
    UNSTABLE = (40, "🟠", "High variance: tune the agent before relying on it in production.")
    CRITICAL = (0, "🔴", "Severe instability: do not run in production.")

    def __init__(self, least: int, sign: str, meaning: str) -> None:
        self.least = least
        self.sign = sign
        self.meaning = meaning


def rounded(score: float) -> int:
    """The score as people see it: rounded half up.

    >>> rounded(79.5), rounded(79.49), rounded(79.49999999999999)
    (80, 79, 80)
    """
    return math.floor(round(score, PLACES) + 0.5)


def tier_of(score: float) -> Tier:
    """The tier of a score, by the number that people see.

    >>> [tier_of(score).name for score in (100, 79.5, 79.4, 59.5, 40, 39)]
    ['STABLE', 'STABLE', 'VARIABLE', 'VARIABLE', 'UNSTABLE', 'CRITICAL']
    """
    return next(tier for tier in Tier if rounded(score) >= tier.least)
