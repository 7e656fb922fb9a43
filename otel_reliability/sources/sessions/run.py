"""One prompt of a session file → the spans of a run."""

from __future__ import annotations

import enum
from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from otel_reliability.model.blake2 import blake2b
from otel_reliability.model.session_attributes import (
    COMPACTION,
    LACKS_MODELS,
    LACKS_OUTPUT,
    LACKS_TOOLS,
    PROMPT,
    REJECTED,
    SCOPE,
    TOKENS_AFTER,
    TOKENS_BEFORE,
    TRIGGER,
)
from otel_reliability.model.span import (
    KIND_INTERNAL,
    STATUS_ERROR,
    STATUS_UNSET,
    RawSpan,
    Resource,
    SpanId,
    TraceId,
    span_of,
)
from otel_reliability.sources.batch import Batch, Malformed
from otel_reliability.sources.otlp_json import items, record, text

MAX_PROMPT: Final = 6_000
"""Characters of a prompt that are kept from its beginning, and as many from its end, until its
spans are read.
"""


class CallStatus(enum.Enum):
    """The end of a tool call. One without an answer is unfinished: whether it was executed is not
    known, and it is no step.
    """

    UNFINISHED = "unfinished"
    OK = "ok"
    FAILED = "failed"
    REJECTED = "rejected"
    CANCELLED = "cancelled"


@dataclass(slots=True)
class SessionToolCall:
    """A tool call that a session file reports."""

    name: str
    arguments: object
    start_ns: int
    end_ns: int = 0
    status: CallStatus = CallStatus.UNFINISHED
    result: str | None = None
    inner: bool = False
    """Made by a sub-agent: how it ends does not end the prompt."""
    of_agent: bool = False
    """Is the work of a sub-agent."""


class SessionTokens(NamedTuple):
    """Tokens of a model call; None where the file does not say them. `cached` (read from the
    provider's cache) and `cache_written` are parts of `input`.
    """

    input: int | None = None
    output: int | None = None
    cached: int | None = None
    cache_written: int | None = None


NO_TOKENS: Final = SessionTokens()


@dataclass(slots=True)
class SessionModelCall:
    """A model call; its tokens are None where the file does not say them."""

    model: str
    start_ns: int
    end_ns: int
    tokens: SessionTokens = NO_TOKENS
    failed: bool = False
    response_id: str | None = None


@dataclass(slots=True)
class Compaction:
    """A compaction of the context."""

    time_ns: int
    before: int | None = None
    after: int | None = None
    trigger: str | None = None


