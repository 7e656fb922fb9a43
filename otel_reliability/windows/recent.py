"""The last whole runs of an agent, for the UI."""

from __future__ import annotations

import zlib
from bisect import bisect_left
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

import msgspec

from otel_reliability.model.run import Run
from otel_reliability.windows.run_order import end_in, order_of, run_id_in

_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(Run).decode
_LEVEL: Final = 1
_RAW: Final = -15
"""Deflate without a header (`wbits` of zlib)."""


class RecentRuns:
    """The `limit` runs with the greatest (end time, run id), the newest last.

    Final runs are packed, without the hashes of arguments and results. In a busy agent newer runs replace them before.
    """

    __slots__ = ("_limit", "_orders", "_runs", "_sample")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._orders: list[bytes] = []
        self._runs: list[Run | bytes] = []
        self._sample = b""
        """One run of the agent, whose words others need not repeat (a dictionary of zlib)."""

    def __len__(self) -> int:
        return len(self._runs)

    def __iter__(self) -> Iterator[Run]:
        return iter([self._unpack(*one) for one in zip(self._orders, self._runs, strict=True)])

    def add(self, run: Run) -> None:
        """Add a run that was closed, in the place of one with the same end and id."""
        order = order_of(run.end_ns, run.run_id)
        at = bisect_left(self._orders, order)
        if self._orders[at : at + 1] == [order]:
            self._runs[at] = run
            return
        self._orders.insert(at, order)
        self._runs.insert(at, run)
        if len(self._runs) > self._limit:
            del self._orders[0], self._runs[0]

    def remove(self, end_ns: int, run_id: str) -> None:
        """Remove a run that was withdrawn, or is about to be closed again; do nothing if it is not here."""
        at = self._index(end_ns, run_id)
        if at is not None:
            del self._orders[at], self._runs[at]

    def finalize(self, end_ns: int, run_id: str) -> None:
        """Note that a run is final; do nothing if it is not here."""
        at = self._index(end_ns, run_id)
        run = None if at is None else self._runs[at]
        if at is not None and isinstance(run, Run):
            with suppress(OverflowError, UnicodeError, TypeError):  # a run with unusual values stays as it is
                self._runs[at] = self._pack(run)

    def _index(self, end_ns: int, run_id: str) -> int | None:
        order = order_of(end_ns, run_id)
        at = bisect_left(self._orders, order)
        return at if self._orders[at : at + 1] == [order] else None

    def _pack(self, run: Run) -> bytes:
        calls = run.tool_calls
        calls = None if calls is None else tuple([call._replace(arguments=None, result=None) for call in calls])
        plain = _encode(run._replace(run_id="", end_ns=0, tool_calls=calls, model_calls=tuple(run.model_calls)))
        self._sample = self._sample or plain
        press = zlib.compressobj(_LEVEL, wbits=_RAW, zdict=self._sample)
        return press.compress(plain) + press.flush()

    def _unpack(self, order: bytes, kept: Run | bytes) -> Run:
        if isinstance(kept, Run):
            return kept
        run = _decode(zlib.decompressobj(_RAW, self._sample).decompress(kept))
        calls = None if run.tool_calls is None else tuple(run.tool_calls)
        (run_id, _), end_ns = run_id_in(order), end_in(order)
        return run._replace(run_id=run_id, end_ns=end_ns, tool_calls=calls, model_calls=tuple(run.model_calls))
