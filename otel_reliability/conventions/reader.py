"""`RawSpan` → `AgentSpan`: asks the conventions, then adds what any span may carry whatever its
convention.

Total: every span comes out, as kind OTHER where no convention knows it, and nothing it carries can
raise.

Theory of operation
-------------------

To ask a dozen conventions what a span is takes tens of microseconds; a service reads tens of
thousands of spans a second. But an instrumentation sets the same keys on span after span, and most
of what a convention answers is the same each time. So an answer is asked for once and shared:

    RawSpan ── scope, keys ──▶ Plan ── values asked for ──▶ Template ── own values ──▶ AgentSpan
                               (plans.py)                   (templates.py)

1. **Scope.** Its name decides which conventions may concern its spans at all (`Scope`).
2. **Plan.** One for each set of keys of a scope. By the keys alone it is known which conventions
   need not be asked, which attributes name the session, and whether there are notes, evaluations
   or fingerprints to read.
3. **Template.** One for each combination of the values that an answer depended on. A convention
   reads a span through a `SpanView`, which notes every value that it asks for (`asked`), every
   finding of a reader (`derived`, `in_events`), and whether it read the name or the kind. What
   a convention only passes on, such as a token count, it returns as an `Own`: unread, by key and
   reader. Such parts stay open in the template.
4. **Filling.** A span whose plan has a template for its values costs one look-up; its own values
   are then put into the open parts. Calls are hashed and named here, in one place for all
   conventions (`Templates`).
5. **Rest.** Session, notes, evaluations, link, and the sender, which all spans of a resource share.

A plan *learns*: until it has seen what an answer depends on, it does not know which values to look
up. Whenever an answer depended on something new, the plan adds it and drops its templates, since
they were kept under too few values (`Plan.learn`). The present answer is used and not kept.
A plan soon learns nothing new. What it must not be distinguished by is unbounded: a convention with
a new function for each span would make it learn for ever, so that number is bounded
(`MAX_DERIVED`), and its spans are then asked one by one.

**Three rules keep a template honest.** What a template holds was computed from nothing but the
values it is kept under. A value that cannot be looked up (a list that a program set) or is too long
(`MAX_ASKED_SIZE`) makes no template. Of events only what readers find in them is looked up.

**Memory.** A sender may invent scopes, keys and values without end. Sizes are estimated and added
up; above `MAX_MEMORY` everything is forgotten and made again. `generation` counts that, because the
native decoder (`service/native_decoder.py`) keeps layouts made of these plans and templates.

Nothing else is remembered of a span, and no text of a prompt or argument: these are hashed before
they can be kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, cast

from msgspec.structs import replace

from otel_reliability.config import InputSettings, Settings
from otel_reliability.conventions import (
    control_flow,
    evaluations,
    fingerprints,
    notes,
    owners,
    requests,
    values,
)
from otel_reliability.conventions.base import (
    NOTHING,
    Convention,
    EventAnswer,
    Own,
    SpanView,
    itself,
)
from otel_reliability.conventions.events import spans_of
from otel_reliability.conventions.hashing import Hasher
from otel_reliability.conventions.keys import Keys
from otel_reliability.conventions.mapping import Mapped, OwnSpans
from otel_reliability.conventions.plans import (
    CONVENTION_RANK,
    Plan,
    Scope,
    canonical_scope,
    possible_conventions,
)
from otel_reliability.conventions.templates import RawValues, Template, Templates
from otel_reliability.model.remembered import Remembered
from otel_reliability.model.span import (
    BY_TIME,
    KIND_CONSUMER,
    KIND_PRODUCER,
    LONGEST,
    STATUS_ERROR,
    AgentSpan,
    Evaluation,
    InvocationFacts,
    LazyAttributes,
    Notes,
    RawLog,
    RawSpan,
    Resource,
    Session,
    SpanRef,
    Subject,
    SubjectKind,
    bounded,
    trace_of,
)

MAPPED_RANK: Final = -1
INVENTED_SESSIONS: Final = ("openinference.instrumentation.claude_agent_sdk",)
"""Scopes whose sessions are ids of the framework's own: one of the application's is better."""

MAX_MEMORY: Final = 32 * 1024 * 1024
"""Bytes, roughly, of all plans and templates: a sender may invent keys and values without end.
Beyond, all are made again.
"""
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


class Reader:
    """Reads spans by a table of conventions and the user's settings.

    `keys` are all attribute keys that any rule reads, but for requests (`requests.keys_of`): a
    caller may drop the rest, and gets the same.
    """

    convention_rank = CONVENTION_RANK

    def __init__(
        self, settings: Settings, table: Sequence[Convention], hasher: Hasher | None = None
    ) -> None:
        key = bytes.fromhex(settings.hash_key) if settings.hash_key else None
        self.hasher = hasher or Hasher(key, settings.tools.soft_errors, settings.tools.effect_key)
        self.reads_requests = settings.inputs.group == "auto"
        self._settings = settings
        self._conventions = table
        rules = settings.mapping.spans
        self._own_spans = OwnSpans(rules) if rules else None
        self._table = (*((self._own_spans,) if self._own_spans else ()), *table)
        self._event_conventions = tuple(one for one in self._table if one.event_scopes)
        self.templates = Templates(self.hasher, settings.tools)
        mapped = Mapped(settings.mapping)
        self._mapped = (
            mapped if mapped.keys or (self._own_spans and self._own_spans.has_notes) else None
        )
        self._agent_key = settings.agent_key
        self._run_key = settings.assembly.run_key
        named = {*(mapped.keys if self._mapped else ()), *self._agent_key}
        if self._run_key is not None:
            named.add(self._run_key)
        self.keys = Keys(self._table, named)
        self._has_more = bool(self._mapped or self._agent_key or self._run_key is not None)
        self._last = Resource(), "", Resource()
        self._senders = Remembered[tuple[int, str], tuple[Resource, Resource]](MAX_SENDERS)
        self._last_session: tuple[Any, Session | None] = (b"", None)
        self._scopes: dict[str, Scope] = {}
        self._memory = 0
        self.on_unknown: Callable[[RawSpan], bool] | None = None
        """Called with a span that no convention knows; True: it wants the next one of the same
        scope and keys, too.
        """
        self.generation = 0
        """Number of times that everything was forgotten: what others remember by plans of before is
        void.
        """

    def without_requests(self) -> Reader:
        """Return a reader that reads the same, but no request: what may block no thread of a host
        leaves requests for later (`requests.of_attributes`).
        """
        if not self.reads_requests:
            return self
        settings = replace(self._settings, inputs=InputSettings(group="off"))
        return Reader(settings, self._conventions, self.hasher)

    def convention_of(self, span: RawSpan) -> str | None:
        """The name of the convention that knows the span, for `inspect`."""
        scope = self.scope(span.scope)
        view = SpanView(span, scope.name)
        plan = self.plan(scope, tuple(span.attributes))
        possible = possible_conventions(scope, plan, span.name)
        return next((one.name for one in possible if one.read(view) is not None), None)

    def is_ordinary(self, scope: str, name: str) -> bool:
        """Return whether no convention knows a span of this scope and name if it carries none of
        the wanted attributes.
        """
        found = self.scope(scope)
        return not any(one.scopes for one in found.conventions) and not name.startswith(found.names)

    def read(self, span: RawSpan) -> AgentSpan:
        name = span.name
        status = span.status
        attributes = span.attributes
        events = span.events
        raw: RawValues
        raw, value = (
            (attributes.raw, attributes.value)
            if type(attributes) is LazyAttributes
            else (attributes, itself)
        )
        scope = self._scopes.get(span.scope) or self.scope(span.scope)
        keys = tuple(raw)
        plan = scope.plans.get(keys) or self.plan(scope, keys)
        version = plan.version
        basis: tuple[Any, ...] = (
            plan.take(raw),
            status,
            name if plan.by_name or name.startswith(scope.names) else None,
            span.span_kind if plan.by_kind else None,
        )
        if plan.derived:
            basis += tuple([reader(value(raw[key])) for reader, key in plan.derived])
        if events:
            basis += plan.found_in(events, failed=status == STATUS_ERROR)
        try:
            template = plan.templates.get(basis)
        except TypeError:  # a value that cannot be looked up: a program may set anything
            template = None
        if template is None:
            template = self._answered(scope, plan, span, basis, version)
        facts = template.facts
        failed = template.failed
        if isinstance(facts, dict):
            facts, failed = self.templates.filled(template, facts, raw, value, events)
        whole, of, sender = self._last
        if whole is not span.resource or of != span.scope_version:
            sender = self._sender_of(span.resource, span.scope_version)
        session = (
            self._session(plan, template.session, raw, value)
            if plan.sessions or template.session is not None
            else None
        )
        added = None
        extra: tuple[tuple[str, str], ...] = ()
        if plan.has_more:
            facts, session, added, extra = self._more(span, facts, session, is_noted=plan.is_noted)
        if events and self.reads_requests:
            facts = requests.from_events(facts, events, self.hasher.once)
        if facts is not None and (span.dropped or span.end_ns < span.start_ns):
            added = _with_faults(added, span)
        judged = evaluations.read(span, flat=plan.is_judged) if events or plan.is_judged else ()
        link = self._link(span, plan) if span.links or plan.conversation else None
        return AgentSpan(  # more than 12 keywords here would be passed as a dictionary
            span.trace_id,
            span.span_id,
            span.parent_id,
            span.parent_remote,
            span.start_ns,
            max(span.start_ns, span.end_ns),
            span_kind=span.span_kind,
            kind=template.kind,
            failed=failed,
            facts=facts,
            scope=scope.name,
            resource=sender,
            session=session,
            notes=added,
            evaluations=judged,
            link=link,
            threshold=threshold(span.trace_state) if span.trace_state else None,
            extra=extra,
        )

    def read_logs(self, logs: Iterable[RawLog]) -> list[AgentSpan]:
        """The spans that log events stand for; events that no convention knows are none."""
        found: list[AgentSpan] = []
        for log in logs:
            read = self.event_of(log)
            if read is not None:
                facts = self.templates.complete(read[1].facts)
                if self.reads_requests:
                    facts = requests.of_event(facts, read[1].request)
                found.extend(spans_of(log, read[1], facts, self._sender_of(log.resource)))
        return found

    def without_key(self, evaluation: Evaluation) -> Evaluation:
        """Return an evaluation with the keyed hash in the place of a business key."""
        about = evaluation.about
        if about is None or about.kind != SubjectKind.KEY:
            return evaluation
        return replace(
            evaluation, about=Subject(SubjectKind.HASHED_KEY, self.hasher.text(about.value))
        )

    def event_of(self, log: RawLog) -> tuple[str, EventAnswer] | None:
        """Return the name of the convention that reads an event, and what the event stands for;
        None where none reads it.
        """
        for convention in self._event_conventions:
            if log.scope.startswith(convention.event_scopes):
                event = convention.read_event(log)
                return None if event is None else (convention.name, event)
        return None

    def _answered(
        self, scope: Scope, plan: Plan, span: RawSpan, basis: tuple[Any, ...], version: int
    ) -> Template:
        """Return the template of a span whose plan has none. `version`: that of the plan when the
        basis was taken.
        """
        found, is_shared = self.ask(scope, plan, span)
        size = _size_of_basis(basis) if is_shared else 0
        if is_shared and size <= MAX_ASKED_SIZE and basis not in plan.templates:
            self.remember(TEMPLATE_SIZE + size)
            plan.keep(basis, found, version)
        return found

    def ask(self, scope: Scope, plan: Plan, span: RawSpan) -> tuple[Template, bool]:
        """Ask the conventions what a span is; whether the spans that agree with it in what the plan
        asks for share the answer.
        """
        view = SpanView(span, scope.name)
        answers = (
            convention.read(view) for convention in possible_conventions(scope, plan, span.name)
        )
        answer = next((answer for answer in answers if answer is not None), None)
        is_unknown = answer is None
        answer = answer or NOTHING
        answer = control_flow.applied(answer, view)
        if plan.has_fingerprints:
            answer = fingerprints.completed(answer, plan.keys, self.hasher)
        if plan.has_owner:
            answer = owners.completed(answer, plan.keys, view)
        if self.reads_requests:
            answer = requests.completed(answer, plan.keys, self.keys.requests)
        template = self.templates.template(answer, plan.keys, span.status)
        is_shared = not plan.learn(view, named=span.name.startswith(scope.names))
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
            found = Plan(
                keys,
                scope.conventions,
                has_more=self._has_more,
                invents_sessions=scope.name.startswith(INVENTED_SESSIONS),
            )
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
        if (
            self._run_key is not None
            and (key := values.identifier(attributes.get(self._run_key))) is not None
        ):
            found = replace(found or Notes(), run_key=self.hasher.text(key))
        if found is not None and found.outcome_key is not None:
            found = replace(found, outcome_key=self.hasher.text(found.outcome_key))
        return facts, session, found, self._extra(span) if self._agent_key else ()

    def _session(
        self, plan: Plan, own: Own | str | None, raw: RawValues, value: Callable[[Any], Any]
    ) -> Session | None:
        """The session a span names; spans in a row share it."""
        for rank, key in plan.sessions:
            given = raw[key]
            last, session = self._last_session
            if (
                session is not None
                and session.rank == rank
                and type(given) is type(last)
                and last == given
            ):
                return session
            if (found := values.identifier(value(given))) is not None:
                session = Session(rank, found)
                if isinstance(given, bytes | str):
                    self._last_session = given, session
                return session
        found = own.of(tuple(map(raw.get, own.keys)), value) if isinstance(own, Own) else own
        return Session(CONVENTION_RANK, found) if isinstance(found, str) else None

    def _link(self, span: RawSpan, plan: Plan) -> SpanRef | None:
        """The one link of a parentless messaging hop is its parent, as for coding agents; other
        links join nothing.
        """
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
            known = self._senders[id(resource), version] = resource, resource.sender(version)
        self._last = resource, version, known[1]
        return known[1]

    def _extra(self, span: RawSpan) -> tuple[tuple[str, str], ...]:
        """The attributes that the settings add to an agent's identity: the span's own before its
        resource's.
        """
        given = span.attributes, span.resource.attributes
        found = (
            (values.identifier(attributes.get(key)) for attributes in given)
            for key in self._agent_key
        )
        return tuple(
            (key, next(filter(None, each), ""))
            for key, each in zip(self._agent_key, found, strict=True)
        )


def _with_faults(notes: Notes | None, span: RawSpan) -> Notes:
    """Return notes with what is wrong about a span as it was sent."""
    return replace(
        notes or Notes(),
        dropped=span.dropped or None,
        ends_before_start=span.end_ns < span.start_ns,
    )


def _size_of_basis(basis: tuple[Any, ...]) -> int:
    """Return the size of what an answer depends on: of the values asked for, the name, and what
    readers found in others. Status, kind and booleans have few values.
    """
    asked, _status, name, _kind, *findings = basis
    return sum(map(_size, (asked, name, *[one for one in findings if type(one) is not bool])))


def _size(value: Any) -> int:
    """The length of a value that an answer depends on; too long for any template where it is no
    text: 1 equals True.
    """
    if isinstance(value, bytes | str):
        return len(value)
    if value is None:
        return 1
    return (
        sum(map(_size, cast("tuple[Any, ...]", value)))
        if isinstance(value, tuple)
        else MAX_ASKED_SIZE + 1
    )


def threshold(trace_state: str) -> int | None:
    """The rejection threshold T of `ot=th:…` (1 to 14 hexadecimal digits, padded on the right),
    None where there is none.

    >>> threshold("ot=th:8"), threshold("vendor=1"), threshold("ot=th:zz")
    (36028797018963968, None, None)
    """
    for member in trace_state.split(","):
        vendor, _, value = member.strip().partition("=")
        for field in value.split(";") if vendor == "ot" else ():
            key, _, digits = field.partition(":")
            if (
                key == "th"
                and 1 <= len(digits) <= 14
                and all(digit in "0123456789abcdef" for digit in digits)
            ):
                return int(digits.ljust(14, "0"), 16)
    return None
