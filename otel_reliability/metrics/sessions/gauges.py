"""Gauges of an agent's recent sessions: the mean, and the worst."""

from __future__ import annotations

import math
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
