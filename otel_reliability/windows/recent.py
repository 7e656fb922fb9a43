"""The last whole runs of an agent, for pages."""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterator

from otel_reliability.model.run import Run


class RecentRuns:
    """The `limit` runs with the greatest (end time, run id), the newest last."""

    __slots__ = ("_limit", "_runs")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._runs: list[Run] = []

    def __len__(self) -> int:
        return len(self._runs)

    def __iter__(self) -> Iterator[Run]:
        return iter(self._runs)

    def add(self, run: Run) -> None:
        """A run was closed."""
        insort(self._runs, run, key=order)
        del self._runs[: -self._limit or None]

    def remove(self, run_id: str) -> None:
        """A run was withdrawn, or is about to come anew."""
        for at, run in enumerate(self._runs):
            if run.run_id == run_id:
                del self._runs[at]
                return


def order(run: Run) -> tuple[int, str]:
    """What runs are sorted by."""
    return (run.end_ns, run.run_id)
