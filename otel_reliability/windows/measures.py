"""The metrics of a window, made when a row comes that holds evidence for them."""

from __future__ import annotations

from typing import Final, TypeAlias, cast

from otel_reliability.config import Settings
from otel_reliability.metrics import TABLE
from otel_reliability.metrics.base import Derived, Lender, Metric
from otel_reliability.metrics.evidence import carried
from otel_reliability.model.row import Row

Blank: TypeAlias = tuple[Metric | Derived, ...]

METRICS: Final = tuple((at, row.wants) for at, row in enumerate(TABLE) if issubclass(row, Metric))
"""The metrics' places in the table, and what evidence each wants."""

_MOST: Final = 16
_concerned: dict[int, tuple[int, ...]] = {}
_blank: dict[int, tuple[Settings, Blank]] = {}


class Measures:
    """What answers for each row of the table of metrics.

    Most agents send evidence for a few metrics only, so those that nobody has told anything are the same for all windows.
    """

    __slots__ = ("_blank", "_lender", "_made", "_settings")

    def __init__(self, settings: Settings, lender: Lender | None = None) -> None:
        self._settings = settings
        self._lender = lender
        self._blank = blank(settings)
        self._made: list[Metric | None] = [None] * len(TABLE)

    def __getitem__(self, at: int) -> Metric | Derived:
        """What answers for a row of the table. Only to be asked."""
        made = self._made[at]
        return self._blank[at] if made is None else made

    def add(self, row: Row) -> None:
        """A row comes: whoever it concerns learns of it."""
        made = self._made
        for at in concerned(carried(row)):
            metric = made[at]
            if metric is None:
                metric = made[at] = self._make(at)
            metric.add(row)

    def evict(self, row: Row) -> None:
        """A row that came leaves."""
        made = self._made
        for at in concerned(carried(row)):
            metric = made[at]
            if metric is not None:
                metric.evict(row)

    def _make(self, at: int) -> Metric:
        metric = cast("type[Metric]", TABLE[at])(self._settings)
        if self._lender is not None:
            metric.lend(self._lender)
        return metric


def concerned(evidence: int) -> tuple[int, ...]:
    """The places of the metrics for which such evidence is enough to count.

    >>> len(concerned(0)) < len(concerned(511)) == len(METRICS)
    True
    """
    found = _concerned.get(evidence)
    if found is None:
        found = _concerned[evidence] = tuple(at for at, wants in METRICS if wants & evidence == wants)
    return found


def blank(settings: Settings) -> Blank:
    """Every row of the table as it is before anything has come, once for all windows of these settings."""
    known = _blank.get(id(settings))
    if known is None:
        if len(_blank) >= _MOST:
            _blank.clear()
        known = _blank[id(settings)] = (settings, tuple(row(settings) for row in TABLE))
    return known[1]
