"""One window of one agent: its rows, and the metrics about them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from typing import Final, TypeAlias, cast

from otel_reliability.config import Settings, WindowSettings
from otel_reliability.errors import UnknownMetric
from otel_reliability.metrics import OWNERS, SPECS, TABLE, nearest, specs_of
from otel_reliability.metrics.base import Derived, Metric, one_sided
from otel_reliability.metrics.stability.path_similarity import PathSimilarity
from otel_reliability.model.reading import NO_EVIDENCE, MetricSpec, Reading
from otel_reliability.model.row import Row
from otel_reliability.windows.measures import Measures
from otel_reliability.windows.roster import Dropped, Roster
from otel_reliability.windows.rule import Rule

Attributes: TypeAlias = tuple[tuple[str, str], ...]

NUMBERS: Final = tuple((at, spec) for at, row in enumerate(TABLE) for spec in specs_of(row))
"""Each spec, and the row of the table that answers for it."""

DERIVED: Final = frozenset(at for at, row in enumerate(TABLE) if issubclass(row, Derived))
"""The rows that are made of others. (To ask an object instead costs as much as to read it: its class is abstract.)"""

TOLD_APART: Final = frozenset(row.spec.name for row in TABLE if row.series not in (Metric.series, Derived.series))
"""The numbers that are emitted as several series; of the others the reading is the series."""


class AgentWindow(Roster):
    """Which runs of an agent count now, and every number about them.

    Readings are kept until the window changes; asking for one computes that one and what it is derived from.
    """

    __slots__ = (
        "_measures",
        "_readings",
        "_series",
        "name",
    )

    def __init__(
        self, window: WindowSettings, settings: Settings, reopenable: Collection[str], dropped: Dropped
    ) -> None:
        rule = rule_of(window, settings.limits.rows)
        super().__init__(rule, reopenable, dropped)
        self.name = window.name
        self._measures = Measures(settings, self.rows)
        self._readings: dict[str, Reading] = {}
        self._series: list[tuple[MetricSpec, Attributes, Reading]] | None = None

    @property
    def turnover(self) -> int:
        """How many runs, of those that were not refused, have given way to newer ones."""
        return self.left_behind - self.refused

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
        tally = self._measures.tally
        return one_sided(tally.runs, tally.known, tally.passed)

    @property
    def is_told(self) -> bool:
        """Whether `series` costs nothing: nothing has changed since it was last asked for."""
        return self._series is not None

    def path_distance(self, row: Row) -> Reading:
        """How unlike the other runs of its group in the window a run is: its mean distance to them."""
        return cast("PathSimilarity", self.metric(PathSimilarity.spec.name)).distance(row, inside=self.counts(row))

    def add(self, row: Row) -> None:
        """A row enters."""
        if self._readings:
            self._readings = {}
        self._series = None
        self._measures.add(row)

    def evict(self, row: Row) -> None:
        """A row leaves."""
        if self._readings:
            self._readings = {}
        self._series = None
        self._measures.evict(row)

    def _measure(self, at: int) -> None:
        if at in DERIVED:
            self._derive(cast("Derived", self._measures[at]))
        else:
            self._read(cast("Metric", self._measures[at]))

    def _read(self, metric: Metric) -> None:
        readings = self._readings
        absent = metric.of_outcomes and self.one_sided
        readings[metric.spec.name] = NO_EVIDENCE if absent else metric.value()
        if metric.companions:
            for spec, reading in zip(metric.companions, metric.companion_values(), strict=True):
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


@lru_cache
def rule_of(window: WindowSettings, most: int) -> Rule:
    """The rule of a window; however it is written, it holds at most `most` runs.

    >>> rule_of(WindowSettings("hour", last=None, period=3600.0), 100_000)
    Rule(n=100000, period_ns=3600000000000)
    """
    last = most if window.last is None else min(window.last, most)
    return Rule(last, None if window.period is None else round(window.period * 1e9))
