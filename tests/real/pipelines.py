"""Pieces of Collector configurations, and what comes out at their end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.real import otlp
from tests.real.collector.handle import Config
from tests.real.waiting import until


def to_file(path: Path) -> Mapping[str, Any]:
    """The settings of a file exporter that writes at once."""
    return {"path": str(path), "flush_interval": "50ms"}


def pipeline(
    receivers: Sequence[str], exporters: Sequence[str], processors: Sequence[str] = ()
) -> Config:
    return {"receivers": [*receivers], "processors": [*processors], "exporters": [*exporters]}


def spans_of(path: Path, at_least: int) -> Sequence[otlp.Written]:
    """The spans of a file, once it has so many."""

    def enough() -> Sequence[otlp.Written]:
        found = otlp.written(path)
        return found if len(found) >= at_least else []

    return until(enough, f"{at_least} spans in {path}")
