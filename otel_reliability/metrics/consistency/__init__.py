"""Consistency: do repeated attempts at a task go alike? Per task, then the mean over tasks, each weighing the same."""

from __future__ import annotations

from otel_reliability.metrics.consistency.confidence_consistency import confidence_consistency
from otel_reliability.metrics.consistency.consistency import consistency
from otel_reliability.metrics.consistency.outcome_agreement import outcome_agreement
from otel_reliability.metrics.consistency.outcome_consistency import outcome_consistency
from otel_reliability.metrics.consistency.resource_consistency import resource_consistency
from otel_reliability.metrics.consistency.trajectory_distribution import trajectory_distribution
from otel_reliability.metrics.consistency.trajectory_sequence import trajectory_sequence

__all__ = [
    "confidence_consistency",
    "consistency",
    "outcome_agreement",
    "outcome_consistency",
    "resource_consistency",
    "trajectory_distribution",
    "trajectory_sequence",
]
