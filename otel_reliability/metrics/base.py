"""The protocol of a metric: `count(row, sign)`, `value()`; and the data that a row must have to
reach it.

A window owns the rows. It passes each row that enters or leaves to `count`, with the sign 1 or -1,
and asks for `value` when it is read. A sign of -1 undoes 1 exactly (integers, or the exact sums of
`_support.sums`), so a value never depends on the rows that have passed through, nor on their order.

A class declares what the metric is (`spec`), which further numbers come from the same sums
(`companions`, with `companion_values`), and which data a row must have to reach it (`requires`). To
add a metric: one file with one class, one row in `metrics.TABLE`, one fixture
(docs/contributing/add-a-metric.md).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Reversible, Sequence
from typing import ClassVar, Final, Literal, NamedTuple, TypeAlias

from otel_reliability.config import Settings
from otel_reliability.metrics._support.sums import mean_of_present
from otel_reliability.model.reading import NO_DATA, MetricSpec, Reading
from otel_reliability.model.row import BASELINE, Row
from otel_reliability.model.run import Outcome

DEFAULTS: Final = Settings()
"""The default settings."""

Profile: TypeAlias = Literal["published", "hal-harness"]
"""`published`: as the evaluation methodology's page defines its metrics. `hal-harness`: as its
authors' code computes them today.

They differ in `outcome_consistency`, `trajectory_distribution`, `risk_coverage` and the aggregates
of these.
"""

Rows: TypeAlias = Callable[[], Reversible[Row]]
"""Returns the rows that are in the window now, in order; a row that enters is among them already,
one that leaves still.
"""

Series: TypeAlias = tuple[tuple[tuple[tuple[str, str], ...], Reading], ...]
"""(attributes, reading) of each series of a metric."""

UNDISTURBED: Final = 1
"""It has no perturbation."""
PATH: Final = 2
"""Its path is known."""
CALLS: Final = 4
"""Its tool calls are known."""
TASK: Final = 8
"""It is an attempt at a known task, perhaps at one beyond the limit of tasks."""
LIKENESS: Final = 16
"""It names a branch, or an input that other runs may have."""
OUTCOME: Final = 32
"""It is known to be a success or a failure."""
CONFIDENCE: Final = 64
"""The agent's confidence is known."""
PRESSURE: Final = 128
"""It is known how full the context window was."""
EVALUATED: Final = 256
"""It was evaluated for violations."""
END: Final = 512
"""It is known whether it ended in an error."""
CODING: Final = 1024
"""It read or changed files."""
CACHED: Final = 2048
"""It is known how many of its input tokens were cached."""

_SUCCESS = Outcome.SUCCESS
_FAILURE = Outcome.FAILURE


def data_of(row: Row) -> int:
    """Return the sum of the flags of the data that a row has.

    >>> from otel_reliability.testing import row
    >>> data_of(row("search", task="refund")) & (TASK | OUTCOME) == TASK
    True
    """
    found = 0
    if row.condition == BASELINE:
        found = UNDISTURBED
    if row.path is not None:
        found += PATH
    if row.retries is not None:
        found += CALLS
    if row.task is not None:
        found += TASK + LIKENESS
    elif row.input_class is not None or row.branches or row.request is not None:
        found += LIKENESS
    if row.confidence is not None:
        found += CONFIDENCE
    if row.violations is not None:
        found += EVALUATED
    if row.coding is not None:
        found += CODING
    return found + _of_tokens(row) + _of_end(row)


def _of_tokens(row: Row) -> int:
    """Return the flags of what is known of a run's input tokens."""
    found = 0 if row.pressure is None else PRESSURE
    return found + CACHED if row.input_tokens else found


def _of_end(row: Row) -> int:
    """Return the flags of what is known of a run's end."""
    found = 0 if row.ended_in_error is None else END
    outcome = row.outcome
    if outcome is _SUCCESS or outcome is _FAILURE:
        found += OUTCOME
    return found


class RunKind(NamedTuple):
    """Runs with the same path and the same facts: they differ in times, ids, sessions and amounts
    (tokens, costs, latencies). One of them, their number, and the data that they have.
    """

    row: Row
    runs: int
    data: int


class InputGroup(NamedTuple):
    """The runs of an input group by kinds; `rows` returns them one by one, in any order."""

    kinds: Sequence[RunKind]
    rows: Rows


