"""The model calls of a run: a call that two spans report becomes one, with its tokens; and context windows of models."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeAlias

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


# --- Context windows ----------------------------------------------------------------------------------------------------


_DATE: Final = re.compile(r"[-@](\d{4}-?\d{2}-?\d{2}|\d{6,8}|latest)$")
_MAX_CACHE: Final = 4096


class ContextLimits:
    """Context windows in tokens, by model name; None where unknown: then no pressure is claimed.

    The table of prices is the `prices` extra (genai-prices), read offline; without it, configuration and spans speak alone.

    >>> limits = ContextLimits({"gpt-4o*": 128_000})
    >>> limits.of(ModelFacts(model="gpt-4o-mini-2024-07-18")), limits.of(ModelFacts(model="house-model-1"))
    (128000, None)
    """

    def __init__(self, configured: Mapping[str, int]) -> None:
        self._configured = tuple(configured.items())
        self._known: dict[str, int | None] = {}

    def of(self, facts: ModelFacts) -> int | None:
        """The window of the model that answered, else of the model that was asked for."""
        return self.named(facts.model, facts.request_model) if facts.context_limit is None else facts.context_limit

    def named(self, *names: str | None) -> int | None:
        """The window of the first of these models of which one is known."""
        known = self._known
        for name in names:
            if name is not None:
                limit = known[name] if name in known else self._named(name)
                if limit is not None:
                    return limit
        return None

    def _named(self, name: str) -> int | None:
        found = next((limit for pattern, limit in self._configured if fnmatch.fnmatchcase(name, pattern)), None)
        if found is None:
            found = next((limit for form in spellings(name) if (limit := _from_table(form)) is not None), None)
        if len(self._known) < _MAX_CACHE:
            self._known[name] = found
        return found


def spellings(name: str) -> list[str]:
    """A model's name as tables may spell it: as it is, without the provider's prefix, without a date.

    >>> spellings("openai/gpt-4o-2024-08-06")
    ['openai/gpt-4o-2024-08-06', 'gpt-4o-2024-08-06', 'gpt-4o']
    """
    bare = name.rpartition("/")[2]
    forms = [name, bare, _DATE.sub("", bare)]
    return list(dict.fromkeys(forms))


def _from_table(name: str) -> int | None:
    try:
        from genai_prices.data_snapshot import get_snapshot  # noqa: PLC0415 (an extra, and 0.2 s to import)
    except ImportError:
        return None
    try:
        _, model = get_snapshot().find_provider_model(name, None, None, None)
    except LookupError:
        return None
    window = model.context_window
    return window if isinstance(window, int) and window > 0 else None
