"""Spans: as received (`RawSpan`), and in our vocabulary (`AgentSpan`).

Ids are raw bytes (16 for a trace, 8 for a span), times are nanoseconds since the Unix epoch, enums
of OTLP keep their numbers. All types are frozen and compare by value. None of them can lie in a
circle of references, so the garbage collector need not visit them (`gc=False`). Those that are
stored are written as arrays of their fields (`array_like`): see `model.record`.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from otel_reliability.model.blake2 import blake2b

TraceId: TypeAlias = bytes
SpanId: TypeAlias = bytes
SpanRef: TypeAlias = tuple[TraceId, SpanId]

STATUS_UNSET: Final = 0
STATUS_OK: Final = 1
STATUS_ERROR: Final = 2

KIND_UNSPECIFIED: Final = 0
KIND_INTERNAL: Final = 1
KIND_SERVER: Final = 2
KIND_CLIENT: Final = 3
KIND_PRODUCER: Final = 4
KIND_CONSUMER: Final = 5

LONGEST: Final = 256
"""Characters of a name or an identifier."""
_DIGEST: Final = 8


_NO_NAMES: Final = frozenset(
    {"undefined", "unknown", "null", "none", "nan", "n/a", "[object object]"}
)
_NO_SERVICE: Final = "unknown_service"
"""Name that SDKs give to a service without one, followed by that of its program."""


def is_no_name(text: str) -> bool:
    """Return whether a name is what programs write where they know none.

    >>> is_no_name("undefined"), is_no_name("unknown_service:node"), is_no_name("none of the above")
    (True, True, False)
    """
    return text.lower() in _NO_NAMES or text.startswith(_NO_SERVICE)


def bounded(text: str) -> str:
    """The text, or as much of it as there is room for, and a digest of all of it: two that differ
    stay two.

    A member of an enumeration of strings, which a host may give, is its value: what is kept for
    long is plain.

    >>> bounded("support"), len(bounded("x" * 1_000_000))
    ('support', 256)
    >>> bounded("x" * 1_000) == bounded("x" * 1_001)
    False
    """
    if len(text) <= LONGEST:
        return text if type(text) is str else str.__str__(text)
    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=_DIGEST).hexdigest()
    return f"{text[: LONGEST - len(digest) - 1]}…{digest}"


def _text(attributes: Mapping[str, Any], key: str) -> str:
    value = attributes.get(key)
    return bounded(value) if isinstance(value, str) else ""


ATTEMPT_KEYS: Final = (
    "reliability.task.id",
    "reliability.trial",
    "reliability.condition",
    "reliability.run.success",
)
"""Attributes of a resource that say which attempt a process is: an experiment sets them from the
outside, in `OTEL_RESOURCE_ATTRIBUTES`.
"""


class Resource(Struct, frozen=True, gc=False):
    """The sender of a span. Made once a resource, shared by its spans.

    Absent parts are empty strings, so that a key made of them always has the same shape.
    `scope_version` is the version of the instrumentation scope; a resource as received has none, as
    its spans are of several scopes. `attempt` holds the values of `ATTEMPT_KEYS` as text, and is
    empty where none of them is set.
    """

    service_namespace: str = ""
    service_name: str = ""
    environment: str = ""
    service_version: str = ""
    scope_version: str = ""
    attributes: Mapping[str, Any] = {}
    attempt: tuple[str, ...] = ()

    @property
    def service(self) -> tuple[str, str]:
        """The namespace and the name of its service."""
        return (self.service_namespace, self.service_name)

    @classmethod
    def of(cls, attributes: Mapping[str, Any]) -> Resource:
        """Read a resource's attributes. `deployment.environment` is the older name of
        `deployment.environment.name`.

        >>> Resource.of({"service.name": "shop", "deployment.environment": "prod"}).environment
        'prod'
        """
        return cls(
            service_namespace=_text(attributes, "service.namespace"),
            service_name=_text(attributes, "service.name"),
            environment=_text(attributes, "deployment.environment.name")
            or _text(attributes, "deployment.environment"),
            service_version=_text(attributes, "service.version"),
            attributes=attributes,
            attempt=_attempt(attributes),
        )

    def sender(self, scope_version: str) -> Resource:
        """Return what is kept of it for the spans of one scope: no attributes, as spans wait long
        and these may be large.
        """
        return replace(self, scope_version=bounded(scope_version), attributes={})


def _attempt(attributes: Mapping[str, Any]) -> tuple[str, ...]:
    if not any(key in attributes for key in ATTEMPT_KEYS):
        return ()
    return tuple(_word(attributes.get(key)) for key in ATTEMPT_KEYS)


def _word(value: object) -> str:
    """Return a text, a number or a truth value as text: the environment knows only texts."""
    return bounded(str(value)) if isinstance(value, str | int) else ""


class LazyAttributes(Mapping[str, Any]):
    """The attributes of one span or event: `raw` holds undecoded values by key, `value` decodes
    one.

    They keep the whole request they came in alive, so a holder of one must copy what it needs. Code
    that knows its keys takes them from `raw`.
    """

    __slots__ = ("raw", "value")

    def __init__(self, raw: Mapping[str, bytes], value: Callable[[bytes], Any]) -> None:
        self.raw = raw
        self.value = value

    def get(self, key: str, default: Any = None) -> Any:
        """The value, or the default where the key is absent."""
        return self.value(self.raw[key]) if key in self.raw else default

    def __getitem__(self, key: str) -> Any:
        if key not in self.raw:
            raise KeyError(key)
        return self.value(self.raw[key])

    def __contains__(self, key: object) -> bool:
        return key in self.raw

    def __iter__(self) -> Iterator[str]:
        return iter(self.raw)

    def __len__(self) -> int:
        return len(self.raw)

    def __repr__(self) -> str:
        return f"LazyAttributes({sorted(self.raw)})"


EXCEPTION: Final = "exception"
EXCEPTION_MESSAGE: Final = "exception.message"
EXCEPTIONS: Final = frozenset({EXCEPTION, "gen_ai.client.operation.exception"})
"""Names of events that report an exception."""


class RawEvent(Struct, frozen=True, gc=False):
    """An event of a span: `exception`, `gen_ai.evaluation.result`, a framework's own."""

    name: str
    time_ns: int
    attributes: Mapping[str, Any]


