"""Sessions: scores of the traces of one conversation, and the gauges of an agent's recent ones.
Pure functions of signals.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from otel_reliability.metrics._support.sums import clamp
from otel_reliability.model.reading import MetricSpec

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
"""The four signals, each a score of 0 to 1 where higher is better, and what the metadata call one
minus it.
"""

SIGNALS: Final = tuple(RISK_NAMES)

DEFAULT_WEIGHTS: Final[Mapping[str, float]] = {
    CONFIDENCE: 1.0,
    LOOP_DETECTION: 1.0,
    TOOL_CORRECTNESS: 0.8,
    COHERENCE: 1.0,
}

TOP_K_SHARE: Final = 0.15
MAX_SHARE: Final = 0.1
FLAG_ABOVE: Final = 0.5
PLACES: Final = 4

TraceSignals: TypeAlias = Mapping[str, Mapping[str, float]]
"""Trace id → signal name → score. A missing signal is skipped, not taken as 0."""
SignalScores: TypeAlias = tuple[float | None, ...]
"""The score of each of `SIGNALS`, in their order; None: the trace has no such signal."""


class BareScore(NamedTuple):
    """A score without its explanation, and how many traces were evaluated for it.

    None where none was: 1.0, as the full functions return, is no data.
    """

    score: float | None
    evaluated: int


_NOT_EVALUATED: Final = BareScore(None, 0)


class SessionScore(NamedTuple):
    """A session's score from 0 to 1, the sentence that explains it, and the numbers behind it
    (none: no trace was evaluated).
    """

    score: float
    reason: str
    metadata: dict[str, Any]

    @property
    def evaluated(self) -> int:
        """Number of traces that were evaluated for it."""
        return self.metadata.get("traces_evaluated", 0)


def merged(weights: Mapping[str, float] | None) -> dict[str, float]:
    """Return the default weights with overrides laid over them; unknown names are kept and have no
    effect.

    >>> merged({"coherence": 0.5})["coherence"], merged(None)["tool_correctness"]
    (0.5, 0.8)
    """
    return {**DEFAULT_WEIGHTS, **(weights or {})}


def weights_of(weights: Mapping[str, float] | None) -> tuple[float, ...]:
    """Return the weights of the signals, in their order."""
    return tuple([merged(weights)[name] for name in SIGNALS])


# --- agent_reliability ----------------------------------------------------------------------------


def agent_reliability(
    traces: Sequence[str], signals: TraceSignals, weights: Mapping[str, float] | None = None
) -> SessionScore:
    """Max-compose and tail risk: a session is as good as its worst traces. Did the agent ever fail
    badly in it?

    Per trace, risk = max over its signals of w · (1 − score). Over the n traces with a signal, the
    k = max(1, ⌈0.15 n⌉) greatest risks count: raw = 0.9 · mean of these + 0.1 · the greatest; score
    = 1 − raw, cut to [0, 1] and rounded to four places. Traces with a risk above 0.5 (strictly) are
    flagged. Signals and weights are taken as they come, unchecked.

    No traces or no signals at all: 1.0, with a reason that says so.

    >>> signals = {
    ...     "trace-1": {
    ...         "confidence": 0.88,
    ...         "loop_detection": 0.95,
    ...         "tool_correctness": 0.92,
    ...         "coherence": 0.97,
    ...     },
    ...     "trace-7": {
    ...         "confidence": 0.35,
    ...         "loop_detection": 0.28,
    ...         "tool_correctness": 0.90,
    ...         "coherence": 0.85,
    ...     },
    ... }
    >>> score, reason, metadata = agent_reliability(["trace-1", "trace-7"], signals)
    >>> score, reason, metadata["flagged_traces"]
    (0.28, 'Elevated risk in 1 of 2 traces.', ['trace-7'])
    >>> (
    ...     metadata["per_trace_signals"]["trace-7"]["step_risk"],
    ...     metadata["aggregation"]["mean_top_k_risk"],
    ... )
    (0.72, 0.72)

    References: PandaProbe, *Metrics*, "Agent Reliability".
    """
    if not traces or not signals:
        return _empty_session()
    listed = weights_of(weights)
    steps = {
        trace: risk
        for trace in traces
        if (risk := _step_risk(_four(signals, trace), listed)) is not None
    }
    if not steps:
        return _not_evaluable()
    raw, mean_top, greatest = _tail_risk(steps.values())
    flagged = [trace for trace, step in steps.items() if step > FLAG_ABOVE]
    reason = (
        f"Elevated risk in {len(flagged)} of {len(steps)} traces."
        if flagged
        else f"No elevated risk across {len(steps)} traces."
    )
    metadata = {
        "total_traces_in_session": len(traces),
        "traces_evaluated": len(steps),
        "raw_risk": round(raw, PLACES),
        "signal_weights": merged(weights),
        "per_trace_signals": {
            trace: _explained(signals[trace], step_risk=step) for trace, step in steps.items()
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
    return SessionScore(_rounded(1.0 - raw), reason, metadata)


def bare_reliability(traces: Sequence[SignalScores], weights: Sequence[float]) -> BareScore:
    """Return the score of `agent_reliability` for the same traces in the same order.

    >>> bare_reliability([(0.88, 0.95, 0.92, 0.97), (0.35, 0.28, 0.90, 0.85)], (1.0, 1.0, 0.8, 1.0))
    BareScore(score=0.28, evaluated=2)
    """
    steps = [risk for scores in traces if (risk := _step_risk(scores, weights)) is not None]
    if not steps:
        return _NOT_EVALUATED
    return BareScore(_rounded(1.0 - _tail_risk(steps)[0]), len(steps))


def _step_risk(scores: SignalScores, weights: Sequence[float]) -> float | None:
    risk: float | None = None
    for weight, score in zip(weights, scores, strict=True):
        if score is not None and (risk is None or weight * (1.0 - score) > risk):
            risk = weight * (1.0 - score)
    return risk


def _tail_risk(steps: Collection[float]) -> tuple[float, float, float]:
    """Return (raw, mean of the top, greatest) of the risks of a session's traces, of which there is
    at least one.
    """
    number = max(1, math.ceil(len(steps) * TOP_K_SHARE))
    greatest = max(steps)
    mean_top = greatest if number == 1 else sum(sorted(steps, reverse=True)[:number]) / number
    return (1 - MAX_SHARE) * mean_top + MAX_SHARE * greatest, mean_top, greatest


# --- agent_consistency ----------------------------------------------------------------------------


def agent_consistency(
    traces: Sequence[str], signals: TraceSignals, weights: Mapping[str, float] | None = None
) -> SessionScore:
    """Root mean square of amplified uncertainty: any trace that is not smooth costs, and many
    moderate ones cost much.

    Per trace with a confidence: penalty = Σ w · (1 − score) over its other signals, uncertainty =
    (1 + penalty) · w_conf · (1 − confidence). Score = 1 − √(mean uncertainty²), cut to [0, 1] and
    rounded to four places. Traces without a confidence are skipped; a confidence of 1 hides every
    other fault of its trace. Signals and weights are taken as they come.

    No traces or no signals at all: 1.0, with a reason that says so.

    >>> score, reason, metadata = agent_consistency(
    ...     ["t1"],
    ...     {
    ...         "t1": {
    ...             "confidence": 0.88,
    ...             "loop_detection": 0.95,
    ...             "tool_correctness": 0.92,
    ...             "coherence": 0.97,
    ...         }
    ...     },
    ... )
    >>> score, reason
    (0.8627, 'Consistent performance across 1 traces.')
    >>> trace = metadata["per_trace_signals"]["t1"]
    >>> trace["situational_penalty"], trace["weighted_uncertainty"]
    (0.144, 0.1373)

    References: PandaProbe, *Metrics*, "Agent Consistency".
    """
    if not traces or not signals:
        return _empty_session()
    listed = weights_of(weights)
    found = {
        trace: one
        for trace in traces
        if (one := _uncertainty(_four(signals, trace), listed)) is not None
    }
    if not found:
        return _not_evaluable()
    rms = _root_mean_square([one.weighted for one in found.values()])
    score = _rounded(1.0 - rms)
    number = len(found)
    if score >= 0.8:
        reason = f"Consistent performance across {number} traces."
    elif score >= 0.5:
        reason = f"Moderate instability detected across {number} traces."
    else:
        reason = f"High instability across {number} traces; multiple signals compound."
    metadata = {
        "total_traces_in_session": len(traces),
        "traces_evaluated": number,
        "raw_instability": round(rms, PLACES),
        "signal_weights": merged(weights),
        "per_trace_signals": {
            trace: _explained(
                signals[trace],
                situational_penalty=one.penalty,
                weighted_uncertainty=one.weighted,
            )
            for trace, one in found.items()
        },
        "aggregation": {"method": "weighted_rms", "rms_value": round(rms, PLACES)},
    }
    return SessionScore(score, reason, metadata)


def bare_consistency(traces: Sequence[SignalScores], weights: Sequence[float]) -> BareScore:
    """Return the score of `agent_consistency` for the same traces in the same order.

    >>> bare_consistency([(0.88, 0.95, 0.92, 0.97)], (1.0, 1.0, 0.8, 1.0))
    BareScore(score=0.8627, evaluated=1)
    """
    known = [one for scores in traces if (one := _uncertainty(scores, weights)) is not None]
    if not known:
        return _NOT_EVALUATED
    rms = _root_mean_square([one.weighted for one in known])
    return BareScore(_rounded(1.0 - rms), len(known))


class _Uncertainty(NamedTuple):
    """The uncertainty of a trace, and the penalty by which it was amplified."""

    penalty: float
    weighted: float


def _uncertainty(scores: SignalScores, weights: Sequence[float]) -> _Uncertainty | None:
    """Return the uncertainty of a trace; None without a confidence."""
    confidence, *others = scores
    if confidence is None:
        return None
    weighed = zip(weights[1:], others, strict=True)
    penalty = sum([weight * (1.0 - score) for weight, score in weighed if score is not None])
    return _Uncertainty(penalty, (1.0 + penalty) * (weights[0] * (1.0 - confidence)))


def _root_mean_square(values: Sequence[float]) -> float:
    return math.sqrt(sum([value**2 for value in values]) / len(values))


# --- What both share ------------------------------------------------------------------------------


def _four(signals: TraceSignals, trace: str) -> SignalScores:
    found = signals.get(trace, {})
    return tuple([found.get(name) for name in SIGNALS])


def _explained(signals: Mapping[str, float], **numbers: float) -> dict[str, float]:
    """Return the risks of a trace by the names of the metadata, and these numbers, at the places
    that the metadata show.
    """
    risks = {risk: 1.0 - signals[name] for name, risk in RISK_NAMES.items() if name in signals}
    return {name: round(value, PLACES) for name, value in {**risks, **numbers}.items()}


def _rounded(score: float) -> float:
    return round(clamp(score), PLACES)


def _empty_session() -> SessionScore:
    return SessionScore(1.0, "No traces or signals to evaluate.", {"note": "empty_session"})


def _not_evaluable() -> SessionScore:
    return SessionScore(1.0, "No evaluable traces.", {})


# --- Gauges and bands -----------------------------------------------------------------------------

FAMILY: Final = "sessions"

SESSION_RELIABILITY: Final = MetricSpec(
    name="mean_session_reliability",
    title="Session reliability",
    family=FAMILY,
    unit="{score}",
    direction="higher",
    description=(
        "Whether the agent never failed badly in a session: mean over its last 100 closed sessions."
    ),
    formula="mean of 1 − (0.9 · mean of the top 15 % of trace risks + 0.1 · the greatest)",
    required_data=(
        "a closed session with evaluations of confidence, loop_detection, tool_correctness "
        "or coherence"
    ),
    source="PandaProbe, session metrics: agent_reliability",
    improve="Inspect the flagged traces of the worst sessions, and the signal that set their risk.",
)

WORST_SESSION_RELIABILITY: Final = SESSION_RELIABILITY._replace(
    name="min_session_reliability",
    title="Worst session reliability",
    description="The least reliability among the agent's last 100 closed sessions.",
    formula="min of 1 − (0.9 · mean of the top 15 % of trace risks + 0.1 · the greatest)",
)

SESSION_CONSISTENCY: Final = MetricSpec(
    name="mean_session_consistency",
    title="Session consistency",
    family=FAMILY,
    unit="{score}",
    direction="higher",
    description=(
        "Whether the agent performed smoothly through a session: mean over its last 100 "
        "closed sessions."
    ),
    formula="mean of 1 − √(mean over traces of ((1 + Σ w · risk) · w_conf · (1 − confidence))²)",
    required_data="a closed session with an evaluation of confidence",
    source="PandaProbe, session metrics: agent_consistency",
    improve=(
        "Many moderate faults weigh as much as one grave one: look for the signal that is "
        "low everywhere."
    ),
)

WORST_SESSION_CONSISTENCY: Final = SESSION_CONSISTENCY._replace(
    name="min_session_consistency",
    title="Worst session consistency",
    description="The least consistency among the agent's last 100 closed sessions.",
    formula="min of 1 − √(mean over traces of ((1 + Σ w · risk) · w_conf · (1 − confidence))²)",
)

SPECS: Final = (
    SESSION_RELIABILITY,
    WORST_SESSION_RELIABILITY,
    SESSION_CONSISTENCY,
    WORST_SESSION_CONSISTENCY,
)
"""The gauges of an agent's recent sessions. They are no metrics of a window of runs: a session is
scored as a whole.
"""


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
    """Return the band of an agent_reliability score: from 0.9, 0.7, 0.5, 0.3 and below, without
    gaps between.

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
