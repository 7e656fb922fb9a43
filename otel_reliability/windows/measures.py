"""The metrics of a window, made when a row arrives that has data for them."""

from __future__ import annotations

from typing import Final, TypeAlias, cast

from otel_reliability.config import Settings
from otel_reliability.metrics import TABLE
from otel_reliability.metrics.base import Derived, Metric, Rows
from otel_reliability.metrics.data import data_of
from otel_reliability.model.row import Row
from otel_reliability.model.run import Outcome

Blank: TypeAlias = tuple[Metric | Derived, ...]

METRICS: Final = tuple((at, row) for at, row in enumerate(TABLE) if issubclass(row, Metric))
"""The metrics and their places in the table."""

_MOST: Final = 16
_blank: dict[int, tuple[Settings, Blank]] = {}


class Concerned(dict[int, tuple[int, ...]]):
    """Data of a row → the places of those metrics for which it is enough.

    >>> len(CONCERNED[0]) < len(CONCERNED[511]) == len(METRICS)
    True
    """

    def __missing__(self, evidence: int) -> tuple[int, ...]:
        found = self[evidence] = tuple([at for at, row in METRICS if row.requires & evidence == row.requires])
        return found


CONCERNED: Final = Concerned()


class Tally:
    """The undisturbed runs of a window: how many there are, how many have a known outcome, how many succeeded."""

    __slots__ = ("known", "passed", "runs")

    def __init__(self) -> None:
        self.runs = self.known = self.passed = 0

    def note(self, row: Row, step: int) -> None:
        """A row enters (1) or leaves (-1)."""
        if row.baseline:
            self.runs += step
            self.known += step * (row.success is not None)
            self.passed += step * (row.outcome is Outcome.SUCCESS)


class Measures:
    """The object of each row of the table of metrics. Those without a row yet are the same for all windows."""

    __slots__ = ("_blank", "_made", "_rows", "_settings", "tally")

    def __init__(self, settings: Settings, rows: Rows) -> None:
        self._rows = rows
        self._settings = settings
        self._blank = blank(settings)
        self._made: dict[int, Metric] = {}
        self.tally = Tally()

    def __getitem__(self, at: int) -> Metric | Derived:
        """The object of a row of the table. Only to be asked."""
        made = self._made.get(at)
        return self._blank[at] if made is None else made

    def add(self, row: Row) -> None:
        """A row enters."""
        made = self._made
        self.tally.note(row, 1)
        for at in CONCERNED[data_of(row)]:
            metric = made.get(at)
            if metric is None:
                metric = made[at] = cast("type[Metric]", TABLE[at])(self._settings)
                metric.bind(self._rows)
            metric.add(row)

    def evict(self, row: Row) -> None:
        """A row that entered leaves."""
        self.tally.note(row, -1)
        for at in CONCERNED[data_of(row)]:
            self._made[at].evict(row)


def blank(settings: Settings) -> Blank:
    """Every row of the table without a row of data, once for all windows of these settings."""
    known = _blank.get(id(settings))
    if known is None:
        if len(_blank) >= _MOST:
            _blank.clear()
        known = _blank[id(settings)] = (settings, tuple(row(settings) for row in TABLE))
    return known[1]