class RawSpan(Struct, frozen=True, gc=False):
    """A finished span as any source gives it.

    `parent_remote` is True or False where the source knows whether the parent lives in another
    process (OTLP flags bits 8 and 9, or the SDK's own context), None where it cannot know.
    `attributes` may decode its values when they are asked for; readers must not expect more than
    `get`, `in` and iteration. The message of a status ERROR is one of the `events`, an exception,
    where no event reports one. `dropped` counts the attributes, events and links that the sender
    dropped (limits of its SDK). A span may end before it starts: its times are those that were
    sent.
    """

    trace_id: TraceId
    span_id: SpanId
    parent_id: SpanId | None
    name: str
    span_kind: int
    start_ns: int
    end_ns: int
    status: int
    parent_remote: bool | None
    attributes: Mapping[str, Any]
    events: tuple[RawEvent, ...]
    links: tuple[SpanRef, ...]
    scope: str
    scope_version: str
    resource: Resource
    trace_state: str = ""
    dropped: int = 0


class RawLog(Struct, frozen=True, gc=False):
    """A log event as any source gives it: a record with the name of an event. Ids that are no ids
    are empty.
    """

    name: str
    time_ns: int
    trace_id: bytes
    span_id: bytes
    attributes: Mapping[str, Any]
    scope: str
    resource: Resource


class Kind(enum.Enum):
    """The kind of a span in our vocabulary."""

    AGENT = "agent"
    WORKFLOW = "workflow"
    CHAIN = "chain"
    MODEL = "model"
    TOOL = "tool"
    HANDOFF = "handoff"
    RETRIEVAL = "retrieval"
    COMPRESSION = "compression"
    EVALUATION = "evaluation"
    OTHER = "other"

    __hash__ = object.__hash__  # members are compared by identity; the hash of `Enum` is Python


INVOCATIONS: Final = frozenset({Kind.AGENT, Kind.WORKFLOW})
STEPS: Final = frozenset({Kind.MODEL, Kind.TOOL, Kind.HANDOFF, Kind.RETRIEVAL})


class Call(Struct, frozen=True, gc=False, array_like=True):
    """One tool call as a span or a message reports it. `name` None: a call happened, but no name is
    known.

    `arguments`, `result` and `effect` are keyed hashes (`conventions.hashing`), None where the
    telemetry does not hold them. `effect` is the hash of the arguments without free text, empty
    where they show that the call only reads.
    """

    name: str | None
    call_id: str | None = None
    arguments: bytes | None = None
    failed: bool = False
    result: bytes | None = None
    effect: bytes | None = None


class Tokens(Struct, frozen=True, gc=False, array_like=True):
    """Input (cached part included) and output tokens; None where not reported."""

    input: int | None = None
    output: int | None = None


