"""The interval of every number about a window, each by the method that suits it.

The values that are resampled or left out are the metrics' own, computed again for one run, one
task, or all runs but one: so a metric needs no second formula for its interval.

An interval contains its value by construction: it is made around the value that a window of the
same rows reads, and each part of the rows is read under what holds of all of them (`one_sided`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from math import log2
from typing import Final

from otel_reliability.config import Settings
from otel_reliability.metrics import ALL_SPECS, OWNERS, SPECS, TABLE
from otel_reliability.metrics.base import DEFAULTS, Derived
from otel_reliability.metrics.numbers import Numbers
from otel_reliability.model.reading import IntervalMethod, Reading
from otel_reliability.model.row import OTHER_TASK, Row
from otel_reliability.statistics.intervals import MIN_RUNS, Bounds, Interval, jackknife, wilson
from otel_reliability.statistics.resampling import bootstrap, shuffled


def _by(method: IntervalMethod) -> frozenset[str]:
    """Return the names of the metrics whose interval is computed so."""
    return frozenset(spec.name for spec in SPECS if spec.interval == method)


SHARES: Final = _by("share")
"""Shares of runs: Wilson's interval."""

MEANS_OF_RUNS: Final = _by("runs")
"""Means over runs: the bootstrap, over tasks where there are at least 5, as the attempts at one
task depend on one another.
"""

MEANS_OF_TASKS: Final = _by("tasks")
"""Means over tasks: the bootstrap over tasks, if there are at least 5 (else the jackknife)."""

COMPARISONS: Final = _by("comparison")
"""Comparisons of runs, and combinations of several numbers: the jackknife."""

BLOCKS: Final = 100
"""Of more runs than this, blocks are left out in turn instead of single runs: the cost stays that
of 100.
"""


def intervals(rows: Sequence[Row], settings: Settings = DEFAULTS) -> dict[str, Interval]:
    """Metric name → its interval over these rows. Numbers without data, of fewer than 5 runs,
    counts and flags have none.

    >>> from otel_reliability.testing import rows_of
    >>> rows = rows_of(*["search reply"] * 8, "search read reply", "reply")
    >>> entropy = intervals(rows)["path_entropy"]
    >>> print(f"{entropy.low:.2f} to {entropy.high:.2f}, {entropy.method}")
    0.00 to 0.69, jackknife
    """
    whole = SampleNumbers(settings)
    whole.add(rows)
    readings = whole.readings()
    one_sided = whole.one_sided
    valued = {name for name, reading in readings.items() if reading.value is not None}
    found = _shares(readings)
    of_tasks = (MEANS_OF_RUNS | MEANS_OF_TASKS) & valued
    found |= _means(of_tasks, _by_task(rows), "tasks", settings, one_sided=one_sided)
    of_runs = (MEANS_OF_RUNS & valued) - found.keys()
    runs = [[row] for row in rows]
    found |= _means(of_runs, runs, "runs", settings, one_sided=one_sided)
    known = {name: readings[name] for name in (COMPARISONS | MEANS_OF_TASKS) - found.keys()}
    found |= _jackknifed(known, rows, settings, one_sided=one_sided)
    return {
        name: interval.including(value)
        for name, interval in found.items()
        if (value := readings[name].value) is not None
    }


class SampleNumbers(Numbers):
    """All numbers about some rows, or those of some names.

    `one_sided`: whether only failures are known in the window of which the rows are a part; None:
    they are all of it, and each number is the one that a window of these rows reads.
    """

    __slots__ = ("_fixed", "_names", "_wanted")

    def __init__(
        self,
        settings: Settings,
        names: AbstractSet[str] = OWNERS.keys(),
        *,
        one_sided: bool | None = None,
    ) -> None:
        super().__init__(settings)
        self._fixed = one_sided
        self._names = names
        self._wanted = {OWNERS[name] for name in _with_needs(names)}

    @property
    def one_sided(self) -> bool:
        return super().one_sided if self._fixed is None else self._fixed

    def add(self, rows: Iterable[Row]) -> None:
        """Count rows that enter."""
        for row in rows:
            self._add(row)

    def evict(self, rows: Iterable[Row]) -> None:
        """Count rows that leave."""
        for row in rows:
            self._evict(row)

    def readings(self) -> dict[str, Reading]:
        return {name: self.reading(name) for name in self._names}

    def _count(self, row: Row, step: int) -> tuple[int, ...]:
        return tuple([at for at in super()._count(row, step) if at in self._wanted])


