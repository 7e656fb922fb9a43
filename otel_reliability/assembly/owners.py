"""Steps below an agent that they do not belong to.

Context that is lost or leaks (streams, callbacks, threads) gives a span a wrong parent, or none.
Many spans name the agent they belong to, some the id of its invocation: where the invocation above
is of another agent, and one of the named agent encloses the step in time, the step is its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from otel_reliability.assembly.invocations import Invocation
from otel_reliability.assembly.span_tree import NONE, SpanTree
from otel_reliability.model.span import AgentSpan, Kind, ModelFacts, ToolFacts


def misplaced(tree: SpanTree) -> dict[int, int]:
    """Return the steps that lie below an agent they do not belong to, with the invocation that they
    do belong to (indices).

    A step that encloses the invocation of the agent it names has called it, and stays. So does one
    that several invocations may have taken, and one of another scope: it may have the name from a
    context that it shares with its callers.
    """
    if len(tree.invocations) < 2 and not tree.orphans:
        return {}
    named = _naming_agents(tree.spans)
    if not named:
        return {}
    by_name, by_id = _agents(tree)
    found: dict[int, int] = {}
    for i, (agent, invocation_id) in named.items():
        span = tree.spans[i]
        here = _agent_above(tree.nodes[i])
        known = by_id.get(invocation_id or "", ())
        if here is None or here.name != agent:
            known = known or by_name.get(agent, ())
        owner = _only_around(tree, i, [node for node in known if node.span.scope == span.scope])
        if owner is not None and owner is not here and not _is_inside_moved(tree, i, found):
            found[i] = owner.at
    return found


def _naming_agents(spans: Sequence[AgentSpan]) -> dict[int, tuple[str, str | None]]:
    """Return the steps that name the agent they belong to, with its name and the id of its
    invocation.
    """
    found: dict[int, tuple[str, str | None]] = {}
    for i, span in enumerate(spans):
        facts = span.facts
        if (type(facts) is ModelFacts or type(facts) is ToolFacts) and facts.agent is not None:
            found[i] = (facts.agent, facts.invocation_id)
    return found


_Agents: TypeAlias = dict[str, list[Invocation]]


def _agents(tree: SpanTree) -> tuple[_Agents, _Agents]:
    """Return the agents of a tree by their names, and by the ids of their invocations."""
    by_name: _Agents = {}
    by_id: _Agents = {}
    for node in tree.invocations:
        if node.span.kind is not Kind.AGENT:
            continue
        if node.name is not None:
            by_name.setdefault(node.name, []).append(node)
        if node.facts.invocation_id is not None:
            by_id.setdefault(node.facts.invocation_id, []).append(node)
    return by_name, by_id


def _agent_above(node: Invocation | None) -> Invocation | None:
    """Return the nearest agent with a name: what is unnamed, or no agent, is part of one above."""
    while node is not None and (node.name is None or node.span.kind is not Kind.AGENT):
        node = node.enclosing
    return node


def _only_around(tree: SpanTree, i: int, owners: Sequence[Invocation]) -> Invocation | None:
    """Return the one of these invocations that encloses a span in time, and is not below it."""
    span = tree.spans[i]
    around = [node for node in owners if _encloses(node.span, span)]
    if len(around) != 1 or tree.is_below(around[0].at, i):
        return None
    return around[0]


def _encloses(outer: AgentSpan, inner: AgentSpan) -> bool:
    return (
        outer.start_ns <= inner.start_ns
        and inner.end_ns <= outer.end_ns
        and outer.trace_id == inner.trace_id
    )


def _is_inside_moved(tree: SpanTree, i: int, moved: Mapping[int, int]) -> bool:
    """Return whether a step lies in another one that is moved, and so goes with it."""
    above = tree.parent[i]
    while above != NONE:
        if above in moved:
            return True
        above = tree.parent[above]
    return False