@dataclass(slots=True)
class SessionPrompt:
    """A prompt, and what a session file says of its work so far.

    `key` identifies the prompt in its session; `last_ns` is the time of the newest record.
    """

    agent: str
    session_id: str
    key: str
    start_ns: int
    resource: Resource
    last_ns: int = 0
    models: dict[str, SessionModelCall] = field(default_factory=dict[str, SessionModelCall])
    calls: dict[str, SessionToolCall] = field(default_factory=dict[str, SessionToolCall])
    compactions: list[Compaction] = field(default_factory=list[Compaction])
    failed: bool = False
    stopped: bool = False
    """A record says that the user stopped it."""
    prompt: str = ""
    """The text of the prompt, where it is known; its first and last characters, if it is long."""
    repeats: bool = False
    """Holds records that were read before, from the session that they were copied from."""
    lacks_tools: bool = False
    """Its file may lack tool calls."""
    unnamed_ns: int = 0
    """When its last answer asked for calls that it does not name; 0 if it names them."""
    lacks_models: bool = False
    """Its file lacks model calls, or the tokens of some."""

    def model_call(self, key: str, time_ns: int, model: str, tokens: SessionTokens) -> None:
        """Add a model call, or a later record of it: of what is repeated the greatest counts."""
        known = self.models.get(key)
        if known is None:
            start = min(max(self.last_ns, self.start_ns), time_ns)
            known = self.models[key] = SessionModelCall(model, start, time_ns, response_id=key)
        known.end_ns = max(known.end_ns, time_ns)
        known.tokens = SessionTokens(*map(_greater, known.tokens, tokens))
        self.see(time_ns)

    def asked(
        self, call_id: str, name: str, arguments: object, time_ns: int, *, inner: bool = False
    ) -> None:
        """Add a tool call that the model asked for. Where an id returns after its call was
        answered, the earlier call keeps its numbers under another key.
        """
        known = self.calls.get(call_id)
        if known is not None and known.status is not CallStatus.UNFINISHED:
            self.calls[f"{call_id}#{len(self.calls)}"] = self.calls.pop(call_id)
        if call_id not in self.calls:
            self.calls[call_id] = SessionToolCall(name, arguments, time_ns, time_ns, inner=inner)
        self.see(time_ns)

    def answered(
        self, call_id: str, time_ns: int, status: CallStatus, result: str | None = None
    ) -> None:
        """Note how a call ended."""
        call = self.calls.get(call_id)
        if call is not None:
            call.status = status
            call.end_ns = max(call.start_ns, time_ns)
            call.result = result
        self.see(time_ns)

    def see(self, time_ns: int) -> None:
        """Note the time of a record."""
        self.last_ns = max(self.last_ns, time_ns)

    def says(self, content: object) -> None:
        """Note the prompt, unless it is known: a text, or blocks of which some hold text."""
        said = text(content) or "\n".join(text(record(part).get("text")) for part in items(content))
        if len(said) > 2 * MAX_PROMPT:
            said = f"{said[:MAX_PROMPT]} {said[-MAX_PROMPT:]}"
        self.prompt = self.prompt or said.strip()

    @property
    def is_empty(self) -> bool:
        """True where nothing happened for the prompt."""
        return not self.models and not self.calls

    @property
    def lacks_output(self) -> bool:
        """True where output tokens of a model call are unknown, and those of its input known."""
        spent = [call.tokens for call in self.models.values() if not call.failed]
        return any(one.output is None and one.input is not None for one in spent)

    @property
    def is_cancelled(self) -> bool:
        """True where the user stopped the prompt, or the last call of it."""
        own = (call for call in self.calls.values() if not call.inner)
        last = max(own, key=lambda call: call.end_ns, default=None)
        return self.stopped or (last is not None and last.status is CallStatus.CANCELLED)

    def batch(self) -> Batch:
        """Return the spans, all of their trace."""
        trace_id = trace_of_prompt(self.agent, self.session_id, self.key)
        root = span_of("prompt", self.key)
        common: dict[str, Any] = {"gen_ai.conversation.id": self.session_id}
        end_ns = max(
            self.last_ns,
            self.start_ns,
            *(call.end_ns for call in self.calls.values()),
            *(call.end_ns for call in self.models.values()),
        )
        spans = [
            self._span(
                trace_id,
                root,
                None,
                self.start_ns,
                end_ns,
                {
                    **common,
                    "gen_ai.operation.name": "invoke_agent",
                    "gen_ai.agent.name": self.agent,
                    "gen_ai.response.finish_reasons": ("cancelled",) if self.is_cancelled else None,
                    PROMPT: self.prompt or None,
                    LACKS_TOOLS: self.lacks_tools or None,
                    LACKS_MODELS: self.lacks_models or None,
                    LACKS_OUTPUT: self.lacks_output or None,
                },
                failed=self.failed,
            )
        ]
        for key, model in self.models.items():
            given = {
                **common,
                "gen_ai.operation.name": "chat",
                "gen_ai.response.model": model.model,
                "gen_ai.usage.input_tokens": model.tokens.input,
                "gen_ai.usage.output_tokens": model.tokens.output,
                "gen_ai.usage.cache_read.input_tokens": model.tokens.cached,
                "gen_ai.usage.cache_write.input_tokens": model.tokens.cache_written,
                "gen_ai.response.id": model.response_id,
            }
            own = span_of("model", key)
            start, end = model.start_ns, model.end_ns
            spans.append(self._span(trace_id, own, root, start, end, given, failed=model.failed))
        for key, call in self.calls.items():
            if call.status is not CallStatus.UNFINISHED:
                given = {
                    **common,
                    "gen_ai.operation.name": "execute_tool",
                    "gen_ai.tool.name": call.name,
                    "gen_ai.tool.call.id": key,
                    "gen_ai.tool.call.arguments": call.arguments,
                    "gen_ai.tool.call.result": call.result,
                    REJECTED: True if call.status is CallStatus.REJECTED else None,
                }
                failed = call.status is CallStatus.FAILED
                own = span_of("tool", key)
                start, end = call.start_ns, call.end_ns
                spans.append(self._span(trace_id, own, root, start, end, given, failed=failed))
        for number, compaction in enumerate(self.compactions):
            given = {
                **common,
                "gen_ai.operation.name": COMPACTION,
                TOKENS_BEFORE: compaction.before,
                TOKENS_AFTER: compaction.after,
                TRIGGER: compaction.trigger,
            }
            own = span_of("compaction", number)
            at = max(compaction.time_ns, self.start_ns)
            spans.append(self._span(trace_id, own, root, at, at, given))
        return Batch(spans=spans, complete=[trace_id])

    def _span(
        self,
        trace_id: TraceId,
        span_id: SpanId,
        parent_id: SpanId | None,
        start_ns: int,
        end_ns: int,
        attributes: Mapping[str, Any],
        *,
        failed: bool = False,
    ) -> RawSpan:
        return RawSpan(
            trace_id=trace_id,
            span_id=span_id,
            parent_id=parent_id,
            name=str(attributes["gen_ai.operation.name"]),
            span_kind=KIND_INTERNAL,
            start_ns=max(start_ns, 1),
            end_ns=max(start_ns, end_ns, 1),
            status=STATUS_ERROR if failed else STATUS_UNSET,
            parent_remote=False,
            attributes={key: value for key, value in attributes.items() if value is not None},
            events=(),
            links=(),
            scope=SCOPE,
            scope_version="",
            resource=self.resource,
        )


