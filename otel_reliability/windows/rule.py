"""Which of an agent's rows are in a window: the last n runs, or of these the ones of the last while, by the runs' own times."""

from __future__ import annotations

from typing import NamedTuple, Protocol


class Ends(Protocol):
    """When runs ended, one after the other."""

    def __len__(self) -> int: ...

    def end_ns(self, at: int) -> int:
        """When one of them ended."""
        ...

    def beyond(self, end_ns: int) -> int:
        """The place of the first that ended later than then."""
        ...


class Rule(NamedTuple):
    """The n runs with the greatest (end time, run id); with a period p, those of them that ended in (T − p, T].

    T is the greatest end time of the agent's runs. Time stands still while no run comes: a window is never emptied by the
    clock. Runs of the window may still be withdrawn, and then others take their places. So below the window rows are kept until
    n settled ones, which cannot go, stand above them; and those from where a window would begin whose T is the greatest end of
    the settled runs, for T falls back no further. So whichever go, what the window holds of the rest is known.
    """

    n: int
    period_ns: int | None = None

    def start(self, rows: Ends) -> int:
        """The index of the first row in the window, of rows sorted by (end time, run id)."""
        number = len(rows)
        begin = max(number - self.n, 0)
        if self.period_ns is None or not number:
            return begin
        return max(begin, rows.beyond(rows.end_ns(number - 1) - self.period_ns))
