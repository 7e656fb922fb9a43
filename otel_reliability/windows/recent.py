"""The last whole runs of an agent, for the UI."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator

from otel_reliability.model.run import Run


class RecentRuns:
    """The `limit` runs with the greatest (end time, run id), the newest last."""

    __slots__ = ("_ids", "_limit", "_runs")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._runs: list[Run] = []
        self._ids: set[str] = set()

    def __len__(self) -> int:
        return len(self._runs)

    def __iter__(self) -> Iterator[Run]:
        return iter(self._runs[:])

    def __contains__(self, run_id: str) -> bool:
        """Return whether a run is among them."""
        return run_id in self._ids

    def add(self, run: Run) -> None:
        """Add a run that was closed."""
        runs = self._runs
        runs.insert(bisect_left(runs, _order(run), key=_order), run)
        self._ids.add(run.run_id)
        if len(runs) > self._limit:
            self._ids.discard(runs.pop(0).run_id)

    def remove(self, run_id: str) -> None:
        """Remove a run that was withdrawn, or is about to be closed again."""
        if run_id in self._ids:
            self._ids.discard(run_id)
            self._runs = [run for run in self._runs if run.run_id != run_id]


def _order(run: Run) -> tuple[int, str]:
    return (run.end_ns, run.run_id)
