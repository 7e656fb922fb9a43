"""`RawSpan` → `AgentSpan`: asks the conventions, then adds what any span may carry whatever its convention.

Total: every span comes out, as kind OTHER where no convention knows it, and nothing it carries can raise.

An instrumentation sets the same keys on span after span. So there is one `Plan` per scope and set of keys: it names the
attributes that are read, and remembers the answers of the conventions (`templates`). Nothing else is remembered of a span.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any, Final, cast

from otel_reliability.config import Settings
from otel_reliability.conventions import evaluations, fingerprints, notes, values
from otel_reliability.conventions.base import NOTHING, Convention, Event, Own, SpanView, itself
from otel_reliability.conventions.hashing import Hasher
from otel_reliability.conventions.mapping import Mapped, OwnSpans, ToolNames
from otel_reliability.conventions.templates import Template, Templates
from otel_reliability.model.span import (
    BY_TIME,
    KIND_CONSUMER,
    KIND_PRODUCER,
    KIND_UNSPECIFIED,
    LONGEST,
    ORIGIN,
    AgentSpan,
    Evaluation,
    InvocationFacts,
    Kind,
    LazyAttributes,
    Notes,
    RawLog,
    RawSpan,
    Resource,
    Session,
    SpanRef,
    bounded,
    span_of,
    trace_of,
)

CONVERSATION: Final = "gen_ai.conversation.id"
SESSION: Final = "session.id"
MESSAGING: Final = "messaging."
SESSION_RANKS: Final = {CONVERSATION: 0, SESSION: 1}
MAPPED_RANK: Final = -1
CONVENTION_RANK: Final = 2

MAX_MEMORY: Final = 32 * 1024 * 1024
"""Bytes, roughly, of all plans and templates: a sender may invent keys and values without end. Beyond, all are made again."""
MAX_SCOPES: Final = 4096
MAX_SENDERS: Final = 64
MAX_KEYS_SIZE: Final = 8_192
"""Characters of a span's keys beyond which its plan is not kept."""
MAX_ASKED_SIZE: Final = 1_024
"""Bytes of the values that an answer depends on beyond which its template is not kept."""
MIN_CONVERSATION: Final = 16
"""Characters of the id of a conversation; shorter values under its keys are numbers of threads."""
PLAN_SIZE: Final = 2_048
TEMPLATE_SIZE: Final = 1_024

_ALIASES: Final = (("@arizeai/openinference-instrumentation-", "openinference.instrumentation."),)
_ATTRIBUTES: Final = RawSpan._fields.index("attributes")
_tuple: Final[Callable[..., Any]] = tuple.__new__  # pyright: ignore[reportUnknownMemberType,reportUnknownVariableType]
"""Makes a named tuple from a tuple, without the call in Python that its class would cost."""

Values = Mapping[str, Any]
"""Attributes by key: values, or their undecoded bytes."""


class Scope:
    """An instrumentation scope: the name it goes by, the conventions it may concern, and its plans by the keys of a span.

    `is_named` says whether a span's name alone may concern one of them.
    """

    def __init__(self, name: str, table: Sequence[Convention]) -> None:
        self.name = name
        self.conventions = tuple(one for one in table if not one.scopes or name.startswith(one.scopes))
        self.has_own = any(one.scopes for one in self.conventions)
        self.is_named = re.compile(
            "|".join(f"(?:{one.names})" for one in self.conventions if one.names) or "(?!)"
        ).match
        self.plans: dict[tuple[str, ...], Plan] = {}


