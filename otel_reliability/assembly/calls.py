"""The tool calls of a run: one call told twice becomes one, and calls stand in order."""

from __future__ import annotations

import heapq
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

from otel_reliability.assembly.tree import NONE, Tree
from otel_reliability.model.span import Call, HandoffFacts, InvocationFacts, Kind, ToolFacts


class Item:
    """A call or a hand-off on its way into a path: where it stands, what stands below it, and what telling it again adds.

    `order` is (start, end, span id, position within its span). `parts` are the indices of the spans that told it.
    """

    __slots__ = ("agent", "call", "end_ns", "handoff", "index", "invocation", "items", "order", "outer", "parts")

    def __init__(self, index: int, order: tuple[int, int, bytes, int], call: Call, invocation: int) -> None:
        self.index = index
        self.order = order
        self.end_ns = order[1]
        self.call = call
        self.invocation = invocation
        self.handoff = False
        self.outer: Item | None = None
        self.items: list[Item] = []
        self.parts: tuple[int, ...] = (index,)
        self.agent = ""

    @property
    def start_ns(self) -> int:
        """When the call began."""
        return self.order[0]

    def absorb(self, other: Item) -> None:
        """Take in the same call told again: failed if any says so, the rest from whichever has it."""
        mine, theirs = self.call, other.call
        self.call = Call(
            mine.name if mine.name is not None else theirs.name,
            mine.call_id if mine.call_id is not None else theirs.call_id,
            mine.arguments if mine.arguments is not None else theirs.arguments,
            mine.failed or theirs.failed,
            mine.result if mine.result is not None else theirs.result,
            mine.effect if mine.effect is not None else theirs.effect,
        )
        self.end_ns = max(self.end_ns, other.end_ns)
        self.parts += other.parts


def collect(tree: Tree, down: Sequence[int], stands_for_call: dict[int, Call]) -> list[Item]:
    """The calls and hand-offs told by the spans of a run (parents first), each once, linked to the call it was made in."""
    return _merge_by_id(_merge_nested(tree, down, stands_for_call))


def _items(tree: Tree, i: int, stands_for_call: dict[int, Call]) -> Iterator[Item]:
    span = tree.spans[i]
    facts = span.facts
    order = (span.start_ns, span.end_ns, span.span_id)
    if span.kind is Kind.TOOL and isinstance(facts, ToolFacts):
        calls = facts.calls if len(facts.calls) < 2 else sorted(facts.calls, key=_call_order)
        for position, call in enumerate(calls):
            yield Item(i, (*order, position), call, tree.invocation[i])
    elif span.kind is Kind.HANDOFF:
        target = facts.target if isinstance(facts, HandoffFacts) else None
        item = Item(i, (*order, 0), Call(target, failed=span.failed), tree.invocation[i])
        item.handoff = True
        yield item
    elif i in stands_for_call and isinstance(facts, InvocationFacts):
        yield Item(i, (*order, 0), stands_for_call[i], tree.invocation[i])


def _call_order(call: Call) -> tuple[str, str]:
    return (call.name or "", call.call_id or "")


def _merge_nested(tree: Tree, down: Sequence[int], stands_for_call: dict[int, Call]) -> list[Item]:
    """A tool span in a tool span of the same name and no other call id is the same call; other calls lie inside it."""
    home: dict[int, Item] = {}
    kept: list[Item] = []
    for i in down:
        inside = home.get(tree.parent[i])
        items = list(_items(tree, i, stands_for_call))
        if items:
            enclosing = home.get(tree.tool[i]) if tree.model[i] == NONE else None
            if enclosing is not None and len(items) == 1 and _is_same(enclosing, items[0]):
                enclosing.absorb(items[0])
                inside = enclosing
            else:
                for item in items:
                    item.outer = inside
                inside = items[0]
                kept.extend(items)
        if inside is not None:
            home[i] = inside
    return kept


