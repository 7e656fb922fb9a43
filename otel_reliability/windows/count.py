"""The last n runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from otel_reliability.model.row import Row


class LastRuns(NamedTuple):
    """The n runs with the greatest (end time, run id).

    As many runs below them are kept as runs of the window may still go: then one of these takes the place. (More are not
    needed, for each run of the window can go once.)
    """

    n: int

    def start(self, rows: Sequence[Row]) -> int:
        return len(rows) - self.n

    def floor(self, rows: Sequence[Row], reopenable: int, settled_ns: int | None) -> int:
        return len(rows) - self.n - reopenable
