"""Metrics that are not told of a row say the same as if they had been."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given

from otel_reliability.config import LimitSettings, MetricSettings, Settings
from otel_reliability.metrics import TABLE
from otel_reliability.metrics.base import DEFAULTS, Metric
from otel_reliability.metrics.evidence import carried
from otel_reliability.model.reading import Reading
from otel_reliability.model.row import Row
from otel_reliability.windows.measures import Measures
from tests.metrics.strategies import rows

METRICS = [(at, cls) for at, cls in enumerate(TABLE) if issubclass(cls, Metric)]
SETTINGS = [DEFAULTS, Settings(metrics=MetricSettings(group_by="none"), limits=LimitSettings(paths=2))]


def said(metric: object) -> tuple[Reading | Sequence[object], ...]:
    """All that a metric says."""
    assert isinstance(metric, Metric)
    return (metric.read(), *metric.beside(), metric.series())


@given(rows())
def test_a_row_concerns_no_metric_but_those_that_are_told(rows: list[Row]) -> None:
    """Every metric says of the rows, come and partly gone, what it says when it is told of each."""
    for settings in SETTINGS:
        measures = Measures(settings)
        everybody = {at: cls(settings) for at, cls in METRICS}
        for row in rows:
            measures.add(row)
        for row in rows[::3]:
            measures.evict(row)
        for at, metric in everybody.items():
            for row in rows:
                metric.add(row)
            for row in rows[::3]:
                metric.evict(row)
            assert said(measures[at]) == said(metric), metric.spec.name


def test_what_nobody_was_told_is_shared() -> None:
    """Windows of the same settings have the metrics without evidence in common, and others have their own."""
    one, two = Measures(DEFAULTS), Measures(DEFAULTS)

    assert all(one[at] is two[at] for at, _ in METRICS)
    assert one[0] is not Measures(SETTINGS[1])[0]


def test_every_metric_says_what_it_wants() -> None:
    """A metric that wanted nothing would be told of every row, whatever the row carries."""
    assert [cls.__name__ for _, cls in METRICS if not cls.wants] == []
    assert carried(Row.__new__(Row, *[None] * 14, *[None] * 11)) == 0  # pyright: ignore[reportArgumentType]  # test
