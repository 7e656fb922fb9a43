"""pass@k and pass^k over a window: one reading for each k that every task can bear."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Final

from otel_reliability.metrics._support.outcomes import Shape, TaskOutcomes, mean_over_tasks
from otel_reliability.model.reading import NO_EVIDENCE, Reading

LARGEST_K: Final = 8
EMITTED_K: Final = (1, 2, 4, 8)
"""The k that become series; reports show them all."""


class PassSeries(TaskOutcomes):
    """The mean over tasks of an estimate for k attempts, k = 1 … min(least attempts of a task, 8).

    Where no run names a task, the window is taken as attempts at one. State: two integers a task; reading costs as many steps
    as tasks have different (attempts, passes), for each k.
    """

    __slots__ = ()

    @abstractmethod
    def estimate(self, passed: int, runs: int, k: int) -> float:
        """The estimate of one task."""

    def by_k(self) -> dict[int, Reading]:
        """The reading for each k, from 1 on."""
        shapes = self.attempted()
        least = min((runs for runs, _ in shapes), default=0)
        return {k: self.told(self._at(shapes, k)) for k in range(1, min(least, LARGEST_K) + 1)}

    def read(self) -> Reading:
        """The reading at the greatest k there is; its note names it."""
        shapes = self.attempted()
        k = min((*(runs for runs, _ in shapes), LARGEST_K))
        return self.told(self._at(shapes, k)._replace(note=f"k = {k}")) if shapes else NO_EVIDENCE

    def series(self) -> tuple[tuple[tuple[tuple[str, str], ...], Reading], ...]:
        found = self.by_k()
        return tuple(((("k", str(k)),), found[k]) for k in EMITTED_K if k in found)

    def _at(self, shapes: Mapping[Shape, int], k: int) -> Reading:
        return mean_over_tasks(shapes, lambda passed, runs: self.estimate(passed, runs, k))
