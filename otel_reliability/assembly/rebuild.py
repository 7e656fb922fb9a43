"""Runs from the spans of a buffer: one pure function for every shape."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct

from otel_reliability.assembly import conversations, echoes, reports
from otel_reliability.assembly.accounts import BESIDE_AGENT
from otel_reliability.assembly.build import Linked, RunBuilder
from otel_reliability.assembly.extent import first_runs_below, is_run, members_of
from otel_reliability.assembly.final_ids import FinalIds
from otel_reliability.assembly.late_outcomes import ReportedOutcomes
from otel_reliability.assembly.orphans import Orphans, decide, is_own_call
from otel_reliability.assembly.owners import misplaced
from otel_reliability.assembly.replays import find as find_replays
from otel_reliability.assembly.reports import Evaluated
from otel_reliability.assembly.span_tree import NONE, SpanTree
from otel_reliability.assembly.units import Units
from otel_reliability.assembly.unseen_steps import UnclaimedCalls
from otel_reliability.config import Settings
from otel_reliability.model.run import Run
from otel_reliability.model.span import (
    AgentSpan,
    Evaluation,
    TraceId,
    conversation_of,
    is_conversation,
)

_NO_ORPHANS: Final = Orphans({}, [], {}, {}, {})
_NOTHING_FINAL: Final[Mapping[TraceId, FinalIds]] = {}


class Rebuilt(Struct, frozen=True, eq=False):
    """The runs of a trace, top-level runs before the runs nested in them.

    - `roots`: for each run the index of its root, or of its first span, in `tree`.
    - `has_gap`: whether the local parent of any agent span is missing, so that it may still arrive.
    - `orphans`: the decisions about work with no invocation above it.
    - `units`: those of the tree. `evaluations`: those that arrived apart from spans, by target.
    - `lost_annotations`: the indices of spans whose annotations joined no run.
    """

    runs: list[Run]
    roots: list[int]
    tree: SpanTree
    has_gap: bool
    orphans: Orphans
    units: Units
    evaluations: Evaluated
    lost_annotations: list[int]


class Rebuild:
    """Assembles under one set of settings, with outcomes that were reported apart from spans. It
    holds caches and nothing else.

    >>> from otel_reliability.testing import agent, tool
    >>> [run.path for run in Rebuild(Settings())([tool(2, 1, "search"), agent(1)]).runs]
    [('search',)]
    """

    def __init__(self, settings: Settings, reported: ReportedOutcomes | None = None) -> None:
        self._builder = RunBuilder(settings, reported)

    def __call__(
        self,
        spans: Sequence[AgentSpan],
        evaluations: Iterable[Evaluation] = (),
        *,
        joined: bool = False,
        final_ids: Mapping[TraceId, FinalIds] = _NOTHING_FINAL,
    ) -> Rebuilt:
        """Return all runs of a trace, or of several that are `joined`.

        `evaluations` arrived apart from spans. `final_ids`: what is remembered of final runs, by
        trace.
        """
        if (
            any(map(conversation_of, spans))
            if joined
            else spans and is_conversation(spans[0].trace_id)
        ):
            spans = conversations.put_together(spans)
            joined = True
        tree, units, orphans, has_gap = _linked(spans, final_ids, joined=joined)
        evaluated: Evaluated = {}
        if evaluations:
            evaluated = reports.targets(tree, units, evaluations, final_ids)
        linked = Linked(tree, units, evaluated, _calls_beside_agents(tree, orphans))
        runs: list[Run] = []
        roots: list[int] = []
        for root, members in members_of(tree).items():
            if is_run(tree, root, members):
                runs.append(self._builder.build(linked, root, members))
                roots.append(root.at)
        for implicit in (*orphans.implicit, *orphans.keyed.values()):
            runs.append(self._builder.build_implicit(linked, implicit))
            roots.append(implicit.members[0])
        runs = echoes.marked(runs, roots, tree)
        lost = _lost_annotations(tree, orphans)
        tree.release()
        return Rebuilt(runs, roots, tree, has_gap, orphans, units, evaluated, lost)


def _linked(
    spans: Sequence[AgentSpan], final_ids: Mapping[TraceId, FinalIds], *, joined: bool
) -> tuple[SpanTree, Units, Orphans, bool]:
    """Return the tree of spans with its units and the decisions about its orphans, and whether a
    local parent is missing (before any span is moved).

    Each stage may move spans, and the tree is made again: steps below another agent than theirs,
    attempts at a run, orphans that a run encloses. Indices hold from tree to tree, since
    `SpanTree.spans` is sorted and has each span once.
    """
    tree = SpanTree(spans, joined=joined)
    has_gap = any(node.gap for node in tree.invocations if node.enclosing is None) or any(
        tree.has_gap(tree.top_of(i)) for i in tree.orphans
    )
    moved = misplaced(tree)
    if moved:
        tree.release()
        tree = SpanTree(tree.spans, moved, joined=joined)
    replays = find_replays(tree)
    if replays.linked:
        moved = {**moved, **replays.linked}
        tree.release()
        tree = SpanTree(tree.spans, moved, joined=joined, attempts=replays.attempt)
    units = Units(tree)
    if not tree.orphans and not replays.anchors:
        return tree, units, _NO_ORPHANS, has_gap
    orphans = decide(tree, units, final_ids, replays)
    if orphans.linked:
        moved = {**moved, **orphans.linked}
        tree.release()
        tree = SpanTree(tree.spans, moved, joined=joined, attempts=replays.attempt)
        units = Units(tree)
    if replays.anchors:  # the missing parents of attempts may still arrive
        waiting = dict.fromkeys(replays.anchors.values(), NONE)
        orphans = orphans._replace(linked={**waiting, **orphans.linked})
    return tree, units, orphans, has_gap


def _calls_beside_agents(tree: SpanTree, orphans: Orphans) -> UnclaimedCalls | None:
    """Return the tool calls that belong to no run although there is an agent beside them."""
    if not orphans.unclaimed:
        return None
    spans = tree.spans
    calls = [
        spans[i]
        for i, account in orphans.unclaimed.items()
        if account is BESIDE_AGENT and is_own_call(spans[i])
    ]
    return UnclaimedCalls(calls) if calls else None


def _lost_annotations(tree: SpanTree, orphans: Orphans) -> list[int]:
    """Return the spans with annotations that joined no run: of work in no run, and above several
    runs or none.
    """
    if not orphans.unclaimed and not tree.annotators:
        return []
    spans = tree.spans
    lost = [i for i in orphans.unclaimed if spans[i].notes is not None]
    noted = [i for i in tree.annotators if spans[i].notes is not None]
    below = first_runs_below(tree) if noted else {}
    return [*lost, *(i for i in noted if len(below.get(i, ())) != 1)]
