"""Session scores without their explanation, which few readers ask for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from otel_reliability.metrics.sessions.agent_consistency import root_mean_square
from otel_reliability.metrics.sessions.agent_reliability import tail_risk
from otel_reliability.metrics.sessions.signals import clamped

Four: TypeAlias = tuple[float | None, float | None, float | None, float | None]
"""One value for each of `SIGNALS`, in their order; None: the trace has no such signal."""
Bare: TypeAlias = tuple[float | None, int]
"""A score, and how many traces were evaluated for it. None where none was: 1.0, as the full functions say, is no evidence."""


def bare_reliability(traces: Sequence[Four], weights: Sequence[float]) -> Bare:
    """The score of `agent_reliability` for the same traces in the same order.

    >>> bare_reliability([(0.88, 0.95, 0.92, 0.97), (0.35, 0.28, 0.90, 0.85)], (1.0, 1.0, 0.8, 1.0))
    (0.28, 2)
    """
    steps: list[float] = []
    for scores in traces:
        step: float | None = None
        for weight, score in zip(weights, scores, strict=False):
            if score is not None and (step is None or weight * (1.0 - score) > step):
                step = weight * (1.0 - score)
        if step is not None:
            steps.append(step)
    return (clamped(1.0 - tail_risk(steps)[0]), len(steps)) if steps else (None, 0)


def bare_consistency(traces: Sequence[Four], weights: Sequence[float]) -> Bare:
    """The score of `agent_consistency` for the same traces in the same order.

    >>> bare_consistency([(0.88, 0.95, 0.92, 0.97)], (1.0, 1.0, 0.8, 1.0))
    (0.8627, 1)
    """
    found: list[float] = []
    for confidence, *others in traces:
        if confidence is not None:
            told = zip(weights[1:], others, strict=False)
            penalty = sum([weight * (1.0 - score) for weight, score in told if score is not None])
            found.append((1.0 + penalty) * (weights[0] * (1.0 - confidence)))
    return (clamped(1.0 - root_mean_square(found)), len(found)) if found else (None, 0)
