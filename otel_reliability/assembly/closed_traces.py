"""The memory of final runs, so that late spans and duplicates open no run: span ids, and little else."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import Final, TypeAlias

from otel_reliability.model.span import AgentSpan, SpanId, TraceId

ID_BYTES: Final = 8
Record: TypeAlias = tuple[float, bytes, bytes, bytes, tuple[str, ...], bool, tuple[AgentSpan, ...]]
"""A trace without open runs: since when (seconds), `ids`, `anchors` and `sealed` of `ClosedIds` joined, names of agents,
whether it had an invocation, and its spans that belong to no run and connect others. A plain tuple costs the garbage collector
nothing.
"""


class ClosedIds:
    """The closed part of a trace of which spans still arrive.

    - `ids`: spans of final runs. `anchors`: what stood in for the roots of final runs (missing parents).
    - `sealed`: ids of either kind of runs that reached the span limit.
    - `agents`: names of the agents of final runs, at most two. `had_invocation`: whether there were any.
    """

    __slots__ = ("agents", "anchors", "had_invocation", "ids", "sealed")

    def __init__(self) -> None:
        self.ids: set[SpanId] = set()
        self.anchors: set[SpanId] = set()
        self.sealed: set[SpanId] = set()
        self.agents: frozenset[str] = frozenset()
        self.had_invocation = False

    def __len__(self) -> int:
        return len(self.ids) + len(self.anchors)


class ClosedTraces:
    """Records of traces, the oldest first. `ids` counts span ids in records and in closed parts of traces of which spans still
    arrive, `spans` the spans kept in records.
    """

    def __init__(self) -> None:
        self._records: OrderedDict[TraceId, Record] = OrderedDict()
        self.ids = self.spans = 0

    def __len__(self) -> int:
        return len(self._records)

    def items(self) -> Iterator[tuple[TraceId, Record]]:
        """All records, the oldest first."""
        yield from self._records.items()

    def has_ids(self, trace_id: TraceId) -> bool:
        """Return whether runs of the trace are final."""
        record = self._records.get(trace_id)
        return record is not None and bool(record[1])

    def get(self, trace_id: TraceId) -> Record | None:
        """Return a record."""
        return self._records.get(trace_id)

    def put(self, trace_id: TraceId, record: Record) -> None:
        """Add a record; the trace has none."""
        self._records[trace_id] = record
        self.ids += (len(record[1]) + len(record[2])) // ID_BYTES
        self.spans += len(record[6])

    def take(self, trace_id: TraceId) -> Record | None:
        """Remove and return a record."""
        record = self._records.pop(trace_id, None)
        if record is not None:
            self._count_out(record)
        return record

    def take_oldest(self, horizon: float | None = None) -> TraceId | None:
        """Remove the oldest record, if it is older than `horizon`, and return its trace."""
        if not self._records:
            return None
        trace_id, record = next(iter(self._records.items()))
        if horizon is not None and record[0] > horizon:
            return None
        del self._records[trace_id]
        self._count_out(record)
        return trace_id

    def _count_out(self, record: Record) -> None:
        self.ids -= (len(record[1]) + len(record[2])) // ID_BYTES
        self.spans -= len(record[6])


def record_of(since: float, closed: ClosedIds) -> Record:
    """Return the record of the closed part of a trace."""
    ids, anchors, sealed = b"".join(closed.ids), b"".join(closed.anchors), b"".join(closed.sealed)
    return (since, ids, anchors, sealed, tuple(sorted(closed.agents)), closed.had_invocation, ())


def reopened(record: Record) -> ClosedIds | None:
    """Return the closed part of a trace, None if nothing of it is final."""
    _, ids, anchors, sealed, agents, had_invocation, _ = record
    if not ids and not anchors:
        return None
    closed = ClosedIds()
    closed.ids, closed.anchors, closed.sealed = _split(ids), _split(anchors), _split(sealed)
    closed.agents, closed.had_invocation = frozenset(agents), had_invocation
    return closed


def _split(joined: bytes) -> set[SpanId]:
    return {joined[at : at + ID_BYTES] for at in range(0, len(joined), ID_BYTES)}
