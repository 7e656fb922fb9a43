"""Consistency: do repeated attempts at a task go alike? Per task, then the mean over tasks, each
weighing the same.
"""

from __future__ import annotations

from otel_reliability.metrics.consistency.consistency import Consistency
from otel_reliability.metrics.consistency.outcome_consistency import (
    OutcomeAgreement,
    OutcomeConsistency,
)
from otel_reliability.metrics.consistency.spread import ConfidenceConsistency, ResourceConsistency
from otel_reliability.metrics.consistency.trajectories import (
    TrajectoryDistribution,
    TrajectorySequence,
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
