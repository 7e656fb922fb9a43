"""The metrics of a window, made when a row comes that holds evidence for them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, TypeAlias, cast

from otel_reliability.config import Settings
from otel_reliability.metrics import TABLE
from otel_reliability.metrics.alike import like
from otel_reliability.metrics.base import Derived, Lender, Metric
from otel_reliability.metrics.evidence import carried
from otel_reliability.model.row import Path, Row
from otel_reliability.windows.compiled import new_tally
from otel_reliability.windows.tally import Kinds

Blank: TypeAlias = tuple[Metric | Derived, ...]

METRICS: Final = tuple((at, row) for at, row in enumerate(TABLE) if issubclass(row, Metric))
"""The metrics and their places in the table."""

MOST_UNTOLD: Final = 128
"""Paths, of each kind of rows apart, of which it is counted how many came and left before the metrics are told: who asks must
not wait for long."""
WORTHWHILE: Final = 8
"""Where at least one in so many of them left, that is all that is told: what came may leave before anybody asks."""

_MOST: Final = 16
_blank: dict[int, tuple[Settings, Blank]] = {}


class Concerned(dict[int, tuple[int, ...]]):
    """By what evidence a row carries: the places of those metrics for which that is enough to count.

    >>> len(FEW.together[0]) < len(FEW.together[511]) < len(METRICS)
    True
    """

    def __init__(self, metrics: Iterable[tuple[int, type[Metric]]]) -> None:
        super().__init__()
        self._metrics = tuple(metrics)

    def __missing__(self, evidence: int) -> tuple[int, ...]:
        found = self[evidence] = tuple([at for at, row in self._metrics if row.wants & evidence == row.wants])
        return found


class Ways:
    """Which metrics are told of rows that are alike together, when somebody asks, and which of each row as it comes."""

    __slots__ = ("late", "one_by_one", "together")

    def __init__(self, *, few: bool) -> None:
        self.late = frozenset(at for at, row in METRICS if row.alike or (few and row.alike_while_few))
        self.together = Concerned([(at, row) for at, row in METRICS if at in self.late])
        self.one_by_one = Concerned([(at, row) for at, row in METRICS if at not in self.late])


FEW: Final = Ways(few=True)
MANY: Final = Ways(few=False)


class Measures:
    """What answers for each row of the table of metrics.

    Most agents send evidence for a few metrics only, so those that nobody has told anything are the same for all windows.
    And most do the same again and again, while somebody asks once in a while: what came and went of each kind of rows is
    counted, and told to the metrics to which rows of a kind are alike when one of them is asked.
    """

    __slots__ = ("_blank", "_lender", "_made", "_settings", "_ways", "tally")

    def __init__(self, settings: Settings, lender: Lender | None = None, most: int | None = None) -> None:
        """`most`: how many rows the lender has at most. Where they are few, what comes may leave before anybody asks."""
        few = lender is not None and most is not None and most < min(settings.limits.paths, MOST_UNTOLD)
        self._settings = settings
        self._lender = lender
        self._ways = FEW if few else MANY
        self._blank = blank(settings)
        self._made: dict[int, Metric] = {}
        self.tally = new_tally()

    def __getitem__(self, at: int) -> Metric | Derived:
        """What answers for a row of the table. Only to be asked."""
        if self.tally.number and at in self._ways.late:
            self._tell_all()
        made = self._made.get(at)
        return self._blank[at] if made is None else made

    def add(self, row: Row) -> None:
        """A row comes: whoever it concerns learns of it."""
        tally, made = self.tally, self._made
        evidence = tally.note(row, 1)
        if tally.number > MOST_UNTOLD:
            self._make_room()
        for at in self._ways.one_by_one[evidence]:
            metric = made.get(at)
            if metric is None:
                metric = self._make(at)
            metric.add(row)

    def evict(self, row: Row) -> None:
        """A row that came leaves."""
        tally, made = self.tally, self._made
        evidence = tally.note(row, -1)
        if tally.number > MOST_UNTOLD:
            self._make_room()
        for at in self._ways.one_by_one[evidence]:
            metric = made.get(at)
            if metric is not None:
                metric.evict(row)

    def _make_room(self) -> None:
        """Tell of what left, if that is worth it, or of all."""
        kinds, came, left = self.tally.kinds, Kinds(), Kinds()
        for kind, paths in kinds.items():
            for path, many in paths.items():
                (came if many > 0 else left).setdefault(kind, {})[path] = many
        if sum([len(paths) for paths in left.values()]) * WORTHWHILE < self.tally.number:
            self._tell_all()
            return
        self.tally.take(came)
        for kind, gone in left.items():
            self._tell(kind, gone)

    def _tell_all(self) -> None:
        for kind, paths in self.tally.take().items():
            self._tell(kind, paths)

    def _tell(self, kind: tuple[Any, ...], paths: dict[Path | None, int]) -> None:
        """Those whose path is known have evidence for more metrics than those whose is not."""
        if None in paths:
            self._tell_of(like(kind, None), {None: paths[None]})
            paths = {path: many for path, many in paths.items() if path is not None}
        if paths:
            self._tell_of(like(kind, next(iter(paths))), paths)

    def _tell_of(self, row: Row, paths: dict[Path | None, int]) -> None:
        for at in self._ways.together[carried(row)]:
            (self._made.get(at) or self._make(at)).tell(row, paths)

    def _make(self, at: int) -> Metric:
        metric = self._made[at] = cast("type[Metric]", TABLE[at])(self._settings)
        if self._lender is not None:
            metric.lend(self._lender)
        return metric


def blank(settings: Settings) -> Blank:
    """Every row of the table as it is before anything has come, once for all windows of these settings."""
    known = _blank.get(id(settings))
    if known is None:
        if len(_blank) >= _MOST:
            _blank.clear()
        known = _blank[id(settings)] = (settings, tuple(row(settings) for row in TABLE))
    return known[1]
