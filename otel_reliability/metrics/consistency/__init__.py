"""Consistency: do repeated attempts at a task go alike? Per task, then the mean over tasks, each weighing the same."""

from __future__ import annotations

from otel_reliability.metrics.consistency.consistency import Consistency, consistency
from otel_reliability.metrics.consistency.outcome_consistency import (
    OutcomeAgreement,
    OutcomeConsistency,
    outcome_agreement,
    outcome_consistency,
)
from otel_reliability.metrics.consistency.spread import (
    ConfidenceConsistency,
    ResourceConsistency,
    confidence_consistency,
    resource_consistency,
)
from otel_reliability.metrics.consistency.trajectories import (
    TrajectoryDistribution,
    TrajectorySequence,
    trajectory_distribution,
    trajectory_sequence,
)

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