class CompressionFacts(Struct, frozen=True, gc=False, array_like=True):
    """A compression of the context: tokens before and after it, and what triggered it; None where
    not reported.

    `failed`, `start_ns` and `end_ns` are set where it is an event of another span; a span of its
    own has them itself. Without times, it came before the span that reports it.
    """

    tokens_before: int | None = None
    tokens_after: int | None = None
    trigger: str | None = None
    failed: bool = False
    start_ns: int = 0
    end_ns: int = 0


PAUSED: Final = "paused"
CANCELLED: Final = "cancelled"


class InvocationFacts(Struct, frozen=True, gc=False, array_like=True):
    """The facts of an agent, workflow or chain span beyond its times.

    A convention turns every quirk of its framework into one of these plain marks, so that assembly
    knows no framework:

    - `name`: the agent's (or the workflow's explicit) name. `weak`: taken only where nothing else
      names the run.
    - `fallback_name`: names the run where nothing better does (a class name).
    - `agent_if_root`: a chain or workflow that is the agent itself where nothing stands above it (a
      LangGraph graph).
    - `tokens`: the invocation's own totals; None where they run on over turns or cover the last
      call only.
    - `limit_reached`: the convention's mark of a run stopped by a limit of turns, steps or length.
    - `expects_finish`: without a finish mark directly below, the run was stopped by a limit.
    - `call`: this invocation stands for its own tool call in the run above (no tool span reports
      it).
    - `emits_no_tools`: its scope never emits tool spans.
    - `hides_failure`: its scope ends agent spans OK although the run failed.
    - `manages`: names of the agents it can call; `called_as`: the name under which it was called,
      where its own is only a class.
    - `version`: the agent's version. `prompt`, `tools`: keyed hashes of its system prompt and of
      the definitions of its tools.
    - `compressions`: those of the context that are events of its span.
    - `request`: the sketch of what the user asked (`conventions.requests`).
    - `stopped`: `PAUSED` where it waits for a person, `CANCELLED` where a person stopped it.
    - `invocation_id`: the id that its framework gives this one invocation.
    - `is_turn`: a turn of an agent's loop: without its agent it is no run.
    - `lacks_tools`: its source may lack tool calls. `lacks_models`: it lacks model calls, or the
      tokens of some. `lacks_output`: it lacks output tokens of some.
    """

    name: str | None = None
    weak: bool = False
    fallback_name: str | None = None
    agent_if_root: bool = False
    tokens: Tokens | None = None
    limit_reached: bool = False
    expects_finish: bool = False
    call: Call | None = None
    emits_no_tools: bool = False
    hides_failure: bool = False
    manages: tuple[str, ...] = ()
    called_as: str | None = None
    version: str | None = None
    prompt: str | None = None
    tools: str | None = None
    compressions: tuple[CompressionFacts, ...] = ()
    request: bytes | None = None
    stopped: str | None = None
    invocation_id: str | None = None
    is_turn: bool = False
    lacks_tools: bool = False
    lacks_models: bool = False
    lacks_output: bool = False


class ToolFacts(Struct, frozen=True, gc=False, array_like=True):
    """The calls a tool span reports (usually one), or that it only marks the end of a run
    (`finish`). `agent`, `invocation_id`: the name of the agent that it says it belongs to, and the
    id of that agent's invocation.
    """

    calls: tuple[Call, ...] = ()
    finish: bool = False
    agent: str | None = None
    invocation_id: str | None = None


class RejectionFacts(Struct, frozen=True, gc=False, array_like=True):
    """A call that was refused and never executed: it is no step, and neither is the call that its
    span lies in. `pending`: it was not refused, it waits for a person.
    """

    call_id: str | None = None
    pending: bool = False


ANSWERS_TOOL: Final = b""
"""`ModelFacts.request` of a call that answers what a tool returned, and no message of the user."""


