"""The signals of a trace, and what they weigh in a session's scores."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple, TypeAlias

CONFIDENCE: Final = "confidence"
LOOP_DETECTION: Final = "loop_detection"
TOOL_CORRECTNESS: Final = "tool_correctness"
COHERENCE: Final = "coherence"

RISK_NAMES: Final = {
    CONFIDENCE: "confidence_risk",
    LOOP_DETECTION: "loop_risk",
    TOOL_CORRECTNESS: "tool_risk",
    COHERENCE: "coherence_risk",
}
"""The four signals, each a score of 0 to 1 where higher is better, and what the metadata call one minus it."""

SIGNALS: Final = tuple(RISK_NAMES)

DEFAULT_WEIGHTS: Final[Mapping[str, float]] = {
    CONFIDENCE: 1.0,
    LOOP_DETECTION: 1.0,
    TOOL_CORRECTNESS: 0.8,
    COHERENCE: 1.0,
}

NO_TRACES: Final = "No traces or signals to evaluate."
NOT_EVALUABLE: Final = "No evaluable traces."
PLACES: Final = 4

TraceSignals: TypeAlias = Mapping[str, Mapping[str, float]]
"""Trace id → signal name → score. A missing signal is skipped, not taken as 0."""


class SessionScore(NamedTuple):
    """A session's score from 0 to 1, the sentence that explains it, and the numbers behind it."""

    score: float
    reason: str
    metadata: dict[str, Any]


def empty_session() -> SessionScore:
    """Return the reference's score of a session without traces or signals."""
    return SessionScore(1.0, NO_TRACES, {"note": "empty_session"})


def not_evaluable() -> SessionScore:
    """Return the reference's score of a session without a usable trace."""
    return SessionScore(1.0, NOT_EVALUABLE, {})


def merged(weights: Mapping[str, float] | None) -> dict[str, float]:
    """The default weights with overrides laid over them; unknown names are kept and have no effect.

    >>> merged({"coherence": 0.5})["coherence"], merged(None)["tool_correctness"]
    (0.5, 0.8)
    """
    return {**DEFAULT_WEIGHTS, **(weights or {})}


def risks(signals: Mapping[str, float]) -> dict[str, float]:
    """1 − score of each of the four signals that is there, by signal name.

    >>> risks({"confidence": 0.75, "helpfulness": 0.1})
    {'confidence': 0.25}
    """
    return {name: 1.0 - signals[name] for name in SIGNALS if name in signals}


def rounded(values: Mapping[str, float]) -> dict[str, float]:
    """Each number at the four places the metadata show."""
    return {name: round(value, PLACES) for name, value in values.items()}


def named(found: Mapping[str, float]) -> dict[str, float]:
    """Risks under the names the metadata use."""
    return {RISK_NAMES[name]: risk for name, risk in found.items()}


def clamped(value: float) -> float:
    """The value cut to [0, 1] and rounded as scores are."""
    return round(min(max(value, 0.0), 1.0), PLACES)
