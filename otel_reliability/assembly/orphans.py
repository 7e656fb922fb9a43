"""Work with no invocation above it: linked to the run that encloses it, a run of its own, or part
of no run.

An *orphan* is a step, chain or compression with no invocation above it. *Loose work* is all orphans
of one unit; *lone* work is loose work with no local parent missing. An *implicit run* is a run made
of loose work, incomplete if a local parent is missing. A *stray* (`strays`) is an implicit run that
is not incomplete, a *hollow* run a workflow that names a session and has nothing below it.
"""

from __future__ import annotations

import heapq
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct

from otel_reliability.assembly.accounts import BESIDE_AGENT, NO_AGENT, REPLAYED, Account
from otel_reliability.assembly.extent import Extent, top_level_runs
from otel_reliability.assembly.final_ids import RUN_KEYS, FinalIds
from otel_reliability.assembly.invocations import Invocation
from otel_reliability.assembly.replays import NO_REPLAYS, Replays
from otel_reliability.assembly.span_tree import NONE, SpanTree, parent_ref
from otel_reliability.assembly.units import Unit, Units
from otel_reliability.model.blake2 import blake2b
from otel_reliability.model.span import (
    KIND_CONSUMER,
    KIND_SERVER,
    STEPS,
    AgentSpan,
    Kind,
    ModelFacts,
    SpanId,
    SpanRef,
    ToolFacts,
    TraceId,
)


