"""Work with no invocation above it: linked to the run that encloses it, a run of its own, or part
of no run.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from otel_reliability.assembly.accounts import BESIDE_AGENT, NO_AGENT, Account
from otel_reliability.assembly.closed_ids import RUN_KEYS, ClosedIds
from otel_reliability.assembly.invocations import Invocation
from otel_reliability.assembly.span_tree import NONE, SpanTree, is_kept, parent_ref
from otel_reliability.model.blake2 import blake2b
from otel_reliability.model.span import (
    KIND_CONSUMER,
    KIND_SERVER,
    STEPS,
    AgentSpan,
    Kind,
    SpanId,
    SpanRef,
    ToolFacts,
    TraceId,
)


class ImplicitRun(NamedTuple):
    """Work that becomes a run without a root.

    `anchor` stands in for the root: the missing parent, or the topmost span. `members`: indices of
    the spans, in order. `incomplete`: its local parent is missing. `agent`: the name of the trace's
    only agent. `compressions`: indices of spans that are compressions of its context, and no
    members.
    """

    anchor: SpanRef
    members: list[int]
    agent: str | None
    incomplete: bool
    compressions: Sequence[int] = ()

    def span_id_in(self, trace_id: TraceId) -> SpanId:
        """Return the id that stands in for the root's span id; an anchor in another trace gets an
        id of its own.
        """
        if self.anchor[0] in (trace_id, RUN_KEYS):
            return self.anchor[1]
        return blake2b(b"".join(self.anchor), digest_size=8).digest()


class Orphans(NamedTuple):
    """The result for the orphans of a tree.

    - `linked`: topmost spans, with the root of the run that encloses them in time.
    - `implicit`: runs without a root. `keyed`: those of lone work with a run key, by the hash of
      the key.
    - `anchors`: what stands in for the roots of linked orphans and of implicit runs, with the index
      of a span below.
    - `unclaimed`: spans of work that belongs to no run, in traces with an invocation, and without.
    """

    linked: dict[int, int]
    implicit: list[ImplicitRun]
    keyed: dict[bytes, ImplicitRun]
    anchors: dict[SpanRef, int]
    unclaimed: dict[int, Account]


class _Group:
    """The orphans of a unit. `tops`: the topmost; `members`, `compressions`: those that a run would
    consist of; `start`, `end`: of all that lies in the unit.
    """

    def __init__(self, anchor: SpanRef, span: AgentSpan) -> None:
        self.anchor = anchor
        self.trace_id = span.trace_id
        self.start = span.start_ns
        self.end = span.end_ns
        self.has_gap = False
        self.tops: list[int] = []
        self.members: list[int] = []
        self.compressions: list[int] = []


def decide(tree: SpanTree, closed: Mapping[TraceId, ClosedIds]) -> Orphans:
    """Decide about all orphans of a tree. `closed`: what is remembered of final runs."""
    spans = tree.spans
    groups = [
        group for group in _groups(tree) if any(spans[i].kind in STEPS for i in group.members)
    ]
    keyed = _take_keyed(tree, groups)
    groups = [group for group in groups if group.members]
    traces = _connected_traces(tree)
    linked: dict[int, int] = {}
    implicit: list[ImplicitRun] = []
    anchors = {run.anchor: run.members[0] for run in keyed.values()}
    unclaimed: dict[int, Account] = {}
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
                anchors[group.anchor] = group.members[0]
                linked.update(dict.fromkeys(group.tops, hosts[group.anchor]))
            elif group.has_gap:
                implicit.append(
                    ImplicitRun(group.anchor, group.members, only, True, group.compressions)
                )
            elif not is_beside_agent and any(_is_own_call(spans[i]) for i in group.members):
                implicit.append(
                    ImplicitRun(group.anchor, group.members, None, False, group.compressions)
                )
            else:
                siblings = _siblings(tree, group, invocations)
                linked.update(siblings)
                unclaimed.update(
                    (i, BESIDE_AGENT if is_beside_agent else NO_AGENT)
                    for i in group.members
                    if _top_member(tree, i) not in siblings
                )
    anchors.update({run.anchor: run.members[0] for run in implicit})
    return Orphans(linked, implicit, keyed, anchors, unclaimed)


def _connected_traces(tree: SpanTree) -> Mapping[TraceId, frozenset[TraceId]]:
    """For each trace those that share a unit with it, directly or through others: they are one
    trace to every rule.
    """
    found = {trace_id: frozenset((trace_id,)) for trace_id in {span[0] for span in tree.spans}}
    if len(found) > 1:
        for span, unit in zip(tree.spans, tree.units, strict=True):
            if unit != NONE and found[span[0]] is not found[tree.spans[unit][0]]:
                joined = found[span[0]] | found[tree.spans[unit][0]]
                found.update(dict.fromkeys(joined, joined))
    return found


def _groups(tree: SpanTree) -> Iterable[_Group]:
    units = tree.units
    spans = tree.spans
    groups: dict[int, _Group] = {}
    for i in sorted([*tree.orphans, *tree.annotators]):
        top = tree.top_of(i)
        group = groups.get(units[i])
        if group is None:
            group = groups[units[i]] = _Group(tree.anchor(top), spans[i])
        group.has_gap = group.has_gap or tree.has_gap(top)
        if tree.kept_above(i) == NONE:
            group.tops.append(i)
        if spans[i].kind in STEPS or spans[i].kind is Kind.CHAIN:
            group.members.append(i)
        elif spans[i].kind is Kind.COMPRESSION:
            group.compressions.append(i)
    for i, unit in enumerate(units):
        if unit in groups and is_kept(spans[i]):
            group = groups[unit]
            group.start, group.end = (
                min(group.start, spans[i].start_ns),
                max(group.end, spans[i].end_ns),
            )
    return groups.values()


def _take_keyed(tree: SpanTree, groups: list[_Group]) -> dict[bytes, ImplicitRun]:
    """Take lone work with a run key, and all work below it, out of the groups: work of one key is a
    run, whatever its traces.
    """
    found: dict[bytes, list[int]] = {}
    for group in groups:
        if group.has_gap:
            continue
        keys = {i: key for i in group.members if (key := _key_above(tree, i)) is not None}
        for i, key in keys.items():
            found.setdefault(key, []).append(i)
        if keys:
            group.members = [i for i in group.members if i not in keys]
    return {
        key: ImplicitRun((RUN_KEYS, key), sorted(at), None, incomplete=False)
        for key, at in found.items()
    }


def _key_above(tree: SpanTree, i: int) -> bytes | None:
    """The hash of the run key of the topmost work above a span, if nothing is missing above it."""
    while (over := tree.kept_above(i)) != NONE:
        i = over
    notes = tree.spans[i].notes
    if notes is None or notes.run_key is None or tree.spans[i].kind is Kind.OTHER:
        return None
    return (
        None if parent_ref(tree.spans[tree.top_of(i)]) is not None else bytes.fromhex(notes.run_key)
    )


# --- Siblings of the only invocation -------------------------------------------------------------


def _siblings(tree: SpanTree, group: _Group, invocations: list[Invocation]) -> dict[int, int]:
    """Return the topmost spans of a group that are siblings of the only invocation below their
    parent, which encloses them in time, with its index.

    Context that is lost in a stream makes steps siblings of their agent. Steps of another scope
    are the agent's only where it has none of its own.
    """
    spans = tree.spans
    found: dict[int, int] = {}
    for top in group.tops:
        span = spans[top]
        beside = [
            node
            for node in invocations
            if node.over is None
            and span.parent_id is not None
            and node.span.parent_id == span.parent_id
            and node.span.trace_id == span.trace_id
        ]
        if len(beside) != 1 or beside[0].span.kind is not Kind.AGENT:
            continue
        agent = beside[0].span
        is_around = agent.start_ns <= span.start_ns and span.end_ns <= agent.end_ns
        is_of_it = span.scope == agent.scope or not (beside[0].steps or beside[0].inner)
        if is_around and is_of_it and span.resource.service == agent.resource.service:
            found[top] = beside[0].at
    return found


def _top_member(tree: SpanTree, i: int) -> int:
    """Return the topmost span above a span that is more than a connection, or the span itself."""
    while (over := tree.kept_above(i)) != NONE:
        i = over
    return i


# --- Linking by time ------------------------------------------------------------------------------


def _hosts(
    tree: SpanTree, groups: list[_Group], invocations: list[Invocation]
) -> dict[SpanRef, int]:
    """For each group that exactly one run of the trace encloses in time, the root of that run.

    The longest are decided first, and runs inside a group enclose others only if the group itself
    is linked to none: so the order of arrival decides nothing, and links make no circle.
    """
    if not groups:
        return {}
    units = tree.units
    runs: dict[int, list[tuple[int, int, int]]] = {}
    for unit, run in _top_level_runs(tree, invocations):
        runs.setdefault(unit, []).append(run)
    inside = {units[group.tops[0]] for group in groups if group.tops}
    ahead = [run for unit, found in runs.items() if unit not in inside for run in found]
    heapq.heapify(ahead)
    longest: list[tuple[int, int]] = []
    hosts: dict[SpanRef, int] = {}
    for group in sorted(groups, key=lambda group: (group.start, -group.end, group.anchor)):
        while ahead and ahead[0][0] <= group.start:
            _, end, root = heapq.heappop(ahead)
            longest = sorted([*longest, (end, root)], reverse=True)[:2]
        around = [root for end, root in longest if end >= group.end]
        if len(around) == 1:
            hosts[group.anchor] = around[0]
        elif group.tops:
            for run in runs.get(units[group.tops[0]], ()):
                heapq.heappush(ahead, run)
    return hosts


def _top_level_runs(
    tree: SpanTree, invocations: list[Invocation]
) -> Iterator[tuple[int, tuple[int, int, int]]]:
    """The unit and (start, end, root) of each top-level run that did something, or is an agent."""
    spans = tree.spans
    members: dict[Invocation, list[int]] = {}
    for node in invocations:
        root = node.root
        while root.above is not None:
            root = root.above.root
        members.setdefault(root, []).extend((node.at, *node.steps))
    for root, at in members.items():
        if root.is_agent or any(spans[i].kind in STEPS or spans[i].kind is Kind.AGENT for i in at):
            timed = [spans[i] for i in at if spans[i].kind not in UNTIMED]
            extent = min(span.start_ns for span in timed), max(span.end_ns for span in timed)
            yield tree.units[root.at], (*extent, root.at)


UNTIMED: Final = frozenset({Kind.OTHER, Kind.COMPRESSION})
"""Kinds that a run does not begin or end with."""


def _is_own_call(span: AgentSpan) -> bool:
    """Return whether a span is a tool call made here; SERVER and CONSUMER spans report the far end
    of a call.
    """
    facts = span.facts
    return (
        isinstance(facts, ToolFacts)
        and bool(facts.calls)
        and span.span_kind not in (KIND_SERVER, KIND_CONSUMER)
    )
