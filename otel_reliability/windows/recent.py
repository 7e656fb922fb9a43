"""The last whole runs of an agent, for pages."""

from __future__ import annotations

import marshal
from bisect import insort
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Final, NamedTuple, TypeAlias

from otel_reliability.model.record import BadRecord, read_run, write_run
from otel_reliability.model.run import Run

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


Kept: TypeAlias = Run | Packed


class RecentRuns:
    """The `limit` runs with the greatest (end time, run id), the newest last."""

    __slots__ = ("_limit", "_runs")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._runs: list[Kept] = []

    def __len__(self) -> int:
        return len(self._runs)

    def __iter__(self) -> Iterator[Run]:
        for kept in self._runs:
            if isinstance(kept, Packed):
                with suppress(BadRecord):  # one that another version wrote, and this one cannot read
                    yield kept.run()
            else:
                yield kept

    def add(self, run: Run) -> None:
        """A run was closed."""
        insort(self._runs, run, key=order)
        del self._runs[: -self._limit or None]

    def remove(self, run_id: str) -> None:
        """A run was withdrawn, or is about to come anew."""
        for at, run in enumerate(self._runs):
            if run.run_id == run_id:
                del self._runs[at]
                return

    def to_state(self) -> list[tuple[int, str, bytes]]:
        """The runs in plain values."""
        packed = (kept if isinstance(kept, Packed) else pack(kept) for kept in self._runs)
        return [(one.end_ns, one.run_id, one.body) for one in packed]

    def restore(self, state: Iterable[tuple[int, str, bytes]]) -> None:
        """Take over what `to_state` wrote."""
        self._runs[:] = [Packed(*plain) for plain in state][-self._limit or None :]


def order(run: Kept) -> tuple[int, str]:
    """What runs are sorted by."""
    return (run.end_ns, run.run_id)
