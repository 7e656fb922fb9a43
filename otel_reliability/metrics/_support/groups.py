"""Groups of runs: their distances two by two, metrics that average over groups, and the outcomes of
each task's attempts.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from operator import mul
from typing import Final, Generic, NamedTuple, TypeAlias, TypeVar

from otel_reliability.config import Settings
from otel_reliability.metrics._support.sums import Counts, FixedSum, clamp
from otel_reliability.metrics.base import (
    DEFAULTS,
    OUTCOME,
    PATH,
    TASK,
    UNDISTURBED,
    UNKNOWN_INPUTS,
    InputGroup,
    Metric,
    Rows,
    RunKind,
    noted,
)
from otel_reliability.model.reading import NO_DATA, Reading
from otel_reliability.model.row import OTHER_TASK, Row
from otel_reliability.statistics.edits import edit_distances

K = TypeVar("K", bound=Hashable)


# --- Groups ---------------------------------------------------------------------------------------


class Share(NamedTuple):
    """Contribution of one group: its values, their weight, the runs they rest on, and how many of
    them a limit left out.
    """

    values: tuple[float, ...]
    weight: int
    runs: int
    left_out: int = 0


class RunGroup(ABC):
    """Sums of one group of runs. `runs`, `changed` and `counted` (what the sums contain of it) are
    those of its metric.
    """

    __slots__ = ("changed", "counted", "runs")

    def __init__(self) -> None:
        self.runs = 0
        self.changed = False
        self.counted: Share | None = None

    @abstractmethod
    def count(self, row: Row, sign: int) -> None:
        """Count a run that enters the group (1) or leaves it (-1); or so many of its kind."""

    @abstractmethod
    def share(self) -> Share | None:
        """Return the group's contribution; None without enough data."""

    def fill(self, kinds: Sequence[RunKind], rows: Rows) -> None:
        """Count the runs of an input group, of which this group had none. `rows` returns them one
        by one.
        """
        for row, runs, _ in kinds:
            self.runs += runs
            self.count(row, runs)


G = TypeVar("G", bound=RunGroup)

UNGROUPED: Final = object()
"""The key of a run that is compared with no other."""
TO_FORM: Final = object()
"""The key of a run whose input group the window forms when it is read."""


def input_key(row: Row) -> Hashable:
    """Return the key of the input group of a run without a task; None for an unknown input."""
    if row.request is None:
        return None
    return TO_FORM if row.group is None else row.group


class Totals:
    """Weighted sums of the contributions of groups, their weight, and the runs behind them."""

    __slots__ = ("left_out", "runs", "sums", "weight")

    def __init__(self, values: int) -> None:
        self.sums = tuple([FixedSum() for _ in range(values)])
        self.weight = self.runs = self.left_out = 0

    def count(self, share: Share | None, sign: int) -> None:
        """Count a contribution that enters (1) or leaves (-1)."""
        if share is None:
            return
        values, weight, runs, left_out = share
        for total, value in zip(self.sums, values, strict=True):
            total.add(value, sign * weight)
        self.weight += sign * weight
        self.runs += sign * runs
        self.left_out += sign * left_out

    def __add__(self, other: Totals) -> Totals:
        """Return the sums of both."""
        found = Totals(0)
        found.sums = tuple([one + two for one, two in zip(self.sums, other.sums, strict=True)])
        found.weight = self.weight + other.weight
        found.runs = self.runs + other.runs
        found.left_out = self.left_out + other.left_out
        return found


