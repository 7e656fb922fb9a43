"""`RawSpan` → `AgentSpan`: asks the conventions, then adds what any span may carry whatever its
convention.

Total: every span comes out, as kind OTHER where no convention knows it, and nothing it carries can
raise.

An instrumentation sets the same keys on span after span. So there is one `Plan` per scope and set
of keys: it names the attributes that are read, and remembers the answers of the conventions as
templates, into which the parts that are each span's own are put. Nothing else is remembered of a
span.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from fnmatch import fnmatchcase
from functools import lru_cache
from operator import itemgetter
from typing import Any, Final, NamedTuple, TypeAlias, cast

from msgspec.structs import replace

from otel_reliability.config import InputSettings, Settings, ToolSettings
from otel_reliability.conventions import (
    control_flow,
    evaluations,
    fingerprints,
    notes,
    requests,
    values,
)
from otel_reliability.conventions.base import (
    NOTHING,
    Answer,
    Convention,
    EventAnswer,
    Own,
    SpanView,
    itself,
)
from otel_reliability.conventions.events import spans_of
from otel_reliability.conventions.hashing import HashedResult, Hasher
from otel_reliability.conventions.keys import MESSAGING, SESSIONS, Keys
from otel_reliability.conventions.mapping import Mapped, OwnSpans
from otel_reliability.model.remembered import Remembered
from otel_reliability.model.span import (
    BY_TIME,
    KIND_CONSUMER,
    KIND_PRODUCER,
    LONGEST,
    STATUS_ERROR,
    AgentSpan,
    Call,
    InvocationFacts,
    Kind,
    LazyAttributes,
    ModelFacts,
    Notes,
    RawLog,
    RawSpan,
    Resource,
    Session,
    SpanRef,
    Tokens,
    ToolFacts,
    bounded,
    named_tuple,
    trace_of,
)

MAPPED_RANK: Final = -1
CONVENTION_RANK: Final = 2
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
MAX_TOOL_NAME: Final = 256
MAX_TOOL_NAMES: Final = 65_536
MAX_HASHING_READERS: Final = 256
MAX_DERIVED: Final = 16
"""Readers whose findings answers of one plan depend on. A convention that makes a function anew for
each span has ever new ones: beyond, the spans of the plan are asked one by one.
"""

_JAVASCRIPT: Final = "@arizeai/openinference-instrumentation-"

Values = Mapping[str, Any]
"""Attributes by key: values, or their undecoded bytes."""


# --- Templates ------------------------------------------------------------------------------------


Parts: TypeAlias = list[Any]
"""The fields of facts in a row: those of a model call and of an invocation with input and output
tokens in place of `tokens`, those of its one call for a tool, with the reported name of the tool in
place of `effect`; the facts themselves where a convention reads them as a whole.
"""

_RESULT: Final = Call._fields.index("result")
_MODEL_TOKENS: Final = ModelFacts._fields.index("tokens")
_MODEL_CALLS: Final = ModelFacts._fields.index("calls") + 1
_INVOCATION_TOKENS: Final = InvocationFacts._fields.index("tokens")
_INVOCATION_CALL: Final = InvocationFacts._fields.index("call") + 1


class Template(NamedTuple):
    """The common part of the spans of one answer.

    `build` None: `facts` are complete. Otherwise they are parts, and `build` makes facts of them
    with those that are read from each span: `single` ones from the value of one key, `others` as
    their `Own` says. `has_result`: the span failed also where the result of its call is a failure
    to the user.
    """

    kind: Kind
    failed: bool
    facts: Any
    single: tuple[tuple[int, Callable[[Any], Any], str], ...] = ()
    others: tuple[tuple[int, Own], ...] = ()
    build: Callable[[Parts], Any] | None = None
    session: Own | str | None = None
    has_result: bool = False


class Templates:
    """Makes templates and facts; calls are hashed, and named by the user's rules (`tools.ignore`,
    `tools.rename`).
    """

    own = Own

    def __init__(self, hasher: Hasher, settings: ToolSettings) -> None:
        self._hasher = hasher
        self._ignored, self._renamed = settings.ignore, dict(settings.rename)
        self._names: dict[str, str | None] = {}
        hashing = _hashed(itself, hasher.arguments), _hashed(itself, hasher.result)
        self.readers = values.integer, values.text, values.identifier, itself, *hashing
        """The readers that the native extension knows, in the order in which it knows them."""

    def template(self, answer: Answer, keys: AbstractSet[str], status: int) -> Template:
        kind, facts, failed, session, fails_with_call = answer
        parts, build = self._parts(facts)
        single: list[tuple[int, Callable[[Any], Any], str]] = []
        others: list[tuple[int, Own]] = []
        for place, part in enumerate(parts):
            if isinstance(part, Own):
                own = part.within(keys)
                if keys.isdisjoint(own.keys):
                    parts[place] = own.reader(*[None] * len(own.keys)) if own.joined else None
                elif len(own.keys) != 1 or own.once:
                    others.append((place, own))
                else:
                    single.append((place, own.reader, own.keys[0]))
        if isinstance(session, Own):
            session = session.within(keys)
            session = None if keys.isdisjoint(session.keys) else session
        failed = status == STATUS_ERROR if failed is None else failed
        if build is not None and not single and not others:
            failed = failed or (fails_with_call and _is_soft_error(parts[_RESULT]))
            facts = build(parts)
            build = None
        return Template(
            kind,
            failed,
            facts if build is None else parts,
            tuple(single),
            tuple(others),
            build,
            session,
            fails_with_call and build is not None,
        )

    def filled(
        self, template: Template, raw: Values, value: Callable[[Any], Any]
    ) -> tuple[Any, bool]:
        """Return the facts of a span of a template with parts of its own, and whether it failed;
        `value` decodes what is raw.
        """
        parts = template.facts.copy()
        for place, read, key in template.single:
            parts[place] = read(value(raw[key]))
        for place, own in template.others:
            given = tuple(map(raw.get, own.keys))
            parts[place] = (
                self._hasher.once(own, given, value) if own.once else own.of(given, value)
            )
        failed = template.failed or (template.has_result and _is_soft_error(parts[_RESULT]))
        return template.build(parts) if template.build is not None else None, failed

    def complete(self, facts: Any) -> Any:
        """Return facts that a convention read as a whole, with their calls hashed."""
        if isinstance(facts, ToolFacts):
            return ToolFacts(self._calls(facts.calls), facts.finish)
        if isinstance(facts, ModelFacts):
            calls = self._calls(facts.calls) if facts.calls else None
            return self.model(_flat(facts._replace(calls=calls), _MODEL_TOKENS))
        parts, build = self._parts(facts)
        return facts if build is None else build(parts)

    def _parts(self, facts: Any) -> tuple[Parts, Callable[[Parts], Any] | None]:
        """Return the parts of facts, and what makes facts of them again; None where they stay as
        they are.
        """
        match facts:
            case ModelFacts():
                parts = _flat(facts, _MODEL_TOKENS)
                parts[_MODEL_CALLS] = (
                    _once(facts.calls, self._calls_of_messages) if facts.calls else None
                )
                return parts, self.model
            case InvocationFacts():
                parts = _flat(facts, _INVOCATION_TOKENS)
                if facts.call is not None:
                    parts[_INVOCATION_CALL] = next(iter(self._calls((facts.call,))), None)
                return parts, self.invocation
            case ToolFacts(calls=(call,)):
                reported, call_id, arguments, failed, result, _ = call
                name = None if reported is None else self._name(reported)
                arguments = _once(arguments, self._hasher.arguments_of(reported))
                return [
                    name,
                    call_id,
                    arguments,
                    failed,
                    _once(result, self._hasher.result),
                    reported,
                ], self.tool
            case Own():
                return [_once(facts, self.complete)], itemgetter(0)
            case _:
                return [], None

    def model(self, parts: Parts) -> ModelFacts:
        """Return the facts of a model call; its calls are None where it asked for none, empty where
        all are ignored.
        """
        (
            model,
            request_model,
            given,
            output,
            asked,
            messages,
            calls,
            limit,
            cost,
            response,
            *marks,
        ) = parts
        if type(given) is Tokens:
            given, output = given
        if calls is not None:
            asked = bool(calls)
        return named_tuple(
            ModelFacts,
            (
                model,
                request_model,
                named_tuple(Tokens, (given, output)),
                asked,
                messages,
                calls or (),
                limit,
                cost,
                response,
                *marks,
            ),
        )

    def invocation(self, parts: Parts) -> InvocationFacts:
        name, weak, fallback, at_root, given, output, *others = parts
        if type(given) is Tokens:
            given, output = given
        tokens = None if given is None and output is None else named_tuple(Tokens, (given, output))
        return named_tuple(InvocationFacts, (name, weak, fallback, at_root, tokens, *others))

    def tool(self, parts: Parts) -> ToolFacts:
        """Return the facts of a tool span of one call."""
        name, call_id, arguments, failed, result, reported = parts
        call = self._hasher.hashed_call(reported, call_id, arguments, result, failed=failed)
        if name != reported:
            return ToolFacts(() if name is None else (call._replace(name=name),))
        return named_tuple(ToolFacts, ((call,), False))

    def _calls(self, calls: Iterable[Any]) -> tuple[Call, ...]:
        """Return reported calls hashed, by the names that they have here, without those that are
        ignored.
        """
        found: list[Call] = []
        for name, call_id, arguments, failed, result, _ in calls:
            known = None if name is None else self._name(name)
            if name is None or known is not None:
                call = self._hasher.call(name, call_id, arguments, result, failed=failed)
                found.append(call if known == name else call._replace(name=known))
        return tuple(found)

    def _calls_of_messages(self, calls: tuple[Any, ...]) -> tuple[Call, ...] | None:
        return self._calls(calls) if calls else None

    def _name(self, name: str) -> str | None:
        """Return what a tool is called here; None where it is no step."""
        if name in self._names:
            return self._names[name]
        found: str | None = name if len(name) <= MAX_TOOL_NAME else name[: MAX_TOOL_NAME - 1] + "…"
        if any(fnmatchcase(name, pattern) for pattern in self._ignored):
            found = None
        else:
            found = next(
                (new for old, new in self._renamed.items() if fnmatchcase(name, old)), found
            )
        if len(self._names) < MAX_TOOL_NAMES:
            self._names[name] = found
        return found


def _once(part: Any, finish: Callable[[Any], Any]) -> Any:
    """Return a part with what makes hashes of it, once for equal values; of a value that is known
    already, the hashes.
    """
    if isinstance(part, Own):
        return part._replace(reader=_hashed(part.reader, finish), once=True)
    return None if part is None else finish(part)


@lru_cache(MAX_HASHING_READERS)
def _hashed(read: Callable[..., Any], finish: Callable[[Any], Any]) -> Callable[..., Any]:
    """Return a reader that finishes what another one reads; the same one, so that equal values are
    known in every template.
    """

    def hashed(*given: Any) -> Any:
        found = read(*given)
        return None if found is None else finish(found)

    return hashed


def _is_soft_error(result: HashedResult | None) -> bool:
    return result is not None and result.is_soft_error


def _flat(facts: tuple[Any, ...], place: int) -> Parts:
    """Return the fields of facts, their tokens as two: one `Own` for both stands in the place of
    the first.
    """
    tokens = facts[place]
    pair = tokens if isinstance(tokens, Tokens) else (tokens, None)
    return [*facts[:place], *pair, *facts[place + 1 :]]


# --- Plans ----------------------------------------------------------------------------------------


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
    - `asked`, `derived`, `by_name`, `by_kind`, `by_events`: what their answers depend on, as far as
      is known (`by_failures_only`: of events those of spans that failed); `take` gives the values
      asked for. `templates` are the answers by all of these.
    - `sessions`: the keys that name a session; `conversation`: those of a convention that puts its
      spans together by one. `has_fingerprints`: a prompt, tool definitions or a version may be
      there. `has_more`: notes, evaluations, a conversation or what settings ask for may be there.
    """

    __slots__ = (
        "asked",
        "by_events",
        "by_failures_only",
        "by_kind",
        "by_name",
        "conventions",
        "conversation",
        "derived",
        "has_fingerprints",
        "has_more",
        "is_judged",
        "is_messaging",
        "is_noted",
        "keys",
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
        self.by_name = self.by_kind = self.by_events = False
        self.by_failures_only = True
        self.version = 0
        self.take: Callable[[Values], Any] = _nothing
        self.templates: dict[tuple[Any, ...], Template] = {}
        self.sessions = tuple(
            (CONVENTION_RANK if invents_sessions else rank, key)
            for rank, key in enumerate(SESSIONS)
            if key in self.keys
        )
        self.is_noted = any(key.startswith(notes.PREFIX) for key in keys)
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
        self.has_more = has_more or self.is_noted or bool(self.conversation)

    def has_learned(self, view: SpanView, span: RawSpan, *, named: bool) -> bool:
        """Add what an answer depended on. Where something is new, this answer and those before it
        are not remembered.
        """
        by_events = view.by_events or view.by_failure_events
        self.by_events = self.by_events or by_events
        self.by_failures_only = self.by_failures_only and not view.by_events
        if by_events and span.events:
            return True
        asked = view.asked.difference(self.asked)
        derived = view.derived.difference(self.derived)
        by_name = view.by_name and not named and not self.by_name
        by_kind = view.by_kind and not self.by_kind
        if not (asked or derived or by_name or by_kind):
            return False
        if len(self.derived) + len(derived) > MAX_DERIVED:
            return True
        self.templates.clear()
        self.version += 1
        self.by_name = self.by_name or by_name
        self.by_kind = self.by_kind or by_kind
        self.derived += tuple(derived)
        self.asked += tuple(sorted(asked))
        self.take = itemgetter(*self.asked) if self.asked else _nothing
        return True


# --- Spans ----------------------------------------------------------------------------------------


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
        """How often everything was forgotten: what others remember by plans of before is void."""

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
        asked = _asked(scope, self.plan(scope, tuple(span.attributes)), span.name)
        return next((one.name for one in asked if one.read(view) is not None), None)

    def is_ordinary(self, scope: str, name: str) -> bool:
        """Return whether no convention knows a span of this scope and name if it carries none of
        the wanted attributes.
        """
        found = self.scope(scope)
        return not any(one.scopes for one in found.conventions) and not name.startswith(found.names)

    def read(self, span: RawSpan) -> AgentSpan:
        (
            trace_id,
            span_id,
            parent_id,
            name,
            span_kind,
            start_ns,
            end_ns,
            status,
            remote,
            attributes,
            events,
            links,
            scope_name,
            version,
            resource,
            state,
        ) = span
        raw: Values
        raw, value = (
            (attributes.raw, attributes.value)
            if type(attributes) is LazyAttributes
            else (attributes, itself)
        )
        scope = self._scopes.get(scope_name) or self.scope(scope_name)
        keys = tuple(raw)
        plan = scope.plans.get(keys) or self.plan(scope, keys)
        asked: tuple[Any, ...] = (
            plan.take(raw),
            status,
            name if plan.by_name or name.startswith(scope.names) else None,
            span_kind if plan.by_kind else None,
        )
        if plan.derived:
            asked += tuple([reader(value(raw[key])) for reader, key in plan.derived])
        try:
            template = plan.templates.get(asked)
        except TypeError:  # a value that cannot be looked up: a program may set anything
            template = None
        if template is None or (
            events and plan.by_events and (status == STATUS_ERROR or not plan.by_failures_only)
        ):
            template = self._asked_again(scope, plan, span, asked)
        kind, failed, facts, _, _, build, own_session, _ = template
        if build is not None:
            facts, failed = self.templates.filled(template, raw, value)
        whole, of, sender = self._last
        if whole is not resource or of != version:
            sender = self._sender_of(resource, version)
        session = (
            self._session(plan, own_session, raw, value)
            if plan.sessions or own_session is not None
            else None
        )
        added = None
        extra: tuple[tuple[str, str], ...] = ()
        if plan.has_more:
            facts, session, added, extra = self._more(span, facts, session, is_noted=plan.is_noted)
        return named_tuple(
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
                failed,
                facts,
                scope.name,
                sender,
                session,
                added,
                evaluations.read(span, flat=plan.is_judged) if events or plan.is_judged else (),
                self._link(span, plan) if links or plan.conversation else None,
                threshold(state) if state else None,
                extra,
            ),
        )

    def read_logs(self, logs: Iterable[RawLog]) -> list[AgentSpan]:
        """The spans that log events stand for; events that no convention knows are none."""
        found: list[AgentSpan] = []
        for log in logs:
            read = self.event_of(log)
            if read is not None:
                facts = self.templates.complete(read[1].facts)
                if isinstance(facts, InvocationFacts) and self.reads_requests:
                    facts = facts._replace(request=requests.of_invocation(read[1].request))
                found.extend(spans_of(log, read[1], facts, self._sender_of(log.resource)))
        return found

    def event_of(self, log: RawLog) -> tuple[str, EventAnswer] | None:
        """Return the name of the convention that reads an event, and what the event stands for;
        None where none reads it.
        """
        for convention in self._event_conventions:
            if log.scope.startswith(convention.event_scopes):
                event = convention.read_event(log)
                return None if event is None else (convention.name, event)
        return None

    def _asked_again(
        self, scope: Scope, plan: Plan, span: RawSpan, asked: tuple[Any, ...]
    ) -> Template:
        """Return the template of a span whose plan has none, or whose answer depends
        on its events.
        """
        found, is_shared = self.ask(scope, plan, span)
        derived = [one for one in asked[4:] if type(one) is not bool]
        size = sum(map(_size, (asked[0], asked[2], *derived))) if is_shared else 0
        if is_shared and size <= MAX_ASKED_SIZE and asked not in plan.templates:
            self.remember(TEMPLATE_SIZE + size)
            plan.templates[asked] = found
        return found

    def ask(self, scope: Scope, plan: Plan, span: RawSpan) -> tuple[Template, bool]:
        """Ask the conventions what a span is; whether the spans that agree with it in what the plan
        asks for share the answer.
        """
        view = SpanView(span, scope.name)
        answers = (convention.read(view) for convention in _asked(scope, plan, span.name))
        answer = next((answer for answer in answers if answer is not None), None)
        is_unknown = answer is None
        answer = answer or NOTHING
        answer = control_flow.applied(answer, view)
        if plan.has_fingerprints:
            answer = fingerprints.completed(answer, plan.keys, self.hasher)
        if self.reads_requests:
            answer = requests.completed(answer, plan.keys)
        template = self.templates.template(answer, plan.keys, span.status)
        is_shared = not plan.has_learned(view, span, named=span.name.startswith(scope.names))
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
            found = (found or Notes())._replace(run_key=self.hasher.text(key))
        return facts, session, found, self._extra(span) if self._agent_key else ()

    def _session(
        self, plan: Plan, own: Own | str | None, raw: Values, value: Callable[[Any], Any]
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


def _asked(scope: Scope, plan: Plan, name: str) -> list[Convention]:
    """The conventions that may know a span of this name and these keys, in their order."""
    return [
        one for one in scope.conventions if one in plan.conventions or name.startswith(one.names)
    ]


def _nothing(attributes: Values) -> Any:
    return ()


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


def canonical_scope(scope: str) -> str:
    """Q18: the JavaScript packages of OpenInference are the Python ones by another name.

    >>> canonical_scope("@arizeai/openinference-instrumentation-langchain")
    'openinference.instrumentation.langchain'
    """
    if not scope.startswith(_JAVASCRIPT):
        return scope
    return "openinference.instrumentation." + scope.removeprefix(_JAVASCRIPT).replace("-", "_")


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