class Plan:
    """The way in which the spans of one scope and one set of keys are read.

    - `conventions`: those that may know such a span, whatever its name.
    - `asked`, `derived`, `by_name`, `by_kind`, `by_events`: what their answers depend on, as far as is known; `take` gives the
      values asked for. `templates` are the answers by all of these.
    - `sessions`: the keys that name a session; `conversation`: those of a convention that puts its spans together by one.
      `has_fingerprints`: a prompt, tool definitions or a version may be there. `has_more`: notes, evaluations, a conversation or
      what settings ask for may be there.
    """

    __slots__ = (
        "asked", "by_events", "by_kind", "by_name", "conventions", "conversation", "derived", "has_fingerprints", "has_more",
        "is_judged", "is_messaging", "is_noted", "keys", "sessions", "take", "templates", "version",
    )  # fmt: skip

    def __init__(self, keys: tuple[str, ...], conventions: Sequence[Convention], *, has_more: bool) -> None:
        self.keys = frozenset(keys)
        self.conventions = frozenset(
            one for one in conventions if not (one.needs or one.names) or not one.needs.isdisjoint(keys)
        )
        self.asked: tuple[str, ...] = ()
        self.derived: tuple[tuple[Callable[[Any], Any], str], ...] = ()
        self.by_name = self.by_kind = self.by_events = False
        self.version = 0
        self.take: Callable[[Values], Any] = _nothing
        self.templates: dict[tuple[Any, ...], Template] = {}
        self.sessions = tuple((rank, key) for key, rank in SESSION_RANKS.items() if key in self.keys)
        self.is_noted = any(key.startswith(notes.PREFIX) for key in keys)
        self.is_judged = evaluations.may_hold("\n".join(keys))
        self.is_messaging = any(key.startswith(MESSAGING) for key in keys)
        self.conversation = tuple(
            dict.fromkeys(key for one in conventions for key in one.conversation if key in self.keys)
        )
        self.has_fingerprints = any(key in fingerprints.KEYS or key.startswith(fingerprints.PREFIXES) for key in keys)
        self.has_more = has_more or self.is_noted or bool(self.conversation)

    def has_learned(self, view: SpanView, span: RawSpan, *, named: bool) -> bool:
        """Add what an answer depended on. Where something is new, this answer and those before it are not remembered."""
        self.by_events = self.by_events or view.by_events
        if view.by_events and span.events:
            return True
        asked, derived = view.asked.difference(self.asked), view.derived.difference(self.derived)
        by_name, by_kind = view.by_name and not named and not self.by_name, view.by_kind and not self.by_kind
        if not (asked or derived or by_name or by_kind):
            return False
        self.templates.clear()
        self.version += 1
        self.by_name, self.by_kind = self.by_name or by_name, self.by_kind or by_kind
        self.derived += tuple(derived)
        self.asked += tuple(sorted(asked))
        self.take = itemgetter(*self.asked, *self.asked[:1]) if self.asked else _nothing
        return True


