"""Passes: what several attempts at a task tell together."""

from __future__ import annotations

from otel_reliability.metrics.passes.decay_curve import decay_curve
from otel_reliability.metrics.passes.graceful_degradation import graceful_degradation
from otel_reliability.metrics.passes.pass_at_k import pass_at_k
from otel_reliability.metrics.passes.pass_hat_k import pass_hat_k
from otel_reliability.metrics.passes.run_counts import confidence_band, recommend_runs
from otel_reliability.metrics.passes.summary import TARGETS, ReliabilitySummary, summarize
from otel_reliability.metrics.passes.variance_amplification import variance_amplification

__all__ = [
    "TARGETS",
    "ReliabilitySummary",
    "confidence_band",
    "decay_curve",
    "graceful_degradation",
    "pass_at_k",
    "pass_hat_k",
    "recommend_runs",
    "summarize",
    "variance_amplification",
]