def _with_needs(names: Iterable[str]) -> set[str]:
    """Return the names, and those of the numbers that they are derived from."""
    found = set(names)
    for name in names:
        row = TABLE[OWNERS[name]]
        if issubclass(row, Derived):
            found |= _with_needs(row.needs)
    return found


def bounds_of(name: str, runs: int) -> Bounds:
    """Return the bounds of a number about so many runs: an entropy in bits cannot exceed log2 of
    them.
    """
    spec = ALL_SPECS[name]
    return Bounds(spec.low, log2(runs) if spec.unit == "{bit}" else spec.high)


def _shares(readings: Mapping[str, Reading]) -> dict[str, Interval]:
    return {
        name: Interval(*wilson(round(value * runs), runs), "Wilson")
        for name in SHARES
        for value, runs, *_ in (readings[name],)
        if value is not None and runs >= MIN_RUNS
    }


def _by_task(rows: Sequence[Row]) -> list[list[Row]]:
    """Return the runs of each task; a run without one stands alone. Nothing where there are fewer
    than 5 tasks.
    """
    tasks: dict[str, list[Row]] = {}
    alone: list[list[Row]] = []
    for row in rows:
        if row.task is None or row.task == OTHER_TASK:
            alone.append([row])
        else:
            tasks.setdefault(row.task, []).append(row)
    return [*tasks.values(), *alone] if len(tasks) >= MIN_RUNS else []


def _means(
    names: AbstractSet[str],
    units: Sequence[Sequence[Row]],
    of: str,
    settings: Settings,
    *,
    one_sided: bool,
) -> dict[str, Interval]:
    """Return intervals of means from the metrics' own values of each unit. Means over runs weigh a
    unit by its runs.
    """
    numbers = SampleNumbers(settings, names, one_sided=one_sided)
    of_units: dict[str, list[Reading]] = {name: [] for name in names}
    for unit in units:
        numbers.add(unit)
        readings = numbers.readings()
        numbers.evict(unit)
        for name, found in of_units.items():
            if readings[name].value is not None:
                found.append(readings[name])
    return _known((name, _mean(name, found, of)) for name, found in of_units.items())


def _mean(name: str, readings: Sequence[Reading], of: str) -> Interval | None:
    if sum(one.runs for one in readings) < MIN_RUNS:
        return None
    weights = [one.runs for one in readings] if name in MEANS_OF_RUNS else None
    values = [one.value for one in readings if one.value is not None]
    return bootstrap(values, bounds_of(name, 1), weights=weights, of=of)


def _jackknifed(
    readings: Mapping[str, Reading], rows: Sequence[Row], settings: Settings, *, one_sided: bool
) -> dict[str, Interval]:
    """Return intervals from the values without each block of runs."""
    known = {name: reading for name, reading in readings.items() if reading.runs >= MIN_RUNS}
    whole = SampleNumbers(settings, known.keys(), one_sided=one_sided)
    whole.add(rows)
    without: dict[str, list[float]] = {name: [] for name in known}
    for block in _blocks(rows) if known else []:
        whole.evict(block)
        left = whole.readings()
        whole.add(block)
        for name, values in without.items():
            value = left[name].value
            if value is not None:
                values.append(value)
    return _known(
        (name, jackknife(one.value, without[name], one.runs, bounds_of(name, one.runs)))
        for name, one in known.items()
        if one.value is not None
    )


def _blocks(rows: Sequence[Row]) -> list[list[Row]]:
    """Return single runs, or a hundred blocks of as many; dealt at random, so that no block is a
    stretch of time.
    """
    order = [rows[at] for at in shuffled(len(rows))]
    count = min(len(rows), BLOCKS)
    return [order[at::count] for at in range(count)]


def _known(found: Iterable[tuple[str, Interval | None]]) -> dict[str, Interval]:
    return {name: interval for name, interval in found if interval is not None}
