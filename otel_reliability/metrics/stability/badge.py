"""The badge: trust and reliability in one line of text."""

from __future__ import annotations

from typing import Final

from otel_reliability.metrics.stability.tiers import rounded, tier_of

SECURED_ABOVE: Final = 80
CRITICAL_BELOW: Final = 50


def badge_text(score: float, trust: float | None = None) -> str:
    """Return the line of the badge. Trust is the user's score of 0 to 100; without it the reliability half stands alone.

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
