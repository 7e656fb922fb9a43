"""What a window's rule answers, and who listens to a roster."""

from __future__ import annotations

from typing import Protocol

from otel_reliability.model.row import Row


class Ends(Protocol):
    """When runs ended, one after the other."""

    def __len__(self) -> int: ...

    def end_ns(self, at: int) -> int:
        """When one of them ended."""
        ...

    def beyond(self, end_ns: int) -> int:
        """The place of the first that ended later than then."""
        ...


class Rule(Protocol):
    """Which of an agent's rows, sorted by (end, run id), are in the window: always those from some index on."""

    def start(self, rows: Ends) -> int:
        """The index of the first row in the window (0 or less: all of them)."""
        ...

    def is_spent(self, end_ns: int, settled: int, settled_ns: int | None) -> bool:
        """Whether the lowest row, which ended then, can never come into the window again.

        `settled` is how many rows above it will not change or go any more, `settled_ns` the greatest end time among the
        settled runs, None while there is none.
        """
        ...


class Listener(Protocol):
    """Whoever is told what happens to rows: they enter the window, leave it, and are let go of."""

    def add(self, row: Row) -> None:
        """The row counts from now on."""
        ...

    def evict(self, row: Row) -> None:
        """The row, which was added, counts no more."""
        ...

    def drop(self, row: Row) -> None:
        """The row, which counts no more or never did, is forgotten."""
        ...
