"""Token pressure run by run: how full the context window got."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from otel_reliability.model.row import Row
from otel_reliability.report.text import count, percent, trace_of

MOST_BARS: Final = 60
FEWEST_BARS: Final = 24
"""Bars that a picture has room for at least: few runs should not look like walls."""
HIGH: Final = 0.8
"""Pressure above which answers are at risk of being cut."""
BAR: Final = 10.0
HEIGHT: Final = 100.0
LEAST: Final = 1.0


class Bar(NamedTuple):
    """One run: where its bar stands, how high it is, whether it is too full."""

    x: float
    y: float
    height: float
    high: bool
    title: str


class Pressure(NamedTuple):
    """The bars of the latest runs, the newest on the right. `width` is that of the picture; `limit` the height of 80 %."""

    bars: tuple[Bar, ...]
    width: float
    limit: float
    told: str


def pressure_of(rows: Sequence[Row]) -> Pressure | None:
    """The latest undisturbed runs that tell how full the context was; None without any.

    >>> from otel_reliability.metrics.examples import row
    >>> pressure_of([row(pressure=0.5), row(), row(pressure=0.9)]).told
    '2 runs: 70 % on average, 90 % at most; 1 of them above 80 %.'
    """
    known = [(row, row.pressure) for row in rows if row.pressure is not None and row.baseline][-MOST_BARS:]
    if not known:
        return None
    values = [value for _, value in known]
    high = sum(value > HIGH for value in values)
    above = f"{high} of them above {percent(HIGH)}" if high else f"none above {percent(HIGH)}"
    mean, most = percent(sum(values) / len(values)), percent(max(values))
    told = f"{count(len(values), 'run')}: {mean} on average, {most} at most; {above}."
    bars = tuple(_bar(at, row, value) for at, (row, value) in enumerate(known))
    return Pressure(bars, BAR * max(len(bars), FEWEST_BARS), HEIGHT * (1 - HIGH), told)


def _bar(at: int, row: Row, value: float) -> Bar:
    height = round(max(LEAST, HEIGHT * min(value, 1.0)), 1)
    title = f"{percent(value)} of the context window, trace {trace_of(row.run_id)[:16]}"
    return Bar(BAR * at, round(HEIGHT - height, 1), height, value > HIGH, title)
