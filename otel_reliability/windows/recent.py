"""The last whole runs of an agent, for pages."""

from __future__ import annotations

import marshal
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Final, NamedTuple, TypeAlias

from otel_reliability.model.record import BadRecord, read_run, write_run
from otel_reliability.model.run import Run
from otel_reliability.windows.ids import SIZE, Ids
from otel_reliability.windows.recent_codec import RunCodec

_END: Final = 16
"""Bytes of the end of a run: a recording may say whatever it likes."""
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


Kept: TypeAlias = Run | Packed | bytes
"""A run that may change, one that was read back, or one that will not change: its id, its end, and what a codec wrote of it."""


class RecentRuns:
    """The `limit` runs with the greatest (end time, run id), the newest last."""

    __slots__ = ("_codec", "_ids", "_limit", "_loose", "_runs")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._runs: list[Kept] = []
        self._loose: set[str] = set()
        """The ids of those that are no bytes."""
        self._codec = RunCodec()
        self._ids = Ids()

    def __len__(self) -> int:
        return len(self._runs)

    def __iter__(self) -> Iterator[Run]:
        for kept in self._runs:
            if isinstance(kept, Packed):
                with suppress(BadRecord):  # one that another version wrote, and this one cannot read
                    yield kept.run()
            else:
                yield self._whole(kept) if isinstance(kept, bytes) else kept

    def add(self, run: Run) -> None:
        """A run was closed."""
        runs, place = self._runs, (run.end_ns, run.run_id)
        at = len(runs)
        while at and self._order(runs[at - 1]) > place:
            at -= 1
        runs.insert(at, run)
        self._loose.add(run.run_id)
        while len(runs) > self._limit:
            self._let_go(0)

    def remove(self, run_id: str) -> None:
        """A run was withdrawn, or is about to come anew."""
        at = self._find(run_id)
        if at is not None:
            self._let_go(at)

    def settle(self, run_id: str) -> None:
        """A run will not change any more. (In a busy agent newer ones have taken its place by then.)"""
        at = self._find(run_id)
        if at is not None:
            run = self._runs[at]
            if isinstance(run, Run):
                self._runs[at] = self._squeezed(run)
                self._forget(run_id)

    def to_state(self) -> list[tuple[int, str, bytes]]:
        """The runs in plain values."""
        whole = (self._whole(kept) if isinstance(kept, bytes) else kept for kept in self._runs)
        packed = (kept if isinstance(kept, Packed) else pack(kept) for kept in whole)
        return [(one.end_ns, one.run_id, one.body) for one in packed]

    def restore(self, state: Iterable[tuple[int, str, bytes]]) -> None:
        """Take over what `to_state` wrote."""
        packed = [Packed(*plain) for plain in state][-self._limit or None :]
        self._runs[:] = packed
        self._loose.update([one.run_id for one in packed])

    def _squeezed(self, run: Run) -> bytes:
        return self._ids.pack(run.run_id) + run.end_ns.to_bytes(_END, "big", signed=True) + self._codec.write(run)

    def _whole(self, kept: bytes) -> Run:
        end_ns, run_id = self._order(kept)
        return self._codec.read(kept[SIZE + _END :], run_id, end_ns)

    def _order(self, kept: Kept) -> tuple[int, str]:
        """What runs are sorted by."""
        if isinstance(kept, bytes):
            return int.from_bytes(kept[SIZE : SIZE + _END], "big", signed=True), self._ids.unpack(kept[:SIZE])
        return (kept.end_ns, kept.run_id)

    def _find(self, run_id: str) -> int | None:
        runs = self._runs
        if run_id in self._loose:
            return next(at for at, kept in enumerate(runs) if not isinstance(kept, bytes) and kept.run_id == run_id)
        if len(self._loose) == len(runs):
            return None
        known_as = Ids.known_as(run_id)
        return next((at for at, kept in enumerate(runs) if isinstance(kept, bytes) and kept[:SIZE] == known_as), None)

    def _let_go(self, at: int) -> None:
        gone = self._runs.pop(at)
        if isinstance(gone, bytes):
            self._ids.release(gone[:SIZE])
        else:
            self._forget(gone.run_id)

    def _forget(self, run_id: str) -> None:
        self._loose.discard(run_id)
        if not self._loose:
            self._loose.clear()  # gives back the room that many took
