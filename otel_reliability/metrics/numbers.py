"""All numbers about some rows: the metrics that these rows have data for, and what is derived of
them.
"""

from __future__ import annotations

from typing import Final, cast

from otel_reliability.config import Settings
from otel_reliability.errors import UnknownMetric
from otel_reliability.metrics import OWNERS, SPECS, TABLE, metrics_for, specs_of
from otel_reliability.metrics.base import OUTCOME, UNDISTURBED, Derived, Metric, data_of, one_sided
from otel_reliability.model.reading import NO_DATA, Reading
from otel_reliability.model.remembered import Remembered
from otel_reliability.model.row import Row
from otel_reliability.model.run import Outcome

DERIVED: Final = frozenset(at for at, entry in enumerate(TABLE) if issubclass(entry, Derived))
"""Indices of the numbers that are made of others. (Testing an object instead costs as much as
reading it.)
"""

MAX_SETTINGS: Final = 16
"""Settings whose empty metrics are shared at once."""

_SUCCESS: Final = Outcome.SUCCESS
_KNOWN: Final = UNDISTURBED | OUTCOME
_empty = Remembered[int, tuple[Settings, tuple[Metric | Derived, ...]]](MAX_SETTINGS)


class Numbers:
    """Every number about some rows.

    A metric is made when the first row with data for it enters. Readings are kept until the rows
    change; asking for one computes that one and those it is derived from.
    """

    __slots__ = ("_known", "_made", "_passed", "_readings", "_settings", "_undisturbed")

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._made: dict[int, Metric] = {}
        self._readings: dict[str, Reading] = {}
        self._undisturbed = self._known = self._passed = 0

    @property
    def one_sided(self) -> bool:
        """True if only failures are known: then no number of outcomes is one."""
        return one_sided(self._undisturbed, self._known, self._passed)

    def metric(self, name: str) -> Metric | Derived:
        """Return the object that computes this name."""
        return self._metric(_owner_of(name))

    def reading(self, name: str) -> Reading:
        """Return the reading of this name, of a metric, a companion or a derived number."""
        found = self._readings.get(name)
        if found is None:
            self._measure(_owner_of(name))
            found = self._readings[name]
        return found

    def readings(self) -> dict[str, Reading]:
        """Return all readings, by name, in the order of the table."""
        return {spec.name: self.reading(spec.name) for spec in SPECS}

    def _add(self, row: Row) -> None:
        made = self._made
        for at in self._count(row, 1):
            (made.get(at) or self._make(at)).count(row, 1)

    def _evict(self, row: Row) -> None:
        made = self._made
        for at in self._count(row, -1):
            made[at].count(row, -1)

    def _count(self, row: Row, step: int) -> tuple[int, ...]:
        """Count a row in (1) or out (-1), and return the indices of the metrics for which it has
        data.
        """
        if self._readings:
            self._readings = {}
        data = data_of(row)
        if data & UNDISTURBED:
            self._undisturbed += step
            if data & _KNOWN == _KNOWN:
                self._known += step
                self._passed += step if row.outcome is _SUCCESS else 0
        return metrics_for(data)

    def _make(self, at: int) -> Metric:
        metric = self._made[at] = cast("type[Metric]", TABLE[at])(self._settings)
        return metric

    def _metric(self, at: int) -> Metric | Derived:
        return self._made.get(at) or _empty_metrics(self._settings)[at]

    def _measure(self, at: int) -> None:
        if at in DERIVED:
            number = cast("Derived", self._metric(at))
            self._readings[number.spec.name] = number.derive(
                {name: self.reading(name) for name in number.needs}
            )
            return
        metric = cast("Metric", self._metric(at))
        if metric.of_outcomes and self.one_sided:
            self._readings.update((spec.name, NO_DATA) for spec in specs_of(TABLE[at]))
        else:
            values = (metric.value(), *metric.companion_values())
            self._readings.update(
                (spec.name, reading)
                for spec, reading in zip(specs_of(TABLE[at]), values, strict=True)
            )


def _owner_of(name: str) -> int:
    """Return the index of the row that computes a name.

    >>> _owner_of("path_entropie")
    Traceback (most recent call last):
    otel_reliability.errors.UnknownMetric: 'path_entropie' names no metric. Did you mean
    path_entropy, ...?
    """
    found = OWNERS.get(name)
    if found is None:
        raise UnknownMetric(name, OWNERS)
    return found


def _empty_metrics(settings: Settings) -> tuple[Metric | Derived, ...]:
    """Return every metric of the table without rows, shared by all windows with these settings."""
    known = _empty.get(id(settings))
    if known is None:
        known = _empty[id(settings)] = (settings, tuple(entry(settings) for entry in TABLE))
    return known[1]
