"""Groups of runs, and metrics that average over groups."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable
from typing import Generic, NamedTuple, TypeVar

from otel_reliability.config import Settings
from otel_reliability.metrics._support.exact import FixedSum
from otel_reliability.metrics._support.means import clamp
from otel_reliability.metrics.base import DEFAULTS, Metric, Rows
from otel_reliability.metrics.data import PATH, TASK, UNDISTURBED
from otel_reliability.model.reading import NO_EVIDENCE, Reading
from otel_reliability.model.row import BASELINE, OTHER_TASK, Path, Row


class Share(NamedTuple):
    """Contribution of one group: its values, their weight, the runs they rest on, and how many of them a limit left out."""

    values: tuple[float, ...]
    weight: int
    runs: int
    left_out: int = 0


class RunGroup(ABC):
    """Sums of one group of runs."""

    __slots__ = ("runs",)

    def __init__(self) -> None:
        self.runs = 0
        """The number of runs in the group, counted by `Groups`."""

    @abstractmethod
    def add(self, row: Row) -> None:
        """A run enters the group."""

    @abstractmethod
    def evict(self, row: Row) -> None:
        """A run leaves the group. Undoes `add` exactly."""

    @abstractmethod
    def share(self) -> Share | None:
        """Return the group's contribution; None without enough data."""


G = TypeVar("G", bound=RunGroup)


class Groups(Generic[G]):
    """Groups by key, and the sums of their contributions.

    A group that changed is asked for its contribution when the sums are read, so an answer costs as much as groups
    changed since the last one, however many there are. The sums are integers: they do not depend on what has passed through.
    """

    __slots__ = ("_changed", "_groups", "_new", "_shares", "left_out", "runs", "sums", "weight")

    def __init__(self, new: Callable[[], G], values: int = 1) -> None:
        self._new = new
        self._groups: dict[Hashable, G] = {}
        self._changed: dict[Hashable, None] = {}
        self._shares: dict[Hashable, Share] = {}
        self.sums = tuple(FixedSum() for _ in range(values))
        self.weight = 0
        self.runs = 0
        self.left_out = 0

    def get(self, key: Hashable) -> G | None:
        """Return the group of that key. Only to be asked."""
        return self._groups.get(key)

    def add(self, key: Hashable, row: Row) -> None:
        """A run enters the group of that key."""
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = self._new()
        self._changed[key] = None
        group.runs += 1
        group.add(row)

    def evict(self, key: Hashable, row: Row) -> None:
        """A run leaves the group of that key."""
        group = self._groups[key]
        self._changed[key] = None
        group.runs -= 1
        group.evict(row)

    def update(self) -> None:
        """Bring the sums up to date."""
        changed, self._changed = self._changed, {}
        for key in changed:
            old = self._shares.pop(key, None)
            if old is not None:
                self._count(old, -1)
            group = self._groups[key]
            if not group.runs:
                del self._groups[key]
                continue
            new = group.share()
            if new is not None:
                self._shares[key] = new
                self._count(new, 1)

    def mean(self, at: int = 0) -> Reading:
        """Return the weighted mean over groups of one of their values, after `update`."""
        if not self.weight:
            return NO_EVIDENCE
        return Reading(self.sums[at].mean(self.weight), self.runs)

    def _count(self, share: Share, sign: int) -> None:
        values, weight, runs, left_out = share
        for total, value in zip(self.sums, values, strict=True):
            total.add(value, sign * weight)
        self.weight += sign * weight
        self.runs += sign * runs
        self.left_out += sign * left_out


class GroupMetric(Metric, Generic[G]):
    """A metric computed for each group of runs, averaged over groups by their weight."""

    __slots__ = ("_rows", "groups")

    values = 1
    """The number of values that a group gives; the first is the metric's, the others its companions'."""

    def __init__(self, settings: Settings = DEFAULTS) -> None:
        super().__init__(settings)
        self._rows: Rows | None = None
        self.groups: Groups[G] = Groups(self.new_group(settings), self.values)

    @abstractmethod
    def new_group(self, settings: Settings) -> Callable[[], G]:
        """Return what makes an empty group."""

    @abstractmethod
    def counts(self, row: Row) -> bool:
        """Return whether a run has the data that is compared."""

    @abstractmethod
    def key(self, row: Row) -> Hashable:
        """Return the key of the group of a run that counts."""

    def bind(self, rows: Rows) -> None:
        self._rows = rows

    def add(self, row: Row) -> None:
        if self.counts(row):
            self.groups.add(self.key(row), row)

    def evict(self, row: Row) -> None:
        if self.counts(row):
            self.groups.evict(self.key(row), row)

    def value(self) -> Reading:
        self.groups.update()
        return self.groups.mean()

    def group_of(self, row: Row) -> G | None:
        """Return the group of a run, None if the run does not count or the group is empty."""
        return self.groups.get(self.key(row)) if self.counts(row) else None

    def rows_with(self) -> Callable[[Row], list[Row]] | None:
        """Return the function from a run that counts to the window's rows of its group, in order; None without a window."""
        window = self._rows
        if window is None:
            return None
        return lambda row: [one for one in window() if self.counts(one) and self.key(one) == self.key(row)]


class PathMetric(GroupMetric[G]):
    """A metric about the paths of runs, averaged over the groups of at least 2 runs, each weighing as many as it has.

    A group is a task; the runs without one form one further group. With `metrics.group_by: none` all runs are one group.
    Runs without a path (tools unobservable, incomplete), perturbed runs and those of a task beyond the limit are left out.
    """

    __slots__ = ("_by_task",)

    requires = UNDISTURBED | PATH

    def __init__(self, settings: Settings = DEFAULTS) -> None:
        super().__init__(settings)
        self._by_task = settings.metrics.group_by == "task"

    def counts(self, row: Row) -> bool:
        return row.path is not None and row.condition == BASELINE and not (self._by_task and row.task == OTHER_TASK)

    def key(self, row: Row) -> Hashable:
        return row.task if self._by_task else None


class PathGroup(RunGroup):
    """A group of runs of which only the paths matter."""

    __slots__ = ()

    @abstractmethod
    def count(self, path: Path, times: int) -> None:
        """Count a path once more (1) or once less (-1)."""

    def add(self, row: Row) -> None:
        if row.path is not None:
            self.count(row.path, 1)

    def evict(self, row: Row) -> None:
        if row.path is not None:
            self.count(row.path, -1)


def of_one_task(value: float | None, runs: int) -> Share | None:
    """Return a task's contribution to a mean over tasks: its number with weight one; None without a number."""
    return None if value is None else Share((value,), 1, runs)


def repeats_a_task(row: Row) -> bool:
    """Return whether a run can be compared with others of its task: undisturbed, and of a known task."""
    return row.task is not None and row.task != OTHER_TASK and row.baseline


class TaskMean(GroupMetric[G]):
    """A metric that each task's runs give together, averaged over tasks.

    Runs without a task id are not attempts at the same work, so they do not count; neither do perturbed runs.
    """

    __slots__ = ()

    requires = UNDISTURBED | TASK

    def counts(self, row: Row) -> bool:
        return repeats_a_task(row)

    def key(self, row: Row) -> Hashable:
        return row.task

    def value(self) -> Reading:
        mean = super().value()
        if mean.value is None:
            return mean
        left_out = self.groups.left_out
        note = f"{left_out} runs beyond the limit of distinct paths left out" if left_out else ""
        return Reading(clamp(mean.value), mean.runs, note=note)
