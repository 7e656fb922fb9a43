"""The last whole runs of an agent, for pages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress

from otel_reliability.model.record import Damaged
from otel_reliability.model.run import Run
from otel_reliability.windows.recent_record import Kept, Packed, pack
from otel_reliability.windows.recent_settled import SettledRuns


class RecentRuns:
    """The `limit` runs with the greatest (end time, run id), the newest last.

    Those that will not change any more take little room. A busy agent has none: newer ones take their place before.
    """

    __slots__ = ("_ids", "_limit", "_loose", "_settled")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._loose: list[Kept] = []
        """In order, those that have not settled, and those that cannot be kept otherwise: of too large numbers, or not plain."""
        self._ids: set[str] | None = None
        """Their ids."""
        self._settled: SettledRuns | None = None

    def __len__(self) -> int:
        return len(self._loose) + (0 if self._settled is None else len(self._settled))

    def __iter__(self) -> Iterator[Run]:
        every = [_whole(kept) for kept in self._every()]
        return iter([run for run in every if run is not None])

    def __contains__(self, run_id: str) -> bool:
        """Whether a run is among them."""
        known = self._ids
        return (known is not None and run_id in known) or (self._settled is not None and run_id in self._settled)

    def add(self, run: Run) -> None:
        """A run was closed."""
        loose, end_ns = self._loose, run.end_ns
        at = len(loose)
        if at and loose[-1].end_ns >= end_ns:
            place = (end_ns, run.run_id)
            while at and _order(loose[at - 1]) > place:
                at -= 1
        loose.insert(at, run)
        if self._ids is None:
            self._ids = set()
        self._ids.add(run.run_id)
        while len(loose) + (0 if self._settled is None else len(self._settled)) > self._limit:
            self._drop_first()

    def remove(self, run_id: str) -> None:
        """A run was withdrawn, or is about to come anew."""
        if self._ids is not None and run_id in self._ids:
            self._let_go(self._place(run_id))
        elif self._settled is not None:
            self._settled.remove(run_id)

    def settle(self, run_id: str) -> None:
        """A run will not change any more. (In a busy agent newer ones have taken its place by then.)"""
        if self._ids is None or run_id not in self._ids:
            return
        at = self._place(run_id)
        run = self._loose[at]
        if isinstance(run, Run):
            if self._settled is None:
                self._settled = SettledRuns()
            with suppress(OverflowError, ValueError):
                self._settled.add(run)
                self._let_go(at)

    def to_state(self) -> list[tuple[int, str, bytes]]:
        """The runs in plain values."""
        packed = (kept if isinstance(kept, Packed) else pack(kept) for kept in self._every())
        return [(one.end_ns, one.run_id, one.body) for one in packed]

    def restore(self, state: Iterable[tuple[int, str, bytes]]) -> None:
        """Take over what `to_state` wrote. (Most will not change any more, and those that will can be withdrawn all the same.)"""
        settled = self._settled = SettledRuns()
        self._loose[:] = settled.restore([Packed(*plain) for plain in state][-self._limit or None :])
        self._ids = {one.run_id for one in self._loose} or None

    def _every(self) -> list[Kept]:
        """All of them, in order."""
        return self._loose if self._settled is None else sorted([*self._loose, *self._settled], key=_order)

    def _place(self, run_id: str) -> int:
        return next(at for at, kept in enumerate(self._loose) if kept.run_id == run_id)

    def _drop_first(self) -> None:
        first = None if self._settled is None else self._settled.earliest()
        if self._settled is None or first is None or (self._loose and _order(self._loose[0]) < first):
            self._let_go(0)
        else:
            self._settled.remove(first[1])

    def _let_go(self, at: int) -> None:
        gone = self._loose.pop(at)
        if self._ids is not None:
            self._ids.discard(gone.run_id)
            self._ids = self._ids or None  # gives back the room that many took


def _order(kept: Kept) -> tuple[int, str]:
    """What runs are sorted by."""
    return (kept.end_ns, kept.run_id)


def _whole(kept: Kept) -> Run | None:
    """The run; None for one that another version wrote, and this one cannot read."""
    if isinstance(kept, Run):
        return kept
    with suppress(Damaged):
        return kept.run()
    return None
