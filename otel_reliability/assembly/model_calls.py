"""The model calls of a run: a call that two spans report becomes one, with its tokens."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from otel_reliability.assembly.span_tree import NONE, SpanTree
from otel_reliability.model.span import AgentSpan, ModelFacts, Tokens

ModelSpan: TypeAlias = tuple[int, ModelFacts]
"""A model call: the index of its span, and its facts."""
_NEAR = 4
"""Siblings that a model call is compared with."""


def each_once(tree: SpanTree, items: list[ModelSpan]) -> list[ModelSpan]:
    """Return each model call once: a model span inside a model span is one call; so are two of different scopes under one
    parent, of which one lies in time within the other, unless their token counts differ. A log event adds what
    its span leaves out.
    """
    details = tree.details
    if details:
        items = [(i, _with_inner(facts, details.get(i, ()))) for i, facts in items]
    known = {i for i, _ in items}
    inner: dict[int, list[ModelFacts]] = {}
    outer: list[ModelSpan] = []
    for i, facts in items:
        over = tree.in_model.get(i, NONE)
        if over in known:
            while tree.in_model.get(over, NONE) in known:
                over = tree.in_model[over]
            inner.setdefault(over, []).append(facts)
        else:
            outer.append((i, facts))
    return _without_siblings(tree, [(i, _with_inner(facts, inner.get(i, ()))) for i, facts in outer])


def _with_inner(outer: ModelFacts, inner: Sequence[ModelFacts]) -> ModelFacts:
    """Field by field the outer's value, else that of the inner ones (tokens: their sum)."""
    if not inner:
        return outer
    tokens = Tokens(
        outer.tokens.input if outer.tokens.input is not None else _sum(facts.tokens.input for facts in inner),
        outer.tokens.output if outer.tokens.output is not None else _sum(facts.tokens.output for facts in inner),
    )
    first = inner[0]
    return outer._replace(
        model=outer.model or first.model,
        request_model=outer.request_model or first.request_model,
        tokens=tokens,
        asked_for_tools=outer.asked_for_tools or any(facts.asked_for_tools for facts in inner),
        messages=outer.messages or any(facts.messages for facts in inner),
        calls=outer.calls or tuple(call for facts in inner for call in facts.calls),
        context_limit=outer.context_limit or first.context_limit,
        cost=outer.cost if outer.cost is not None else first.cost,
        response_id=outer.response_id or first.response_id,
        emits_no_tools=outer.emits_no_tools or any(facts.emits_no_tools for facts in inner),
        prompt=outer.prompt or first.prompt,
        tools=outer.tools or first.tools,
    )


def _sum(numbers: Iterable[int | None]) -> int | None:
    known = [number for number in numbers if number is not None]
    return sum(known) if known else None


def _without_siblings(tree: SpanTree, items: list[ModelSpan]) -> list[ModelSpan]:
    kept: list[ModelSpan] = []
    by_parent: dict[int, list[int]] = {}
    for item in items:
        parent = tree.kept_above(item[0])
        siblings = by_parent.setdefault(parent, [])
        same = next((at for at in reversed(siblings[-_NEAR:]) if _is_same(tree, kept[at], item)), None)
        if same is None or parent == NONE:
            siblings.append(len(kept))
            kept.append(item)
        else:
            kept[same] = (kept[same][0], _with_inner(kept[same][1], [item[1]]))
    return kept


def _is_same(tree: SpanTree, one: ModelSpan, two: ModelSpan) -> bool:
    first, second = tree.spans[one[0]], tree.spans[two[0]]
    if first.scope == second.scope or not _within(first, second):
        return False
    return all(a is None or b is None or a == b for a, b in zip(one[1].tokens, two[1].tokens, strict=True))


def _within(a: AgentSpan, b: AgentSpan) -> bool:
    return (a.start_ns <= b.start_ns and b.end_ns <= a.end_ns) or (b.start_ns <= a.start_ns and a.end_ns <= b.end_ns)
