"""Spans that are nobody's work, told apart at a glance: most spans of a host are of web servers and databases.

All that is needed of such a span is its place, since chains of parents run through it.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Final

from opentelemetry.trace import SpanContext

from otel_reliability.conventions.reader import Reader
from otel_reliability.model.span import AgentSpan, Kind, Resource
from otel_reliability.sources.batch import SPAN_ID_BYTES, TRACE_ID_BYTES
from otel_reliability.telemetry.queues import queue

MOST: Final = 4_096
"""Keys, names and scopes of ordinary spans that are remembered, of each so many; a span of others is looked at more closely."""
LONGEST: Final = 256
"""Characters of one that is remembered."""

_NEVER: Final = 2**63
_LAST_TRACE: Final = 2 ** (8 * TRACE_ID_BYTES) - 1
_LAST_SPAN: Final = 2 ** (8 * SPAN_ID_BYTES) - 1
_NOBODY: Final = Resource()
_tuple: Final[Callable[..., Any]] = tuple.__new__  # pyright: ignore[reportUnknownMemberType,reportUnknownVariableType]
"""Makes a named tuple from a tuple, without the call in Python that its class would cost."""


class Ordinary:
    """By what ordinary spans are told, and those that ended.

    A span whose `keys` are all known here, and its name and its scope too, is one of which no convention knows anything, whatever
    its values. It may still carry events, and its links matter where it has no parent.

    `ended` are the ids of such spans. What stood above each was noted when it began, so all that began before `since` (in
    nanoseconds) are looked at more closely. `mark`: so many may have ended before somebody looks around.
    """

    def __init__(self, reader: Reader) -> None:
        self._is_ordinary = reader.is_ordinary
        self.keys: set[str] = set()
        self.names: set[str] = set()
        self.scopes: set[str] = set()
        self.ended: deque[int] = queue()
        self.since = _NEVER
        self.mark = self.latest = 0
        """`latest`: when one of the last ended."""

    def meet(self, scope: str, name: str, keys: Iterable[str]) -> None:
        """A span of whose keys none is wanted, and spans are noted when they begin: the next one like it is told at a glance."""
        if self.since == _NEVER:
            self.since = time.time_ns()
        if self._is_ordinary(scope, name):
            for known, new in ((self.keys, keys), (self.names, (name,)), (self.scopes, (scope,))):
                known.update(one for one in new if len(known) < MOST and len(one) <= LONGEST)


def place(span_id: int, above: SpanContext, end_ns: int) -> AgentSpan | None:
    """An ordinary span with this above it, its parent or itself; None where an id cannot be any span's.

    >>> place(7, SpanContext(5, 7, is_remote=False), 1).parent_id
    >>> place(8, SpanContext(5, 7, is_remote=True), 1).parent_id.hex()
    '0000000000000007'
    """
    trace_id, above_id, remote = above[0], above[1], above[2]
    if not (0 < trace_id <= _LAST_TRACE and 0 < span_id <= _LAST_SPAN and 0 < above_id <= _LAST_SPAN):
        return None
    parent_id = None if above_id == span_id else above_id.to_bytes(SPAN_ID_BYTES)
    return _tuple(
        AgentSpan,
        (
            trace_id.to_bytes(TRACE_ID_BYTES), span_id.to_bytes(SPAN_ID_BYTES), parent_id, remote and parent_id is not None,
            end_ns, end_ns, 0, Kind.OTHER, False, None, "", _NOBODY, None, None, (), None, None, (),
        ),
    )  # fmt: skip
