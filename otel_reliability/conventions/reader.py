"""`RawSpan` → `AgentSpan`: asks the conventions, then adds what any span may carry whatever its convention.

Total: every span comes out, as kind OTHER where no convention knows it, and nothing it carries can raise.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping, Sequence
from typing import Any, Final

from otel_reliability.config import Settings
from otel_reliability.conventions import notes, values
from otel_reliability.conventions.base import NOTHING, Convention, Told
from otel_reliability.conventions.hashing import Hasher
from otel_reliability.model.span import (
    KIND_CONSUMER,
    KIND_PRODUCER,
    STATUS_ERROR,
    AgentSpan,
    Call,
    Facts,
    HandoffFacts,
    InvocationFacts,
    Kind,
    ModelFacts,
    Notes,
    RawSpan,
    Session,
    SpanRef,
    ToolFacts,
)

CONVERSATION: Final = "gen_ai.conversation.id"
SESSION: Final = "session.id"
_SESSION_KEYS: Final = (CONVERSATION, SESSION)
_CONVENTION_RANK: Final = len(_SESSION_KEYS)

_ALIASES: Final = (("@arizeai/openinference-instrumentation-", "openinference.instrumentation."),)
_MAX_SCOPES: Final = 4096
_MAX_NAMES: Final = 65536
_MAX_NAME: Final = 256


def canonical_scope(scope: str) -> str:
    """Q18: the JavaScript packages of OpenInference are the Python ones by another name.

    >>> canonical_scope("@arizeai/openinference-instrumentation-langchain")
    'openinference.instrumentation.langchain'
    """
    for alias, prefix in _ALIASES:
        if scope.startswith(alias):
            return prefix + scope[len(alias) :].replace("-", "_")
    return scope


class Reader:
    """Reads spans by the table of conventions and the user's settings.

    Which conventions a scope may concern is worked out once a scope. `wanted` and `wanted_prefixes` are all the attribute
    keys anybody here looks at, so that a caller may drop the rest; spans of a scope with `eager(scope)` must be read at once,
    because they tell calls only in message text.
    """

    def __init__(self, settings: Settings, table: Sequence[Convention], hasher: Hasher | None = None) -> None:
        key = bytes.fromhex(settings.hash_key) if settings.hash_key else None
        self.hasher = hasher if hasher is not None else Hasher(key, settings.tools.soft_errors)
        self._table = tuple(table)
        self._mapping = settings.mapping
        self._mapped = any((self._mapping.agent, self._mapping.session, self._mapping.task, self._mapping.outcome,
                            self._mapping.confidence, self._mapping.cost))  # fmt: skip
        self._agent_key = settings.agent_key
        self._run_key = settings.assembly.run_key
        self._ignore, self._rename = settings.tools.ignore, dict(settings.tools.rename)
        self._by_scope: dict[str, tuple[str, tuple[Convention, ...]]] = {}
        self._names: dict[str, str | None] = {}

    @property
    def wanted(self) -> frozenset[str]:
        """Every attribute key that is looked at exactly."""
        mapped = (key for keys in (self._mapping.agent, self._mapping.session, self._mapping.task, self._mapping.outcome,
                                   self._mapping.confidence, self._mapping.cost) for key in keys)  # fmt: skip
        own = {*_SESSION_KEYS, *mapped, *self._agent_key, *([self._run_key] if self._run_key else [])}
        return frozenset(own).union(*(convention.keys for convention in self._table))

    @property
    def wanted_prefixes(self) -> tuple[str, ...]:
        """Prefixes of the attribute keys that are looked at."""
        return (notes.PREFIX, "messaging.", *sorted({p for c in self._table for p in c.prefixes}))

    def eager(self, scope: str) -> bool:
        """Whether spans of this scope must be read at once."""
        return any(convention.eager and convention.scopes for convention in self._conventions(scope)[1])

    def convention_of(self, span: RawSpan) -> str | None:
        """The name of the convention that knows the span, for `inspect`."""
        scope, conventions = self._conventions(span.scope)
        span = span._replace(scope=scope)
        return next((c.name for c in conventions if c.read(span, self.hasher) is not None), None)

    def read(self, span: RawSpan) -> AgentSpan:
        """The span in our vocabulary."""
        scope, conventions = self._conventions(span.scope)
        if scope is not span.scope:
            span = span._replace(scope=scope)
        told = NOTHING
        for convention in conventions:
            answer = convention.read(span, self.hasher)
            if answer is not None:
                told = answer
                break
        return self._agent_span(span, told)

    def _agent_span(self, span: RawSpan, told: Told) -> AgentSpan:
        attributes = span.attributes
        facts, kind = self._cleaned(told)
        added = notes.read(attributes)
        if self._mapped:
            added = self._mapped_notes(attributes, added)
            facts = self._mapped_agent(attributes, facts)
        if self._run_key is not None and (value := values.identifier(attributes.get(self._run_key))) is not None:
            added = (added or Notes())._replace(run_key=self.hasher.text(value))
        return AgentSpan(
            span.trace_id,
            span.span_id,
            span.parent_id,
            span.parent_remote,
            span.start_ns,
            span.end_ns,
            span.span_kind,
            kind,
            span.status == STATUS_ERROR if told.failed is None else told.failed,
            facts,
            span.scope,
            span.resource,
            self._session(attributes, told),
            added,
            notes.evaluations(span) if span.events else (),
            _link(span) if span.links else None,
            threshold(span.trace_state) if span.trace_state else None,
            self._extra(span) if self._agent_key else (),
        )

    def _conventions(self, scope: str) -> tuple[str, tuple[Convention, ...]]:
        found = self._by_scope.get(scope)
        if found is None:
            canonical = canonical_scope(scope)
            found = canonical, tuple(c for c in self._table if not c.scopes or canonical.startswith(c.scopes))
            if len(self._by_scope) < _MAX_SCOPES:
                self._by_scope[scope] = found
        return found

    def _session(self, attributes: Mapping[str, Any], told: Told) -> Session | None:
        for key in self._mapping.session:
            if (found := values.identifier(attributes.get(key))) is not None:
                return Session(-1, found)
        for rank, key in enumerate(_SESSION_KEYS):
            if key in attributes and (found := values.identifier(attributes.get(key))) is not None:
                return Session(rank, found)
        return None if told.session is None else Session(_CONVENTION_RANK, told.session)

    def _extra(self, span: RawSpan) -> tuple[tuple[str, str], ...]:
        found: list[tuple[str, str]] = []
        for key in self._agent_key:
            value = span.attributes.get(key)
            if value is None:
                value = span.resource.attributes.get(key)
            found.append((key, values.identifier(value) or ""))
        return tuple(found)

    def _cleaned(self, told: Told) -> tuple[Facts | None, Kind]:
        """The user's rules on tool names: ignored calls are no step, renamed ones are one tool."""
        facts = told.facts
        if not isinstance(facts, ToolFacts) or not facts.calls:
            return facts, told.kind
        calls = tuple(call for call in map(self._renamed, facts.calls) if call is not None)
        if not calls:
            return None, Kind.OTHER
        return facts if calls == facts.calls else facts._replace(calls=calls), told.kind

    def _renamed(self, call: Call) -> Call | None:
        if call.name is None:
            return call
        name = self._names.get(call.name, call.name) if call.name in self._names else self._named(call.name)
        return None if name is None else call if name is call.name else call._replace(name=name)

    def _named(self, name: str) -> str | None:
        cleaned: str | None = name if len(name) <= _MAX_NAME else name[: _MAX_NAME - 1] + "…"
        if any(fnmatch.fnmatchcase(name, pattern) for pattern in self._ignore):
            cleaned = None
        else:
            cleaned = next((new for old, new in self._rename.items() if fnmatch.fnmatchcase(name, old)), cleaned)
        if len(self._names) < _MAX_NAMES:
            self._names[name] = cleaned
        return cleaned

    def _mapped_notes(self, attributes: Mapping[str, Any], added: Notes | None) -> Notes | None:
        """What the user's own attributes say, under the same checks as `reliability.*`; those stay the stronger word."""
        targets = (
            (self._mapping.task, notes.TASK_ID),
            (self._mapping.outcome, notes.SUCCESS),
            (self._mapping.confidence, notes.CONFIDENCE),
            (self._mapping.cost, notes.COST),
        )
        given = {
            target: attributes[key]
            for keys, target in targets
            for key in reversed(keys)
            if attributes.get(key) is not None
        }
        if not given:
            return added
        given.update({key: attributes[key] for key in attributes if key.startswith(notes.PREFIX)})
        return notes.read(given)

    def _mapped_agent(self, attributes: Mapping[str, Any], facts: Facts | None) -> Facts | None:
        if not isinstance(facts, InvocationFacts):
            return facts
        for key in self._mapping.agent:
            if (found := values.name(attributes.get(key))) is not None:
                return facts._replace(name=found, weak=False)
        return facts


def _link(span: RawSpan) -> SpanRef | None:
    """DESIGN §3.2g: the one link of a parentless messaging hop is its parent; other links join nothing."""
    if span.parent_id is not None or len(span.links) != 1:
        return None
    if span.span_kind in (KIND_PRODUCER, KIND_CONSUMER) or any(key.startswith("messaging.") for key in span.attributes):
        return span.links[0]
    return None


def threshold(trace_state: str) -> int | None:
    """The rejection threshold T of `ot=th:…` (1 to 14 hexadecimal digits, padded on the right), None where there is none.

    >>> threshold("ot=th:8"), threshold("vendor=1"), threshold("ot=th:zz")
    (36028797018963968, None, None)
    """
    for member in trace_state.split(","):
        vendor, _, value = member.strip().partition("=")
        if vendor != "ot":
            continue
        for field in value.split(";"):
            key, _, digits = field.partition(":")
            if key == "th" and 1 <= len(digits) <= 14 and all(c in "0123456789abcdef" for c in digits):
                return int(digits.ljust(14, "0"), 16)
    return None
