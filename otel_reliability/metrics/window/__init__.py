"""About the window itself: how much stands behind its numbers."""

from __future__ import annotations

from otel_reliability.metrics.base import Derived, Metric
from otel_reliability.metrics.window.effective_runs import EffectiveRuns
from otel_reliability.metrics.window.runs import WindowRuns

ROWS: tuple[type[Metric | Derived], ...] = (WindowRuns, EffectiveRuns)
