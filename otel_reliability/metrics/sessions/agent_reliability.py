"""agent_reliability: did the agent ever fail badly in this session?"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from otel_reliability.metrics.sessions.signals import (
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

TOP_K_SHARE: Final = 0.15
MAX_SHARE: Final = 0.1
FLAG_ABOVE: Final = 0.5


def agent_reliability(
    traces: Sequence[str], signals: TraceSignals, weights: Mapping[str, float] | None = None
) -> SessionScore:
    """Max-compose and tail risk: a session is as good as its worst traces.

    Per trace, risk = max over its signals of w · (1 − score). Over the n traces with a signal, the k = max(1, ⌈0.15 n⌉)
    greatest risks count: raw = 0.9 · mean of these + 0.1 · the greatest; score = 1 − raw, cut to [0, 1] and rounded to four
    places. Traces with a risk above 0.5 (strictly) are flagged. Signals and weights are taken as they come, unchecked.

    No traces or no signals at all: 1.0, with a reason that says so.

    >>> signals = {
    ...     "trace-1": {"confidence": 0.88, "loop_detection": 0.95, "tool_correctness": 0.92, "coherence": 0.97},
    ...     "trace-7": {"confidence": 0.35, "loop_detection": 0.28, "tool_correctness": 0.90, "coherence": 0.85},
    ... }
    >>> score, reason, metadata = agent_reliability(["trace-1", "trace-7"], signals)
    >>> score, reason, metadata["flagged_traces"]
    (0.28, 'Elevated risk in 1 of 2 traces.', ['trace-7'])
    >>> metadata["per_trace_signals"]["trace-7"]["step_risk"], metadata["aggregation"]["mean_top_k_risk"]
    (0.72, 0.72)

    References: PandaProbe, *Metrics*, "Agent Reliability".
    """
    if not traces or not signals:
        return empty_session()
    weighed = merged(weights)
    found = {trace: risks(signals[trace]) for trace in traces if trace in signals}
    evaluated = {trace: risk for trace, risk in found.items() if risk}
    if not evaluated:
        return not_evaluable()
    steps = {trace: max(weighed[name] * value for name, value in risk.items()) for trace, risk in evaluated.items()}
    return _score(len(traces), weighed, evaluated, steps)


def tail_risk(steps: Collection[float]) -> tuple[float, float, float]:
    """Return the tail risk of the risks of a session's traces, of which there is at least one: (raw, mean of the top, greatest).

    >>> tail_risk([0.25, 0.5])
    (0.5, 0.5, 0.5)
    """
    number, greatest = max(1, math.ceil(len(steps) * TOP_K_SHARE)), max(steps)
    mean_top = greatest if number == 1 else sum(sorted(steps, reverse=True)[:number]) / number
    return (1 - MAX_SHARE) * mean_top + MAX_SHARE * greatest, mean_top, greatest


def _score(total: int, weights: dict[str, float], evaluated: TraceSignals, steps: Mapping[str, float]) -> SessionScore:
    raw, mean_top, greatest = tail_risk(steps.values())
    flagged = [trace for trace, step in steps.items() if step > FLAG_ABOVE]
    metadata = {
        "total_traces_in_session": total,
        "traces_evaluated": len(steps),
        "raw_risk": round(raw, PLACES),
        "signal_weights": weights,
        "per_trace_signals": {
            trace: rounded({**named(risk), "step_risk": steps[trace]}) for trace, risk in evaluated.items()
        },
        "flagged_traces": flagged,
        "aggregation": {
            "method": "max_compose_top_k",
            "top_k_percentile": TOP_K_SHARE,
            "ensemble_weight": MAX_SHARE,
            "mean_top_k_risk": round(mean_top, PLACES),
            "max_risk": round(greatest, PLACES),
        },
    }
    return SessionScore(clamped(1.0 - raw), _reason(len(flagged), len(steps)), metadata)


def _reason(flagged: int, evaluated: int) -> str:
    if flagged:
        return f"Elevated risk in {flagged} of {evaluated} traces."
    return f"No elevated risk across {evaluated} traces."
