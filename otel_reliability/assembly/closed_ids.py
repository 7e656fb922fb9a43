"""The memory of final runs, by which duplicates and late spans are recognized: span ids, and little
else.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from struct import Struct
from typing import Final, TypeAlias

import msgspec
from msgspec.msgpack import Decoder, Encoder

from otel_reliability.assembly.accounts import DUPLICATE, LATE, SEALED, Account
from otel_reliability.assembly.span_tree import REF, is_kept, parent_ref
from otel_reliability.model.run import Run
from otel_reliability.model.span import (
    BY_TIME,
    INVOCATIONS,
    AgentSpan,
    InvocationFacts,
    Kind,
    SpanId,
    SpanRef,
    TraceId,
)

RUN_KEYS: Final = b"run.key"
"""Begins the id of the trace that stands for a value of `run.key`, and with it the anchor of its
run.
"""
ID_BYTES: Final = 8
TABLE: Final = 65_536
"""Traces whose records lie in one table."""
_UTF8: Final = ("utf-8", "surrogatepass")
_MAX_NAMES: Final = 2
"""Names of agents that are remembered: more make no difference."""
_AGENT: Final = Kind.AGENT
_TRACE: Final[Callable[[AgentSpan], TraceId]] = itemgetter(0)
_ID: Final[Callable[[AgentSpan], SpanId]] = itemgetter(1)
Record: TypeAlias = tuple[bytes, Sequence[AgentSpan]]
"""A trace without open runs: what `ClosedIds.packed` returned, and its spans that belong to no run
and connect others.
"""
_HEAD: Final = Struct("<dI")
"""Head of packed ids: since when (seconds), and their number. A record is forgotten by these alone.
"""
_encode: Final = Encoder().encode
_decode: Final = Decoder(tuple[bytes, bytes, bytes, tuple[bytes, ...], bool]).decode


class ClosedIds(msgspec.Struct, eq=False):
    """The final runs of a trace of which spans still arrive.

    - `ids`: their spans. `anchors`: what stood in for their roots (missing parents).
    - `sealed`: ids of either kind of runs that reached the span limit.
    - `agents`: names of their agents, at most two. `had_invocation`: whether any had a root.
    """

    ids: set[SpanId] = set()
    anchors: set[SpanId] = set()
    sealed: set[SpanId] = set()
    agents: frozenset[str] = frozenset()
    had_invocation: bool = False

    def __len__(self) -> int:
        return len(self.ids) + len(self.anchors)

    def packed(self, since: float) -> bytes:
        """Return all of it as bytes, which take less memory than objects: there are hundreds of
        thousands.
        """
        ids = b"".join(self.ids)
        anchors = b"".join(self.anchors)
        sealed = b"".join(self.sealed)
        names = sorted([name.encode(*_UTF8) for name in self.agents])
        return _HEAD.pack(since, len(self)) + _encode(
            (ids, anchors, sealed, names, self.had_invocation)
        )

    @classmethod
    def unpacked(cls, packed: bytes) -> ClosedIds:
        """Return what `packed` made these bytes of."""
        ids, anchors, sealed, names, had_invocation = _decode(memoryview(packed)[_HEAD.size :])
        agents = frozenset([name.decode(*_UTF8) for name in names])
        return cls(_split(ids), _split(anchors), _split(sealed), agents, had_invocation)


def _split(joined: bytes) -> set[SpanId]:
    return {joined[at : at + ID_BYTES] for at in range(0, len(joined), ID_BYTES)}


def since_of(record: Record) -> float:
    """Return since when a trace is without open runs, in seconds."""
    return _HEAD.unpack_from(record[0])[0]


class ClosedTraces:
    """Records of traces, the oldest first. `ids` counts span ids in records and in closed parts of
    traces of which spans still arrive, `spans` the spans kept in records.

    Records lie in tables of a bounded size: one of all would take twenty megabytes each time that
    it is copied.
    """

    def __init__(self) -> None:
        self.ids = self.spans = 0
        self._tables: deque[OrderedDict[TraceId, bytes]] = deque([OrderedDict()])
        self._connecting: dict[TraceId, Sequence[AgentSpan]] = {}

    def get(self, trace_id: TraceId) -> Record | None:
        for table in self._tables:
            if trace_id in table:
                return table[trace_id], self._connecting.get(trace_id, ())
        return None

    def has_ids(self, trace_id: TraceId) -> bool:
        record = self.get(trace_id)
        return record is not None and bool(_decode(memoryview(record[0])[_HEAD.size :])[0])

    def put(self, trace_id: TraceId, record: Record) -> None:
        """Add a record; the trace has none."""
        if len(self._tables[-1]) >= TABLE:
            self._tables.append(OrderedDict())
        self._tables[-1][trace_id], connecting = record
        self.ids += _HEAD.unpack_from(record[0])[1]
        if connecting:
            self._connecting[trace_id] = connecting
            self.spans += len(connecting)

    def take(self, trace_id: TraceId) -> Record | None:
        """Remove a record and return it."""
        record = self.get(trace_id)
        if record is not None:
            self._drop(trace_id)
        return record

    def take_oldest(self, horizon: float) -> TraceId | None:
        """Remove the oldest record, unless it is newer than `horizon`, and return its trace."""
        while not self._tables[0] and len(self._tables) > 1:
            self._tables.popleft()
        trace_id = next(iter(self._tables[0]), None)
        if trace_id is None or _HEAD.unpack_from(self._tables[0][trace_id])[0] > horizon:
            return None
        self._drop(trace_id)
        return trace_id

    def _drop(self, trace_id: TraceId) -> None:
        table = next(table for table in self._tables if trace_id in table)
        self.ids -= _HEAD.unpack_from(table.pop(trace_id))[1]
        if self._connecting:
            self.spans -= len(self._connecting.pop(trace_id, ()))


# --- Remembering ----------------------------------------------------------------------------------


def remember(
    closed: dict[TraceId, ClosedIds],
    spans: Iterable[AgentSpan],
    runs: Collection[Run] = (),
    anchors: Iterable[SpanRef] = (),
    *,
    sealed: bool = False,
) -> int:
    """Remember spans of final runs, and these runs with what stood in for their roots. Returns how
    many ids are new.
    """
    new = 0
    for trace_id, group in groupby(spans, _TRACE):
        own = list(group)
        known = closed.get(trace_id) or closed.setdefault(trace_id, ClosedIds())
        new -= len(known)
        known.ids.update(map(_ID, own))
        new += len(known)
        if sealed:
            known.sealed.update(map(_ID, own))
        if runs and not (names := _names_of(own)) <= known.agents:
            known.agents = frozenset(sorted(known.agents | names)[:_MAX_NAMES])
    for run in runs:
        if not run.implicit:
            closed[run.trace_id].had_invocation = True
    for trace_id, anchor in anchors:
        if trace_id == RUN_KEYS:
            known = closed.setdefault(RUN_KEYS + anchor, ClosedIds())
            new += anchor not in known.ids
            known.ids.add(anchor)
        elif anchor != BY_TIME:
            known = closed.setdefault(trace_id, ClosedIds())
            new += anchor not in known.anchors
            known.anchors.add(anchor)
            if sealed:
                known.sealed.add(anchor)
    return new


def _names_of(spans: Iterable[AgentSpan]) -> set[str]:
    agents = [
        facts
        for span in spans
        if span[7] is _AGENT and isinstance(facts := span[9], InvocationFacts)
    ]
    return {facts.name for facts in agents if facts.name and not facts.weak}


# --- Recognizing ----------------------------------------------------------------------------------


def account_of(closed: Mapping[TraceId, ClosedIds], span: AgentSpan) -> Account | None:
    """Return how a span of a final run, or one connected with it, or its missing root, is counted;
    None for others.
    """
    own = closed.get(span[0])
    if own is not None and span[1] in own.ids:
        return DUPLICATE
    ref = parent_ref(span)
    over = closed.get(ref[0]) if ref is not None else None
    if over is not None and ref is not None:
        is_orphan = ref[1] in over.anchors and _is_loose(span)
        if is_orphan or ref[1] in over.ids:
            return SEALED if ref[1] in over.sealed else LATE
    if own is not None and span[1] in own.anchors and is_kept(span):
        return SEALED if span[1] in own.sealed else LATE
    return None


def accounts_below(
    closed: Mapping[TraceId, ClosedIds], spans: Iterable[AgentSpan]
) -> dict[SpanRef, Account]:
    """Return how spans of a buffer are counted that belong to final runs through spans that arrived
    after them.
    """
    children: dict[SpanRef, list[AgentSpan]] = {}
    pending: list[tuple[AgentSpan, Account]] = []
    connecting: list[tuple[AgentSpan, Account]] = []
    for span in spans:
        ref = parent_ref(span)
        if ref is None:
            continue
        children.setdefault(ref, []).append(span)
        account = account_of(closed, span)
        if account is not None:
            pending.append((span, account))
        elif ref[0] in closed and ref[1] in closed[ref[0]].anchors and not is_kept(span):
            connecting.append((span, SEALED if ref[1] in closed[ref[0]].sealed else LATE))
    walked: set[SpanRef] = set()
    while (
        connecting
    ):  # work may hang on the missing root of a final run through spans that only connect
        span, account = connecting.pop()
        ref = REF(span)
        if ref not in walked:
            walked.add(ref)
            below = children.get(ref, ())
            connecting += [(child, account) for child in below if not is_kept(child)]
            pending += [(child, account) for child in below if _is_loose(child)]
    found: dict[SpanRef, Account] = {}
    while pending:
        span, account = pending.pop()
        ref = REF(span)
        if ref not in found:
            found[ref] = account
            pending += [(child, account) for child in children.get(ref, ())]
    return found


def _is_loose(span: AgentSpan) -> bool:
    """Return whether a span is no invocation, and more than a connection."""
    return span[7] not in INVOCATIONS and is_kept(span)
