"""Work with no invocation above it: linked to the run that encloses it, a run of its own, or part of no run."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from hashlib import blake2b
from typing import Final, NamedTuple

from otel_reliability.assembly.closed_traces import ClosedIds
from otel_reliability.assembly.span_tree import NONE, Invocation, SpanTree, is_kept, parent_ref
from otel_reliability.model.span import KIND_CONSUMER, KIND_SERVER, AgentSpan, Kind, SpanId, SpanRef, ToolFacts, TraceId

WORK: Final = frozenset({Kind.MODEL, Kind.TOOL, Kind.HANDOFF, Kind.RETRIEVAL})
RUN_KEYS: Final = b"run.key"
"""Begins the id of the trace that stands for a value of `run.key`, and with it the anchor of its run."""


class ImplicitRun(NamedTuple):
    """Work that becomes a run without a root.

    `anchor` stands in for the root: the missing parent, or the topmost span. `members`: indices of the spans, in order.
    `incomplete`: its local parent is missing. `agent`: the name of the trace's only agent.
    """

    anchor: SpanRef
    members: list[int]
    agent: str | None
    incomplete: bool

    def span_id_in(self, trace_id: TraceId) -> SpanId:
        """Return the id that stands in for the root's span id; an anchor in another trace gets an id of its own."""
        if self.anchor[0] in (trace_id, RUN_KEYS):
            return self.anchor[1]
        return blake2b(b"".join(self.anchor), digest_size=8).digest()


class Orphans(NamedTuple):
    """The result for the orphans of a tree.

    - `linked`: topmost spans, with the root of the run that encloses them in time.
    - `implicit`: runs without a root. `keyed`: those of lone work with a run key, by the hash of the key.
    - `anchors`: what stands in for the roots of linked orphans and of other implicit runs.
    - `beside_agent`, `without_agent`: numbers of spans of work that belongs to no run, in traces with an invocation, and without.
    """

    linked: dict[int, int]
    implicit: list[ImplicitRun]
    keyed: dict[bytes, ImplicitRun]
    anchors: list[SpanRef]
    beside_agent: int
    without_agent: int


class _Group:
    """The orphans with one reference, with all that lies below them."""

    def __init__(self, anchor: SpanRef, trace_id: TraceId) -> None:
        self.anchor, self.trace_id = anchor, trace_id
        self.has_gap = False
        self.tops: list[int] = []
        self.below: list[int] = []
        self.members: list[int] = []
        self.start = self.end = 0

    def measure(self, spans: list[AgentSpan]) -> None:
        self.start = min(spans[i].start_ns for i in self.below)
        self.end = max(spans[i].end_ns for i in self.below)


def decide(tree: SpanTree, closed: Mapping[TraceId, ClosedIds]) -> Orphans:
    """Decide about all orphans of a tree. `closed`: what is remembered of final runs."""
    spans = tree.spans
    groups = [group for group in _groups(tree) if any(spans[i].kind in WORK for i in group.members)]
    keyed = _take_keyed(tree, groups)
    groups = [group for group in groups if group.members]
    traces = _connected_traces(tree)
    linked: dict[int, int] = {}
    implicit: list[ImplicitRun] = []
    anchors: list[SpanRef] = []
    unclaimed: Counter[bool] = Counter()
    for connected in dict.fromkeys(traces[group.trace_id] for group in groups):
        here = [group for group in groups if traces[group.trace_id] is connected]
        invocations = [node for node in tree.invocations if traces[node.span.trace_id] is connected]
        known = [closed[trace_id] for trace_id in connected if trace_id in closed]
        names = {node.name for node in invocations if node.name and node.span.kind is Kind.AGENT}
        names.update(*(one.agents for one in known))
        only = next(iter(names)) if len(names) == 1 else None
        is_beside_agent = bool(invocations) or any(one.had_invocation for one in known)
        hosts = _hosts(tree, [group for group in here if group.has_gap], invocations)
        for group in here:
            if group.anchor in hosts:
                anchors.append(group.anchor)
                linked.update(dict.fromkeys(group.tops, hosts[group.anchor]))
            elif group.has_gap:
                implicit.append(ImplicitRun(group.anchor, group.members, only, incomplete=True))
            elif not is_beside_agent and any(_is_own_call(spans[i]) for i in group.members):
                implicit.append(ImplicitRun(group.anchor, group.members, None, incomplete=False))
            else:
                unclaimed[is_beside_agent] += len(group.members)
    return Orphans(
        linked, implicit, keyed, [*anchors, *(one.anchor for one in implicit)], unclaimed[True], unclaimed[False]
    )


def _connected_traces(tree: SpanTree) -> Mapping[TraceId, frozenset[TraceId]]:
    """For each trace those that share a unit with it, directly or through others: they are one trace to every rule."""
    found = {span[0]: frozenset((span[0],)) for span in tree.spans}
    if len(found) > 1:
        for span, unit in zip(tree.spans, tree.units, strict=True):
            if unit != NONE and found[span[0]] is not found[tree.spans[unit][0]]:
                joined = found[span[0]] | found[tree.spans[unit][0]]
                found.update(dict.fromkeys(joined, joined))
    return found


