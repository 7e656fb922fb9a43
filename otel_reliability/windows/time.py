"""The runs of the last while, by the runs' own times."""

from __future__ import annotations

from typing import Final, NamedTuple

from otel_reliability.model.run import Run
from otel_reliability.windows.base import Ends

AHEAD_NS: Final = 300 * 10**9
"""How far a run's end may lie ahead of the clock in live doors: clocks differ, but not by more than five minutes."""


class Period(NamedTuple):
    """The runs that ended in (T − p, T], T the greatest end time of the agent's runs.

    Time stands still while no run comes: a window is never emptied by the clock. The run that sets T may be withdrawn while
    it is reopenable; then T falls back, at most to the greatest end of the settled runs, so rows are kept from there.
    """

    period_ns: int

    def start(self, rows: Ends) -> int:
        number = len(rows)
        return rows.beyond(rows.end_ns(number - 1) - self.period_ns) if number else 0

    def is_spent(self, end_ns: int, settled: int, settled_ns: int | None) -> bool:
        return settled_ns is not None and end_ns <= settled_ns - self.period_ns


def clamped(run: Run, wall_ns: int) -> Run:
    """The run as a live door lets it in: it ends at most five minutes after now.

    One stamp from a clock that leapt ahead would else push every other run out of a window by time.
    """
    latest = wall_ns + AHEAD_NS
    return run if run.end_ns <= latest else run._replace(start_ns=min(run.start_ns, latest), end_ns=latest)
