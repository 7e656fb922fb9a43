"""What makes a request outlive the process: the one seam between the writer and whatever keeps its state.

The writer calls it, and nobody else, from its one thread.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from otel_reliability.service.decoded import Decoded


class Unavailable(Exception):
    """Nothing can be kept now (the disk is full, say): the requests are refused, and their senders come again."""

    def __init__(self, reason: str, detail: str) -> None:
        self.reason, self.detail = reason, detail
        super().__init__(f"{reason}: {detail}")


class Journal(Protocol):
    """Keeps what was acknowledged.

    `keeps_open_runs`: whether runs that are open at shutdown are there again after a start. Where they are not, they are closed.
    `pause`: seconds after `restore` in which no deadline is met, so that spans which could not be sent meanwhile come in time.
    """

    keeps_open_runs: bool
    pause: float

    def restore(self) -> None:
        """Before anything is taken in: bring state back to where it was. May take long; the service is not ready meanwhile."""
        ...

    def commit(self, group: Sequence[Decoded]) -> None:
        """Keep these requests, each as a whole. Only when this returns are they applied and acknowledged.

        Raises `Unavailable` where none of them is kept.
        """
        ...

    def applied(self) -> None:
        """The requests of the last `commit` are applied."""
        ...

    def advancing(self) -> None:
        """Deadlines are about to be met. Raises `Unavailable` where that cannot be kept: then they are not met now."""
        ...

    def advanced(self, now: float) -> None:
        """Deadlines were met and closings applied, up to `now` on the engine's clock: keep what follows from them."""
        ...

    def close(self) -> None:
        """The last thing that is called."""
        ...


class Memory:
    """No journal: what was acknowledged lives as long as the process."""

    keeps_open_runs = False
    pause = 0.0

    def restore(self) -> None:
        """There is nothing to bring back."""

    def commit(self, group: Sequence[Decoded]) -> None:
        """Nothing is kept."""

    def applied(self) -> None:
        """Nothing is kept."""

    def advancing(self) -> None:
        """Nothing is kept."""

    def advanced(self, now: float) -> None:
        """Nothing is kept."""

    def close(self) -> None:
        """Nothing is open."""
