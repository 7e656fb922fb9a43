"""Which final runs of an agent are stored: those that its windows and the list of recent runs need."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from otel_reliability.config import Settings
from otel_reliability.service.store import Statement

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

    def surplus(self, ends: Mapping[int, int]) -> list[int]:
        """Return the keys of the other runs of an agent, from the ends of all of them, once they are a quarter more."""
        if len(ends) <= self.last + self.last // 4:
            return []
        newest = sorted(ends.values(), reverse=True)
        least = (
            newest[self.last - 1] if self.period_ns is None else min(newest[self.last - 1], newest[0] - self.period_ns)
        )
        return [key for key, end in ends.items() if end < least]

    def statements(self, agents: Iterable[int]) -> Iterator[Statement]:
        """Yield what deletes the others."""
        period = math.inf if self.period_ns is None else self.period_ns
        yield (
            """
            DELETE FROM run WHERE agent = ?1 AND end_ns < min(
                (SELECT end_ns FROM run WHERE agent = ?1 ORDER BY end_ns DESC, run_id DESC LIMIT 1 OFFSET ?2),
                (SELECT CASE WHEN ?3 > 9e18 THEN 9223372036854775807 ELSE max(end_ns) - ?3 END FROM run WHERE agent = ?1)
            )
            """,
            [(agent, self.last, period) for agent in dict.fromkeys(agents)],
        )
