"""Gauges of an agent's recent sessions, the mean and the worst, and the bands of a score in words."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from typing import Final

from otel_reliability.model.reading import NO_EVIDENCE, MetricSpec, Reading

FAMILY: Final = "sessions"
EVIDENCE: Final = "a closed session with evaluations of confidence, loop_detection, tool_correctness or coherence"

SESSION_RELIABILITY: Final = MetricSpec(
    name="mean_session_reliability",
    title="Session reliability",
    family=FAMILY,
    unit="{score}",
    direction="higher",
    description="Whether the agent never failed badly in a session: mean over its last 100 closed sessions.",
    formula="mean of 1 − (0.9 · mean of the top 15 % of trace risks + 0.1 · the greatest)",
    evidence=EVIDENCE,
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
    description="Whether the agent performed smoothly through a session: mean over its last 100 closed sessions.",
    formula="mean of 1 − √(mean over traces of ((1 + Σ w · risk) · w_conf · (1 − confidence))²)",
    evidence="a closed session with an evaluation of confidence",
    source="PandaProbe, session metrics: agent_consistency",
    improve="Many moderate faults weigh as much as one grave one: look for the signal that is low everywhere.",
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
"""The gauges of an agent's recent sessions. They are no metrics of a window of runs: a session is scored as a whole."""


def mean_and_worst(scores: Sequence[float], runs: int, note: str = "") -> tuple[Reading, Reading]:
    """The mean and the least of the sessions' scores; no evidence without a session.

    >>> mean_and_worst([1.0, 0.5], 7)[1]
    Reading(value=0.5, runs=7, parts=(), note='')
    """
    if not scores:
        return NO_EVIDENCE, NO_EVIDENCE
    return Reading(math.fsum(scores) / len(scores), runs, note=note), Reading(min(scores), runs, note=note)


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
