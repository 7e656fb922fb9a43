"""Sessions: scores of the traces of one conversation. Pure functions of evaluated signals."""

from __future__ import annotations

from otel_reliability.metrics.sessions.agent_consistency import agent_consistency
from otel_reliability.metrics.sessions.agent_reliability import agent_reliability
from otel_reliability.metrics.sessions.gauges import SPECS, consistency_band, reliability_band
from otel_reliability.metrics.sessions.signals import DEFAULT_WEIGHTS, SIGNALS, SessionScore

__all__ = [
    "DEFAULT_WEIGHTS",
    "SIGNALS",
    "SPECS",
    "SessionScore",
    "agent_consistency",
    "agent_reliability",
    "consistency_band",
    "reliability_band",
]
