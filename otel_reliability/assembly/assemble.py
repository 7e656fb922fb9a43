"""Runs from the spans of a trace: one pure function for every shape."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

from otel_reliability.assembly import conversations
from otel_reliability.assembly import evaluations as apart
from otel_reliability.assembly.closed_traces import ClosedIds
from otel_reliability.assembly.orphans import Orphans, decide
from otel_reliability.assembly.run_builder import RunBuilder
from otel_reliability.assembly.span_tree import NONE, Invocation, SpanTree
from otel_reliability.config import Settings
from otel_reliability.model.run import Run
from otel_reliability.model.span import AgentSpan, Evaluation, SpanRef, TraceId, conversation_of, is_conversation

Account: TypeAlias = tuple[str, str]
"""The fate of a span: (disposition, reason)."""
USED: Final[Account] = ("used", "")
NO_CONVENTION: Final[Account] = ("other", "no_convention")
NO_AGENT: Final[Account] = ("other", "no_agent")
BESIDE_AGENT: Final[Account] = ("other", "beside_agent")
NO_RUN: Final[Account] = ("other", "no_run")
DUPLICATE: Final[Account] = ("duplicate", "")
_NO_ORPHANS: Final = Orphans({}, [], {}, [], 0, 0)
_NOTHING_CLOSED: Final[Mapping[TraceId, ClosedIds]] = {}


class Assembled(NamedTuple):
    """The runs of a trace, top-level runs before the runs nested in them.

    - `roots`: for each run the index of its root, or of its first span, in `tree`.
    - `has_gap`: whether the local parent of any agent span is missing, so that it may still arrive.
    - `anchors`: what stands in for the roots of implicit runs and of linked orphans. `linked`: these orphans and their host.
    - `keyed`: the spans of each run of a run key, by the hash of the key. `accounts`: what became of the spans.
    """

    runs: list[Run]
    roots: list[int]
    tree: SpanTree
    has_gap: bool
    anchors: Sequence[SpanRef]
    linked: Mapping[int, int]
    keyed: Mapping[bytes, Sequence[int]]
    accounts: tuple[tuple[Account, int], ...]


class Assemble:
    """Assembles under one set of settings.

    >>> from otel_reliability.testing import agent, tool
    >>> [run.path for run in Assemble(Settings())([tool(2, 1, "search"), agent(1)]).runs]
    [('search',)]
    """

    def __init__(self, settings: Settings) -> None:
        self._builder = RunBuilder(settings)

    def __call__(
        self,
        spans: Sequence[AgentSpan],
        evaluations: Iterable[Evaluation] = (),
        *,
        joined: bool = False,
        closed: Mapping[TraceId, ClosedIds] = _NOTHING_CLOSED,
    ) -> Assembled:
        """Return all runs of a trace, or of several that are `joined`.

        `evaluations` arrived apart from spans. `closed`: what is remembered of final runs, by trace.
        """
        received = len(spans)
        if any(map(conversation_of, spans)) if joined else spans and is_conversation(spans[0].trace_id):
            spans, joined = conversations.put_together(spans), True
        tree = SpanTree(spans, joined=joined)
        orphans = _NO_ORPHANS
        has_gap = any(node.gap for node in tree.invocations if node.over is None)
        if tree.orphans:
            has_gap = has_gap or any(tree.has_gap(tree.top_of(i)) for i in tree.orphans)
            orphans = decide(tree, closed)
            if orphans.linked:
                tree = SpanTree(tree.spans, orphans.linked, joined=joined)
        if evaluations:
            tree.evaluations = apart.targets(tree, evaluations)
        runs: list[Run] = []
        roots: list[int] = []
        used = 0
        members = _members(tree)
        for root in tree.invocations:
            if root.root is root:
                own = members[root]
                run = self._builder.run_of(tree, root, own)
                if run is not None:
                    runs.append(run)
                    roots.append(root.at)
                    if root.above is None:
                        used += len(own)
        for implicit in (*orphans.implicit, *orphans.keyed.values()):
            runs.append(self._builder.build(tree, None, implicit.members, implicit.agent, implicit))
            roots.append(implicit.members[0])
            used += len(implicit.members)
        keyed = {key: implicit.members for key, implicit in orphans.keyed.items()}
        number, others = len(tree.spans), len(tree.others)
        return Assembled(runs, roots, tree, has_gap, orphans.anchors, orphans.linked, keyed, (
            (USED, used), (NO_CONVENTION, others),
            (BESIDE_AGENT, orphans.beside_agent), (NO_AGENT, orphans.without_agent),
            (NO_RUN, number - used - others - orphans.beside_agent - orphans.without_agent), (DUPLICATE, received - number),
        ))  # fmt: skip


def _members(tree: SpanTree) -> dict[Invocation, list[int]]:
    """The spans of each run, in order: a run has the steps of the runs nested in it too."""
    invocations = tree.invocations
    if len(invocations) == 1:
        node = invocations[0]
        if len(node.steps) + 1 == len(tree.spans):
            return {node: list(range(len(tree.spans)))}
        return {node: sorted([node.at, *node.steps, *_annotators_of(tree, node)])}
    found: dict[Invocation, list[int]] = {}
    for node in invocations:
        root: Invocation | None = node.root
        while root is not None:
            found.setdefault(root, []).extend((node.at, *node.steps))
            root = root.above
    for node, members in found.items():
        if tree.annotators and node.above is None:
            members.extend(_annotators_of(tree, node))
        members.sort()
    return found


def _annotators_of(tree: SpanTree, root: Invocation) -> list[int]:
    """Spans above a run that only carry notes or evaluations, if it is the only run below them."""
    if not tree.annotators:
        return []
    tops = [node for node in tree.invocations if node.root is node and node.over is None]
    return [i for i in tree.annotators if [top for top in tops if _is_above(tree, i, top.at)] == [root]]


def _is_above(tree: SpanTree, i: int, below: int) -> bool:
    while below != NONE:
        if below == i:
            return True
        below = tree.parent[below]
    return False
