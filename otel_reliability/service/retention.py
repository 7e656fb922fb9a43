"""Which final runs of an agent are stored: those that its windows and the list of recent runs need."""

from __future__ import annotations

from typing import Final, NamedTuple

from otel_reliability.config import Settings

MIN_RECENT_RUNS: Final = 200
"""Runs stored an agent, whatever its windows hold: the user interface lists them."""


class Retention(NamedTuple):
    """Which final runs of an agent are stored: the last `last`, and those that ended in the last `period_ns` nanoseconds."""

    last: int
    period_ns: int | None

    @classmethod
    def of(cls, settings: Settings) -> Retention:
        """Return what the widest windows, and the list of recent runs, need."""
        lasts = [window.last for window in settings.windows if window.last is not None]
        periods = [window.period for window in settings.windows if window.period is not None and window.last is None]
        last = max(MIN_RECENT_RUNS, settings.limits.recent_runs, *lasts)
        return cls(min(last, settings.limits.rows), round(max(periods) * 1e9) if periods else None)

    def oldest_end(self, newest: int, last: int) -> int:
        """Return the end (ns) before which no run is stored, from the ends of the newest run and of the one at rank `last`."""
        return last if self.period_ns is None else min(last, newest - self.period_ns)
