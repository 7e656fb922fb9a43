"""Metrics that are not told of a row say the same as if they had been."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from otel_reliability.metrics.alike import like, likeness

from otel_reliability.config import LimitSettings, MetricSettings, Settings
from otel_reliability.metrics import TABLE
from otel_reliability.metrics.base import DEFAULTS, Metric
from otel_reliability.metrics.evidence import carried
from otel_reliability.model.reading import Reading
from otel_reliability.model.row import Row
from otel_reliability.windows import measures
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
        measured = Measures(settings)
        everybody = {at: cls(settings) for at, cls in METRICS}
        for row in rows:
            measured.add(row)
        for row in rows[::3]:
            measured.evict(row)
        for at, metric in everybody.items():
            for row in rows:
                metric.add(row)
            for row in rows[::3]:
                metric.evict(row)
            assert said(measured[at]) == said(metric), metric.spec.name


class Lent(list[Row]):
    """The rows of a window, in order."""

    def rows(self) -> list[Row]:
        """All of them."""
        return sorted(self)

    def counts(self, row: Row) -> bool:
        """Whether it is among them."""
        return row in self


@given(rows(most=40), st.integers(0, 9), st.sampled_from((0, 1, 8)), st.booleans(), st.randoms(use_true_random=False))
def test_rows_are_counted_and_told_when_somebody_asks(
    rows: list[Row], most: int, worthwhile: int, few: bool, dice: Random
) -> None:
    """However many are counted before metrics are told, and whenever somebody asks, they say what their rows say."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(measures, "MOST_UNTOLD", most)
        patch.setattr(measures, "WORTHWHILE", worthwhile)
        there = Lent()
        counted = Measures(DEFAULTS, there, most - 1 if few else None)
        for row in rows:
            there.append(row)
            counted.add(row)
            if dice.random() < 0.5:
                counted.evict(row := dice.choice(there))
                there.remove(row)
            if dice.random() < 0.2:
                at, cls = dice.choice(METRICS)
                assert said(counted[at]) == said(told(cls(), there)), cls.spec.name
        assert [said(counted[at]) for at, _ in METRICS] == [said(told(cls(), there)) for _, cls in METRICS]


@given(rows(), st.integers(1, 3), st.integers(0, 3))
def test_rows_that_are_alike_come_and_go_together(rows: list[Row], come: int, go: int) -> None:
    """To metrics that say so, so many rows like one are as many rows, whatever makes them differ otherwise."""
    for cls in (cls for _, cls in METRICS if cls.alike or cls.alike_while_few):
        one_by_one, together = cls(), cls()
        together.lend(Lent())
        for row in rows:
            for _ in range(come):
                one_by_one.add(row)
            for _ in range(min(come, go)):
                one_by_one.evict(row)
            together.tell(like(likeness(row), row.path), {row.path: come})
            together.tell(like(likeness(row), row.path), {row.path: -min(come, go)})
        assert said(together) == said(one_by_one), cls.spec.name


def told(metric: Metric, rows: list[Row]) -> Metric:
    """A metric that was told of these rows."""
    for row in rows:
        metric.add(row)
    return metric


def test_what_nobody_was_told_is_shared() -> None:
    """Windows of the same settings have the metrics without evidence in common, and others have their own."""
    one, two = Measures(DEFAULTS), Measures(DEFAULTS)

    assert all(one[at] is two[at] for at, _ in METRICS)
    assert one[0] is not Measures(SETTINGS[1])[0]


def test_every_metric_says_what_it_wants() -> None:
    """A metric that wanted nothing would be told of every row, whatever the row carries."""
    assert [cls.__name__ for _, cls in METRICS if not cls.wants] == []
    assert carried(Row.__new__(Row, *[None] * 14, *[None] * 11)) == 0  # pyright: ignore[reportArgumentType]  # test
