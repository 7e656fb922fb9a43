"""Passes: pass rates of several attempts at a task."""

from __future__ import annotations

from otel_reliability.metrics.passes.attempts import GracefulDegradation, VarianceAmplification
from otel_reliability.metrics.passes.decay_curve import DecayCurve
from otel_reliability.metrics.passes.series import PassAtK, PassHatK

ROWS = (PassAtK, PassHatK, DecayCurve, VarianceAmplification, GracefulDegradation)