class ImplicitRun(NamedTuple):
    """Work that becomes a run without a root.

    `anchor` stands in for the root: the missing parent, or the topmost span. `members`: indices of
    the spans, in order. `incomplete`: its local parent is missing. `agent`: the name of the agent
    that its steps name, else of the trace's only one. `compressions`: indices of spans that are
    compressions of its context, and no members.
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


class LooseWork(Struct, eq=False):
    """The orphans of a unit.

    - `anchor`: what stands in for their root. `tops`: the topmost.
    - `members`, `compressions`: those that a run would consist of.
    """

    unit: Unit
    anchor: SpanRef
    tops: list[int] = []
    members: list[int] = []
    compressions: list[int] = []


def decide(
    tree: SpanTree,
    units: Units,
    final_ids: Mapping[TraceId, FinalIds],
    replays: Replays = NO_REPLAYS,
) -> Orphans:
    """Decide about all orphans of a tree. The first rule that applies to a unit's work decides:

    1. Lone work with a run key is part of the run of that key, whatever its trace.
    2. If a local parent is missing, it is linked to the one run that encloses it in time, else it
       is an incomplete run.
    3. If no invocation is in the connected traces and it makes a tool call, it is a run.
    4. Else its topmost spans are linked to the only agent below their parent, if that encloses
       them; the rest is part of no run.

    Work without a step is left out. `final_ids`: what is remembered of final runs. `replays`: the
    attempts that are part of others.
    """
    spans = tree.spans
    all_work = [
        work
        for work in _loose_work(tree, units, replays.dropped)
        if any(spans[i].kind in STEPS for i in work.members)
    ]
    keyed = _take_keyed(tree, all_work)
    all_work = [work for work in all_work if work.members]
    traces = units.connected_traces()
    traces_of = {work.unit: traces[spans[work.unit.head].trace_id] for work in all_work}
    may_be_linked = any(work.unit.has_gap for work in all_work)
    runs = list(top_level_runs(tree)) if may_be_linked else []
    linked: dict[int, int] = {}
    implicit: list[ImplicitRun] = []
    anchors = {run.anchor: run.members[0] for run in keyed.values()}
    unclaimed: dict[int, Account] = dict.fromkeys(replays.dropped, REPLAYED)
    for connected in dict.fromkeys(traces_of.values()):
        here = [work for work in all_work if traces_of[work.unit] is connected]
        invocations = [node for node in tree.invocations if traces[node.span.trace_id] is connected]
        known = [final_ids[trace_id] for trace_id in connected if trace_id in final_ids]
        names = {node.name for node in invocations if node.name and node.span.kind is Kind.AGENT}
        names.update(*(one.agents for one in known))
        only = next(iter(names)) if len(names) == 1 else None
        is_beside_agent = bool(invocations) or any(one.had_invocation for one in known)
        hosts = _hosts(
            units,
            [work for work in here if work.unit.has_gap],
            [(root, lasts) for root, lasts in runs if traces[root.span.trace_id] is connected],
        )
        for work in here:
            if work.unit in hosts:
                anchors[work.anchor] = work.members[0]
                linked.update(dict.fromkeys(work.tops, hosts[work.unit]))
            elif work.unit.has_gap:
                named = _owner(spans, work.members) or only
                implicit.append(
                    ImplicitRun(work.anchor, work.members, named, True, work.compressions)
                )
            elif not is_beside_agent and any(is_own_call(spans[i]) for i in work.members):
                named = _owner(spans, work.members)
                implicit.append(
                    ImplicitRun(work.anchor, work.members, named, False, work.compressions)
                )
            else:
                siblings = _siblings(tree, work, invocations)
                linked.update(siblings)
                unclaimed.update(
                    (i, BESIDE_AGENT if is_beside_agent else NO_AGENT)
                    for i in work.members
                    if tree.top_kept(i) not in siblings
                )
    anchors.update({run.anchor: run.members[0] for run in implicit})
    anchors.update(replays.anchors)
    return Orphans(linked, implicit, keyed, anchors, unclaimed)


def _loose_work(tree: SpanTree, units: Units, dropped: Container[int]) -> Iterable[LooseWork]:
    spans = tree.spans
    found: dict[Unit, LooseWork] = {}
    for i in sorted([*tree.orphans, *tree.annotators]):
        if i in dropped:
            continue
        unit = units.holding(i)
        work = found.get(unit)
        if work is None:
            work = found[unit] = LooseWork(unit, units.anchor(unit))
        if tree.kept_above(i) == NONE:
            work.tops.append(i)
        if spans[i].kind in STEPS or spans[i].kind is Kind.CHAIN:
            work.members.append(i)
        elif spans[i].kind is Kind.COMPRESSION:
            work.compressions.append(i)
    return found.values()


def _take_keyed(tree: SpanTree, all_work: Iterable[LooseWork]) -> dict[bytes, ImplicitRun]:
    """Take out lone work with a run key, and all work below it: work of one key is a run, whatever
    its traces.
    """
    found: dict[bytes, list[int]] = {}
    for work in all_work:
        if work.unit.has_gap:
            continue
        keys = {i: key for i in work.members if (key := _key_above(tree, i)) is not None}
        for i, key in keys.items():
            found.setdefault(key, []).append(i)
        if keys:
            work.members = [i for i in work.members if i not in keys]
    return {
        key: ImplicitRun((RUN_KEYS, key), sorted(at), None, incomplete=False)
        for key, at in found.items()
    }


def _key_above(tree: SpanTree, i: int) -> bytes | None:
    """The hash of the run key of the topmost work above a span, if nothing is missing above it."""
    i = tree.top_kept(i)
    notes = tree.spans[i].notes
    if notes is None or notes.run_key is None or tree.spans[i].kind is Kind.OTHER:
        return None
    return (
        None if parent_ref(tree.spans[tree.top_of(i)]) is not None else bytes.fromhex(notes.run_key)
    )


# --- Siblings of the only invocation -------------------------------------------------------------


def _siblings(tree: SpanTree, work: LooseWork, invocations: list[Invocation]) -> dict[int, int]:
    """Return the topmost spans of loose work that are siblings of an invocation, the only one below
    their parent that encloses them in time, with its index.

    Context that is lost in a stream makes steps siblings of their agent. Steps of another scope
    are the agent's only where it has none of its own.
    """
    spans = tree.spans
    found: dict[int, int] = {}
    for top in work.tops:
        span = spans[top]
        beside = [
            node
            for node in invocations
            if node.enclosing is None
            and span.parent_id is not None
            and node.span.parent_id == span.parent_id
            and node.span.trace_id == span.trace_id
            and node.span.start_ns <= span.start_ns
            and span.end_ns <= node.span.end_ns
        ]
        if len(beside) != 1 or beside[0].span.kind is not Kind.AGENT:
            continue
        agent = beside[0].span
        is_of_it = span.scope == agent.scope or not (beside[0].steps or beside[0].inner)
        if is_of_it and span.resource.service == agent.resource.service:
            found[top] = beside[0].at
    return found


# --- Linking by time ------------------------------------------------------------------------------


class _Host(NamedTuple):
    """A run that may enclose loose work, by its start, and the index of its root."""

    start_ns: int
    end_ns: int
    root: int


def _hosts(
    units: Units, all_work: list[LooseWork], top_level: Iterable[tuple[Invocation, Extent]]
) -> dict[Unit, int]:
    """For each unit of loose work that exactly one run encloses in time, the root of that run.

    The longest are decided first, and runs inside a unit enclose others only if the unit itself is
    linked to none: so the order of arrival decides nothing, and links make no circle.
    """
    if not all_work:
        return {}
    runs: dict[Unit, list[_Host]] = {}
    for root, lasts in top_level:
        run = _Host(lasts.start_ns, lasts.end_ns, root.at)
        runs.setdefault(units.holding(root.at), []).append(run)
    inside = {work.unit for work in all_work if work.tops}
    ahead = [run for unit, found in runs.items() if unit not in inside for run in found]
    heapq.heapify(ahead)
    longest: list[_Host] = []
    hosts: dict[Unit, int] = {}
    for work in sorted(
        all_work, key=lambda work: (work.unit.start_ns, -work.unit.end_ns, work.anchor)
    ):
        unit = work.unit
        while ahead and ahead[0].start_ns <= unit.start_ns:
            begun = heapq.heappop(ahead)
            longest = heapq.nlargest(2, [*longest, begun], key=lambda run: (run.end_ns, run.root))
        around = [run for run in longest if run.end_ns >= unit.end_ns]
        if len(around) == 1:
            hosts[unit] = around[0].root
        elif work.tops:
            for run in runs.get(unit, ()):
                heapq.heappush(ahead, run)
    return hosts


def _owner(spans: Sequence[AgentSpan], members: Iterable[int]) -> str | None:
    """Return the agent that steps say they belong to; None where they name none, or several."""
    names = {
        facts.agent
        for i in members
        if isinstance(facts := spans[i].facts, ModelFacts | ToolFacts) and facts.agent is not None
    }
    return next(iter(names)) if len(names) == 1 else None


def is_own_call(span: AgentSpan) -> bool:
    """Return whether a span is a tool call made here; SERVER and CONSUMER spans report the far end
    of a call.
    """
    facts = span.facts
    return (
        isinstance(facts, ToolFacts)
        and bool(facts.calls)
        and span.span_kind not in (KIND_SERVER, KIND_CONSUMER)
    )
