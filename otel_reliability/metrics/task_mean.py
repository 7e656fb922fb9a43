"""The mean over tasks of a number that each task's runs give, every task weighing the same."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable

from otel_reliability.config import Settings
from otel_reliability.metrics.base import DEFAULTS, Metric
from otel_reliability.metrics.evidence import TASK, UNDISTURBED
from otel_reliability.metrics.groups import G, Generic, Groups, Share
from otel_reliability.metrics.means import clamp
from otel_reliability.model.reading import NO_EVIDENCE, Reading
from otel_reliability.model.row import OTHER_TASK, Row


def repeats_a_task(row: Row) -> bool:
    """Whether a run can be compared with others of its task: undisturbed, and of a task that is told."""
    return row.task is not None and row.task != OTHER_TASK and row.baseline


def of_one_task(value: float | None, runs: int, left_out: int = 0) -> Share | None:
    """What a task gives to the mean: its number, weighing one; nothing without a number."""
    return None if value is None else Share((value,), 1, runs, left_out)


class TaskMean(Metric, Generic[G]):
    """A metric that is such a mean, as the evaluation methodology wants it.

    Runs without a task id are attempts at nothing in common, so they are no evidence; nor are perturbed runs.
    """

    __slots__ = ("_groups",)

    wants = UNDISTURBED | TASK

    def __init__(self, settings: Settings = DEFAULTS) -> None:
        super().__init__(settings)
        self._groups: Groups[G] = Groups(self.new_task(settings), 1)

    @abstractmethod
    def new_task(self, settings: Settings) -> Callable[[], G]:
        """What makes the sums of a task that has no run yet."""

    @abstractmethod
    def counts(self, row: Row) -> bool:
        """Whether a run of a task is evidence."""

    def takes(self, row: Row) -> bool:
        """Whether a run is an attempt that can be compared with others, and evidence."""
        return repeats_a_task(row) and self.counts(row)

    def add(self, row: Row) -> None:
        if self.takes(row):
            self._groups.touch(row.task).add(row)

    def evict(self, row: Row) -> None:
        if self.takes(row):
            self._groups.touch(row.task).evict(row)

    def read(self) -> Reading:
        groups = self._groups
        groups.settle()
        if not groups.weight:
            return NO_EVIDENCE
        return Reading(clamp(groups.sums[0].mean(groups.weight)), groups.runs, note=_note(groups.left_out))


def _note(left_out: int) -> str:
    return f"{left_out} runs beyond the ceiling of distinct paths left out" if left_out else ""