class GroupMetric(Metric, Generic[G]):
    """A metric computed for each group of runs, averaged over groups by their weight.

    A group that changed is asked for its contribution when the metric is read, so an answer costs
    as much as groups changed since the last one, however many there are. The sums are integers:
    they do not depend on what has passed through.

    Input groups depend on all runs of the window, which forms them when it is read, and then passes
    those that changed to `regroup`. Their sums are kept, and nothing of each.
    """

    __slots__ = ("_changed", "_formed", "_groups", "_rows", "_settings", "_totals")

    values = 1
    """The number of values that a group gives; the first is the metric's, the others its
    companions'.
    """

    def __init__(self, settings: Settings = DEFAULTS) -> None:
        super().__init__(settings)
        self._rows: Rows | None = None
        self._settings = settings
        self._groups: dict[Hashable, G] = {}
        self._changed: list[G] = []
        self._totals = Totals(self.values)
        self._formed: Totals | None = None
        """The sums over the input groups that the window formed; None before it has."""

    @abstractmethod
    def new_group(self) -> G:
        """Return an empty group."""

    @abstractmethod
    def key(self, row: Row) -> Hashable:
        """Return the key of the group of a run with the required data; `UNGROUPED` if it is
        compared with no other, `TO_FORM` if the window forms its input group.
        """

    def bind(self, rows: Rows) -> None:
        self._rows = rows

    def count(self, row: Row, sign: int) -> None:
        key = self.key(row)
        if key is UNGROUPED or key is TO_FORM:
            return
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = self.new_group()
        group.runs += sign
        group.count(row, sign)
        if not group.changed:
            group.changed = True
            self._changed.append(group)
        if not group.runs:
            del self._groups[key]

    def value(self) -> Reading:
        return self.mean()

    def mean(self, at: int = 0) -> Reading:
        """Return the weighted mean over groups of one of their values."""
        totals = self.totals()
        if not totals.weight:
            return NO_DATA
        return Reading(totals.sums[at].mean(totals.weight), totals.runs)

    def totals(self) -> Totals:
        """Return the sums over all groups."""
        changed = self._changed
        self._changed = []
        for group in changed:
            self._totals.count(group.counted, -1)
            group.changed, group.counted = False, group.share() if group.runs else None
            self._totals.count(group.counted, 1)
        return self._totals if self._formed is None else self._totals + self._formed

    def regroup(self, left: Iterable[InputGroup] | None, entered: Iterable[InputGroup]) -> None:
        if left is None or self._formed is None:
            self._formed = Totals(self.values)
        for runs in left or ():
            self._formed.count(self.input_group(runs).share(), -1)
        for runs in entered:
            self._formed.count(self.input_group(runs).share(), 1)

    @property
    def left_out(self) -> int:
        """Number of runs that a limit left out."""
        return self.totals().left_out

    @property
    def unknown_inputs(self) -> bool:
        """True if runs are compared of which nothing says whether their inputs were alike."""
        group = self._groups.get(None)
        return group is not None and group.runs > 1

    def group_of(self, row: Row, formed: G | None = None) -> G | None:
        """Return the group of a run; None if the run is compared with no other, or the group is
        empty. `formed`: that of its input group (`input_group`).
        """
        if not self.concerns(row):
            return None
        key = self.key(row)
        return formed if key is TO_FORM else self._groups.get(key)

    def input_group(self, runs: InputGroup) -> G:
        """Return the group of those runs of an input group that have the required data and no other
        group.
        """
        group = self.new_group()
        requires = self.requires
        group.fill(
            [
                kind
                for kind in runs.kinds
                if kind.data & requires == requires and self.key(kind.row) is TO_FORM
            ],
            lambda: [row for row in runs.rows() if self.concerns(row) and self.key(row) is TO_FORM],
        )
        return group

    def pairs(
        self, distances: Distances[K], code: Callable[[Row], K], *, by_runs: bool = True
    ) -> LatestPairs[K]:
        """Return an empty group of pairs, which can read its runs from the window of this metric,
        if it has one.
        """
        limit = self._settings.limits.paths
        window = self._rows
        if window is None:
            return LatestPairs(limit, distances, code, by_runs=by_runs)

        def rows_with(row: Row) -> list[Row]:
            return [
                one for one in window() if self.concerns(one) and self.key(one) == self.key(row)
            ]

        return LatestPairs(limit, distances, code, rows_with, by_runs=by_runs)


class PathMetric(GroupMetric[G]):
    """A metric about the paths of runs, averaged over the groups of at least 2 runs, each weighing
    as many as it has.

    A group is a task, or the runs without one that have alike requests; runs of which neither is
    known form one further group. With `metrics.group_by: none` all runs are one group. Runs without
    a path (tools unobservable, incomplete), perturbed runs and those of a task beyond the limit are
    left out.
    """

    __slots__ = ("_by_task",)

    requires = UNDISTURBED | PATH

    def __init__(self, settings: Settings = DEFAULTS) -> None:
        super().__init__(settings)
        self._by_task = settings.metrics.group_by == "task"

    def key(self, row: Row) -> Hashable:
        if not self._by_task:
            return None
        if row.task is None:
            return input_key(row)
        return UNGROUPED if row.task == OTHER_TASK else row.task

    def value(self) -> Reading:
        return self.mean()

    def mean(self, at: int = 0) -> Reading:
        reading = super().mean(at)
        if reading.value is None or not (self._by_task and self.unknown_inputs):
            return reading
        return reading._replace(note=UNKNOWN_INPUTS)


