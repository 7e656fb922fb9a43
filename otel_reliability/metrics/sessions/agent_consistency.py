"""agent_consistency: did the agent perform smoothly through this session?"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from otel_reliability.metrics.sessions.signals import (
    CONFIDENCE,
    PLACES,
    SessionScore,
    TraceSignals,
    clamped,
    empty_session,
    merged,
    named,
    not_evaluable,
    risks,
    rounded,
)


def agent_consistency(
    traces: Sequence[str], signals: TraceSignals, weights: Mapping[str, float] | None = None
) -> SessionScore:
    """Root mean square of amplified uncertainty: any trace that is not smooth costs, and many moderate ones cost much.

    Per trace with a confidence: penalty = Σ w · (1 − score) over its other signals, uncertainty = (1 + penalty) · w_conf ·
    (1 − confidence). Score = 1 − √(mean uncertainty²), cut to [0, 1] and rounded to four places. Traces without a confidence
    are skipped; a confidence of 1 hides every other fault of its trace. Signals and weights are taken as they come.

    No traces or no signals at all: 1.0, with a reason that says so.

    >>> score, reason, metadata = agent_consistency(
    ...     ["t1"], {"t1": {"confidence": 0.88, "loop_detection": 0.95, "tool_correctness": 0.92, "coherence": 0.97}}
    ... )
    >>> score, reason
    (0.8627, 'Consistent performance across 1 traces.')
    >>> trace = metadata["per_trace_signals"]["t1"]
    >>> trace["situational_penalty"], trace["weighted_uncertainty"]
    (0.144, 0.1373)

    References: PandaProbe, *Metrics*, "Agent Consistency".
    """
    if not traces or not signals:
        return empty_session()
    weighed = merged(weights)
    evaluated = {trace: risks(signals[trace]) for trace in traces if CONFIDENCE in signals.get(trace, ())}
    if not evaluated:
        return not_evaluable()
    return _score(len(traces), weighed, evaluated)


def root_mean_square(uncertainties: Sequence[float]) -> float:
    """Return the root mean square of the uncertainties of a session's traces, of which there is at least one.

    >>> root_mean_square([0.6, 0.8])
    0.7071067811865476
    """
    return math.sqrt(sum([value**2 for value in uncertainties]) / len(uncertainties))


def _score(total: int, weights: dict[str, float], evaluated: TraceSignals) -> SessionScore:
    penalties = {trace: _penalty(risk, weights) for trace, risk in evaluated.items()}
    uncertainties = {
        trace: (1.0 + penalties[trace]) * (weights[CONFIDENCE] * risk[CONFIDENCE]) for trace, risk in evaluated.items()
    }
    rms = root_mean_square(list(uncertainties.values()))
    score = clamped(1.0 - rms)
    metadata = {
        "total_traces_in_session": total,
        "traces_evaluated": len(evaluated),
        "raw_instability": round(rms, PLACES),
        "signal_weights": weights,
        "per_trace_signals": {
            trace: rounded(
                {
                    **named(risk),
                    "situational_penalty": penalties[trace],
                    "weighted_uncertainty": uncertainties[trace],
                }
            )
            for trace, risk in evaluated.items()
        },
        "aggregation": {"method": "weighted_rms", "rms_value": round(rms, PLACES)},
    }
    return SessionScore(score, _reason(score, len(evaluated)), metadata)


def _penalty(risk: Mapping[str, float], weights: Mapping[str, float]) -> float:
    return sum(weights[name] * value for name, value in risk.items() if name != CONFIDENCE)


def _reason(score: float, evaluated: int) -> str:
    if score >= 0.8:
        return f"Consistent performance across {evaluated} traces."
    if score >= 0.5:
        return f"Moderate instability detected across {evaluated} traces."
    return f"High instability across {evaluated} traces; multiple signals compound."
