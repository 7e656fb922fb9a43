"""Errors that are control flow: a pause, a cancellation, a hand-off. Frameworks raise them as
exceptions, so spans end in ERROR though nothing failed.

A paused tool call was not executed: it is no step. A paused or cancelled invocation is no failure,
and neither is a step that was cancelled. Whatever raised to pass control on simply ended.

Sources: LangGraph (`GraphInterrupt`, `ParentCommand`), pydantic-ai (`ApprovalRequired`,
`CallDeferred`), Genkit (`ToolInterruptError`), Strands (`InterruptError`), LlamaIndex
(`WaitingForEvent`), agno (`StopAgentRun`), asyncio, .NET, Java and DOM.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from otel_reliability.conventions import values
from otel_reliability.conventions.base import Answer, SpanView
from otel_reliability.model.span import (
    CANCELLED,
    EXCEPTION_MESSAGE,
    EXCEPTIONS,
    PAUSED,
    STATUS_ERROR,
    InvocationFacts,
    ModelFacts,
    RawEvent,
    RejectionFacts,
    ToolFacts,
)

ERROR_TYPE: Final = "error.type"
EXCEPTION_TYPE: Final = "exception.type"
STATUS_MESSAGE: Final = "langfuse.observation.status_message"
TYPES: Final = (ERROR_TYPE, EXCEPTION_TYPE)


class ControlFlow(enum.Enum):
    """The meaning of an error that is none. PASSED: control went on elsewhere. REJECTED: a person
    or a policy did not let a call be executed; of anything else than a tool it is an error. LEFT:
    the client that waited for the answer closed the connection, which cancels the work; of a tool,
    which has clients of its own, it is an error.
    """

    PAUSED = PAUSED
    CANCELLED = CANCELLED
    PASSED = "passed"
    REJECTED = "rejected"
    LEFT = "left"


_WORK: Final = (
    "Task|Operation|Request|Run|Job|Workflow|Activity|Client|User|Stream|Generation|Agent|Call"
    "|Tool|Turn|Response|Execution|Invocation|Future|Promise|Context|Graph|Node|Step|Flow|Human"
    "|Job|Coroutine|Fiber|Scope|Kernel|Function|Prompt|Chat|Completion|Model|LLM|DBOS|Url|Err|UndErr"
)
_ASKED: Final = (
    "Approval|Confirmation|Consent|HumanInput|UserInput|HumanFeedback|HumanReview|Elicitation"
)
_END: Final = "(Error|Exception|Err|Failure)?"
_BY_USER: Final = "(By(User|Client|Caller))?"
_REJECTED: Final = f"(Rejected|Rejection|Declined|Denied){_BY_USER}"
_TABLE: Final[tuple[tuple[str, ControlFlow], ...]] = (
    ("KeyboardInterrupt", ControlFlow.CANCELLED),
    ("Interrupted(IO)?Exception", ControlFlow.CANCELLED),  # Java: the thread was told to stop
    (f"({_WORK})*Cancell?ed{_BY_USER}{_END}", ControlFlow.CANCELLED),
    (f"Cancell?ed({_WORK})+{_END}", ControlFlow.CANCELLED),
    (f"({_WORK})*Cancellation(Error|Exception)", ControlFlow.CANCELLED),
    (f"(API)?({_WORK})*Abort(ed)?(Error|Exception|Err)", ControlFlow.CANCELLED),
    (f"({_WORK})+Aborted{_BY_USER}|User(Abort|Cancel)", ControlFlow.CANCELLED),
    ("GeneratorExit|ClientDisconnect", ControlFlow.CANCELLED),  # the reader of a stream went away
    (f"Client(Disconnected|Closed(Request|Connection)|Gone){_END}", ControlFlow.LEFT),
    (f"({_WORK})*Interrupt(ed)?(Error|Exception|Signal)?", ControlFlow.PAUSED),
    (
        f"({_WORK})*({_ASKED})(Required|Pending|Needed|Requested)(Error|Exception)?",
        ControlFlow.PAUSED,
    ),
    (
        f"({_WORK})*(Pending|Awaiting|Needs|Requires)(Human|User)?({_ASKED}|Input){_END}",
        ControlFlow.PAUSED,
    ),
    (f"(Pause|Suspend|Interrupt)({_WORK}){_END}", ControlFlow.PAUSED),
    (r"(Pipeline|Graph|Node)?Breakpoint(Exception|Error)", ControlFlow.PAUSED),
    (f"({_WORK})*({_ASKED}|User|Human|Tool|ToolCall){_REJECTED}{_END}", ControlFlow.REJECTED),
    (f"({_WORK})*(Deferred|Suspended|Suspend|Paused|Pause)(Error|Exception)?", ControlFlow.PAUSED),
    (r"WaitingFor\w+", ControlFlow.PAUSED),
    (r"(Parent)?Command|GraphBubbleUp|GraphDelegate", ControlFlow.PASSED),
    (
        r"(Agent)?Hand-?[Oo]ff(Error|Exception|Requested|Signal)?|TransferToAgent",
        ControlFlow.PASSED,
    ),
    ("StopAgentRun|StopIteration|StopAsyncIteration|ContinueAsNew(Error)?", ControlFlow.PASSED),
)
"""The names of errors that are control flow, without the modules they are of. First match wins."""
_PATTERNS: Final = tuple((re.compile(pattern), signal) for pattern, signal in _TABLE)
_WORDS: Final = {"cancelled": ControlFlow.CANCELLED, "canceled": ControlFlow.CANCELLED}
"""Values of `error.type` that are no names of a class, as gRPC has them. Names of several words
(`ERR_CANCELED`, `operation_cancelled`) are read as the class of these words.
"""
_CANCELLING: Final = re.compile(
    r"(.*[:=] )?context canceled"  # Go
    r"|(.{1,40}: )?((this|the) )?(operation|request|stream|run) was (aborted|cancell?ed)"
    r"|a task was cancell?ed"
    r"|the user aborted a request|signal is aborted without reason|request was aborted"
    r"|all fibers interrupted without errors|1 cancelled: .*"
    r"|(?-i:CANCELLED(: .*)?)"  # io.grpc, whose messages begin with the status
    r"|status\(statuscode=\W?cancelled\b.*"  # gRPC for .NET
    r"|cancelled by cancel scope .*"  # anyio
    r"|.*\bstatuscode\.cancelled\b.*"  # gRPC
    r"|(activity|(child )?workflow|task( \w+)?|job)( execution)? (was )?cancell?ed"
    r"|(.{1,40} )?(was )?cancell?ed by (the )?user",
    re.IGNORECASE | re.DOTALL,
)
"""Messages of exceptions whose class does not say that a caller or a person ended the work."""
_LEAVING: Final = re.compile(
    r"(.{1,40}: )?(499:? )?(the )?client[ _](has )?(disconnect(ed)?|went away|hung up"
    r"|closed (the )?(request|connection|stream))\b(?! by| from).{0,60}"
    r"|(.{1,40}: )?(the )?(request|connection|stream) (was )?(aborted|closed|cancell?ed|ended)"
    r" by (the )?client",
    re.IGNORECASE | re.DOTALL,
)
"""Words of gateways and servers about a caller that did not wait for the end."""
_PAUSING: Final = re.compile(
    r"(.*: )?tool execution interrupted"  # Genkit for Go, where callers wrap the error
    r"|(.{1,40} )?(await|wait)ing (for|on) (a |the )?(human|user|approval|confirmation)\b.{0,80}",
    re.IGNORECASE,
)
_REJECTING: Final = re.compile(
    r"\btool (call|execution|use)\b.{0,120}"
    r"\b(not approved|(rejected|denied|declined) by (the )?user)\b"
    r"|\b(user|human|operator|reviewer) (has )?(rejected|denied|declined) (the |this |your )?"
    r"(tool|call|action|execution|request)\b",
    re.IGNORECASE | re.DOTALL,
)
"""Words of OpenAI Agents, among others, about a call that a person refused."""
_WRAPPERS: Final = re.compile(
    r"(.*[.:/$])?((Completion|Execution|Aggregate|TargetInvocation|Application|Activity)?"
    r"(Error|Exception)|RuntimeError|RuntimeException)"
)
"""Classes that say nothing of what happened: the message may begin with the class that does."""
_TIMEOUT: Final = re.compile(r"time(d |-)?out|deadline", re.IGNORECASE)
"""Part of the message where what was cancelled had taken too long, which is a failure."""
TIMEOUT: Final = "timeout"


class _Meaning(NamedTuple):
    """A meaning of messages, if `said` finds it there, which needs one of the `words`, in lower
    case: most messages have none, and to look for a word costs little.
    """

    means: str
    words: tuple[str, ...]
    said: Callable[[str], re.Match[str] | None]


_MEANINGS: Final = (
    _Meaning(TIMEOUT, ("time", "deadline"), _TIMEOUT.search),
    _Meaning(
        ControlFlow.REJECTED.value,
        ("approved", "rejected", "denied", "declined"),
        _REJECTING.search,
    ),
    _Meaning(CANCELLED, ("cancel", "abort", "interrupt"), _CANCELLING.fullmatch),
    _Meaning(ControlFlow.LEFT.value, ("client",), _LEAVING.fullmatch),
    _Meaning(PAUSED, ("interrupt", "wait"), _PAUSING.fullmatch),
)
"""The first that is found counts."""
MAX_MESSAGE: Final = 1_024
"""Characters of the message of an exception that are searched."""
_NAME: Final = re.compile(
    r"\(?\s*([A-Za-z_][\w.]*)\s*\("  # what `repr` wrote: `Command(…`, `(Interrupt(…`
    r"|((?:\w+\.)*[A-Za-z_]\w*[a-z][A-Z]\w*)(?=:|$)"  # as a traceback ends: `CancelledError: …`
)
"""The name of a class at the beginning of a message."""


class _Raised(NamedTuple):
    """An exception: its type, and what its message says: `TIMEOUT`, or a value of `ControlFlow`."""

    type: Any
    means: str | None


def signal_of(name: object) -> ControlFlow | None:
    """Return what an error of this name means; None where it is an error.

    >>> signal_of("langgraph.errors.GraphInterrupt"), signal_of("asyncio.CancelledError")
    (<ControlFlow.PAUSED: 'paused'>, <ControlFlow.CANCELLED: 'cancelled'>)
    >>> signal_of("ValueError"), signal_of("ConnectionAbortedError"), signal_of("OrderCancelled")
    (None, None, None)
    """
    found = values.text(name)
    if found is None:
        return None
    if " " in found:  # the message in the place of a class, as programs in Go write it
        return ControlFlow.CANCELLED if _CANCELLING.fullmatch(found[:MAX_MESSAGE]) else None
    bare = re.split(r"[.:/\\$]", found)[-1]
    if "_" in bare and not bare.startswith("_"):
        bare = "".join(word.capitalize() for word in bare.split("_"))
    elif not bare.islower():
        bare = bare[:1].upper() + bare[1:]  # Go: types that are not exported
    return next(
        (signal for pattern, signal in _PATTERNS if pattern.fullmatch(bare)),
        _WORDS.get(bare.lower()),
    )


def applied(answer: Answer, span: SpanView) -> Answer:
    """Return the answer about a span that ended in an error, which is none where it is control
    flow.
    """
    if span.status != STATUS_ERROR and not answer.failed:
        return answer
    signal = _signal(span)
    error = ControlFlow.LEFT if isinstance(answer.facts, ToolFacts) else ControlFlow.REJECTED
    if signal is None or signal is error:
        return answer
    return _without_failure(answer, ControlFlow.CANCELLED if signal is ControlFlow.LEFT else signal)


def _signal(span: SpanView) -> ControlFlow | None:
    raised = span.found_in_failure(_raised_in)
    if raised is not None and raised.means == TIMEOUT:
        return None
    for key in TYPES:
        if (signal := signal_of(span.get(key))) is not None:
            return signal
    if raised is not None:
        signal = signal_of(raised.type)
        if signal is not None or raised.means is not None:
            return signal or ControlFlow(raised.means)
    means = span.found_in(STATUS_MESSAGE, _meaning_of)
    return None if means in (None, TIMEOUT) else ControlFlow(means)


def _raised_in(events: Iterable[RawEvent]) -> _Raised | None:
    """Return the last exception that events report; None without any."""
    exceptions = [event for event in events if event.name in EXCEPTIONS]
    if not exceptions:
        return None
    attributes = exceptions[-1].attributes
    kind = attributes.get(EXCEPTION_TYPE)
    message = attributes.get(EXCEPTION_MESSAGE)
    says_nothing = kind is None or (isinstance(kind, str) and _WRAPPERS.fullmatch(kind))
    return _Raised(kind, _meaning_of(message) if says_nothing else _meaning_of_message(message))


def _meaning_of(text: object) -> str | None:
    """Return what a message says that may begin with the name of a class; None: an error."""
    means = _meaning_of_message(text)
    if means is not None or not isinstance(text, str):
        return means
    said = _trimmed(text)
    found = _NAME.match(said)
    signal = signal_of(said if found is None else found[1] or found[2])
    return None if signal is None else signal.value


def _meaning_of_message(text: object) -> str | None:
    """Return what the message of an exception says; None: an error."""
    if not isinstance(text, str):
        return None
    said = _trimmed(text)
    lower = said.lower()
    for meaning in _MEANINGS:
        if any(word in lower for word in meaning.words) and meaning.said(said):
            return meaning.means
    return None


def _trimmed(message: str) -> str:
    return message.strip(" .\n")[:MAX_MESSAGE]


def _without_failure(answer: Answer, signal: ControlFlow) -> Answer:
    facts = answer.facts
    if isinstance(facts, InvocationFacts) and signal is not ControlFlow.PASSED:
        facts = replace(facts, stopped=signal.value)
    elif isinstance(facts, ModelFacts) and signal is ControlFlow.CANCELLED:
        facts = replace(facts, cancelled=True)
    elif isinstance(facts, ToolFacts):
        if signal in (ControlFlow.PAUSED, ControlFlow.REJECTED):
            facts = RejectionFacts(pending=signal is ControlFlow.PAUSED)
        else:
            calls = tuple([replace(call, failed=False) for call in facts.calls])
            facts = replace(facts, calls=calls)
    return replace(answer, facts=facts, failed=False, fails_with_call=False)
