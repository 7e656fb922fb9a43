"""The last whole runs of an agent, for the UI."""

from __future__ import annotations

import zlib
from bisect import bisect_left
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

import msgspec

from otel_reliability.model.run import Run
from otel_reliability.windows.run_order import END_BYTES, id_bytes, order_of

_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(Run).decode


class RecentRuns:
    """The `limit` runs with the greatest (end time, run id), the newest last.

    Final runs are packed, without the hashes of arguments and results. In a busy agent newer runs replace them before.
    """

    __slots__ = ("_limit", "_orders", "_runs")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._orders: list[bytes] = []
        self._runs: list[Run | bytes] = []

    def __len__(self) -> int:
        return len(self._runs)

    def __iter__(self) -> Iterator[Run]:
        return iter([run if isinstance(run, Run) else unpacked(run) for run in self._runs])

    def __contains__(self, run_id: str) -> bool:
        """Return whether a run is among them."""
        return self._index(run_id) is not None

    def add(self, run: Run) -> None:
        """Add a run that was closed."""
        order = order_of(run.end_ns, run.run_id)
        at = bisect_left(self._orders, order)
        self._orders.insert(at, order)
        self._runs.insert(at, run)
        if len(self._runs) > self._limit:
            del self._orders[0], self._runs[0]

    def remove(self, run_id: str) -> None:
        """Remove a run that was withdrawn, or is about to be closed again; do nothing if it is not here."""
        at = self._index(run_id)
        if at is not None:
            del self._orders[at], self._runs[at]

    def settle(self, run_id: str) -> None:
        """Note that a run is final; do nothing if it is not here."""
        at = self._index(run_id)
        if at is not None:
            run = self._runs[at]
            with suppress(OverflowError, UnicodeError, TypeError):  # a run with unusual values stays as it is
                self._runs[at] = packed(run) if isinstance(run, Run) else run

    def _index(self, run_id: str) -> int | None:
        wanted = id_bytes(run_id)
        return next((at for at, order in enumerate(self._orders) if order.startswith(wanted, END_BYTES)), None)


def packed(run: Run) -> bytes:
    """Return a run in few bytes, without the hashes of arguments and results.

    >>> from otel_reliability.testing import run
    >>> unpacked(packed(run(["search"]))).path
    ('search',)
    """
    calls = None if run.tool_calls is None else tuple([call._replace(arguments=None, result=None) for call in run.tool_calls])
    return zlib.compress(_encode(run._replace(tool_calls=calls, model_calls=tuple(run.model_calls))), 1)


def unpacked(data: bytes) -> Run:
    """Return the run that `packed` was given."""
    run = _decode(zlib.decompress(data))
    calls = None if run.tool_calls is None else tuple(run.tool_calls)
    return run._replace(tool_calls=calls, model_calls=tuple(run.model_calls))
