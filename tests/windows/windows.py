"""Windows by hand, over rows by hand."""

from __future__ import annotations

from collections.abc import Iterable

from otel_reliability.config import Settings, WindowSettings
from otel_reliability.metrics.base import DEFAULTS
from otel_reliability.model.row import Row
from otel_reliability.windows.window import AgentWindow


def window_over(rows: Iterable[Row], settings: Settings = DEFAULTS) -> AgentWindow:
    """A window that holds all of the rows."""
    window = AgentWindow(WindowSettings("all", last=10_000), settings)
    for row in rows:
        window.insert(row)
    return window
