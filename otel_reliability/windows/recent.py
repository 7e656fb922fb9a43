"""The last whole runs of an agent, for the UI."""

from __future__ import annotations

import zlib
from bisect import bisect_left
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

import msgspec

from otel_reliability.model.run import Run
from otel_reliability.windows.row_store import end_in, order_of, run_id_in

_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(Run).decode
_RAW: Final = -15
"""Deflate without a header (`wbits` of zlib)."""


class RecentRuns:
    """The `limit` runs with the greatest (end time, run id), the newest last.

    Final runs are packed, behind their order and without the hashes of arguments and results. In a busy agent newer runs
    replace them before.
    """

    __slots__ = ("_runs", "_sample", "limit")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._runs: list[Run | bytes] = []
        self._sample = b""
        """One run of the agent, whose words others need not repeat (a dictionary of zlib)."""

    def __len__(self) -> int:
        return len(self._runs)

    def __iter__(self) -> Iterator[Run]:
        return iter([one if isinstance(one, Run) else self._unpack(one) for one in self._runs])

    def add(self, run: Run) -> None:
        """Add a run that was closed; it replaces one with the same end and id."""
        at, found = self._find(run.end_ns, run.run_id)
        self._runs[at : at + found] = [run]
        if len(self._runs) > self.limit:
            del self._runs[0]

    def remove(self, end_ns: int, run_id: str) -> None:
        """Remove a run that was withdrawn, or is about to be closed again; do nothing if it is not here."""
        at, found = self._find(end_ns, run_id)
        del self._runs[at : at + found]

    def finalize(self, end_ns: int, run_id: str) -> None:
        """Note that a run is final; do nothing if it is not here."""
        at, found = self._find(end_ns, run_id)
        run = self._runs[at] if found else None
        if isinstance(run, Run):
            with suppress(OverflowError, UnicodeError, TypeError):  # a run with unusual values stays as it is
                self._runs[at] = self._pack(run)

    def _find(self, end_ns: int, run_id: str) -> tuple[int, bool]:
        """Return the index of a run, or where it belongs, and whether it is here."""
        order = order_of(end_ns, run_id)
        at = bisect_left(self._runs, order, key=_order)
        return at, at < len(self._runs) and _order(self._runs[at]).startswith(order)

    def _pack(self, run: Run) -> bytes:
        calls = run.tool_calls
        calls = None if calls is None else tuple([call._replace(arguments=None, result=None) for call in calls])
        plain = _encode(run._replace(run_id="", end_ns=0, tool_calls=calls))
        self._sample = self._sample or plain
        press = zlib.compressobj(wbits=_RAW, zdict=self._sample)
        return _order(run) + press.compress(plain) + press.flush()

    def _unpack(self, record: bytes) -> Run:
        run_id, begin = run_id_in(record)
        run = _decode(zlib.decompressobj(_RAW, self._sample).decompress(record[begin:]))
        return run._replace(run_id=run_id, end_ns=end_in(record))


def _order(kept: Run | bytes) -> bytes:
    """Return the order of a run, or the record of one, which begins with it."""
    return order_of(kept.end_ns, kept.run_id) if isinstance(kept, Run) else kept
