"""One window of one agent: its rows, and the metrics about them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, Protocol, TypeAlias, cast

from otel_reliability.config import Settings, WindowSettings
from otel_reliability.errors import UnknownMetric
from otel_reliability.metrics import OWNERS, SPECS, TABLE, nearest, specs_of
from otel_reliability.metrics.base import Derived, Metric
from otel_reliability.metrics.outcomes import one_sided
from otel_reliability.metrics.stability.path_similarity import PathSimilarity
from otel_reliability.model.reading import NO_EVIDENCE, MetricSpec, Reading
from otel_reliability.model.row import BASELINE, Row
from otel_reliability.windows.base import Rule
from otel_reliability.windows.count import LastRuns
from otel_reliability.windows.kept import Standing
from otel_reliability.windows.measures import Measures
from otel_reliability.windows.roster import Roster
from otel_reliability.windows.time import Period

Attributes: TypeAlias = tuple[tuple[str, str], ...]

NUMBERS: Final = tuple((at, spec) for at, row in enumerate(TABLE) for spec in specs_of(row))
"""Each spec, and the row of the table that answers for it."""

DERIVED: Final = frozenset(at for at, row in enumerate(TABLE) if issubclass(row, Derived))
"""The rows that are made of others. (To ask an object instead costs as much as to read it: its class is abstract.)"""

TOLD_APART: Final = frozenset(row.spec.name for row in TABLE if row.series not in (Metric.series, Derived.series))
"""The numbers that are emitted as several series; of the others the reading is the series."""


class Dropped(Protocol):
    """Who is told that a window let go of a row."""

    def __call__(self, row: Row) -> None: ...


class AgentWindow:
    """Which runs of an agent count now, and every number about them.

    Readings are kept until the window changes; asking for one computes that one and what it is derived from.
    """

    __slots__ = (
        "_baseline",
        "_dropped",
        "_known",
        "_measures",
        "_passed",
        "_readings",
        "_roster",
        "_series",
        "name",
        "refused",
    )

    def __init__(
        self, window: WindowSettings, settings: Settings, reopenable: Collection[str], dropped: Dropped
    ) -> None:
        self.name = window.name
        self.refused = 0
        """How many runs came too late to count: they sorted below the window and its spares."""
        self._measures = Measures(settings, self)
        self._readings: dict[str, Reading] = {}
        self._series: list[tuple[MetricSpec, Attributes, Reading]] | None = None
        self._dropped = dropped
        self._baseline = self._known = self._passed = 0
        self._roster = Roster(rules_of(window, settings.limits.rows), self, reopenable)

    @property
    def runs(self) -> int:
        """How many runs are in the window, under whatever condition."""
        return len(self._roster)

    @property
    def newest_ns(self) -> int | None:
        """When the last of its runs ended; None while it has none."""
        return self._roster.newest_ns

    @property
    def spares(self) -> int:
        """How many runs below the window are kept, in case one of it is withdrawn."""
        return self._roster.spares

    @property
    def turnover(self) -> int:
        """How many runs, of those that were not refused, have given way to newer ones."""
        return self._roster.left_behind - self.refused

    def rows(self) -> Sequence[Row]:
        """The rows in the window, by (end time, run id)."""
        return self._roster.rows()

    def __contains__(self, row: Row) -> bool:
        return row in self._roster

    def counts(self, row: Row) -> bool:
        """Whether the row is in the window, and no spare below it."""
        return self._roster.counts(row)

    def kept(self) -> list[Row]:
        """The rows in the window, and the spares before them."""
        return self._roster.kept()

    def find(self, run_id: str) -> Row | None:
        """The row of that run, if it is kept."""
        return self._roster.find(run_id)

    def insert(self, row: Row) -> bool:
        """A run was closed. False: it sorts below all that is worth keeping, and is refused."""
        kept = self._roster.insert(row)
        self.refused += not kept
        return kept

    def remove(self, row: Row) -> None:
        """A run was withdrawn."""
        self._roster.remove(row)

    def settle(self, row: Row) -> None:
        """A run will not change any more."""
        self._roster.settle(row)

    @property
    def standing(self) -> Standing:
        """What it remembers beside its rows."""
        return self._roster.standing(self.refused)

    def restore(self, standing: Standing) -> None:
        """Take over what another window of this name remembered."""
        self._roster.restore(standing)
        self.refused = standing.refused

    def refill(self, rows: Iterable[Row]) -> None:
        """Take over the rows that the other window kept, in their order, while there are none. `trim` follows."""
        self._roster.refill(rows)

    def trim(self) -> None:
        """Let go of the rows that only the other window would keep."""
        self._roster.trim()

    def metric(self, name: str) -> Metric | Derived:
        """The object that answers for this name."""
        return self._measures[owner_of(name)]

    def reading(self, name: str) -> Reading:
        """The reading of this name, of a metric, a companion or a derived number."""
        found = self._readings.get(name)
        if found is None:
            self._measure(owner_of(name))
            found = self._readings[name]
        return found

    def readings(self) -> Mapping[str, Reading]:
        """All readings, by name, in the order of the table."""
        return {spec.name: self.reading(spec.name) for spec in SPECS}

    def series(self) -> list[tuple[MetricSpec, Attributes, Reading]]:
        """What is emitted: (spec, attributes, reading) of all that has a value."""
        if self._series is None:
            self._series = [entry for entry in self._told() if entry[2].value is not None]
        return self._series

    @property
    def one_sided(self) -> bool:
        """Whether only failures are known: then no number of outcomes is one."""
        return one_sided(self._baseline, self._known, self._passed)

    @property
    def is_told(self) -> bool:
        """Whether `series` costs nothing: nothing has changed since it was last asked for."""
        return self._series is not None

    def path_distance(self, row: Row) -> Reading:
        """How unlike the other runs of its group in the window a run is: its mean distance to them."""
        return cast("PathSimilarity", self.metric(PathSimilarity.spec.name)).distance(row)

    def add(self, row: Row) -> None:
        """A row enters: told by the roster."""
        self._changed(row, 1)
        self._measures.add(row)

    def evict(self, row: Row) -> None:
        """A row leaves: told by the roster."""
        self._changed(row, -1)
        self._measures.evict(row)

    def drop(self, row: Row) -> None:
        """A row is let go of: told by the roster."""
        self._dropped(row)

    def _changed(self, row: Row, step: int) -> None:
        if self._readings:
            self._readings = {}
        self._series = None
        if row.condition == BASELINE:
            self._baseline += step
            success = row.success
            if success is not None:
                self._known += step
                self._passed += step * success

    def _measure(self, at: int) -> None:
        if at in DERIVED:
            self._derive(cast("Derived", self._measures[at]))
        else:
            self._read(cast("Metric", self._measures[at]))

    def _read(self, metric: Metric) -> None:
        readings = self._readings
        absent = metric.of_outcomes and self.one_sided
        readings[metric.spec.name] = NO_EVIDENCE if absent else metric.read()
        if metric.companions:
            for spec, reading in zip(metric.companions, metric.beside(), strict=True):
                readings[spec.name] = NO_EVIDENCE if absent else reading

    def _derive(self, number: Derived) -> None:
        self._readings[number.spec.name] = number.derive({name: self.reading(name) for name in number.needs})

    def _told(self) -> Iterable[tuple[MetricSpec, Attributes, Reading]]:
        reading = self.reading
        for at, spec in NUMBERS:
            if spec.name in TOLD_APART:
                yield from self._told_apart(at)
            else:
                yield spec, (), reading(spec.name)

    def _told_apart(self, at: int) -> Iterable[tuple[MetricSpec, Attributes, Reading]]:
        measure, spec = self._measures[at], TABLE[at].spec
        if isinstance(measure, Metric) and measure.of_outcomes and self.one_sided:
            return
        told = measure.series() if isinstance(measure, Metric) else measure.series(self.reading(spec.name))
        for attributes, reading in told:
            yield spec, attributes, reading


def owner_of(name: str) -> int:
    """The row of the table that answers for a name."""
    found = OWNERS.get(name)
    if found is None:
        raise UnknownMetric(name, nearest(name))
    return found


def rules_of(window: WindowSettings, most: int) -> tuple[Rule, ...]:
    """The rules of a window; however it is written, it holds at most `most` runs.

    >>> rules_of(WindowSettings("hour", last=None, period=3600.0), 100_000)
    (LastRuns(n=100000), Period(period_ns=3600000000000))
    """
    last = LastRuns(most if window.last is None else min(window.last, most))
    return (last,) if window.period is None else (last, Period(round(window.period * 1e9)))
