"""The last n runs."""

from __future__ import annotations

from typing import NamedTuple

from otel_reliability.windows.base import Ends


class LastRuns(NamedTuple):
    """The n runs with the greatest (end time, run id).

    Below them as many settled runs are kept as runs of the window may still be withdrawn: then the next one takes the place.
    So whichever go, the n greatest of the rest are known.
    """

    n: int

    def start(self, rows: Ends) -> int:
        return len(rows) - self.n

    def is_spent(self, end_ns: int, settled: int, settled_ns: int | None) -> bool:
        return settled >= self.n
