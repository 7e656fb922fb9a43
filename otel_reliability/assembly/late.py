"""Spans of final runs: duplicates, late spans, spans beyond the span limit; and what is remembered to recognize them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, TypeAlias

from otel_reliability.assembly.assemble import DUPLICATE, Account, Assembled
from otel_reliability.assembly.buffers import TraceBuffer
from otel_reliability.assembly.closed_traces import ClosedIds, Record
from otel_reliability.assembly.orphans import RUN_KEYS
from otel_reliability.assembly.parts import Part
from otel_reliability.assembly.span_tree import NONE, REF, is_kept, latest_versions, parent_ref
from otel_reliability.model.span import BY_TIME, AgentSpan, InvocationFacts, Kind, SpanRef, TraceId

LATE: Final[Account] = ("late", "")
SEALED: Final[Account] = ("refused", "span_limit")
_INVOCATIONS: Final = (Kind.AGENT, Kind.WORKFLOW)
_MAX_NAMES: Final = 2
"""Names of agents that are remembered: more make no difference."""
_Closed: TypeAlias = tuple[bytes, bytes, bytes, tuple[str, ...], bool]
"""The part of a record that is about final runs: ids, anchors, sealed ids, agents, whether it had an invocation."""
_NO_RUNS: Final[_Closed] = (b"", b"", b"", (), False)


def account_of(closed: Mapping[TraceId, ClosedIds], span: AgentSpan) -> Account | None:
    """Return how a span of a final run, or one connected with it, or its missing root, is counted; None for others."""
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


def add(closed: dict[TraceId, ClosedIds], span: AgentSpan, account: Account) -> int:
    """Remember a span, so that what comes below it is recognized too. Returns how many ids are new."""
    known = closed.setdefault(span[0], ClosedIds())
    before = len(known)
    known.ids.add(span[1])
    if account == SEALED:
        known.sealed.add(span[1])
    return len(known) - before


def hanging_on_closed(closed: Mapping[TraceId, ClosedIds], spans: Iterable[AgentSpan]) -> dict[SpanRef, Account]:
    """Return the spans of a buffer that belong to final runs through spans that arrived after them."""
    children: dict[SpanRef, list[AgentSpan]] = {}
    pending: list[tuple[AgentSpan, Account]] = []
    connections: list[tuple[AgentSpan, Account]] = []
    for span in spans:
        ref = parent_ref(span)
        if ref is None:
            continue
        children.setdefault(ref, []).append(span)
        account = account_of(closed, span)
        if account is not None:
            pending.append((span, account))
        elif ref[0] in closed and ref[1] in closed[ref[0]].anchors and not is_kept(span):
            connections.append((span, SEALED if ref[1] in closed[ref[0]].sealed else LATE))
    walked: set[SpanRef] = set()
    while connections:  # work may hang on the missing root of a final run through spans that only connect
        span, account = connections.pop()
        ref = REF(span)
        if ref not in walked:
            walked.add(ref)
            below = children.get(ref, ())
            connections += [(child, account) for child in below if not is_kept(child)]
            pending += [(child, account) for child in below if _is_loose(child)]
    found: dict[SpanRef, Account] = {}
    while pending:
        span, account = pending.pop()
        ref = REF(span)
        if ref not in found:
            found[ref] = account
            pending += [(child, account) for child in children.get(ref, ())]
    return found


def close(closed: dict[TraceId, ClosedIds], built: Assembled, part: Part, *, sealed: bool) -> int:  # noqa: C901
    """Remember a part of a trace. Returns how many ids are new."""
    tree, before = built.tree, sum(map(len, closed.values()))
    index = {REF(span): i for i, span in enumerate(tree.spans)}
    inside = set(part.spans)
    refs = {(tree.spans[i][0], tree.spans[i][1]) for i in inside}
    for i in part.spans:
        span = tree.spans[i]
        known = closed.setdefault(span[0], ClosedIds())
        known.ids.add(span[1])
        if sealed:
            known.sealed.add(span[1])
        ref: SpanRef | None = None
        if i in built.linked:
            ref = parent_ref(span)
            if ref is not None and ref in index:
                ref = tree.anchor(tree.top_of(index[ref]))
        elif part.is_loose and is_kept(span) and tree.kept_above(i) == NONE:
            ref = tree.anchor(tree.top_of(i))
        if ref is not None and ref not in refs and ref[1] != BY_TIME:
            anchors = closed.setdefault(ref[0], ClosedIds())
            anchors.anchors.add(ref[1])
            if sealed:
                anchors.sealed.add(ref[1])
    for key, at in built.keyed.items():
        if at[0] in inside:
            closed.setdefault(RUN_KEYS + key, ClosedIds()).ids.add(key)
    for node in tree.invocations:
        if node.at in inside:
            known = closed[node.span[0]]
            known.had_invocation = True
            if node.name and node.span.kind is Kind.AGENT:
                known.agents = frozenset(sorted(known.agents | {node.name})[:_MAX_NAMES])
    return sum(map(len, closed.values())) - before


def records(buffer: TraceBuffer, now: float) -> Iterator[tuple[TraceId, Record]]:
    """Return what is to be remembered of the traces of a buffer of which all runs are final."""
    connections = _connections(buffer) if buffer.others else {}
    for trace_id in buffer.traces:
        kept = tuple([span for span in connections.values() if span[0] == trace_id])
        closed = _closed_part(buffer, trace_id, connections)
        if closed[0] or closed[1] or kept:
            yield trace_id, (now, *closed, kept)


def _closed_part(buffer: TraceBuffer, trace_id: TraceId, connections: Mapping[SpanRef, AgentSpan]) -> _Closed:
    """Return what is to be remembered of the final runs of a trace."""
    if buffer.closed is None and not (buffer.weight or buffer.emitted or buffer.anchors):
        return _NO_RUNS
    known = None if buffer.closed is None else buffer.closed.get(trace_id)
    spans = buffer.spans if len(buffer.traces) == 1 else [span for span in buffer.spans if span[0] == trace_id]
    own = [span for span in spans if REF(span) not in connections] if connections else spans
    anchors = [ref[1] for ref in buffer.anchors if ref[0] == trace_id and ref[1] != BY_TIME]
    agents = [facts for span in own if span[7] is Kind.AGENT and isinstance(facts := span[9], InvocationFacts)]
    names = {facts.name for facts in agents if facts.name and not facts.weak}
    had_invocation = any(not run.implicit for run in buffer.emitted.values())
    ids, sealed = [span[1] for span in own], b""
    if trace_id.startswith(RUN_KEYS) and (key := trace_id[len(RUN_KEYS) :]).hex() in _run_keys(buffer):
        ids = [key]
    if known is not None:
        names |= known.agents
        had_invocation = had_invocation or known.had_invocation
        ids, anchors, sealed = [*known.ids, *ids], [*known.anchors, *anchors], b"".join(known.sealed)
    return b"".join(ids), b"".join(anchors), sealed, tuple(sorted(names)[:_MAX_NAMES]), had_invocation


def _run_keys(buffer: TraceBuffer) -> set[str]:
    """The ends of the ids of implicit runs: the run key, where they have one."""
    return {run.run_id.rpartition("-")[2] for run in buffer.emitted.values() if run.implicit}


def _connections(buffer: TraceBuffer) -> dict[SpanRef, AgentSpan]:
    """The spans that lie in no run, each once: later spans may connect through them."""
    index = {REF(span): span for span in latest_versions(buffer.spans, REF)}
    if not buffer.weight:
        return index
    in_run: dict[SpanRef, bool] = {}
    for ref in index:
        chain: list[SpanRef] = []
        here: SpanRef | None = ref
        while here is not None and here in index and here not in in_run:
            in_run[here] = False  # a cycle ends here
            chain.append(here)
            here = parent_ref(index[here])
        below_run = here is not None and in_run.get(here, False)
        for one in reversed(chain):
            below_run = below_run or is_kept(index[one])
            in_run[one] = below_run
    return {ref: span for ref, span in index.items() if not in_run[ref]}


def _is_loose(span: AgentSpan) -> bool:
    """Return whether a span is no invocation, and more than a connection."""
    return span[7] not in _INVOCATIONS and is_kept(span)
