"""The user's own attributes that say what a convention cannot: `mapping` of the settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any, Final

from otel_reliability.config import MappingSettings
from otel_reliability.conventions import notes, values
from otel_reliability.model.span import InvocationFacts, Notes

_GOOD: Final = frozenset({"success", "successful", "succeeded", "pass", "passed", "ok", "correct", "yes", "resolved"})
_BAD: Final = frozenset({"failure", "failed", "fail", "error", "incorrect", "no", "unresolved"})


class Mapped:
    """Reads mapped attributes, under the same checks as `reliability.*`, which stay the stronger word."""

    def __init__(self, settings: MappingSettings) -> None:
        self._settings = settings
        self._notes: tuple[tuple[str, tuple[str, ...]], ...] = (
            (notes.TASK_ID, settings.task),
            (notes.SUCCESS, settings.outcome),
            (notes.CONFIDENCE, settings.confidence),
            (notes.COST, settings.cost),
        )

    @property
    def keys(self) -> frozenset[str]:
        """Every attribute that is mapped."""
        noted = chain.from_iterable(keys for _, keys in self._notes)
        return frozenset(chain(noted, self._settings.agent, self._settings.session))

    def session(self, attributes: Mapping[str, Any]) -> str | None:
        """The conversation."""
        return _first(values.identifier(attributes.get(key)) for key in self._settings.session)

    def agent(self, attributes: Mapping[str, Any], facts: InvocationFacts) -> InvocationFacts:
        """An invocation under the name that the user's attribute gives it."""
        name = _first(values.name(attributes.get(key)) for key in self._settings.agent)
        return facts if name is None else facts._replace(name=name, weak=False)

    def notes(self, attributes: Mapping[str, Any], said: Notes | None, of_rule: Mapping[str, str]) -> Notes | None:
        """Return the notes of a span with those of the user's attributes. `of_rule`: key by note, of a rule for this span."""
        sources = {note: key for note, keys in self._notes if (key := _present(attributes, keys)) is not None}
        sources |= {note: key for note, key in of_rule.items() if attributes.get(key) is not None}
        if not sources:
            return said
        given = {note: attributes[key] for note, key in sources.items()}
        if notes.SUCCESS in given:
            given[notes.SUCCESS] = outcome_of(given[notes.SUCCESS])
        own = {key: attributes[key] for key in attributes if key.startswith(notes.PREFIX)}
        read = notes.read({**given, **own})
        return read and read._replace(refused=tuple((_source(note, sources, own), why) for note, why in read.refused))


def _present(attributes: Mapping[str, Any], keys: tuple[str, ...]) -> str | None:
    return next((key for key in keys if attributes.get(key) is not None), None)


def _source(note: str, sources: Mapping[str, str], own: Mapping[str, Any]) -> str:
    """The attribute that was refused, by the name under which it came."""
    return note if note in own else sources.get(note, note)


def outcome_of(value: object) -> object:
    """Return True or False for a word of an outcome, any other value as it is."""
    word = value.strip().lower() if isinstance(value, str) else None
    return True if word in _GOOD else False if word in _BAD else value


def _first(found: Iterator[str | None]) -> str | None:
    return next((item for item in found if item is not None), None)