def _is_same(outer: Item, inner: Item) -> bool:
    mine, theirs = outer.call, inner.call
    if outer.handoff or inner.handoff:
        return False
    if mine.call_id is not None and theirs.call_id is not None:
        return mine.call_id == theirs.call_id
    return mine.name == theirs.name


def _merge_by_id(items: list[Item]) -> list[Item]:
    """Calls that overlap in time under one call id are one; of one id, one after the other, they are attempts."""
    by_id: dict[str, list[Item]] = {}
    gone: dict[int, Item] = {}
    kept: list[Item] = []
    for item in sorted(items, key=lambda item: item.order):
        call_id = item.call.call_id
        if call_id is None or item.handoff:
            kept.append(item)
            continue
        others = by_id.setdefault(call_id, [])
        first = next((other for other in others if _overlap(other, item) and _names_agree(other, item)), None)
        if first is None:
            others.append(item)
            kept.append(item)
        else:
            first.absorb(item)
            gone[id(item)] = first
    for item in kept:
        while item.outer is not None and id(item.outer) in gone:
            item.outer = gone[id(item.outer)]
        if item.outer is item:
            item.outer = None
    return kept


def _overlap(first: Item, second: Item) -> bool:
    """Whether the later to start began before the earlier ended; a call without length overlaps nothing but its equal."""
    return second.start_ns < first.end_ns or (second.start_ns == first.start_ns and second.end_ns == first.end_ns)


def _names_agree(first: Item, second: Item) -> bool:
    return first.call.name is None or second.call.name is None or first.call.name == second.call.name


def in_path_order(
    items: Iterable[Item], model_starts: dict[int, list[int]], parallel: Literal["canonical", "as_started"]
) -> list[Item]:
    """Calls in the order of the path: a call, then what was called inside it; parallel calls in an order of their own.

    Calls issued together are a race: which span starts first is chance, so within such a group names decide.
    """
    tops: list[Item] = []
    for item in items:
        item.items = []
    for item in items:
        (tops if item.outer is None else item.outer.items).append(item)
    path: list[Item] = []
    pending = _ordered(tops, model_starts, parallel)[::-1]
    while pending:
        item = pending.pop()
        path.append(item)
        if item.items:
            pending.extend(reversed(_ordered(item.items, model_starts, parallel)))
    return path


def _ordered(
    items: list[Item], model_starts: dict[int, list[int]], parallel: Literal["canonical", "as_started"]
) -> list[Item]:
    """Siblings in order: groups of each invocation, merged by where their first call stands."""
    if len(items) < 2:
        return items
    streams: dict[int, list[Item]] = {}
    for item in sorted(items, key=lambda item: item.order):
        streams.setdefault(item.invocation, []).append(item)
    groups = [list(_groups(stream, model_starts.get(invocation, []))) for invocation, stream in streams.items()]
    merged = heapq.merge(*groups, key=lambda group: group[0].order)
    ordered: list[Item] = []
    for group in merged:
        if len(group) > 1 and parallel == "canonical":
            group.sort(key=_canonical_order)
        ordered.extend(group)
    return ordered


def _canonical_order(item: Item) -> tuple[str, int, bytes, int]:
    return (item.call.name or "", item.order[0], item.order[2], item.order[3])


def _groups(stream: list[Item], model_starts: list[int]) -> Iterator[list[Item]]:
    """A call joins the group if it starts before the group's earliest end, or with its last, no model between."""
    group: list[Item] = []
    earliest_end = 0
    for item in stream:
        if group and _joins(item, group[-1], earliest_end, model_starts):
            group.append(item)
            earliest_end = min(earliest_end, item.end_ns)
            continue
        if group:
            yield group
        group, earliest_end = [item], item.end_ns
    if group:
        yield group


def _joins(item: Item, last: Item, earliest_end: int, model_starts: list[int]) -> bool:
    if item.handoff or last.handoff:
        return False
    if item.start_ns >= earliest_end and item.start_ns != last.start_ns:
        return False
    return bisect_right(model_starts, item.start_ns) == bisect_right(model_starts, last.start_ns)
