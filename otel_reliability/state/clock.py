"""The time by which the service's state goes: it can be stopped, and goes on after a restart where
it was.

What a request or a deadline changes depends on when it came. So that a journal can repeat it
exactly, time stands still for the writer while it applies one entry, at the moment that was written
down with it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import NamedTuple


class Moment(NamedTuple):
    """Seconds of the engine's clock, and Unix nanoseconds."""

    now: float
    wall_ns: int


class Clock:
    """A clock over those of the machine. Call it for seconds, ask `wall` for the Unix time.

    >>> clock = Clock(lambda: 7.0, lambda: 10**18)
    >>> clock.resume(100.0)
    >>> clock.hold(Moment(3.0, 5))
    >>> clock(), clock.wall()
    (3.0, 5)
    >>> clock.release()
    >>> clock(), clock.wall()
    (100.0, 1000000000000000000)
    """

    def __init__(self, seconds: Callable[[], float], wall: Callable[[], int]) -> None:
        self._seconds = seconds
        self._wall = wall
        self._ahead = 0.0
        self._held: Moment | None = None
        self._holder = 0

    def __call__(self) -> float:
        """Seconds, for deadlines."""
        held = self._mine()
        return self._seconds() + self._ahead if held is None else held.now

    def wall(self) -> int:
        """The Unix time in nanoseconds."""
        held = self._mine()
        return self._wall() if held is None else held.wall_ns

    def moment(self) -> Moment:
        return Moment(self(), self.wall())

    def resume(self, now: float) -> None:
        """Go on from here: the time since then does not count."""
        self._ahead = now - self._seconds()

    def hold(self, moment: Moment) -> None:
        """Stand still at this moment, for the thread that asks, until `release`."""
        self._holder = threading.get_ident()
        self._held = moment

    def release(self) -> None:
        self._held = None

    def _mine(self) -> Moment | None:
        held = self._held
        return held if held is not None and self._holder == threading.get_ident() else None