class ModelFacts(Struct, frozen=True, gc=False, array_like=True):
    """The facts of a model call. `calls` are the tool calls its messages asked for, where they are
    captured (`messages`).

    `prompt` and `tools` are keyed hashes of the system prompt and of the definitions of the tools.
    `reasoning` is the level of reasoning that was asked of the model. `compressions` of the context
    are events of its span. `request` is the sketch of what the user asked, where the call answers a
    message of the user; `ANSWERS_TOOL` where it answers what a tool returned. `cost` is in USD,
    where it is reported. `provider` serves the model. Of the input tokens, `cached` were read from
    the provider's cache and `cache_written` were written to it. `agent`, `invocation_id`: as for
    `ToolFacts`. `emits_tools`: its framework makes a span of every call that it executes.
    `previous_response`: the id of the one that it continues. `cancelled`: its caller stopped it.
    `served`: the tools that the provider itself executed, in the course of the call. `reasoned`:
    the tokens of its reasoning.
    """

    model: str | None = None
    request_model: str | None = None
    tokens: Tokens = Tokens()
    asked_for_tools: bool = False
    messages: bool = False
    calls: tuple[Call, ...] = ()
    context_limit: int | None = None
    cost: float | None = None
    response_id: str | None = None
    emits_no_tools: bool = False
    prompt: str | None = None
    tools: str | None = None
    compressions: tuple[CompressionFacts, ...] = ()
    request: bytes | None = None
    provider: str | None = None
    cached: int | None = None
    cache_written: int | None = None
    agent: str | None = None
    invocation_id: str | None = None
    reasoning: str | None = None
    emits_tools: bool = False
    previous_response: str | None = None
    cancelled: bool = False
    served: tuple[str, ...] = ()
    reasoned: int | None = None


class HandoffFacts(Struct, frozen=True, gc=False, array_like=True):
    """To whom a hand-off went; None: to the next agent that starts."""

    target: str | None = None


Facts: TypeAlias = (
    InvocationFacts | ToolFacts | ModelFacts | HandoffFacts | RejectionFacts | CompressionFacts
)


EVALUATION: Final = "gen_ai.evaluation.result"
"""The name of the event that evaluates a run, in spans and in logs."""
EVALUATION_NAME: Final = "gen_ai.evaluation.name"
EVALUATION_SCORE: Final = "gen_ai.evaluation.score.value"
EVALUATION_LABEL: Final = "gen_ai.evaluation.score.label"
EVALUATED_RESPONSE: Final = "gen_ai.response.id"
OUTCOME: Final = "reliability.outcome"
"""The name of the evaluation that is an outcome reported apart from spans, and of its log event."""


class SubjectKind(enum.StrEnum):
    """By what an outcome names runs. A key is a business key, which is hashed before anything
    keeps it.
    """

    TRACE = "trace"
    RUN = "run"
    SESSION = "session"
    KEY = "key"
    HASHED_KEY = "hashed_key"


class Subject(Struct, frozen=True, gc=False, array_like=True):
    """Subject of an outcome: a kind, and the id or key."""

    kind: SubjectKind
    value: str


class Evaluation(Struct, frozen=True, gc=False, array_like=True):
    """A result of an evaluation that came with the telemetry. It names the span, the response or
    neither; an outcome that was reported apart from spans names what it is `about`.
    """

    name: str
    score: float | None
    label: str | None
    time_ns: int
    trace_id: TraceId | None = None
    span_id: SpanId | None = None
    response_id: str | None = None
    about: Subject | None = None

    @classmethod
    def of(
        cls,
        facts: Mapping[str, Any],
        time_ns: int,
        trace_id: TraceId | None = None,
        span_id: SpanId | None = None,
    ) -> Evaluation:
        """Read the attributes of the GenAI conventions. Without a name it is empty; a score may
        have any type.

        >>> Evaluation.of(
        ...     {"gen_ai.evaluation.name": "tone", "gen_ai.evaluation.score.value": "0.5"}, 7
        ... ).score
        0.5
        """
        score = facts.get(EVALUATION_SCORE)
        try:
            number = float(score) if isinstance(score, (int, float, str)) else math.nan
        except (ValueError, OverflowError):
            number = math.nan
        return cls(
            name=_text(facts, EVALUATION_NAME),
            score=number if math.isfinite(number) else None,
            label=_text(facts, EVALUATION_LABEL) or None,
            time_ns=time_ns,
            trace_id=trace_id,
            span_id=span_id,
            response_id=_text(facts, EVALUATED_RESPONSE) or None,
        )

    def attributes(self) -> dict[str, Any]:
        """Return the attributes that `of` reads."""
        values = self.name, self.score, self.label, self.response_id
        keys = EVALUATION_NAME, EVALUATION_SCORE, EVALUATION_LABEL, EVALUATED_RESPONSE
        return {key: value for key, value in zip(keys, values, strict=True) if value is not None}

    @property
    def is_empty(self) -> bool:
        """True if it is empty: an evaluator that failed gives neither score nor label."""
        return self.score is None and self.label is None


CONDITIONS: Final = frozenset({"baseline", "fault", "structure", "prompt"})
"""Values of `reliability.condition`: how a run was disturbed."""


SEVERITIES: Final = frozenset({"low", "medium", "high"})
"""The severities of a violation of a constraint."""