def _groups(tree: SpanTree) -> Iterable[_Group]:
    """Orphans by their unit. `members` are the orphans that a run would consist of, `below` all spans of the unit."""
    units, spans = tree.units, tree.spans
    groups: dict[int, _Group] = {}
    for i in sorted([*tree.orphans, *tree.annotators]):
        top = tree.top_of(i)
        group = groups.get(units[i])
        if group is None:
            group = groups[units[i]] = _Group(tree.anchor(top), spans[i].trace_id)
        group.has_gap = group.has_gap or tree.has_gap(top)
        if tree.kept_above(i) == NONE:
            group.tops.append(i)
        if spans[i].kind in WORK or spans[i].kind is Kind.CHAIN:
            group.members.append(i)
    for i, unit in enumerate(units):
        if unit in groups and is_kept(spans[i]):
            groups[unit].below.append(i)
    return groups.values()


def _take_keyed(tree: SpanTree, groups: list[_Group]) -> dict[bytes, ImplicitRun]:
    """Take lone work with a run key, and all work below it, out of the groups: work of one key is a run, whatever its traces."""
    found: dict[bytes, list[int]] = {}
    for group in groups:
        if group.has_gap:
            continue
        keys = {i: key for i in group.members if (key := _key_above(tree, i)) is not None}
        for i, key in keys.items():
            found.setdefault(key, []).append(i)
        if keys:
            group.members = [i for i in group.members if i not in keys]
    return {key: ImplicitRun((RUN_KEYS, key), sorted(at), None, incomplete=False) for key, at in found.items()}


def _key_above(tree: SpanTree, i: int) -> bytes | None:
    """The hash of the run key of the topmost work above a span, if nothing is missing above it."""
    while (over := tree.kept_above(i)) != NONE:
        i = over
    notes = tree.spans[i].notes
    if notes is None or notes.run_key is None or tree.spans[i].kind is Kind.OTHER:
        return None
    return None if parent_ref(tree.spans[tree.top_of(i)]) is not None else bytes.fromhex(notes.run_key)


# --- Linking by time --------------------------------------------------------------------------------------------------


def _hosts(tree: SpanTree, groups: list[_Group], invocations: list[Invocation]) -> dict[SpanRef, int]:
    """For each group that exactly one run of the trace encloses in time, the root of that run.

    The longest are decided first, and runs inside a group enclose others only if the group itself is linked to none: so the
    order of arrival decides nothing, and links make no circle.
    """
    if not groups:
        return {}
    units = tree.units
    for group in groups:
        group.measure(tree.spans)
    inside = {units[group.tops[0]] for group in groups if group.tops}
    extents: dict[int, list[tuple[int, int, int]]] = {}
    for unit, start, end, root in _top_level_runs(tree, invocations):
        extents.setdefault(unit, []).append((start, end, root))
    enclosing = _Enclosing()
    for unit, runs in extents.items():
        if unit not in inside:
            enclosing.add(runs)
    found: dict[SpanRef, int] = {}
    for group in sorted(groups, key=lambda group: (group.start, -group.end, group.anchor)):
        host = enclosing.only(group.start, group.end)
        if host is not None:
            found[group.anchor] = host
        elif group.tops:
            enclosing.add(extents.get(units[group.tops[0]], []))
    return found


def _top_level_runs(tree: SpanTree, invocations: list[Invocation]) -> Iterator[tuple[int, int, int, int]]:
    """(unit, start, end, root) of each top-level run that did something, or is an agent."""
    spans = tree.spans
    members: dict[int, list[int]] = {}
    for node in invocations:
        root = node.root
        while root.above is not None:
            root = root.above.root
        members.setdefault(root.at, []).extend((node.at, *node.steps))
    for node in invocations:
        at = members.get(node.at)
        if at is None:
            continue
        if node.is_agent or any(spans[i].kind in WORK or spans[i].kind is Kind.AGENT for i in at):
            timed = [i for i in at if spans[i].kind not in _UNTIMED]
            start, end = min(spans[i].start_ns for i in timed), max(spans[i].end_ns for i in timed)
            yield tree.units[node.at], start, end, node.at


_UNTIMED: Final = frozenset({Kind.OTHER, Kind.COMPRESSION})
"""Kinds that a run does not begin or end with."""


class _Enclosing:
    """Top-level runs, asked which of them encloses a period. Periods must come in the order of their starts."""

    def __init__(self) -> None:
        self._ahead: list[tuple[int, int, int]] = []
        self._longest: list[tuple[int, int]] = []

    def add(self, runs: Iterable[tuple[int, int, int]]) -> None:
        """Add runs as (start, end, root)."""
        for run in runs:
            heapq.heappush(self._ahead, run)

    def only(self, start: int, end: int) -> int | None:
        """Return the one run that encloses the period, None if there is none or there are several."""
        while self._ahead and self._ahead[0][0] <= start:
            _, run_end, root = heapq.heappop(self._ahead)
            self._longest = sorted([*self._longest, (run_end, root)], reverse=True)[:2]
        around = [root for run_end, root in self._longest if run_end >= end]
        return around[0] if len(around) == 1 else None


def _is_own_call(span: AgentSpan) -> bool:
    """Return whether a span is a tool call made here; SERVER and CONSUMER spans report the far end of a call."""
    facts = span.facts
    return isinstance(facts, ToolFacts) and bool(facts.calls) and span.span_kind not in (KIND_SERVER, KIND_CONSUMER)