class TaskMean(GroupMetric[G]):
    """A metric that each task's runs give together, averaged over tasks.

    Runs without a task id are not attempts at the same work, so they do not count; neither do
    perturbed runs.
    """

    __slots__ = ()

    requires = UNDISTURBED | TASK

    def key(self, row: Row) -> Hashable:
        return UNGROUPED if row.task == OTHER_TASK else row.task

    def value(self) -> Reading:
        mean = self.mean()
        left_out = self.left_out
        if mean.value is None:
            return mean
        note = f"{left_out} runs beyond the limit of distinct paths left out" if left_out else ""
        return Reading(clamp(mean.value), mean.runs, note=note)


# --- Pairs ----------------------------------------------------------------------------------------

ONE: Final = 1 << 52
"""Distances are whole numbers of 2^-52, so that sums of them are exact and can be undone."""

KNOWN: Final = 65
SHARES: Final = [
    [edits * ONE // (longer or 1) for edits in range(longer + 1)] for longer in range(KNOWN)
]
"""The share that each number of edits is of each longer length, for most paths: a lookup costs less
than a division.
"""

Distances: TypeAlias = Callable[[K, list[K]], list[int]]
"""The distance of one code to each of some others, in units of 2^-52; symmetric, and 0 to itself.
"""


def order(row: Row) -> tuple[int, str]:
    """Return the order of runs: by end, then by run id."""
    return row.end_ns, row.run_id


def path_code(row: Row) -> str:
    """Return the code of the path of a run."""
    return "" if row.path is None else row.path.code


def edit_units(code: str, others: list[str]) -> list[int]:
    """Return the edit distance of a path to each other over the longer length of the two, in units
    of 2^-52.

    Insert, delete and replace cost 1; two empty paths are equal.

    >>> [share / ONE for share in edit_units("ab", ["ab", "abcd", ""])]
    [0.0, 0.5, 1.0]
    """
    length = len(code)
    edits = edit_distances(code, others)
    # a call of max takes five times as long
    longer = [size if size > length else length for size in map(len, others)]  # noqa: FURB136
    return [
        SHARES[size][edit] if size < KNOWN else edit * ONE // size
        for size, edit in zip(longer, edits, strict=True)
    ]


class LatestPairs(RunGroup, Generic[K]):
    """Pairs of the latest runs of a group, in the order of their ends, that have at most `limit`
    different codes.

    A run is known by the code of what it did; one that enters or leaves costs one distance to each
    different code. The limit bounds that. Below it all runs count; above it the latest, as many as
    the limit admits. Which they are depends on the runs alone, not on their order of arrival. Rows
    are kept only while the limit is reached: `rows` returns those of the group, given one of them.
    Without it they are kept from the start. `by_runs`: the group weighs as many as it has runs,
    else as much as any other.

    >>> from otel_reliability.testing import rows_of
    >>> pairs = LatestPairs(2, edit_units, path_code)
    >>> for row in rows_of("a", "a b", "a", "c"):
    ...     pairs.count(row, 1)
    >>> len(pairs), pairs.left_out, pairs.mean()
    (2, 2, 1.0)
    """

    __slots__ = (
        "_by_runs",
        "_code",
        "_codes",
        "_distances",
        "_limit",
        "_read_rows",
        "_rows",
        "_total",
        "left_out",
    )

    def __init__(
        self,
        limit: int,
        distances: Distances[K],
        code: Callable[[Row], K],
        rows: Callable[[Row], list[Row]] | None = None,
        *,
        by_runs: bool = True,
    ) -> None:
        super().__init__()
        self._by_runs = by_runs
        self._limit = limit
        self._code = code
        self._read_rows = rows
        self._rows: list[Row] | None = [] if rows is None else None
        self._distances = distances
        self._codes = Counts[K]()
        self._total = 0
        """Sum of the distances over all pairs, in units of 2^-52."""
        self.left_out = 0
        """The number of runs, the earliest ones, that the limit excludes."""

    def __len__(self) -> int:
        return self._codes.total

    def count(self, row: Row, sign: int) -> None:
        rows = self._rows
        if rows is None:
            self._count_code(self._code(row), sign)
            if len(self._codes) <= self._limit or self._read_rows is None:
                return
            rows = self._rows = self._read_rows(row)
        else:
            at = bisect_left(rows, order(row), key=order)
            if sign > 0:
                rows.insert(at, row)
            else:
                del rows[at]
            if at < self.left_out or (sign > 0 and at == self.left_out > 0):
                self.left_out += sign
            else:
                self._count_code(self._code(row), sign)
        self._fit(rows)
        if self._read_rows and not self.left_out and len(self._codes) <= self._limit // 2:
            self._rows = None

    def mean(self) -> float | None:
        """Return the mean distance over all pairs; None for fewer than 2 runs."""
        runs = len(self)
        return self._total / (ONE * (runs * (runs - 1) // 2)) if runs >= 2 else None

    def fill(self, kinds: Sequence[RunKind], rows: Rows) -> None:
        self._read_rows = None
        if len({self._code(kind.row) for kind in kinds}) <= self._limit:
            self._rows = None
            super().fill(kinds, rows)
            return
        self._rows = []
        for row in rows():
            self.runs += 1
            self.count(row, 1)

    def share(self) -> Share | None:
        """Return 1 − the mean distance."""
        distance = self.mean()
        runs = len(self)
        return (
            None
            if distance is None
            else Share((1.0 - distance,), runs if self._by_runs else 1, runs, self.left_out)
        )

    def distance(self, row: Row, *, inside: bool) -> Reading:
        """Return the mean distance of a run to the other runs here; no value without another run.

        `inside`: the run is in the window, so that it is not one of the others.
        """
        counts = (
            self._rows is None or bisect_left(self._rows, order(row), key=order) >= self.left_out
        )
        others = len(self) - (inside and counts)
        return (
            Reading(self._distance_to_all(self._code(row)) / (ONE * others), others)
            if others
            else NO_DATA
        )

    def _count_code(self, code: K, sign: int) -> None:
        self._total += sign * self._distance_to_all(code)
        self._codes.count(code, sign)

    def _distance_to_all(self, code: K) -> int:
        """Return the sum of the distances of a code to all runs, in units of 2^-52."""
        return sum(map(mul, self._distances(code, list(self._codes)), self._codes.values()))

    def _fit(self, rows: list[Row]) -> None:
        """Exclude the earliest runs while there are too many codes, and admit earlier ones while
        there are not.
        """
        codes = self._codes
        while len(codes) > self._limit:
            self._count_code(self._code(rows[self.left_out]), -1)
            self.left_out += 1
        while self.left_out and (
            len(codes) < self._limit or self._code(rows[self.left_out - 1]) in codes
        ):
            self.left_out -= 1
            self._count_code(self._code(rows[self.left_out]), 1)


# --- Outcomes of attempts, per task ---------------------------------------------------------------

Shape: TypeAlias = tuple[int, int]
"""(attempts, passes) of one task."""


class TaskOutcomes(Metric):
    """A metric that needs no more of each task than how many attempts there were, and how many
    passed.

    State: two integers a task, and how many tasks have each (attempts, passes). Reading costs as
    many steps as there are different such pairs, not tasks.
    """

    __slots__ = ("_by_status", "_shapes", "_tasks")

    requires = UNDISTURBED | OUTCOME

    of_outcomes = True

    def __init__(self, settings: Settings = DEFAULTS) -> None:
        super().__init__(settings)
        self._by_status = 0
        self._tasks: dict[str | None, Shape] = {}
        self._shapes = Counts[Shape]()

    def repeated(self) -> Mapping[Shape, int]:
        """Return how many tasks have each shape. Runs without a task id are left out: they are
        repeats of nothing.
        """
        return self._shapes

    def attempted(self) -> Mapping[Shape, int]:
        """Return the same; but where no run names a task, the window is taken as
        attempts at one.
        """
        return self._shapes or ({self._tasks[None]: 1} if None in self._tasks else {})

    def noted(self, reading: Reading) -> Reading:
        """Return the reading, with a note where it rests on ends without error."""
        return noted(reading, self._by_status)

    def count(self, row: Row, sign: int) -> None:
        task = row.task
        if task == OTHER_TASK:
            return
        self._by_status += sign * row.by_status
        old = self._tasks.get(task)
        runs, passed = old or (0, 0)
        new = (runs + sign, passed + sign * (row.success is True))
        if new[0]:
            self._tasks[task] = new
        else:
            del self._tasks[task]
        if task is not None:
            if new[0]:
                self._shapes.count(new)
            if old is not None:
                self._shapes.count(old, -1)


def mean_over_tasks(
    shapes: Mapping[Shape, int], of_task: Callable[[int, int], float | None]
) -> Reading:
    """Return the mean of a number of (passes, attempts) over the tasks for which it exists, each
    task weighing the same.

    >>> mean_over_tasks(
    ...     {(4, 2): 1, (2, 2): 3, (1, 1): 9},
    ...     lambda passed, runs: passed / runs if runs > 1 else None,
    ... )
    Reading(value=0.875, runs=10, parts=(), note='')
    """
    values: list[float] = []
    tasks = 0
    attempts = 0
    for (runs, passed), count in shapes.items():
        value = of_task(passed, runs)
        if value is not None:
            values.append(value * count)
            tasks += count
            attempts += runs * count
    return Reading(math.fsum(values) / tasks, attempts) if tasks else NO_DATA
