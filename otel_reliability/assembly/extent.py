"""Which invocations are runs, which spans belong to each, and from when to when it lasts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from msgspec import Struct

from otel_reliability.assembly.invocations import Invocation
from otel_reliability.assembly.span_tree import NONE, SpanTree
from otel_reliability.model.span import KIND_CLIENT, KIND_SERVER, STEPS, AgentSpan, Kind

UNTIMED: Final = frozenset({Kind.OTHER, Kind.COMPRESSION, Kind.EVALUATION})
"""Kinds that a run does not begin or end with."""
_AGENT: Final = Kind.AGENT
_TOOL: Final = Kind.TOOL


class Extent(Struct, frozen=True, gc=False):
    """From when to when a run lasts."""

    start_ns: int
    end_ns: int


def members_of(tree: SpanTree) -> dict[Invocation, list[int]]:
    """Return the spans of each root, in order: a run has the steps of the runs nested in it too."""
    invocations = tree.invocations
    if len(invocations) == 1 and len(invocations[0].steps) + 1 == len(tree.spans):
        return {invocations[0]: list(range(len(tree.spans)))}
    found: dict[Invocation, list[int]] = {}
    for node in invocations:
        root: Invocation | None = node.root
        while root is not None:
            found.setdefault(root, []).extend((node.at, *node.steps))
            root = root.run_above
    if tree.annotators:
        below = first_runs_below(tree)
        for i in tree.annotators:
            if len(roots := below.get(i, ())) == 1:
                found[roots[0]].append(i)
    for members in found.values():
        members.sort()
    return found


def first_runs_below(tree: SpanTree) -> dict[int, list[Invocation]]:
    """Return the roots of the first two top-level runs below each span."""
    found: dict[int, list[Invocation]] = {}
    for node in tree.invocations:
        above = NONE if node.enclosing is not None else tree.kept_above(node.at)
        while above != NONE and len(known := found.setdefault(above, [])) < 2:
            known.append(node)
            above = tree.kept_above(above)
    return found


def is_run(tree: SpanTree, root: Invocation, members: Sequence[int]) -> bool:
    """Return whether the spans of a root are a run. A container, or a nested agent, that did
    nothing is none; but a workflow that names its conversation did something, which is not seen.
    """
    spans = tree.spans
    if root.run_above is None:
        if root.is_agent or is_hollow(root):
            return True
        return any(spans[i].kind in STEPS or spans[i].kind is _AGENT for i in members)
    if root.is_agent and root.span.failed:
        return True
    return any(spans[i].kind in STEPS for i in members) or lacks_its_steps(tree, root)


def is_hollow(root: Invocation) -> bool:
    """Return whether a workflow at the top names its conversation, and nothing lies below it: what
    it did has lost its parents.
    """
    span = root.span
    if span.kind is not Kind.WORKFLOW or span.session is None or root.is_agent:
        return False
    return root.enclosing is None and not root.steps and not root.inner


def lacks_its_steps(tree: SpanTree, root: Invocation) -> bool:
    """Return whether a tool called an agent that has no spans below it, while calls that may be its
    own lie below its caller: its path is unknown.
    """
    caller = root.enclosing
    if caller is None or not root.below_tool or root.name is None or root.steps or root.inner:
        return False
    spans = tree.spans
    start = root.span.start_ns
    end = root.span.end_ns
    return root.span.kind is _AGENT and any(
        spans[i].kind is _TOOL and start <= spans[i].start_ns and spans[i].end_ns <= end
        for i in caller.steps
    )


def top_level_runs(tree: SpanTree) -> Iterator[tuple[Invocation, Extent]]:
    """Yield the roots of runs that are in no other run, with the extents of these."""
    spans = tree.spans
    for root, members in members_of(tree).items():
        if root.run_above is None and is_run(tree, root, members):
            yield root, extent(spans, [i for i in members if spans[i].kind not in UNTIMED])


def extent(spans: Sequence[AgentSpan], timed: Sequence[int]) -> Extent:
    """Return the extent of a run. `timed`: its spans of kinds that are not `UNTIMED`, in order."""
    return Extent(spans[timed[0]].start_ns, max([spans[i].end_ns for i in timed]))


def own_extent(spans: Sequence[AgentSpan], root: AgentSpan, timed: Iterable[int]) -> Extent:
    """Return the extent of a run by the spans of its root's service: the clocks of others may
    differ, and their work may go on after it.
    """
    service = root.resource.service
    return extent(spans, [i for i in timed if spans[i].resource.service == service])


def has_shifted_call(tree: SpanTree, members: Iterable[int]) -> bool:
    """Return whether a service answered a call of another one only after its caller had the answer,
    or before its caller asked: its clock is ahead, or behind.
    """
    spans = tree.spans
    for i in members:
        over = tree.parent[i]
        if over == NONE:
            continue
        called = spans[i]
        caller = spans[over]
        is_waited_for = called.span_kind == KIND_SERVER or caller.span_kind == KIND_CLIENT
        if (
            is_waited_for
            and caller.start_ns < caller.end_ns
            and called.start_ns < called.end_ns
            and (caller.end_ns <= called.start_ns or called.end_ns <= caller.start_ns)
            and called.resource.service != caller.resource.service
        ):
            return True
    return False


def in_background(tree: SpanTree, root: Invocation, members: Sequence[int]) -> set[int]:
    """Return the spans of a run that lie in invocations which it started in the background."""
    if not tree.has_background:
        return set()
    return {
        i
        for i in members
        if (node := tree.innermost(i)) is not None
        and node.background is not None
        and node.background is not root.background
    }
