"""`RawSpan` → `AgentSpan`: asks the conventions, then adds what any span may carry whatever its convention.

Total: every span comes out, as kind OTHER where no convention knows it, and nothing it carries can raise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from otel_reliability.config import Settings
from otel_reliability.conventions import evaluations, notes, values
from otel_reliability.conventions.base import NOTHING, Convention, Told
from otel_reliability.conventions.by_name import BEGINNINGS
from otel_reliability.conventions.hashing import Hasher
from otel_reliability.conventions.mapping import Mapped
from otel_reliability.conventions.naming import ToolNames
from otel_reliability.conventions.plans import MESSAGING, Plan, Plans
from otel_reliability.conventions.room import Room
from otel_reliability.conventions.stencils import CONVERSATION, CONVERSATION_RANK, Stencils, stencils
from otel_reliability.model.attributes import HeldAttributes, LazyAttributes
from otel_reliability.model.bounded import LONGEST, bounded
from otel_reliability.model.span import (
    KIND_CONSUMER,
    KIND_PRODUCER,
    STATUS_ERROR,
    AgentSpan,
    Facts,
    InvocationFacts,
    Notes,
    RawSpan,
    Resource,
    Session,
    SpanRef,
)

SESSION: Final = "session.id"
_MAPPED_RANK: Final = -1
_SESSION_RANK: Final = 1
_CONVENTION_RANK: Final = 2

_ALIASES: Final = (("@arizeai/openinference-instrumentation-", "openinference.instrumentation."),)
_MAX_SCOPES: Final = 4096

_ATTRIBUTES: Final = RawSpan._fields.index("attributes")
_EVENTS: Final = _ATTRIBUTES + 1
_SCOPE: Final = RawSpan._fields.index("scope")
_VERSION: Final = _SCOPE + 1

_tuple: Final[Callable[..., Any]] = tuple.__new__  # pyright: ignore[reportUnknownMemberType,reportUnknownVariableType]
"""Makes a named tuple from a tuple, without the call in Python that its class would cost."""


class Reader:
    """Reads spans by a table of conventions and the user's settings.

    Which conventions a scope may concern is worked out once a scope. `wanted` and `wanted_prefixes` are all the attribute
    keys anybody here looks at: a caller may drop the rest, and gets the same.
    """

    def __init__(self, settings: Settings, table: Sequence[Convention], hasher: Hasher | None = None) -> None:
        key = bytes.fromhex(settings.hash_key) if settings.hash_key else None
        self.hasher = hasher if hasher is not None else Hasher(key, settings.tools.soft_errors)
        self._table = tuple(table)
        self._tools = ToolNames(settings.tools)
        mapped = Mapped(settings.mapping)
        self._mapped = mapped if mapped.keys else None
        self._agent_key = settings.agent_key
        self._run_key = settings.assembly.run_key
        self._last = Resource(), Resource()
        self._by_scope: dict[str, Plans] = {}
        self._looked_at = self.wanted, self.wanted_prefixes
        self._room = Room(self._by_scope.clear)

    @property
    def wanted(self) -> frozenset[str]:
        """Every attribute key that is looked at exactly."""
        own = {CONVERSATION, SESSION, *self._agent_key, *([self._run_key] if self._run_key else [])}
        mapped = self._mapped.keys if self._mapped else frozenset[str]()
        return mapped.union(own, *(convention.keys for convention in self._table))

    @property
    def wanted_prefixes(self) -> tuple[str, ...]:
        """Prefixes of the attribute keys that are looked at."""
        told = {prefix for convention in self._table for prefix in convention.prefixes}
        return (notes.PREFIX, MESSAGING, *evaluations.PREFIXES, *sorted(told))

    def convention_of(self, span: RawSpan) -> str | None:
        """The name of the convention that knows the span, for `inspect`."""
        plans = self._plans(span.scope)
        span = span._replace(scope=plans.scope)
        return next((c.name for c in plans.conventions if c.read(span, self.hasher) is not None), None)

    def read(self, span: RawSpan) -> AgentSpan:
        """The span in our vocabulary."""
        plans = self._by_scope.get(span.scope) or self._plans(span.scope)
        attributes = span.attributes
        raw, once = (
            (attributes.raw, attributes.memo.once) if type(attributes) is LazyAttributes else (attributes, _same)
        )
        keys = tuple(raw)
        plan = plans.known.get(keys) or plans.made(keys)
        if plan.stencils is not None and (once is not _same or type(attributes) is HeldAttributes):
            whole, sender = self._last
            if whole is not span.resource:
                sender = self._sender(span.resource)
            if (found := plan.stencils.read(span, raw, once, sender)) is not None:
                return found
        if type(attributes) is LazyAttributes:
            kept = dict(zip(plan.keys, map(attributes.memo.__getitem__, plan.take(raw)), strict=True))
            span = _tuple(RawSpan, (*span[:_ATTRIBUTES], kept, *span[_EVENTS:_SCOPE], plans.scope, *span[_VERSION:]))
        elif plans.scope != span.scope:
            span = span._replace(scope=plans.scope)
        return self._asked(span, plan)

    def plan(self, scope: str, keys: tuple[str, ...]) -> tuple[str, Plan]:
        """The name a scope is told by, and what is done with those of its spans that have these keys."""
        plans = self._plans(scope)
        return plans.scope, plans.of(keys)

    def _asked(self, span: RawSpan, plan: Plan) -> AgentSpan:
        return self._agent_span(span, self._told(span, plan.conventions), plan)

    def _told(self, span: RawSpan, conventions: Iterable[Convention]) -> Told:
        """What the first convention says that knows the span."""
        hasher = self.hasher
        for convention in conventions:
            answer = convention.read(span, hasher)
            if answer is not None:
                return answer
        return NOTHING

    def ordinary_scope(self, scope: str) -> str | None:
        """The name a scope is told by, where no convention is keyed on it; None where one is."""
        plans = self._plans(scope)
        return None if any(convention.scopes for convention in plans.conventions) else plans.scope

    def is_ordinary(self, scope: str, name: str) -> bool:
        """Whether no convention knows a span of this scope and name if it carries none of the wanted attributes."""
        return name[:4] not in BEGINNINGS and self.ordinary_scope(scope) is not None

    def _agent_span(self, span: RawSpan, told: Told, plan: Plan) -> AgentSpan:
        (
            trace_id, span_id, parent_id, _, span_kind, start_ns, end_ns, status, remote, attributes, events, links, scope, _,
            resource, state,
        ) = span  # fmt: skip
        kind, facts, failed, session = told
        judged = plan.judged
        return _tuple(
            AgentSpan,
            (
                trace_id,
                span_id,
                parent_id,
                remote,
                start_ns,
                end_ns,
                span_kind,
                kind,
                status == STATUS_ERROR if failed is None else failed,
                None if facts is None else self._facts(attributes, facts),
                scope,
                self._sender(resource),
                self._session(attributes, session),
                self._notes(attributes, noted=plan.noted),
                evaluations.read(span, flat=judged) if judged or events else (),
                _link(span, messaging=plan.messaging) if links else None,
                threshold(state) if state else None,
                self._extra(span) if self._agent_key else (),
            ),
        )

    def _plans(self, scope: str) -> Plans:
        found = self._by_scope.get(scope)
        if found is None:
            canonical = bounded(canonical_scope(scope))
            asked = tuple(c for c in self._table if not c.scopes or canonical.startswith(c.scopes))
            found = Plans(canonical, asked, *self._looked_at, self._room, partial(self._stencils, canonical))
            if len(self._by_scope) < _MAX_SCOPES and len(scope) <= LONGEST:
                self._by_scope[scope] = found
        return found

    def _stencils(self, scope: str, keys: tuple[str, ...], conventions: tuple[Convention, ...]) -> Stencils | None:
        """Settings that read attributes of their own read each span by itself."""
        if self._mapped is not None or self._agent_key or self._run_key is not None:
            return None

        def ask(span: RawSpan) -> Told:
            return self._told(span._replace(scope=scope), conventions)

        return stencils(scope, keys, conventions, ask, self._tools, self.hasher, self._room)

    def _facts(self, attributes: Mapping[str, Any], facts: Facts) -> Facts:
        facts = self._tools.apply(facts)
        if self._mapped is not None and isinstance(facts, InvocationFacts):
            return self._mapped.agent(attributes, facts)
        return facts

    def _notes(self, attributes: Mapping[str, Any], *, noted: bool) -> Notes | None:
        found = notes.read(attributes) if noted else None
        if self._mapped is not None:
            found = self._mapped.notes(attributes, found)
        if self._run_key is not None and (value := values.identifier(attributes.get(self._run_key))) is not None:
            found = (found or Notes())._replace(run_key=self.hasher.text(value))
        return found

    def _session(self, attributes: Mapping[str, Any], told: str | None) -> Session | None:
        if self._mapped is not None and (found := self._mapped.session(attributes)) is not None:
            return Session(_MAPPED_RANK, found)
        if CONVERSATION in attributes and (found := values.identifier(attributes[CONVERSATION])) is not None:
            return Session(CONVERSATION_RANK, found)
        if SESSION in attributes and (found := values.identifier(attributes[SESSION])) is not None:
            return Session(_SESSION_RANK, found)
        return None if told is None else Session(_CONVENTION_RANK, told)

    def _sender(self, resource: Resource) -> Resource:
        """The resource without its attributes: spans wait long, and these may be large. Spans in a row share it."""
        whole, told = self._last
        if whole is not resource:
            told = Resource(*resource[:3])
            self._last = resource, told
        return told

    def _extra(self, span: RawSpan) -> tuple[tuple[str, str], ...]:
        """The attributes that the settings add to an agent's identity: the span's own before its resource's."""
        given = span.attributes, span.resource.attributes
        told = ((values.identifier(attributes.get(key)) for attributes in given) for key in self._agent_key)
        return tuple((key, next(filter(None, found), "")) for key, found in zip(self._agent_key, told, strict=True))


