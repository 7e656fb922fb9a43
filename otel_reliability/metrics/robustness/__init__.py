"""Robustness: how much of its accuracy does the agent keep when it is disturbed?"""

from __future__ import annotations

from otel_reliability.metrics.robustness.kept_accuracy import kept_accuracy
from otel_reliability.metrics.robustness.robustness import robustness

__all__ = ["kept_accuracy", "robustness"]
