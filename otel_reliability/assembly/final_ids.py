"""The span ids of final runs, by which duplicates and late spans are recognized."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from itertools import groupby
from operator import attrgetter
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
_UTF8: Final = ("utf-8", "surrogatepass")
_MAX_NAMES: Final = 2
"""Names of agents that are remembered: more make no difference."""
_AGENT: Final = Kind.AGENT
_TRACE: Final[Callable[[AgentSpan], TraceId]] = attrgetter("trace_id")
_ID: Final[Callable[[AgentSpan], SpanId]] = attrgetter("span_id")
PackedIds: TypeAlias = bytes
"""`FinalIds` as bytes, which take less memory than objects: there are hundreds of thousands."""
_HEAD: Final = Struct("<dI")
"""Head of packed ids: since when (seconds), and their number."""
_encode: Final = Encoder().encode
_decode: Final = Decoder(tuple[bytes, bytes, bytes, tuple[bytes, ...], bool]).decode


class FinalIds(msgspec.Struct, eq=False):
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

    def packed(self, since: float) -> PackedIds:
        """Return all of it as bytes. `since`: when the trace became final, in seconds."""
        ids = b"".join(self.ids)
        anchors = b"".join(self.anchors)
        sealed = b"".join(self.sealed)
        names = sorted([name.encode(*_UTF8) for name in self.agents])
        return _HEAD.pack(since, len(self)) + _encode(
            (ids, anchors, sealed, names, self.had_invocation)
        )

    @classmethod
    def unpacked(cls, packed: PackedIds) -> FinalIds:
        """Return what `packed` made these bytes of."""
        ids, anchors, sealed, names, had_invocation = _decode(memoryview(packed)[_HEAD.size :])
        agents = frozenset([name.decode(*_UTF8) for name in names])
        return cls(_split(ids), _split(anchors), _split(sealed), agents, had_invocation)


def since_of(packed: PackedIds) -> float:
    """Return when the trace of packed ids became final, in seconds."""
    return _HEAD.unpack_from(packed)[0]


def count_of(packed: PackedIds) -> int:
    """Return how many ids are packed."""
    return _HEAD.unpack_from(packed)[1]


def _split(joined: bytes) -> set[SpanId]:
    return {joined[at : at + ID_BYTES] for at in range(0, len(joined), ID_BYTES)}


# --- Remembering ----------------------------------------------------------------------------------


def remember(
    final_ids: dict[TraceId, FinalIds],
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
        known = final_ids.get(trace_id) or final_ids.setdefault(trace_id, FinalIds())
        new -= len(known.ids)
        known.ids.update(map(_ID, own))
        new += len(known.ids)
        if sealed:
            known.sealed.update(map(_ID, own))
        if runs and not (names := _names_of(own)) <= known.agents:
            known.agents = frozenset(sorted(known.agents | names)[:_MAX_NAMES])
    for run in runs:
        if not run.implicit:
            final_ids[run.trace_id].had_invocation = True
    for trace_id, anchor in anchors:
        if trace_id == RUN_KEYS:
            known = final_ids.setdefault(RUN_KEYS + anchor, FinalIds())
            new += anchor not in known.ids
            known.ids.add(anchor)
        elif anchor != BY_TIME:
            known = final_ids.setdefault(trace_id, FinalIds())
            new += anchor not in known.anchors
            known.anchors.add(anchor)
            if sealed:
                known.sealed.add(anchor)
    return new


def _names_of(spans: Iterable[AgentSpan]) -> set[str]:
    return {
        facts.name
        for span in spans
        if span.kind is _AGENT
        and isinstance(facts := span.facts, InvocationFacts)
        and facts.name
        and not facts.weak
    }


# --- Recognizing ----------------------------------------------------------------------------------


def account_of(final_ids: Mapping[TraceId, FinalIds], span: AgentSpan) -> Account | None:
    """Return how a span of a final run, or one connected with it, or its missing root, is counted;
    None for others.
    """
    own = final_ids.get(span.trace_id)
    if own is not None and span.span_id in own.ids:
        return DUPLICATE
    ref = parent_ref(span)
    above = final_ids.get(ref[0]) if ref is not None else None
    if above is not None and ref is not None:
        is_orphan = ref[1] in above.anchors and _is_loose(span)
        if is_orphan or ref[1] in above.ids:
            return SEALED if ref[1] in above.sealed else LATE
    if own is not None and span.span_id in own.anchors and is_kept(span):
        return SEALED if span.span_id in own.sealed else LATE
    return None


def accounts_below(
    final_ids: Mapping[TraceId, FinalIds], spans: Iterable[AgentSpan]
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
        account = account_of(final_ids, span)
        if account is not None:
            pending.append((span, account))
        elif ref[0] in final_ids and ref[1] in final_ids[ref[0]].anchors and not is_kept(span):
            connecting.append((span, SEALED if ref[1] in final_ids[ref[0]].sealed else LATE))
    walked: set[SpanRef] = set()
    # Work may hang on the missing root of a final run through spans that only connect.
    while connecting:
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
    return span.kind not in INVOCATIONS and is_kept(span)
