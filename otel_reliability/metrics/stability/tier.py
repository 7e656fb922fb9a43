"""tier: the grade of the score."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from otel_reliability.metrics.base import Derived
from otel_reliability.metrics.stability.tiers import Tier, tier_of
from otel_reliability.model.reading import MetricSpec, Reading

GRADES: Final = {tier.name: float(rank) for rank, tier in enumerate(reversed(Tier))}
"""The value of each tier: 0 for CRITICAL to 3 for STABLE."""


class TierGrade(Derived):
    """STABLE from 80, VARIABLE from 60, UNSTABLE from 40, else CRITICAL, of the score rounded half up.

    As a reading: 3, 2, 1 or 0, the word in `note`. As emitted: one series a tier, 1 for the tier that the agent has and 0
    for the others. No value without a score. State: none.

    >>> from otel_reliability.model.reading import Reading
    >>> tier = TierGrade()
    >>> tier.derive({"score": Reading(79.0, 20)})
    Reading(value=2.0, runs=20, parts=(), note='VARIABLE')
    >>> [(attributes[0][1], reading.value) for attributes, reading in tier.series({"score": Reading(79.0, 20)})]
    [('STABLE', 0.0), ('VARIABLE', 1.0), ('UNSTABLE', 0.0), ('CRITICAL', 0.0)]

    References: AgentCop, *Reliability Layer*, "Reliability Tiers".
    """

    __slots__ = ()

    spec = MetricSpec(
        name="tier",
        title="Reliability tier",
        family="stability",
        unit="{tier}",
        direction="neutral",
        description="Which tier the score falls in: 1 for that tier, 0 for the others.",
        formula="STABLE from 80, VARIABLE from 60, UNSTABLE from 40, else CRITICAL",
        evidence="a score",
        source="AgentCop, Reliability Layer",
        improve="As for the score.",
    )
    needs = ("score",)

    def derive(self, readings: Mapping[str, Reading]) -> Reading:
        score = readings["score"]
        if score.value is None:
            return Reading(None, score.runs, note=score.note)
        tier = tier_of(score.value)
        return Reading(GRADES[tier.name], score.runs, note=tier.name)

    def series(self, readings: Mapping[str, Reading]) -> tuple[tuple[tuple[tuple[str, str], ...], Reading], ...]:
        reading = self.derive(readings)
        if reading.value is None:
            return ()
        return tuple(((("tier", tier.name),), Reading(float(tier.name == reading.note), reading.runs)) for tier in Tier)
