"""Consistency: do repeated attempts at a task go alike? Per task, then the mean over tasks, each weighing the same."""

from __future__ import annotations

from otel_reliability.metrics.consistency.confidence_consistency import ConfidenceConsistency, confidence_consistency
from otel_reliability.metrics.consistency.consistency import Consistency, consistency
from otel_reliability.metrics.consistency.outcome_agreement import OutcomeAgreement, outcome_agreement
from otel_reliability.metrics.consistency.outcome_consistency import OutcomeConsistency, outcome_consistency
from otel_reliability.metrics.consistency.resource_consistency import ResourceConsistency, resource_consistency
from otel_reliability.metrics.consistency.trajectory_distribution import TrajectoryDistribution, trajectory_distribution
from otel_reliability.metrics.consistency.trajectory_sequence import TrajectorySequence, trajectory_sequence

ROWS = (
    OutcomeConsistency,
    OutcomeAgreement,
    TrajectoryDistribution,
    TrajectorySequence,
    ConfidenceConsistency,
    ResourceConsistency,
    Consistency,
)

__all__ = [
    "ROWS",
    "confidence_consistency",
    "consistency",
    "outcome_agreement",
    "outcome_consistency",
    "resource_consistency",
    "trajectory_distribution",
    "trajectory_sequence",
]
