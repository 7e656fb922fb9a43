"""The metrics of a window, made when a row comes that holds evidence for them."""

from __future__ import annotations

from typing import Any, Final, TypeAlias, cast

from otel_reliability.config import Settings
from otel_reliability.metrics import TABLE
from otel_reliability.metrics.alike import like, likeness
from otel_reliability.metrics.base import Derived, Lender, Metric
from otel_reliability.metrics.evidence import carried
from otel_reliability.model.row import Path, Row

Blank: TypeAlias = tuple[Metric | Derived, ...]

METRICS: Final = tuple((at, row.wants, row.alike) for at, row in enumerate(TABLE) if issubclass(row, Metric))
"""The metrics' places in the table, what evidence each wants, and whether to it rows are alike."""

ALIKE: Final = frozenset(at for at, _, alike in METRICS if alike)

MOST_UNTOLD: Final = 128
"""Paths that are counted, each kind of rows' own, before the metrics are told: who asks must not wait for long."""

_MOST: Final = 16
_concerned: dict[tuple[int, bool], tuple[int, ...]] = {}
_blank: dict[int, tuple[Settings, Blank]] = {}


class Measures:
    """What answers for each row of the table of metrics.

    Most agents send evidence for a few metrics only, so those that nobody has told anything are the same for all windows.
    And most do the same again and again, while somebody asks once in a while: what came and went of each kind of rows is
    counted, and told to the metrics to which rows of a kind are alike when one of them is asked.
    """

    __slots__ = ("_blank", "_lender", "_made", "_settings", "_untold")

    def __init__(self, settings: Settings, lender: Lender | None = None) -> None:
        self._settings = settings
        self._lender = lender
        self._blank = blank(settings)
        self._made: dict[int, Metric] = {}
        self._untold: dict[tuple[Any, ...], dict[Path | None, int]] = {}

    def __getitem__(self, at: int) -> Metric | Derived:
        """What answers for a row of the table. Only to be asked."""
        if self._untold and at in ALIKE:
            self._tell()
        made = self._made.get(at)
        return self._blank[at] if made is None else made

    def add(self, row: Row) -> None:
        """A row comes: whoever it concerns learns of it."""
        self._count(row, 1)
        made = self._made
        for at in concerned(carried(row)):
            metric = made.get(at)
            if metric is None:
                metric = self._make(at)
            metric.add(row)

    def evict(self, row: Row) -> None:
        """A row that came leaves."""
        self._count(row, -1)
        made = self._made
        for at in concerned(carried(row)):
            metric = made.get(at)
            if metric is not None:
                metric.evict(row)

    def _count(self, row: Row, step: int) -> None:
        kind, path = likeness(row), row.path
        paths = self._untold.get(kind)
        if paths is None:
            paths = self._untold[kind] = {}
        times = paths.get(path, 0) + step
        if times:
            paths[path] = times
            if len(paths) * len(self._untold) > MOST_UNTOLD:
                self._tell()
        else:
            del paths[path]
            if not paths:
                del self._untold[kind]

    def _tell(self) -> None:
        untold, self._untold = self._untold, {}
        for kind, paths in untold.items():
            for path, times in paths.items():
                row = like(kind, path)
                for at in concerned(carried(row), alike=True):
                    (self._made.get(at) or self._make(at)).count(row, times)

    def _make(self, at: int) -> Metric:
        metric = self._made[at] = cast("type[Metric]", TABLE[at])(self._settings)
        if self._lender is not None:
            metric.lend(self._lender)
        return metric


def concerned(evidence: int, *, alike: bool = False) -> tuple[int, ...]:
    """The places of the metrics for which such evidence is enough to count; those to which rows are alike, or the others.

    >>> len(concerned(0)) < len(concerned(511)) < len(concerned(511)) + len(concerned(511, alike=True)) == len(METRICS)
    True
    """
    found = _concerned.get((evidence, alike))
    if found is None:
        found = tuple(at for at, wants, told in METRICS if wants & evidence == wants and told is alike)
        _concerned[evidence, alike] = found
    return found


def blank(settings: Settings) -> Blank:
    """Every row of the table as it is before anything has come, once for all windows of these settings."""
    known = _blank.get(id(settings))
    if known is None:
        if len(_blank) >= _MOST:
            _blank.clear()
        known = _blank[id(settings)] = (settings, tuple(row(settings) for row in TABLE))
    return known[1]
