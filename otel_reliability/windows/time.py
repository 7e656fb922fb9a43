"""Runs whose times lie ahead of the clock."""

from __future__ import annotations

from typing import Final

from otel_reliability.model.run import Run

AHEAD_NS: Final = 300 * 10**9
"""Limit for a run's end ahead of the clock in live modes: clocks differ, but not by more than five minutes."""


def clamped(run: Run, wall_ns: int) -> Run:
    """Return the run as a live entry point accepts it: it ends at most five minutes after now.

    One stamp from a clock that leapt ahead would else push every other run out of a window by time.
    """
    latest = wall_ns + AHEAD_NS
    return run if run.end_ns <= latest else run._replace(start_ns=min(run.start_ns, latest), end_ns=latest)
