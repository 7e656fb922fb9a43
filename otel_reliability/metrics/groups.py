"""Attempts at the same work stand in one group; a metric over groups is the mean of theirs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping
from typing import Final, Generic, NamedTuple, TypeVar, cast

from otel_reliability.config import Settings
from otel_reliability.metrics.base import DEFAULTS, Metric
from otel_reliability.metrics.evidence import PATH, UNDISTURBED
from otel_reliability.metrics.exact import FixedSum
from otel_reliability.model.reading import NO_EVIDENCE, Reading
from otel_reliability.model.row import BASELINE, OTHER_TASK, Path, Row


class Share(NamedTuple):
    """What one group gives to the whole: its values, what they weigh, and the runs behind them.

    `left_out` counts the group's runs that a ceiling kept out.
    """

    values: tuple[float, ...]
    weight: int
    runs: int
    left_out: int = 0


class Group(ABC):
    """The sums of one group of runs."""

    __slots__ = ()

    @abstractmethod
    def __len__(self) -> int:
        """How many runs are in the group; an empty group is forgotten."""

    @abstractmethod
    def add(self, row: Row) -> None:
        """A run enters the group."""

    @abstractmethod
    def evict(self, row: Row) -> None:
        """A run leaves the group. Undoes `add` exactly."""

    @abstractmethod
    def share(self) -> Share | None:
        """What the group gives to the whole; None while it has no evidence."""


G = TypeVar("G", bound=Group)

FEW: Final = 4
"""Groups that are remembered as changed without a set."""


class Groups(Generic[G]):
    """Groups by key, and the sums over what they give.

    A group that changed is counted anew when a sum is asked for, and only then: an answer costs as much as groups changed
    since the last one, however many there are. The sums are of integers, so they do not depend on what has passed through.
    """

    __slots__ = ("_changed", "_groups", "_held", "_new", "left_out", "runs", "sums", "weight")

    def __init__(self, new: Callable[[], G], values: int) -> None:
        self._new = new
        self._groups: dict[Hashable, G] = {}
        self._changed: tuple[Hashable, ...] | set[Hashable] = ()
        """A tuple while they are few: an empty set alone takes more than most groups."""
        self._held: dict[Hashable, Share] = {}
        self.sums = tuple(FixedSum() for _ in range(values))
        self.weight = 0
        self.runs = 0
        self.left_out = 0

    def get(self, key: Hashable) -> G | None:
        """The group of that key, to look at."""
        return self._groups.get(key)

    def touch(self, key: Hashable) -> G:
        """The group of that key, to change."""
        if key not in self._changed:
            self._note(key)
        group = self._groups.get(key)
        return group if group is not None else self._begin(key)

    def _note(self, key: Hashable) -> None:
        changed = self._changed
        if isinstance(changed, set):
            changed.add(key)
        else:
            self._changed = (*changed, key) if len(changed) < FEW else {*changed, key}

    def _begin(self, key: Hashable) -> G:
        group = self._groups[key] = self._new()
        return group

    def settle(self) -> None:
        """Bring the sums up to date."""
        changed, self._changed = self._changed, ()
        for key in changed:
            self._renew(key)

    def _renew(self, key: Hashable) -> None:
        held = self._held.pop(key, None)
        if held is not None:
            self._count(held, -1)
        group = self._groups[key]
        if not len(group):
            del self._groups[key]
            return
        share = group.share()
        if share is not None:
            self._held[key] = share
            self._count(share, 1)

    def _count(self, share: Share, sign: int) -> None:
        values, weight, runs, left_out = share
        for total, value in zip(self.sums, values, strict=True):
            total.add(value, sign * weight)
        self.weight += sign * weight
        self.runs += sign * runs
        self.left_out += sign * left_out


class PathMetric(Metric, Generic[G]):
    """A metric about the paths of runs, averaged over the groups of at least 2 runs, each weighing as many as it has.

    A group is a task; the runs without one form one further group. With `metrics.group_by: none` all runs are one group.
    Runs that give no evidence (tools unobservable, incomplete, perturbed, of a task beyond the ceiling) are left out.
    """

    __slots__ = ("_by_task", "groups")

    wants = UNDISTURBED | PATH

    values = 1
    """How many values a group gives; the first is the metric's, the others its companions'."""

    def __init__(self, settings: Settings = DEFAULTS) -> None:
        super().__init__(settings)
        self._by_task = settings.metrics.group_by == "task"
        self.groups: Groups[G] = Groups(self.new_group(settings), self.values)

    @abstractmethod
    def new_group(self, settings: Settings) -> Callable[[], G]:
        """What makes an empty group."""

    def add(self, row: Row) -> None:
        group = self._group(row)
        if group is not None:
            group.add(row)

    def evict(self, row: Row) -> None:
        group = self._group(row)
        if group is not None:
            group.evict(row)

    def read(self) -> Reading:
        return self.mean(0)

    def takes(self, row: Row) -> bool:
        """Whether a row is evidence."""
        return row.path is not None and row.condition == BASELINE and not (self._by_task and row.task == OTHER_TASK)

    def _group(self, row: Row) -> G | None:
        """The group that a row changes. (`takes` and `group_of` in one: every run asks this of every such metric, twice.)"""
        if row.path is None or row.condition != BASELINE:
            return None
        if not self._by_task:
            return self.groups.touch(None)
        task = row.task
        return None if task == OTHER_TASK else self.groups.touch(task)

    def group_of(self, row: Row) -> Hashable:
        """The key of the group in which a row stands."""
        return row.task if self._by_task else None

    def mean(self, at: int) -> Reading:
        """The mean over groups of one of their values."""
        groups = self.groups
        groups.settle()
        if not groups.weight:
            return NO_EVIDENCE
        return Reading(groups.sums[at].mean(groups.weight), groups.runs)


def known(paths: Mapping[Path | None, int]) -> tuple[list[Path], list[int]]:
    """The paths that are known, and how often each was taken."""
    those = {path: times for path, times in paths.items() if path is not None} if None in paths else paths
    return cast("list[Path]", list(those)), list(those.values())


class PathGroup(Group):
    """A group of runs of which only the paths matter, and how often each was taken."""

    __slots__ = ()

    @abstractmethod
    def count(self, path: Path, times: int) -> None:
        """So many runs more took this path, or as many less as it is below 0."""

    def count_all(self, paths: list[Path], times: list[int]) -> None:
        """The same of each of these paths."""
        for path, number in zip(paths, times, strict=True):
            self.count(path, number)

    def add(self, row: Row) -> None:
        if row.path is not None:
            self.count(row.path, 1)

    def evict(self, row: Row) -> None:
        if row.path is not None:
            self.count(row.path, -1)


P = TypeVar("P", bound=PathGroup)


class PathTellMetric(PathMetric[P]):
    """A metric that may be told how often each path was taken."""

    __slots__ = ()

    def tell(self, row: Row, paths: Mapping[Path | None, int]) -> None:
        group = self._group(row)
        if group is not None:
            group.count_all(*known(paths))


class PathCountMetric(PathTellMetric[P]):
    """A metric that need not know more than that."""

    __slots__ = ()

    alike = True

    def count(self, row: Row, times: int) -> None:
        if row.path is not None:
            self.tell(row, {row.path: times})
