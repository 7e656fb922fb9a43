"""The model calls of a run: one call told twice becomes one, with its tokens, and the pressure they make."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from otel_reliability.assembly.tree import NONE, Tree
from otel_reliability.model.span import AgentSpan, Kind, ModelFacts, Tokens


class ModelItem(NamedTuple):
    """One model call: the span that stands for it, and its facts after telling it twice was undone."""

    at: int
    facts: ModelFacts


def collect(tree: Tree, spans: Iterable[int]) -> list[ModelItem]:
    """The model calls told by the spans of a run, in order."""
    models = [i for i in spans if tree.spans[i].kind is Kind.MODEL]
    if len(models) < 2:
        return [ModelItem(i, _facts(tree, i)) for i in models]
    inner: dict[int, list[int]] = {}
    outer: list[int] = []
    known = set(models)
    for i in models:
        above = tree.model[i]
        if above != NONE and above in known:
            inner.setdefault(_outermost(tree, above, known), []).append(i)
        else:
            outer.append(i)
    items = [ModelItem(i, _with_inner(_facts(tree, i), [_facts(tree, j) for j in inner.get(i, ())])) for i in outer]
    return _without_siblings(tree, items)


def _facts(tree: Tree, i: int) -> ModelFacts:
    found = tree.spans[i].facts
    return found if isinstance(found, ModelFacts) else ModelFacts()


def _outermost(tree: Tree, i: int, known: set[int]) -> int:
    while tree.model[i] != NONE and tree.model[i] in known:
        i = tree.model[i]
    return i


def _with_inner(outer: ModelFacts, inner: Sequence[ModelFacts]) -> ModelFacts:
    """A model span inside a model span: the outer's value field by field, else the sum of the inner."""
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
    )


def _sum(numbers: Iterable[int | None]) -> int | None:
    known = [number for number in numbers if number is not None]
    return sum(known) if known else None


def _without_siblings(tree: Tree, items: list[ModelItem]) -> list[ModelItem]:
    """Two model spans of different scopes under one parent, one in time within the other, are one call, unless their
    token counts differ (an SDK that traces itself beside its instrumentation).
    """
    kept: list[ModelItem] = []
    by_parent: dict[int, list[int]] = {}
    for item in items:
        parent = tree.parent[item.at]
        twins = by_parent.setdefault(parent, [])
        twin = next((at for at in reversed(twins[-4:]) if _are_twins(tree, kept[at], item)), None)
        if twin is None or parent == NONE:
            twins.append(len(kept))
            kept.append(item)
        else:
            kept[twin] = ModelItem(kept[twin].at, _with_inner(kept[twin].facts, [item.facts]))
    return kept


def _are_twins(tree: Tree, one: ModelItem, two: ModelItem) -> bool:
    first, second = tree.spans[one.at], tree.spans[two.at]
    if first.scope == second.scope or not _within(first, second):
        return False
    mine, theirs = one.facts.tokens, two.facts.tokens
    return all(a is None or b is None or a == b for a, b in zip(mine, theirs, strict=True))


def _within(a: AgentSpan, b: AgentSpan) -> bool:
    return (a.start_ns <= b.start_ns and b.end_ns <= a.end_ns) or (b.start_ns <= a.start_ns and a.end_ns <= b.end_ns)


def total(items: Sequence[ModelItem]) -> Tokens:
    """Input and output tokens over the model calls; absent where no call tells them."""
    return Tokens(_sum(item.facts.tokens.input for item in items), _sum(item.facts.tokens.output for item in items))