class Reader:
    """Reads spans by a table of conventions and the user's settings.

    `wanted` and `wanted_prefixes` are all the attribute keys that any rule reads: a caller may drop the rest, and gets the
    same.
    """

    readers = values.integer, values.text, values.identifier, itself
    convention_rank = CONVENTION_RANK

    def __init__(self, settings: Settings, table: Sequence[Convention], hasher: Hasher | None = None) -> None:
        key = bytes.fromhex(settings.hash_key) if settings.hash_key else None
        self.hasher = (
            hasher if hasher is not None else Hasher(key, settings.tools.soft_errors, settings.tools.effect_key)
        )
        rules = settings.mapping.spans
        self._own_spans = OwnSpans(rules) if rules else None
        self._table = (*((self._own_spans,) if self._own_spans else ()), *table)
        self._event_conventions = tuple(one for one in self._table if one.event_scopes)
        names = ToolNames(settings.tools)
        self._templates = Templates(self.hasher, names)
        self.has_rules = names.has_rules or self.hasher.has_soft_errors
        mapped = Mapped(settings.mapping)
        self._mapped = mapped if mapped.keys or (self._own_spans and self._own_spans.has_notes) else None
        self._agent_key = settings.agent_key
        self._run_key = settings.assembly.run_key
        self._has_more = bool(self._mapped or self._agent_key or self._run_key is not None)
        self._last = Resource(), "", Resource()
        self._senders: dict[tuple[int, str], tuple[Resource, Resource]] = {}
        self._last_session: tuple[Any, Session | None] = (b"", None)
        self._scopes: dict[str, Scope] = {}
        self._memory = 0
        self.on_unknown: Callable[[RawSpan], bool] | None = None
        """Called with a span that no convention knows; True: it wants the next one of the same scope and keys, too."""
        self.generation = 0
        """How often everything was forgotten: what others remember by plans of before is void."""

    @property
    def builder(self) -> Callable[[list[Any]], Any]:
        """Return what makes facts of the parts of a tool call."""
        return self._templates.tool

    @property
    def wanted(self) -> frozenset[str]:
        """Every attribute key that is read exactly."""
        own = {*SESSION_RANKS, *self._agent_key, *([self._run_key] if self._run_key else [])}
        mapped = self._mapped.keys if self._mapped else frozenset[str]()
        return mapped.union(
            fingerprints.KEYS,
            own,
            *(convention.keys.union(convention.needs, convention.conversation) for convention in self._table),
        )

    @property
    def wanted_prefixes(self) -> tuple[str, ...]:
        """Prefixes of the attribute keys that are read."""
        own = {prefix for convention in self._table for prefix in convention.prefixes}
        return (notes.PREFIX, MESSAGING, *evaluations.PREFIXES, *fingerprints.PREFIXES, *sorted(own))

    def convention_of(self, span: RawSpan) -> str | None:
        """The name of the convention that knows the span, for `inspect`."""
        scope = self.scope(span.scope)
        view = SpanView(span, scope.name)
        asked = _asked(scope, self.plan(scope, tuple(span.attributes)), span.name)
        return next((one.name for one in asked if one.read(view) is not None), None)

    def is_ordinary(self, scope: str, name: str) -> bool:
        """Return whether no convention knows a span of this scope and name if it carries none of the wanted attributes."""
        found = self.scope(scope)
        return not found.has_own and found.is_named(name) is None

    def read(self, span: RawSpan) -> AgentSpan:
        """The span in our vocabulary."""
        (
            trace_id, span_id, parent_id, _, span_kind, start_ns, end_ns, _, remote, attributes, events, links, scope_name,
            version, resource, state,
        ) = span  # fmt: skip
        raw: Values
        raw, value = (
            (attributes.raw, attributes.memo.once) if type(attributes) is LazyAttributes else (attributes, _same)
        )
        scope = self._scopes.get(scope_name) or self.scope(scope_name)
        keys = tuple(raw)
        plan = scope.plans.get(keys) or self.plan(scope, keys)
        template = self._template(scope, plan, span, raw, value)
        kind, failed, facts, _, build, own_session, _ = template
        if build is not None:
            facts, failed = self._templates.filled(template, raw, value)
        whole, of, sender = self._last
        if whole is not resource or of != version:
            sender = self._sender_of(resource, version)
        session = self._session(plan, own_session, raw, value) if plan.sessions or own_session is not None else None
        added = None
        extra: tuple[tuple[str, str], ...] = ()
        if plan.has_more:
            facts, session, added, extra = self._more(span, facts, session, is_noted=plan.is_noted)
        return _tuple(
            AgentSpan,
            (
                trace_id, span_id, parent_id, remote, start_ns, end_ns, span_kind, kind, failed, facts, scope.name, sender,
                session, added, evaluations.read(span, flat=plan.is_judged) if events or plan.is_judged else (),
                self._link(span, plan) if links or plan.conversation else None, threshold(state) if state else None, extra,
            ),
        )  # fmt: skip

    def read_logs(self, logs: Iterable[RawLog]) -> list[AgentSpan]:
        """The spans that log events stand for; events that no convention knows are none."""
        found: list[AgentSpan] = []
        for log in logs:
            read = self.event_of(log)
            if read is not None:
                found.extend(self._event_spans(log, read[1]))
        return found

    def event_of(self, log: RawLog) -> tuple[str, Event] | None:
        """Return the name of the convention that reads an event, and what the event stands for; None where none reads it."""
        for convention in self._event_conventions:
            if log.scope.startswith(convention.event_scopes):
                event = convention.read_event(log)
                return None if event is None else (convention.name, event)
        return None

    def _event_spans(self, log: RawLog, event: Event) -> Iterator[AgentSpan]:
        """The span of an event; after that of a call that started a conversation, the first one of that conversation."""
        if event.conversation is None:
            yield self._details(log, event)
            return
        trace_id, prompt = trace_of(event.conversation), event.prompt
        if event.kind is Kind.AGENT:
            own, parent = span_of("prompt", prompt or log.time_ns), None
        else:
            own = span_of(log.name, log.time_ns, *event.identity)
            parent = BY_TIME if prompt is None else span_of("prompt", prompt)
        link: SpanRef | None = None
        if len(log.trace_id) == len(trace_id) and len(log.span_id) == len(own) and any(log.span_id):
            link = log.trace_id, log.span_id
        elif event.subagent is not None:
            link = trace_id, span_of("subagent", event.subagent)
        start = max(log.time_ns - max(int(event.duration_ms * 1_000_000), 0), 1)
        found: tuple[Evaluation, ...] = ()
        if event.evaluation is not None:
            found = (Evaluation(*event.evaluation, log.time_ns, trace_id, own),)
        span = AgentSpan(
            trace_id, own, parent, False, start, log.time_ns, KIND_UNSPECIFIED, event.kind, event.failed,
            self._templates.complete(event.facts), bounded(log.scope), self._sender_of(log.resource),
            Session(0, bounded(event.conversation)), evaluations=found, link=link,
        )  # fmt: skip
        yield span
        if event.starts is not None and event.starts != event.conversation:
            yield span._replace(
                trace_id=trace_of(event.starts), span_id=ORIGIN, parent_id=None, kind=Kind.OTHER, facts=None, failed=False,
                session=None, evaluations=(), link=(trace_id, own),
            )  # fmt: skip

    def _details(self, log: RawLog, event: Event) -> AgentSpan:
        """A span below the one that an event was written in. It is no work itself: without that span it belongs to no run."""
        return AgentSpan(
            log.trace_id, span_of(log.name, log.span_id), log.span_id, False, log.time_ns, log.time_ns, KIND_UNSPECIFIED,
            event.kind, False, self._templates.complete(event.facts), bounded(log.scope), self._sender_of(log.resource),
        )  # fmt: skip

    def _template(self, scope: Scope, plan: Plan, span: RawSpan, raw: Values, value: Callable[[Any], Any]) -> Template:
        """The template of spans like this one."""
        name = span.name
        named = name if plan.by_name or scope.is_named(name) else None
        asked = plan.take(raw), span.status, named, span.span_kind if plan.by_kind else None
        if plan.derived:
            asked += tuple([reader(value(raw[key])) for reader, key in plan.derived])
        try:
            found = None if plan.by_events and span.events else plan.templates.get(asked)
        except TypeError:  # a value that cannot be looked up: a program may set anything
            found = None
        if found is None:
            found, is_shared = self.ask(scope, plan, span)
            size = sum(map(_size, (asked[0], named, *asked[4:]))) if is_shared else 0
            if is_shared and size <= MAX_ASKED_SIZE:
                self.remember(TEMPLATE_SIZE + size)
                plan.templates[asked] = found
        return found

    def ask(self, scope: Scope, plan: Plan, span: RawSpan) -> tuple[Template, bool]:
        """Ask the conventions what a span is; whether the spans that agree with it in what the plan asks for share the answer."""
        view = SpanView(span, scope.name)
        answers = (convention.read(view) for convention in _asked(scope, plan, span.name))
        answer = next((answer for answer in answers if answer is not None), None)
        is_unknown = answer is None
        answer = answer or NOTHING
        if plan.has_fingerprints:
            answer = fingerprints.completed(answer, plan.keys, self.hasher)
        template = self._templates.made(answer, plan.keys, span.status)
        is_shared = not plan.has_learned(view, span, named=scope.is_named(span.name) is not None)
        if is_unknown and self.on_unknown is not None and self.on_unknown(span):
            is_shared = False
        return template, is_shared

    def scope(self, name: str) -> Scope:
        """Return what is known of an instrumentation scope."""
        found = self._scopes.get(name)
        if found is None:
            found = Scope(bounded(canonical_scope(name)), self._table)
            if len(self._scopes) < MAX_SCOPES and len(name) <= LONGEST:
                self._scopes[name] = found
        return found

    def plan(self, scope: Scope, keys: tuple[str, ...]) -> Plan:
        """Return how the spans of a scope that have these keys are read."""
        found = scope.plans.get(keys)
        if found is None:
            found = Plan(keys, scope.conventions, has_more=self._has_more)
            size = sum(map(len, keys))
            if size <= MAX_KEYS_SIZE:
                self.remember(PLAN_SIZE + 2 * size)
                scope.plans[keys] = found
        return found

    def remember(self, size: int) -> None:
        """Count what is about to be remembered; where it is too much, forget everything."""
        self._memory += size
        if self._memory > MAX_MEMORY:
            self._memory = size
            self.generation += 1
            self._scopes.clear()

    def _more(
        self, span: RawSpan, facts: Any, session: Session | None, *, is_noted: bool
    ) -> tuple[Any, Session | None, Notes | None, tuple[tuple[str, str], ...]]:
        """Return what notes and settings add to a span."""
        attributes = span.attributes
        found = notes.read(attributes) if is_noted else None
        if self._mapped is not None:
            if isinstance(facts, InvocationFacts):
                facts = self._mapped.agent(attributes, facts)
            mapped = self._mapped.session(attributes)
            session = session if mapped is None else Session(MAPPED_RANK, mapped)
            of_rule = self._own_spans.notes_of(span) if self._own_spans else {}
            found = self._mapped.notes(attributes, found, of_rule)
        if self._run_key is not None and (key := values.identifier(attributes.get(self._run_key))) is not None:
            found = (found or Notes())._replace(run_key=self.hasher.text(key))
        return facts, session, found, self._extra(span) if self._agent_key else ()

    def _session(self, plan: Plan, own: Own | str | None, raw: Values, value: Callable[[Any], Any]) -> Session | None:
        """The session a span names; spans in a row share it."""
        for rank, key in plan.sessions:
            given = raw[key]
            last, session = self._last_session
            if session is not None and session.rank == rank and type(given) is type(last) and last == given:
                return session
            if (found := values.identifier(value(given))) is not None:
                session = Session(rank, found)
                if isinstance(given, bytes | str):
                    self._last_session = given, session
                return session
        found = own
        if isinstance(own, Own):
            values_of = [value(raw[key]) if key in raw else None for key in own.keys]
            read = [own.reader(*values_of)] if own.joined else map(own.reader, values_of)
            found = next((one for one in read if one is not None), None)
        return Session(CONVENTION_RANK, found) if isinstance(found, str) else None

    def _link(self, span: RawSpan, plan: Plan) -> SpanRef | None:
        """The one link of a parentless messaging hop is its parent, as for coding agents; other links join nothing."""
        if span.parent_id is None and len(span.links) == 1:
            is_hop = plan.is_messaging or span.span_kind in {KIND_PRODUCER, KIND_CONSUMER}
            if is_hop or plan.conversation:
                return span.links[0]
        for key in plan.conversation:
            found = values.text(span.attributes.get(key))
            if found is not None and len(found) >= MIN_CONVERSATION:
                return trace_of(found), BY_TIME
        return None

    def _sender_of(self, resource: Resource, version: str = "") -> Resource:
        """The sender of a scope's spans of a resource. They share it."""
        known = self._senders.get((id(resource), version))
        if known is None:
            if len(self._senders) >= MAX_SENDERS:
                self._senders.clear()
            known = self._senders[id(resource), version] = resource, resource.sender(version)
        self._last = resource, version, known[1]
        return known[1]

    def _extra(self, span: RawSpan) -> tuple[tuple[str, str], ...]:
        """The attributes that the settings add to an agent's identity: the span's own before its resource's."""
        given = span.attributes, span.resource.attributes
        found = ((values.identifier(attributes.get(key)) for attributes in given) for key in self._agent_key)
        return tuple((key, next(filter(None, each), "")) for key, each in zip(self._agent_key, found, strict=True))


def _asked(scope: Scope, plan: Plan, name: str) -> list[Convention]:
    """The conventions that may know a span of this name and these keys, in their order."""
    return [one for one in scope.conventions if one in plan.conventions or (one.names and re.match(one.names, name))]


def _same(value: Any) -> Any:
    return value


def _nothing(attributes: Values) -> Any:
    return ()


def _size(value: Any) -> int:
    """The length of a value that an answer depends on; too long for any template where it is no text: 1 equals True."""
    if isinstance(value, bytes | str):
        return len(value)
    if value is None:
        return 1
    return sum(map(_size, cast("tuple[Any, ...]", value))) if isinstance(value, tuple) else MAX_ASKED_SIZE + 1


def canonical_scope(scope: str) -> str:
    """Q18: the JavaScript packages of OpenInference are the Python ones by another name.

    >>> canonical_scope("@arizeai/openinference-instrumentation-langchain")
    'openinference.instrumentation.langchain'
    """
    for alias, prefix in _ALIASES:
        if scope.startswith(alias):
            return prefix + scope[len(alias) :].replace("-", "_")
    return scope


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
