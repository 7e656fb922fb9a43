"""The last whole runs of an agent, for pages."""

from __future__ import annotations

import marshal
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Final, NamedTuple, TypeAlias

from otel_reliability.model.record import BadRecord, read_run, write_run
from otel_reliability.model.run import Run
from otel_reliability.windows.recent_settled import SettledRuns

_FORMAT: Final = 4
"""Of `marshal`: every supported Python reads it."""


class Packed(NamedTuple):
    """A run that was read back and that nobody has asked for yet."""

    end_ns: int
    run_id: str
    body: bytes

    def run(self) -> Run:
        """The run itself. Raises `BadRecord`."""
        return read_run(marshal.loads(self.body))  # noqa: S302 (whoever keeps it checks that we wrote it)


def pack(run: Run) -> Packed:
    """A run as it is kept over a restart.

    >>> from otel_reliability.testing import run
    >>> pack(run(["search"])).run().path
    ('search',)
    """
    return Packed(run.end_ns, run.run_id, marshal.dumps(write_run(run), _FORMAT))


Loose: TypeAlias = Run | Packed
"""A run that may change, or one that was read back."""


class RecentRuns:
    """The `limit` runs with the greatest (end time, run id), the newest last.

    Those that will not change any more take little room. A busy agent has none: newer ones take their place before.
    """

    __slots__ = ("_ids", "_limit", "_loose", "_settled")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._loose: list[Loose] = []
        """In order, those that have not settled, and those whose numbers are too large to be kept otherwise."""
        self._ids: set[str] | None = None
        """Their ids."""
        self._settled: SettledRuns | None = None

    def __len__(self) -> int:
        return len(self._loose) + (0 if self._settled is None else len(self._settled))

    def __iter__(self) -> Iterator[Run]:
        loose = (_whole(kept) for kept in self._loose)
        known = [run for run in loose if run is not None]
        return iter(known if self._settled is None else sorted([*known, *self._settled], key=_order))

    def add(self, run: Run) -> None:
        """A run was closed."""
        loose, place = self._loose, (run.end_ns, run.run_id)
        at = len(loose)
        while at and _order(loose[at - 1]) > place:
            at -= 1
        loose.insert(at, run)
        if self._ids is None:
            self._ids = set()
        self._ids.add(run.run_id)
        while len(self) > self._limit:
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
            with suppress(OverflowError):
                self._settled.add(run)
                self._let_go(at)

    def to_state(self) -> list[tuple[int, str, bytes]]:
        """The runs in plain values."""
        every: list[Loose] = [*self._loose, *(() if self._settled is None else self._settled)]
        packed = (kept if isinstance(kept, Packed) else pack(kept) for kept in sorted(every, key=_order))
        return [(one.end_ns, one.run_id, one.body) for one in packed]

    def restore(self, state: Iterable[tuple[int, str, bytes]]) -> None:
        """Take over what `to_state` wrote."""
        self._loose[:] = [Packed(*plain) for plain in state][-self._limit or None :]
        self._ids = {one.run_id for one in self._loose} or None

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


def _order(kept: Loose) -> tuple[int, str]:
    """What runs are sorted by."""
    return (kept.end_ns, kept.run_id)


def _whole(kept: Loose) -> Run | None:
    """The run; None for one that another version wrote, and this one cannot read."""
    if isinstance(kept, Run):
        return kept
    with suppress(BadRecord):
        return kept.run()
    return None