class Metric(ABC):
    """A number about a window, kept up to date as rows enter and leave."""

    __slots__ = ()

    spec: ClassVar[MetricSpec]
    companions: ClassVar[tuple[MetricSpec, ...]] = ()
    """Further numbers from the same sums (a share next to a yes or no), emitted and listed like
    metrics.
    """
    requires: ClassVar[int] = 0
    """The data that a row must have to reach `count`, as a sum of the flags above."""
    of_outcomes: ClassVar[bool] = False
    """True if it measures how often runs succeed. It has no value in a window in which only
    failures are known (`one_sided`).
    """

    def __init__(self, settings: Settings = DEFAULTS) -> None:
        """Start without a row."""
        super().__init__()

    def bind(self, rows: Rows) -> None:  # noqa: B027 (most metrics do not need it)
        """Receive the window's rows, before the first of them is counted. A metric that needs them
        need not keep them itself.
        """

    def add(self, row: Row) -> None:
        """Count a row that enters, if it has the required data. (A window asks that once for all
        metrics.)
        """
        if self.concerns(row):
            self.count(row, 1)

    def evict(self, row: Row) -> None:
        """Count a row that leaves; undoes `add` exactly."""
        if self.concerns(row):
            self.count(row, -1)

    def concerns(self, row: Row) -> bool:
        """Return whether a row has the required data."""
        return data_of(row) & self.requires == self.requires

    @abstractmethod
    def count(self, row: Row, sign: int) -> None:
        """Count a row with the required data that enters (1) or leaves (-1)."""

    @abstractmethod
    def value(self) -> Reading:
        """Return the value for the rows in the window, with the number of runs behind it. Changes
        no later value.
        """

    def regroup(  # noqa: B027 (most metrics do not compare runs)
        self, changed: Mapping[int, InputGroup | None]
    ) -> None:
        """Receive the input groups of the window that changed, by number; None: it is no more."""

    def companion_values(self) -> tuple[Reading, ...]:
        """Return the readings of `companions`, in their order."""
        return ()

    def series(self) -> Series:
        """Return the readings as emitted: one without attributes, unless a metric has several
        (pass^k by k).
        """
        return (((), self.value()),)


class WindowMetric(Metric):
    """A metric that reads rows of the window, each time it changed and is read. Outside a window it
    keeps the rows itself.
    """

    __slots__ = ("_own", "_window")

    def __init__(self, settings: Settings = DEFAULTS) -> None:
        super().__init__(settings)
        self._own: dict[str, Row] = {}
        self._window: Rows | None = None

    def bind(self, rows: Rows) -> None:
        self._window = rows

    def count(self, row: Row, sign: int) -> None:
        if self._window is None:
            if sign > 0:
                self._own[row.run_id] = row
            else:
                del self._own[row.run_id]

    def rows(self) -> list[Row]:
        """Return the undisturbed runs of the window, in the order of their ends."""
        if self._window is not None:
            return [row for row in self._window() if row.undisturbed]
        return self._kept()

    def newest_first(self) -> Iterator[Row]:
        """Yield the undisturbed runs of the window from its end on; a run that nobody asks for is
        not read.
        """
        rows = self._kept() if self._window is None else self._window()
        return (row for row in reversed(rows) if row.undisturbed)

    def _kept(self) -> list[Row]:
        return sorted(self._own.values(), key=lambda row: (row.end_ns, row.run_id))


class Derived(ABC):
    """A number computed from other metrics' readings (score, R_Con, R). It has no state of its own:
    all windows share it.
    """

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
        """Return what is emitted, from the readings of `needs`: one series without attributes,
        unless it has several (a tier).
        """
        return (((), self.derive(readings)),)


class Composite(Derived):
    """A number made of the values of `needs`: their mean, unless a class has another formula.

    Its runs are those of the part with most runs behind it, for parts are about the same window;
    its `parts` are those that had a value. Where a part counts ends without error as success, so
    does the composite, and its note says so.
    """

    def formula(self, *parts: float | None) -> float | None:
        """Return the value from those of the parts, in the order of `needs`: the mean of those that
        have one.
        """
        return mean_of_present(parts)

    def derive(self, readings: Mapping[str, Reading]) -> Reading:
        found = {name: readings.get(name, NO_DATA) for name in self.needs}
        value = self.formula(*(reading.value for reading in found.values()))
        if value is None:
            return NO_DATA
        present = tuple(name for name, reading in found.items() if reading.value is not None)
        by_status = sum(ENDS_COUNT in found[name].note for name in present)
        return noted(Reading(value, max(found[name].runs for name in present), present), by_status)


UNKNOWN_INPUTS: Final = "inputs unknown: variety of work counts as variance"
"""The note of a reading that compares runs of which nothing says whether their inputs were alike.
"""
ENDS_COUNT: Final = "counts ends without error as success"
"""The note of a reading that rests on `outcome.fallback: status`."""


def noted(reading: Reading, by_status: int) -> Reading:
    """Return the reading, with that note where any of its successes is no more than an end without
    error.

    >>> noted(Reading(0.5, 4, note="k = 2"), by_status=1).note
    'k = 2; counts ends without error as success'
    """
    if not by_status or reading.value is None:
        return reading
    return reading._replace(note=f"{reading.note}; {ENDS_COUNT}" if reading.note else ENDS_COUNT)


def one_sided(runs: int, known: int, passed: int) -> bool:
    """Return whether only failures are known, because an end without error is no success: the pass
    rate is then unknown.

    >>> (
    ...     one_sided(runs=5, known=2, passed=0),
    ...     one_sided(runs=5, known=5, passed=0),
    ...     one_sided(runs=5, known=2, passed=1),
    ... )
    (True, False, False)
    """
    return not passed and known < runs