def _greater(one: int | None, two: int | None) -> int | None:
    return two if one is None else one if two is None else max(one, two)


def trace_of_prompt(agent: str, session_id: str, key: str) -> TraceId:
    """Return the trace id that stands for a prompt."""
    identity = f"{agent}\0{session_id}\0{key}".encode("utf-8", "replace")
    return b"prompt.." + blake2b(identity, digest_size=8).digest()


_MIN_SLOTS: Final = 1024
"""A power of two."""
_LARGEST: Final = 2**64 - 1


class Seen:
    """The ids of records that were read, over all files: what is copied counts where it was first.

    They are kept as numbers of 64 bits: two of a million are the same once in ten million times.
    """

    def __init__(self) -> None:
        self.problems: list[Malformed] = []
        """Problems of files that were not passed on yet."""
        self._count = 0
        self._table = array("Q", bytes(8 * _MIN_SLOTS))
        """A hash table of numbers, 0 where a slot is free: a set of them takes five times as much,
        and there are hundreds of thousands in a gigabyte of files.
        """

    def add(self, kind: str, identifier: str) -> bool:
        """Note an id; return whether it is new."""
        if not self._put(hash((kind, identifier)) & _LARGEST or 1):
            return False
        self._count += 1
        if 3 * self._count > 2 * len(self._table):
            before = self._table
            self._table = array("Q", bytes(16 * len(before)))
            for number in filter(None, before):
                self._put(number)
        return True

    def _put(self, number: int) -> bool:
        table = self._table
        last = len(table) - 1
        at = number & last
        while known := table[at]:
            if known == number:
                return False
            at = (at + 1) & last
        table[at] = number
        return True


def resource_of(agent: str, version: str, cwd: str) -> Resource:
    """Return the sender: the agent's name and version, and the last part of its working folder.

    >>> found = resource_of("codex", "0.1", "/home/me/shop")
    >>> found.service, found.service_version
    (('shop', 'codex'), '0.1')
    """
    given = {
        "service.name": agent,
        "service.version": version,
        "service.namespace": cwd.replace("\\", "/").rstrip("/").rpartition("/")[2],
    }
    return Resource.of(given)
