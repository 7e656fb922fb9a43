"""The protocol of a metric: `add(row)`, `evict(row)`, `value()`.

A window owns the rows. It passes each row that enters to `add` and each that leaves to `evict`, and asks for `value` when
it is read. `evict` undoes `add` exactly (integers, or the exact sums of `_support.exact`), so a value never depends on
the rows that have passed through, nor on their order.

A class declares what the metric is (`spec`), which further numbers come from the same sums (`companions`, with
`companion_values`), and which data a row must have to reach it (`requires`). A metric made of sums derives from `SumMetric`
and writes one method, `count`. To add a metric: one file with one class, one row in `metrics.TABLE`, one fixture
(docs/contributing/add-a-metric.md).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar, Final, TypeAlias

from otel_reliability.config import Settings
from otel_reliability.model.reading import MetricSpec, Reading
from otel_reliability.model.row import Row

DEFAULTS: Final = Settings()
"""The default settings."""

Rows: TypeAlias = Callable[[], Sequence[Row]]
"""Returns the rows that are in the window now, in order; a row that enters is among them already, one that leaves still."""

Series: TypeAlias = tuple[tuple[tuple[tuple[str, str], ...], Reading], ...]
"""(attributes, reading) of each series of a metric."""


class Metric(ABC):
    """A number about a window, kept up to date as rows enter and leave."""

    __slots__ = ()

    spec: ClassVar[MetricSpec]
    companions: ClassVar[tuple[MetricSpec, ...]] = ()
    """Further numbers from the same sums (a share next to a yes or no), emitted and listed like metrics."""
    requires: ClassVar[int] = 0
    """The data that a row must have to reach the metric, as a sum of the flags of `metrics.data`."""
    of_outcomes: ClassVar[bool] = False
    """Whether it measures how often runs succeed. It has no value in a window in which only failures are known (`one_sided`)."""

    def __init__(self, settings: Settings = DEFAULTS) -> None:
        """Start without a row."""
        super().__init__()

    def bind(self, rows: Rows) -> None:  # noqa: B027 (most metrics do not need it)
        """Receive the window's rows, before the first of them is added. A metric that needs them need not keep them itself."""

    @abstractmethod
    def add(self, row: Row) -> None:
        """A row enters the window."""

    @abstractmethod
    def evict(self, row: Row) -> None:
        """A row that was added leaves the window. Undoes `add` exactly."""

    @abstractmethod
    def value(self) -> Reading:
        """Return the value for the rows in the window, with the number of runs behind it. Changes no later value."""

    def companion_values(self) -> tuple[Reading, ...]:
        """Return the readings of `companions`, in their order."""
        return ()

    def series(self) -> Series:
        """Return the readings as emitted: one without attributes, unless a metric has several (pass^k by k)."""
        return (((), self.value()),)


class SumMetric(Metric):
    """A metric made of sums, for which a row that leaves is a row that enters with the sign changed."""

    __slots__ = ()

    def add(self, row: Row) -> None:
        self.count(row, 1)

    def evict(self, row: Row) -> None:
        self.count(row, -1)

    @abstractmethod
    def count(self, row: Row, sign: int) -> None:
        """Count a row that enters (1) or leaves (-1)."""


class WindowMetric(Metric):
    """A metric that reads the whole window, each time it changed and is read. Outside a window it keeps the rows itself."""

    __slots__ = ("_own", "_window")

    def __init__(self, settings: Settings = DEFAULTS) -> None:
        super().__init__(settings)
        self._own: dict[str, Row] = {}
        self._window: Rows | None = None

    def bind(self, rows: Rows) -> None:
        self._window = rows

    def add(self, row: Row) -> None:
        if self._window is None:
            self._own[row.run_id] = row

    def evict(self, row: Row) -> None:
        if self._window is None:
            del self._own[row.run_id]

    def rows(self) -> list[Row]:
        """Return the undisturbed runs of the window, in the order of their ends."""
        if self._window is not None:
            return [row for row in self._window() if row.baseline]
        return sorted([row for row in self._own.values() if row.baseline], key=lambda row: (row.end_ns, row.run_id))

    def value(self) -> Reading:
        return self.measure(self.rows())

    @abstractmethod
    def measure(self, rows: Sequence[Row]) -> Reading:
        """Return the value for these runs."""


class Derived(ABC):
    """A number computed from other metrics' readings (score, R_Con, R). It has no state of its own."""

    __slots__ = ()

    spec: ClassVar[MetricSpec]
    needs: ClassVar[tuple[str, ...]]
    """The names of these metrics."""

    def __init__(self, settings: Settings = DEFAULTS) -> None:
        """Keep no more than settings (`metrics.min_runs`)."""
        super().__init__()

    @abstractmethod
    def derive(self, readings: Mapping[str, Reading]) -> Reading:
        """Return the value, from the readings of the metrics named in `needs`."""

    def series(self, readings: Mapping[str, Reading]) -> Series:
        """Return what is emitted, from the readings of `needs`: one series without attributes, unless it has several (a tier)."""
        return (((), self.derive(readings)),)


def one_sided(runs: int, known: int, passed: int) -> bool:
    """Return whether only failures are known, because an end without error is no success: the pass rate is then unknown.

    >>> one_sided(runs=5, known=2, passed=0), one_sided(runs=5, known=5, passed=0), one_sided(runs=5, known=2, passed=1)
    (True, False, False)
    """
    return not passed and known < runs
