"""Robustness: how much of its accuracy does the agent keep when it is disturbed?"""

from __future__ import annotations

from otel_reliability.metrics.robustness.fault_robustness import FaultRobustness
from otel_reliability.metrics.robustness.kept_accuracy import kept_accuracy
from otel_reliability.metrics.robustness.prompt_robustness import PromptRobustness
from otel_reliability.metrics.robustness.robustness import Robustness, robustness
from otel_reliability.metrics.robustness.structure_robustness import StructureRobustness

ROWS = (FaultRobustness, StructureRobustness, PromptRobustness, Robustness)

__all__ = ["ROWS", "kept_accuracy", "robustness"]
