"""The metrics, one a file, in one folder a family, and the one table of them all.

To add a metric: one file with one class, one row in its family's `ROWS`, one fixture. Windows keep
it, instruments emit it, the docs list it, and the laws test it, because they all walk this table.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Final

from otel_reliability.metrics import (
    coding,
    consistency,
    passes,
    predictability,
    robustness,
    safety,
    sessions,
    stability,
    success,
)
from otel_reliability.metrics.base import Derived, Metric
from otel_reliability.metrics.data_quality import DataQualityFindings
from otel_reliability.metrics.reliability import Reliability
from otel_reliability.metrics.window import WindowRuns
from otel_reliability.model.reading import MetricSpec

TABLE: Final[tuple[type[Metric | Derived], ...]] = (
    WindowRuns,
    DataQualityFindings,
    *success.ROWS,
    *stability.ROWS,
    *consistency.ROWS,
    *predictability.ROWS,
    *robustness.ROWS,
    *safety.ROWS,
    Reliability,
    *passes.ROWS,
    *coding.ROWS,
)
"""Every metric and every derived number, in the order of reports."""


def specs_of(row: type[Metric | Derived]) -> tuple[MetricSpec, ...]:
    """Return the specs of a row of the table: its own, then its companions'."""
    return (row.spec, *row.companions) if issubclass(row, Metric) else (row.spec,)


SPECS: Final[tuple[MetricSpec, ...]] = tuple(spec for row in TABLE for spec in specs_of(row))
"""The specifications of all of them, in the order of the table."""

ALL_SPECS: Final[Mapping[str, MetricSpec]] = {spec.name: spec for spec in (*SPECS, *sessions.SPECS)}
"""Every number of an agent, by name: those of windows, then those of its recent sessions."""

OWNERS: Final[Mapping[str, int]] = {
    spec.name: at for at, row in enumerate(TABLE) for spec in specs_of(row)
}
"""Metric name → the index of its row in the table."""


@cache
def metrics_for(data: int) -> tuple[int, ...]:
    """Return the indices of the metrics that a row with this data (`base.data_of`) reaches."""
    required = {at: row.requires for at, row in enumerate(TABLE) if issubclass(row, Metric)}
    return tuple([at for at, needed in required.items() if needed & data == needed])
