"""The user's settings on attribute keys and own spans."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import chain
from typing import Any, Final

from msgspec.structs import replace

from otel_reliability.config import MappingSettings, SpanRule
from otel_reliability.conventions import notes, values
from otel_reliability.conventions.base import (
    NOTHING,
    Answer,
    Convention,
    SpanView,
    own,
    own_value,
    reported_call,
)
from otel_reliability.model.span import (
    STATUS_ERROR,
    HandoffFacts,
    InvocationFacts,
    Kind,
    ModelFacts,
    Notes,
    RawSpan,
    Tokens,
    ToolFacts,
)
from otel_reliability.model.success_words import succeeded


class Mapped:
    """Reads mapped attributes, under the same checks as `reliability.*`, which stay the stronger
    word.
    """

    def __init__(self, settings: MappingSettings) -> None:
        self._settings = settings
        self._notes: tuple[tuple[str, tuple[str, ...]], ...] = (
            (notes.TASK_ID, settings.task),
            (notes.SUCCESS, settings.outcome),
            (notes.CONFIDENCE, settings.confidence),
            (notes.COST, settings.cost),
            (notes.OUTCOME_KEY, settings.outcome_key),
        )

    @property
    def keys(self) -> frozenset[str]:
        noted = chain.from_iterable(keys for _, keys in self._notes)
        return frozenset(chain(noted, self._settings.agent, self._settings.session))

    def session(self, attributes: Mapping[str, Any]) -> str | None:
        return values.first(attributes, self._settings.session, values.identifier)

    def agent(self, attributes: Mapping[str, Any], facts: InvocationFacts) -> InvocationFacts:
        """An invocation under the name that the user's attribute gives it."""
        name = values.first(attributes, self._settings.agent, values.name)
        return facts if name is None else replace(facts, name=name, weak=False)

    def notes(
        self, attributes: Mapping[str, Any], said: Notes | None, of_rule: Mapping[str, str]
    ) -> Notes | None:
        """Return the notes of a span with those of the user's attributes. `of_rule`: key by note,
        of a rule for this span.
        """
        sources = {
            note: key
            for note, keys in self._notes
            if (key := _present(attributes, keys)) is not None
        }
        sources |= {note: key for note, key in of_rule.items() if attributes.get(key) is not None}
        if not sources:
            return said
        given = {note: attributes[key] for note, key in sources.items()}
        if notes.SUCCESS in given:
            given[notes.SUCCESS] = outcome_of(given[notes.SUCCESS])
        own = {key: attributes[key] for key in attributes if key.startswith(notes.PREFIX)}
        items = {key: attributes[key] for key in notes.TASK_IDS if key in attributes}
        read = notes.read({**given, **own, **items})
        named = {
            **sources,
            **{note: note for note in own},
        }  # a value is refused by the name under which it came
        return read and replace(
            read, refused=tuple((named.get(note, note), why) for note, why in read.refused)
        )


def _present(attributes: Mapping[str, Any], keys: tuple[str, ...]) -> str | None:
    return next((key for key in keys if attributes.get(key) is not None), None)


def outcome_of(value: object) -> object:
    """Return True or False for a word of an outcome, any other value as it is."""
    said = succeeded(value) if isinstance(value, str) else None
    return value if said is None else said


# --- Own spans ------------------------------------------------------------------------------------


KEYS: Final = (
    "agent",
    "tool",
    "arguments",
    "result",
    "model",
    "input_tokens",
    "output_tokens",
    "session",
    "task",
    "outcome",
)
"""Fields of a rule that are attribute keys."""
RUNS: Final = frozenset({"agent", "workflow", "chain"})
"""Kinds whose outcome is that of the run."""