class Notes(Struct, frozen=True, gc=False, array_like=True):
    """The attributes that users add (`reliability.*`), read and checked. None: absent.

    `refused` names what was there and out of range: `(attribute, reason)`; such values count as
    absent. `dropped` is how many attributes, events and links the sender dropped, where it did.
    `ends_before_start`: the span that was sent did; it counts as one without duration.
    """

    task_id: str | None = None
    trial: int | None = None
    success: bool | None = None
    reward: float | None = None
    confidence: float | None = None
    cost: float | None = None
    condition: str | None = None
    violations: tuple[tuple[str, str], ...] | None = None
    branches: tuple[tuple[str, str], ...] = ()
    input_class: str | None = None
    context_limit: int | None = None
    run_key: str | None = None
    refused: tuple[tuple[str, str], ...] = ()
    outcome_key: str | None = None
    dropped: int | None = None
    ends_before_start: bool = False


class Session(Struct, frozen=True, order=True, gc=False, array_like=True):
    """A conversation id and how much its key is worth (0 is best)."""

    rank: int
    id: str


class AgentSpan(Struct, frozen=True, gc=False, array_like=True):
    """A span in our vocabulary. Of a span of kind OTHER only its position, its times, notes and
    evaluations are kept; with `facts` it is a log event that adds to the model call above it.

    `link` is set only for a parentless messaging hop with exactly one link: the link is its parent.
    `threshold` is the sampling threshold T of the span's trace state (`ot=th:`), None where the
    span carries none. `extra` are the attributes that the settings add to an agent's identity.
    """

    trace_id: TraceId
    span_id: SpanId
    parent_id: SpanId | None
    parent_remote: bool | None
    start_ns: int
    end_ns: int
    span_kind: int
    kind: Kind
    failed: bool
    facts: Facts | None
    scope: str
    resource: Resource
    session: Session | None = None
    notes: Notes | None = None
    evaluations: tuple[Evaluation, ...] = ()
    link: SpanRef | None = None
    threshold: int | None = None
    extra: tuple[tuple[str, str], ...] = ()


# --- Data that belong to two traces ---------------------------------------------------------------


LINK: Final = "link"
RUN_KEY: Final = "run_key"
_NOT_KEYED: Final = INVOCATIONS | {Kind.OTHER}
"""Kinds whose runs go by their own spans, whatever the user's key says."""


def crossing(span: AgentSpan) -> tuple[str, ...]:
    """By what a span may belong to a run of another trace: the link of a messaging hop, or the
    user's own key.

    >>> from otel_reliability.testing import agent
    >>> crossing(agent(1)), crossing(agent(1, link=(b"another trace...", b"its span")))
    ((), ('link',))
    """
    link = span.link is not None and span.link[0] != span.trace_id
    keyed = (
        span.notes is not None and span.notes.run_key is not None and span.kind not in _NOT_KEYED
    )
    return (LINK,) * link + (RUN_KEY,) * keyed


def alone(span: AgentSpan) -> AgentSpan:
    """The span without what would join it to other traces."""
    found = crossing(span)
    if LINK in found:
        span = replace(span, link=None)
    if RUN_KEY in found and span.notes is not None:
        span = replace(span, notes=replace(span.notes, run_key=None))
    return span


# --- Conversations with coding agents: a trace stands for one -------------------------------------


_PREFIX: Final = b"convers."
"""The first half of the trace id of every conversation."""
BY_TIME: Final[SpanId] = bytes(7) + b"\x01"
"""The parent of what names no prompt: the prompt of the conversation that was current at its time.
"""
ORIGIN: Final[SpanId] = bytes(7) + b"\x02"
"""The span of a conversation that a tool call of another one started; its parent is that call."""


def trace_of(conversation: str) -> TraceId:
    """Return the trace id that stands for a conversation.

    >>> is_conversation(trace_of("01a208b9-4ef4"))
    True
    """
    return _PREFIX + blake2b(conversation.encode("utf-8", "replace"), digest_size=8).digest()


def is_conversation(trace_id: TraceId) -> bool:
    """Return whether a trace id stands for a conversation."""
    return trace_id.startswith(_PREFIX)


def conversation_of(span: AgentSpan) -> TraceId | None:
    """Return the trace of the conversation that a span belongs to; None where it
    belongs to none.
    """
    if is_conversation(span.trace_id):
        return span.trace_id
    return span.link[0] if span.link is not None and is_conversation(span.link[0]) else None


def span_of(*parts: object) -> SpanId:
    """Return the span id of a part of a conversation, by what identifies it."""
    return blake2b("\0".join(map(str, parts)).encode("utf-8", "replace"), digest_size=8).digest()
