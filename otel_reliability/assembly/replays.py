"""Invocations that a durable engine reports more than once.

An engine that survives a crash (Temporal, DBOS, Restate, Inngest) executes a run again from its
start, and gives each step that had finished its result from a journal. Spans are made again all
the same: what is one run has an attempt for each time that its process went away. Attempts are
recognized by the ids of their steps, which their providers made: the response ids of models and the
ids of tool calls. An attempt whose steps are all in another one, of the same agent and
conversation, is a part of that one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias

from msgspec import Struct

from otel_reliability.assembly.invocations import Invocation
from otel_reliability.assembly.span_tree import SpanTree
from otel_reliability.model.span import AgentSpan, ModelFacts, Session, SpanRef, ToolFacts

MAX_ATTEMPTS: Final = 64
"""Attempts with one id above which the id identifies nothing."""
_Item: TypeAlias = tuple[str | int | None, ...]
"""A step as every attempt reports it."""
_ID: Final = "id"
_SIGNATURE: Final = "signature"


class Replays(Struct, frozen=True, eq=False):
    """The attempts of a tree that are part of others.

    - `linked`: their topmost spans, with the invocation that they are part of (indices). `attempt`:
      the same spans, with what distinguishes the attempts.
    - `dropped`: the steps of attempts that are part of work without a root.
    - `anchors`: missing parents of attempts, with the index of a span below.
    """

    linked: Mapping[int, int] = {}
    attempt: Mapping[int, int] = {}
    dropped: frozenset[int] = frozenset()
    anchors: Mapping[SpanRef, int] = {}


NO_REPLAYS: Final = Replays()


class _Attempt(Struct, eq=False):
    """Steps with one invocation, or one missing parent, above them. `node`: the invocation."""

    first: int
    node: Invocation | None
    anchor: SpanRef
    has_gap: bool
    agent: str | None = None
    session: Session | None = None
    members: list[int] = []
    items: set[_Item] = set()
    is_known: bool = True

    def add(self, i: int, span: AgentSpan, items: Iterable[_Item] | None) -> None:
        self.members.append(i)
        if items is None:
            self.is_known = self.is_known and span.failed
        else:
            self.items.update(items)
        facts = span.facts
        if self.agent is None and isinstance(facts, ModelFacts | ToolFacts):
            self.agent = facts.agent
        if self.session is None:
            self.session = span.session


def find(tree: SpanTree) -> Replays:
    """Return the attempts of a tree that are part of others."""
    if len(tree.invocations) + bool(tree.orphans) < 2 and len(tree.orphans) < 2:
        return NO_REPLAYS
    steps = _identified(tree)
    ids = [item for items in steps.values() for item in items or () if item[0] == _ID]
    if len(set(ids)) == len(ids):
        return NO_REPLAYS
    attempts = _attempts(tree, steps)
    with_id: dict[_Item, list[_Attempt]] = {}
    for one in attempts:
        for item in one.items:
            if item[0] == _ID:
                with_id.setdefault(item, []).append(one)
    found = [
        (one, whole)
        for one in attempts
        if one.is_known and (whole := _whole(tree, one, with_id)) is not None
    ]
    if not found:
        return NO_REPLAYS
    linked: dict[int, int] = {}
    attempt_of: dict[int, int] = {}
    for one, whole in found:
        if whole.node is not None:
            tops = _tops(tree, one)
            linked.update(dict.fromkeys(tops, whole.node.at))
            attempt_of.update(dict.fromkeys(tops, one.first))
    loose = [(one, whole) for one, whole in found if one.node is None]
    dropped = {i for one, whole in loose if whole.node is None for i in one.members}
    anchors = {one.anchor: one.first for one, _ in loose if one.has_gap}
    return Replays(linked, attempt_of, frozenset(dropped), anchors)


def _identified(tree: SpanTree) -> dict[int, list[_Item] | None]:
    """Return what identifies the model and tool calls of a tree; None where nothing does."""
    found: dict[int, list[_Item] | None] = {}
    for i, span in enumerate(tree.spans):
        facts = span.facts
        if (type(facts) is ModelFacts or type(facts) is ToolFacts) and i not in tree.in_model:
            found[i] = _items(facts)
    return found


def _attempts(tree: SpanTree, steps: Mapping[int, list[_Item] | None]) -> list[_Attempt]:
    """Return all attempts of a tree with a model or tool call, by the order of their first ones."""
    found: dict[SpanRef, _Attempt] = {}
    for i, items in steps.items():
        span = tree.spans[i]
        node = tree.nodes[i]
        top = tree.top_of(i) if node is None else node.at
        anchor = tree.anchor(top) if node is None else tree.ref(top)
        attempt = found.get(anchor)
        if attempt is None:
            attempt = _Attempt(i, node, anchor, has_gap=node is None and tree.has_gap(top))
            if node is not None:
                attempt.agent = node.name
                attempt.session = node.span.session
            found[anchor] = attempt
        attempt.add(i, span, items)
    return list(found.values())


def _items(facts: ModelFacts | ToolFacts) -> list[_Item] | None:
    """Return what identifies a step; None where nothing does. A model call without an id has the
    tokens that it used, which identify it only beside steps with ids.
    """
    if isinstance(facts, ToolFacts):
        ids: list[_Item] = [(_ID, call.call_id, call.name) for call in facts.calls]
        return None if any(call.call_id is None for call in facts.calls) else ids
    if facts.response_id is not None:
        return [(_ID, facts.response_id)]
    used = facts.tokens.input
    wrote = facts.tokens.output
    name = facts.model or facts.request_model
    return None if used is None or wrote is None else [(_SIGNATURE, name, used, wrote)]


def _whole(
    tree: SpanTree, one: _Attempt, with_id: Mapping[_Item, list[_Attempt]]
) -> _Attempt | None:
    """Return the attempt that has all steps of this one; None where this one is a run."""
    ids = [item for item in one.items if item[0] == _ID]
    if not ids:
        return None
    beside = min((with_id[item] for item in ids), key=len)
    if not 1 < len(beside) <= MAX_ATTEMPTS:
        return None
    around = [other for other in beside if other is one or _has_all_of(tree, other, one)]
    whole = max(around, key=_rank)
    return None if whole is one else whole


def _has_all_of(tree: SpanTree, other: _Attempt, one: _Attempt) -> bool:
    if not one.items <= other.items:
        return False
    if None not in (one.agent, other.agent) and one.agent != other.agent:
        return False
    mine = one.session
    theirs = other.session
    if mine is not None and theirs is not None and mine.id != theirs.id:
        return False
    if one.node is None or other.node is None:
        return True
    return not (
        tree.is_below(one.node.at, other.node.at) or tree.is_below(other.node.at, one.node.at)
    )


def _rank(one: _Attempt) -> tuple[int, bool, int]:
    """The attempt with most steps; of equal ones that with a root, and the first."""
    return (len(one.items), one.node is not None, -one.first)


def _tops(tree: SpanTree, one: _Attempt) -> list[int]:
    """Return the topmost spans of an attempt: its invocation, or its steps without one above."""
    if one.node is not None:
        return [one.node.at]
    return list(dict.fromkeys(map(tree.top_kept, one.members)))
