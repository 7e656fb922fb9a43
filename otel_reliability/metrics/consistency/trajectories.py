"""Pairs of the successful attempts at a task."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable

from otel_reliability.config import Settings
from otel_reliability.metrics._support.groups import Share, TaskMean
from otel_reliability.metrics._support.outcomes import noted
from otel_reliability.metrics._support.pairs import Distances, LatestPairs, path_code
from otel_reliability.metrics.base import DEFAULTS
from otel_reliability.metrics.data import OUTCOME, PATH, TASK, UNDISTURBED
from otel_reliability.model.reading import Reading
from otel_reliability.model.row import Row


class Trajectories(LatestPairs[str]):
    """The pairs of one task's attempts that count; every task weighs the same."""

    __slots__ = ()

    def share(self) -> Share | None:
        share = super().share()
        return None if share is None else share._replace(weight=1)


class TrajectoryMean(TaskMean[Trajectories]):
    """1 − the mean distance over the pairs of a task's successful attempts with a non-empty path, then the mean over tasks.

    Failures are left out: they may differ for reasons of their own.
    """

    __slots__ = ("_by_status",)

    requires = UNDISTURBED | TASK | OUTCOME | PATH

    def __init__(self, settings: Settings = DEFAULTS) -> None:
        super().__init__(settings)
        self._by_status = 0

    def add(self, row: Row) -> None:
        super().add(row)
        self._by_status += row.by_status and self.counts(row)

    def evict(self, row: Row) -> None:
        super().evict(row)
        self._by_status -= row.by_status and self.counts(row)

    def value(self) -> Reading:
        return noted(super().value(), self._by_status)

    @abstractmethod
    def distances(self, settings: Settings) -> Distances[str]:
        """Return the distance of two paths."""

    def new_group(self, settings: Settings) -> Callable[[], Trajectories]:
        distances = self.distances(settings)
        return lambda: Trajectories(settings.limits.paths, distances, path_code, self.rows_with())

    def counts(self, row: Row) -> bool:
        return row.success is True and row.path is not None and bool(row.path.code) and super().counts(row)