class OwnSpans(Convention):
    """Spans that match a rule of `mapping.spans`."""

    name = "mapping.spans"

    def __init__(self, rules: Sequence[SpanRule]) -> None:
        self._rules = rules
        keys = {
            key
            for rule in rules
            for key in (*rule.attributes, *(getattr(rule, field) for field in KEYS))
            if key
        }
        self.messages = tuple(keys)
        self.names = tuple(re.split(r"[*?\[]", rule.name)[0] for rule in rules)
        self.has_notes = any(rule.task or (rule.outcome and rule.kind in RUNS) for rule in rules)

    def read(self, span: SpanView) -> Answer | None:
        """Read by the first rule that matches."""
        rule = self._matching(span.name, span.scope, span)
        return None if rule is None else _answer(rule, span)

    def notes_of(self, span: RawSpan) -> dict[str, str]:
        """Return the keys of the task and of the run's outcome, by the keys of `reliability.*`, of
        the rule that matches.
        """
        rule = self._matching(span.name, span.scope, span.attributes)
        if rule is None:
            return {}
        keys = {
            notes.TASK_ID: rule.task,
            notes.SUCCESS: rule.outcome if rule.kind in RUNS else None,
        }
        return {note: key for note, key in keys.items() if key is not None}

    def _matching(self, name: str, scope: str, attributes: values.Attributes) -> SpanRule | None:
        for rule in self._rules:
            if (
                fnmatchcase(name, rule.name)
                and fnmatchcase(scope, rule.scope)
                and all(
                    _matches(attributes.get(key), pattern)
                    for key, pattern in rule.attributes.items()
                )
            ):
                return rule
        return None


def _matches(value: object, pattern: str) -> bool:
    text = values.word(value)
    return text is not None and fnmatchcase(text, pattern)


def _answer(rule: SpanRule, span: SpanView) -> Answer:
    if rule.kind == "other":
        return NOTHING
    session = None if rule.session is None else own(values.identifier, rule.session)
    if rule.kind in RUNS:
        return Answer(
            Kind(rule.kind), InvocationFacts(name=_named(rule, rule.agent, span)), session=session
        )
    if rule.kind == "handoff":
        return Answer(Kind.HANDOFF, HandoffFacts(_named(rule, rule.agent, span)), session=session)
    failed = True if rule.outcome is not None and span.found_in(rule.outcome, _failure) else None
    if rule.kind == "tool":
        return Answer(
            Kind.TOOL, _tool(rule, span, failed=failed), failed, session, fails_with_call=True
        )
    return Answer(
        Kind(rule.kind), _model(rule, span) if rule.kind == "model" else None, failed, session
    )


def _tool(rule: SpanRule, span: SpanView, *, failed: bool | None) -> ToolFacts:
    name = _named(rule, rule.tool, span)
    if name is None and rule.tool is None:
        name = values.text(span.name)
    has_failed = span.status == STATUS_ERROR if failed is None else failed
    return ToolFacts(
        (reported_call(name, None, _own(rule.arguments), _own(rule.result), failed=has_failed),)
    )


def _model(rule: SpanRule, span: SpanView) -> ModelFacts:
    tokens = [
        None if key is None else own(values.integer, key)
        for key in (rule.input_tokens, rule.output_tokens)
    ]
    return ModelFacts(
        None if rule.model is None else values.text(span.get(rule.model)), tokens=Tokens(*tokens)
    )


def _own(key: str | None) -> Any:
    return None if key is None else own_value(key)


def _named(rule: SpanRule, key: str | None, span: SpanView) -> str | None:
    """Return the name under a key, or without a key what the one `*` of the rule's name stands for,
    beside other text.
    """
    if key is not None:
        return values.name(span.get(key))
    before, star, after = rule.name.partition("*")
    if not star or not (before or after) or re.search(r"[*?\[]", before + after):
        return None
    return values.name(span.name.removeprefix(before).removesuffix(after))


def _failure(outcome: object) -> str | None:
    """Return a text if an outcome is a failure."""
    found = outcome_of(outcome)
    return "failed" if values.truth(found) is False else None