def _same(value: Any) -> Any:
    return value


def canonical_scope(scope: str) -> str:
    """Q18: the JavaScript packages of OpenInference are the Python ones by another name.

    >>> canonical_scope("@arizeai/openinference-instrumentation-langchain")
    'openinference.instrumentation.langchain'
    """
    for alias, prefix in _ALIASES:
        if scope.startswith(alias):
            return prefix + scope[len(alias) :].replace("-", "_")
    return scope


def _link(span: RawSpan, *, messaging: bool) -> SpanRef | None:
    """The one link of a parentless messaging hop is its parent; other links join nothing."""
    if span.parent_id is not None or len(span.links) != 1:
        return None
    return span.links[0] if messaging or span.span_kind in {KIND_PRODUCER, KIND_CONSUMER} else None


def threshold(trace_state: str) -> int | None:
    """The rejection threshold T of `ot=th:…` (1 to 14 hexadecimal digits, padded on the right), None where there is none.

    >>> threshold("ot=th:8"), threshold("vendor=1"), threshold("ot=th:zz")
    (36028797018963968, None, None)
    """
    for member in trace_state.split(","):
        vendor, _, value = member.strip().partition("=")
        for field in value.split(";") if vendor == "ot" else ():
            key, _, digits = field.partition(":")
            if key == "th" and 1 <= len(digits) <= 14 and all(digit in "0123456789abcdef" for digit in digits):
                return int(digits.ljust(14, "0"), 16)
    return None
