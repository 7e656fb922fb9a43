"""Pairs of the successful attempts at a task."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable

from otel_reliability.config import Settings
from otel_reliability.metrics.apart import Shares
from otel_reliability.metrics.base import DEFAULTS, Lender
from otel_reliability.metrics.evidence import OUTCOME, PATH, TASK, UNDISTURBED
from otel_reliability.metrics.groups import Group, Share
from otel_reliability.metrics.outcomes import told
from otel_reliability.metrics.pairs import Fellows, LatestPairs
from otel_reliability.metrics.task_mean import TaskMean, of_one_task
from otel_reliability.model.reading import Reading
from otel_reliability.model.row import Row


class Trajectories(Group):
    """The pairs of one task's attempts that count, at most `limit` distinct paths among them, the latest."""

    __slots__ = ("_pairs", "_runs")

    def __init__(self, limit: int, shares: Shares, fellows: Fellows | None) -> None:
        self._runs = 0
        self._pairs = LatestPairs(limit, shares, fellows)

    def __len__(self) -> int:
        return self._runs

    def add(self, row: Row) -> None:
        self._runs += 1
        self._pairs.add(row)

    def evict(self, row: Row) -> None:
        self._runs -= 1
        self._pairs.evict(row)

    def share(self) -> Share | None:
        distance = self._pairs.mean()
        return of_one_task(None if distance is None else 1.0 - distance, len(self._pairs), self._pairs.left_out)


class TrajectoryMean(TaskMean[Trajectories]):
    """1 − the mean distance over the pairs of a task's successful attempts with a non-empty path, then the mean over tasks.

    Failures are left out: they may differ for reasons of their own. State: integers, for each distinct path and each run. A
    run that comes costs one distance to each distinct path of its task.
    """

    __slots__ = ("_by_status", "_fellows")

    wants = UNDISTURBED | TASK | OUTCOME | PATH

    def __init__(self, settings: Settings = DEFAULTS) -> None:
        super().__init__(settings)
        self._by_status = 0
        self._fellows: Fellows | None = None

    def lend(self, lender: Lender) -> None:
        self._fellows = Fellows(lender, self.takes, lambda row: row.task)

    def add(self, row: Row) -> None:
        super().add(row)
        self._by_status += row.by_status and self.takes(row)

    def evict(self, row: Row) -> None:
        super().evict(row)
        self._by_status -= row.by_status and self.takes(row)

    def read(self) -> Reading:
        return told(super().read(), self._by_status)

    @abstractmethod
    def shares(self, settings: Settings) -> Shares:
        """The distance."""

    def new_task(self, settings: Settings) -> Callable[[], Trajectories]:
        shares = self.shares(settings)
        return lambda: Trajectories(settings.limits.paths, shares, self._fellows)

    def counts(self, row: Row) -> bool:
        return row.success is True and row.path is not None and bool(row.path.code)
