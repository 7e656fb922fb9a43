"""Plans: how the spans of one instrumentation scope and one set of keys are read."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any, Final

from otel_reliability.conventions import (
    evaluations,
    fingerprints,
    notes,
    owners,
)
from otel_reliability.conventions.base import (
    Convention,
    EventReader,
    SpanView,
)
from otel_reliability.conventions.keys import MESSAGING, SESSIONS
from otel_reliability.conventions.templates import RawValues, Template
from otel_reliability.model.span import RawEvent

CONVENTION_RANK: Final = 2
"""Rank of a session that a convention names."""
MAX_DERIVED: Final = 16
"""Readers whose findings answers of one plan depend on. A convention that makes a function again
for each span has ever new ones: beyond, the spans of the plan are asked one by one.
"""
_JAVASCRIPT: Final = "@arizeai/openinference-instrumentation-"


class Scope:
    """An instrumentation scope: the name it goes by, the conventions it may concern, and its plans
    by the keys of a span.

    `names` are the beginnings of a span's name by which alone it may concern one of them.
    """

    def __init__(self, name: str, table: Sequence[Convention]) -> None:
        self.name = name
        self.conventions = tuple(
            one for one in table if not one.scopes or name.startswith(one.scopes)
        )
        self.names = tuple(start for one in self.conventions for start in one.names)
        self.plans: dict[tuple[str, ...], Plan] = {}


class Plan:
    """The way in which the spans of one scope and one set of keys are read.

    - `conventions`: those that may know such a span, whatever its name.
    - `asked`, `derived`, `by_name`, `by_kind`, `in_events`, `failures` (of spans that failed): what
      their answers depend on, as far as is known; `take` gives the values asked for. `templates`
      are the answers by all of these.
    - `version`: number of times that the plan has learned something new.
    - `sessions`: the keys that name a session; `conversation`: those of a convention that puts its
      spans together by one. `has_fingerprints`: a prompt, tool definitions or a version may be
      there. `has_more`: notes, evaluations, a conversation or what settings ask for may be there.

    Threads that read spans share a plan. They look templates up without a lock; only `learn` and
    `keep` take one, for a span whose template is not known. The answer for a span is kept under
    what was asked when the span was looked up. If the plan has learned since, `keep` refuses it:
    spans that differ in what is asked only now would share it.
    """

    __slots__ = (
        "asked",
        "by_kind",
        "by_name",
        "conventions",
        "conversation",
        "derived",
        "failures",
        "has_fingerprints",
        "has_more",
        "has_owner",
        "in_events",
        "is_judged",
        "is_messaging",
        "is_noted",
        "keys",
        "lock",
        "sessions",
        "take",
        "templates",
        "version",
    )

    def __init__(
        self,
        keys: tuple[str, ...],
        conventions: Sequence[Convention],
        *,
        has_more: bool,
        invents_sessions: bool = False,
    ) -> None:
        self.keys = frozenset(keys)
        self.conventions = frozenset(
            one
            for one in conventions
            if not (one.needs or one.names) or any(key in self.keys for key in one.needs)
        )
        self.asked: tuple[str, ...] = ()
        self.derived: tuple[tuple[Callable[[Any], Any], str], ...] = ()
        self.in_events: tuple[EventReader, ...] = ()
        self.failures: tuple[EventReader, ...] = ()
        self.by_name = self.by_kind = False
        self.version = 0
        self.lock = threading.Lock()
        self.take: Callable[[RawValues], Any] = _nothing
        self.templates: dict[tuple[Any, ...], Template] = {}
        self.sessions = tuple(
            (CONVENTION_RANK if invents_sessions else rank, key)
            for rank, key in enumerate(SESSIONS)
            if key in self.keys
        )
        self.is_noted = any(key.startswith(notes.PREFIX) or key in notes.TASK_IDS for key in keys)
        self.is_judged = any(key.startswith(evaluations.PREFIXES) for key in keys)
        self.is_messaging = any(key.startswith(MESSAGING) for key in keys)
        self.conversation = tuple(
            dict.fromkeys(
                key for one in conventions for key in one.conversation if key in self.keys
            )
        )
        self.has_fingerprints = any(
            key in fingerprints.KEYS or key.startswith(fingerprints.PREFIXES) for key in keys
        )
        self.has_owner = not self.keys.isdisjoint(owners.KEYS)
        self.has_more = has_more or self.is_noted or bool(self.conversation)

    def found_in(self, events: Sequence[RawEvent], *, failed: bool) -> tuple[Any, ...]:
        """Return what answers depend on in the events of a span; `failed`: its status is ERROR."""
        readers = (*self.in_events, *self.failures) if failed else self.in_events
        return tuple([reader(events) for reader in readers])

    def learn(self, view: SpanView, *, named: bool) -> bool:
        """Add what an answer depended on. Return whether anything was new, or is not looked up:
        then this answer is not to be remembered, and in the first case those before it are not.
        """
        with self.lock:
            return self._learn(view, named=named)

    def keep(self, basis: tuple[Any, ...], template: Template, version: int) -> None:
        """Keep the answer for spans of a basis that was taken at a version of the plan."""
        with self.lock:
            if self.version == version:
                self.templates[basis] = template

    def _learn(self, view: SpanView, *, named: bool) -> bool:
        asked = view.asked.difference(self.asked)
        derived = view.derived.difference(self.derived)
        in_events = view.in_events.difference(self.in_events)
        failures = view.failures.difference(self.failures)
        by_name = view.by_name and not named and not self.by_name
        by_kind = view.by_kind and not self.by_kind
        new_readers = [*derived, *in_events, *failures]
        if not (asked or new_readers or by_name or by_kind):
            return False
        readers = [*self.derived, *self.in_events, *self.failures, *new_readers]
        if len(readers) > MAX_DERIVED:
            return True
        self.by_name = self.by_name or by_name
        self.by_kind = self.by_kind or by_kind
        self.derived += tuple(derived)
        self.in_events += tuple(in_events)
        self.failures += tuple(failures)
        self.asked += tuple(sorted(asked))
        self.take = itemgetter(*self.asked) if self.asked else _nothing
        self.templates.clear()
        self.version += 1  # last: who reads it before has taken a basis that is not kept
        return True


def possible_conventions(scope: Scope, plan: Plan, name: str) -> list[Convention]:
    """Return the conventions that may know a span of this name and these keys, in their order."""
    return [
        one for one in scope.conventions if one in plan.conventions or name.startswith(one.names)
    ]


def _nothing(attributes: RawValues) -> Any:
    return ()


def canonical_scope(scope: str) -> str:
    """Q18: the JavaScript packages of OpenInference are the Python ones by another name.

    >>> canonical_scope("@arizeai/openinference-instrumentation-langchain")
    'openinference.instrumentation.langchain'
    """
    if not scope.startswith(_JAVASCRIPT):
        return scope
    return "openinference.instrumentation." + scope.removeprefix(_JAVASCRIPT).replace("-", "_")
