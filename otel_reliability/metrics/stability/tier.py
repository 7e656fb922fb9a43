"""tier: the range that the score lies in, and its badge."""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping
from typing import Final

from otel_reliability.metrics.base import Derived, Series
from otel_reliability.model.reading import MetricSpec, Reading

PLACES: Final = 9
"""Decimal places of a score that count when it is rounded: below them is only the noise of adding
floats.
"""


class Tier(enum.Enum):
    """A range of the score: its least whole number, its sign, and what it means.

    It measures how alike runs are. Whether they succeed is another question (`success.verdict`).
    """

    STABLE = (80, "🟢", "varies little from run to run")
    VARIABLE = (60, "🟡", "varies from run to run")
    UNSTABLE = (40, "🟠", "varies much from run to run")
    CRITICAL = (0, "🔴", "has hardly two runs that are alike")

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


SECURED_ABOVE: Final = 80
CRITICAL_BELOW: Final = 50


def badge_text(score: float, trust: float | None = None) -> str:
    """Return the line of the badge. Trust is the user's score of 0 to 100; without it the
    reliability half stands alone.

    >>> badge_text(87, trust=94)
    '✅ SECURED 94/100 | 🟢 STABLE 87/100'
    >>> badge_text(70.6)
    '🟡 VARIABLE 71/100'
    """
    tier = tier_of(score)
    reliability = f"{tier.sign} {tier.name} {rounded(score)}/100"
    return reliability if trust is None else f"{trust_text(trust)} | {reliability}"


def trust_text(trust: float) -> str:
    """The half that is not ours: above 80 secured, below 50 critical.

    >>> [trust_text(trust) for trust in (80.5, 80, 50, 49)]
    ['✅ SECURED 81/100', '⚠️ MODERATE 80/100', '⚠️ MODERATE 50/100', '❌ CRITICAL 49/100']
    """
    moderate = "⚠️ MODERATE" if trust >= CRITICAL_BELOW else "❌ CRITICAL"
    return f"{'✅ SECURED' if trust > SECURED_ABOVE else moderate} {rounded(trust)}/100"


TIER_RANKS: Final = {tier.name: float(rank) for rank, tier in enumerate(reversed(Tier))}
"""The rank of each tier: 0 for CRITICAL to 3 for STABLE."""


class TierRank(Derived):
    """The tier of the score, rounded half up.

    As a reading: 3 for STABLE to 0 for CRITICAL, the word in `note`. As emitted: one series a tier.
    No value without a score.

    >>> from otel_reliability.model.reading import Reading
    >>> tier = TierRank()
    >>> tier.derive({"score": Reading(79.0, 20)})
    Reading(value=2.0, runs=20, parts=(), note='VARIABLE')
    >>> [
    ...     (attributes[0][1], reading.value)
    ...     for attributes, reading in tier.series({"score": Reading(79.0, 20)})
    ... ]
    [('STABLE', 0.0), ('VARIABLE', 1.0), ('UNSTABLE', 0.0), ('CRITICAL', 0.0)]
    """

    spec = MetricSpec(
        name="tier",
        title="Reliability tier",
        family="stability",
        unit="{tier}",
        direction="neutral",
        description="Which tier the score falls in: 1 for that tier, 0 for the others.",
        formula="STABLE from 80, VARIABLE from 60, UNSTABLE from 40, else CRITICAL",
        required_data="a score",
        source="AgentCop, Reliability Layer",
        improve="As for the score.",
    )
    needs = ("score",)

    def derive(self, readings: Mapping[str, Reading]) -> Reading:
        score = readings["score"]
        if score.value is None:
            return Reading(None, score.runs, note=score.note)
        tier = tier_of(score.value)
        return Reading(TIER_RANKS[tier.name], score.runs, note=tier.name)

    def series(self, readings: Mapping[str, Reading]) -> Series:
        reading = self.derive(readings)
        if reading.value is None:
            return ()
        return tuple(
            ((("tier", tier.name),), Reading(float(tier.name == reading.note), reading.runs))
            for tier in Tier
        )
