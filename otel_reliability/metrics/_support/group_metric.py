"""Metrics that average over groups of runs: tasks, kinds of request, or all runs as one."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Hashable, Mapping
from typing import Final, Generic, TypeVar

from otel_reliability.config import Settings
from otel_reliability.metrics._support.latest_pairs import Distances, LatestPairs
from otel_reliability.metrics._support.run_group import GroupShares, RunGroup, Totals
from otel_reliability.metrics._support.sums import clamp
from otel_reliability.metrics.base import (
    DEFAULTS,
    PATH,
    TASK,
    UNDISTURBED,
    UNKNOWN_INPUTS,
    InputGroup,
    Metric,
    Rows,
)
from otel_reliability.model.reading import NO_DATA, Reading
from otel_reliability.model.row import OTHER_TASK, Row

K = TypeVar("K", bound=Hashable)
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


class GroupMetric(Metric, Generic[G]):
    """A metric computed for each group of runs, averaged over groups by their weight.

    A group that changed is asked for its contribution when the metric is read, so an answer costs
    as much as groups changed since the last one, however many there are. The sums are integers:
    they do not depend on what has passed through.

    Input groups depend on all runs of the window, which forms them when it is read, and then passes
    those that changed to `regroup`. What each contributes is kept, and nothing else of it.
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
        self._formed: GroupShares | None = None
        """Contributions of the input groups that the window formed; None before it has."""

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
        return self._totals if self._formed is None else self._totals + self._formed.totals

    def regroup(self, changed: Mapping[int, InputGroup | None]) -> None:
        if self._formed is None:
            self._formed = GroupShares(self.values)
        for number, runs in changed.items():
            share = None if runs is None else self.input_group(runs).share()
            self._formed.replace(number, share)

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
