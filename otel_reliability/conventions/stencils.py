"""What spans of the current GenAI conventions tell, worked out once for all that differ only in numbers, ids and content.

The spans of an agent that works name the same few operations, models, tools and agents again and again. The conventions read the
first of each such combination; what they say is the stencil for the others, into which the token counts, the ids and the
arguments of each are put. So there is one reading of a convention, and this is only its memory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import itemgetter
from typing import Any, Final, NamedTuple, TypeAlias, cast

from otel_reliability.conventions import genai, values
from otel_reliability.conventions.base import Convention, Told
from otel_reliability.conventions.genai import GenAI
from otel_reliability.conventions.hashing import Hasher
from otel_reliability.conventions.langchain import GenAILangChain
from otel_reliability.conventions.naming import ToolNames
from otel_reliability.conventions.openllmetry import CREW, OpenLLMetry
from otel_reliability.conventions.pydantic_ai import PydanticAI
from otel_reliability.conventions.room import Room
from otel_reliability.model.span import (
    STATUS_ERROR,
    AgentSpan,
    Call,
    InvocationFacts,
    Kind,
    ModelFacts,
    RawSpan,
    Resource,
    Session,
    Tokens,
    ToolFacts,
)

CONVERSATION: Final = "gen_ai.conversation.id"
CONVERSATION_RANK: Final = 0
"""How much a session by that key is worth."""
SHARED: Final = (
    genai.OPERATION, genai.REQUEST_MODEL, genai.RESPONSE_MODEL, genai.FINISH_REASONS, genai.TOOL_NAME, genai.WORKFLOW_NAME,
    genai.ERROR_TYPE,
)  # fmt: skip
"""The keys whose values the spans of a stencil share."""
INPUT, OUTPUT = genai.INPUT_TOKENS[0], genai.OUTPUT_TOKENS[0]
OWN: Final = (
    INPUT, OUTPUT, genai.AGENT_NAME, genai.RESPONSE_ID, genai.CALL_ID, genai.ARGUMENTS, genai.RESULT, CONVERSATION,
)  # fmt: skip
"""The keys whose values are each span's own. (Agents are few or many; the names of tools and models are few.)"""
STENCIL_BYTES: Final = 1_024
"""What a stencil takes, roughly, beside the values that its spans share."""
LONGEST: Final = 1_024
"""Bytes of shared values beyond which a stencil is not kept."""

Raw: TypeAlias = Mapping[str, Any]
Once: TypeAlias = Callable[[Any], Any]
Known: TypeAlias = dict[tuple[Any, ...], "Stencil"]
Ask: TypeAlias = Callable[[RawSpan], Told]
_KNOWN: Final = frozenset((*SHARED, *OWN))
_LIKE_GENAI: Final = (GenAI, GenAILangChain, OpenLLMetry, PydanticAI)
"""Conventions that look at `SHARED` and `OWN` as `GenAI` does, or not at all."""
_tuple: Final[Callable[..., Any]] = tuple.__new__  # pyright: ignore[reportUnknownMemberType,reportUnknownVariableType]
"""Makes a named tuple from a tuple, without the call in Python that its class would cost."""


class Stencil(NamedTuple):
    """What the spans that share it are; `facts` lack what is each span's own. `kind` None: they share none."""

    kind: Kind | None
    failed: bool = False
    facts: Any = None


_NONE: Final = Stencil(None)
_MODEL, _TOOL, _AGENT = (
    Kind.MODEL,
    Kind.TOOL,
    Kind.AGENT,
)  # to look one up in its enum costs as much as to read a number


class Stencils:
    """The stencils of the spans of one scope with certain keys."""

    def __init__(
        self, scope: str, keys: tuple[str, ...], ask: Ask, names: ToolNames, hasher: Hasher, room: Room
    ) -> None:
        shared = tuple(key for key in SHARED if key in keys)
        self._take: Callable[[Raw], Any] = itemgetter(*shared, genai.OPERATION)
        self.shared = shared
        """The keys whose values tell a stencil."""
        self._scope, self._ask, self._names, self._hasher = scope, ask, names, hasher
        self._room = room
        self._well: Known = {}
        self._failed: Known = {}
        self._has_input, self._has_output = INPUT in keys, OUTPUT in keys
        self._has_response, self._has_call = genai.RESPONSE_ID in keys, genai.CALL_ID in keys
        self._has_arguments, self._has_result = genai.ARGUMENTS in keys, genai.RESULT in keys
        self._has_conversation, self._has_agent = CONVERSATION in keys, genai.AGENT_NAME in keys
        self._last: tuple[Any, Session | None] = (b"", None)

    def read(self, span: RawSpan, raw: Raw, once: Once, sender: Resource) -> AgentSpan | None:
        """The span in our vocabulary, None where only the conventions can say what it is. (They go by some names, too.)

        `raw` are its attributes, of which `once` makes values: undecoded ones, or values as they are.

        Nearly every span of an agent comes through here, so what most of them need is written out.
        """
        (
            trace_id, span_id, parent_id, name, span_kind, start_ns, end_ns, status, remote, _, events, links, _, _, _, state,
        ) = span  # fmt: skip
        if events or links or state or name == CREW:
            return None
        known, key = self._failed if status == STATUS_ERROR else self._well, self._take(raw)
        try:
            found = known.get(key)
        except TypeError:  # a value that cannot be looked up: a program may set anything
            return None
        kind, failed, facts = found or self._made(known, key, span)
        if kind is _MODEL:
            model, request_model, _, asked, messages, calls, limit, cost, _, no_tools = facts
            response = values.text(once(raw[genai.RESPONSE_ID])) if self._has_response else None
            tokens = self._tokens(raw, once)
            facts = _tuple(
                ModelFacts, (model, request_model, tokens, asked, messages, calls, limit, cost, response, no_tools)
            )
        elif kind is _TOOL:
            if facts.calls:
                call = self._call(facts.calls[0], raw, once)
                failed, facts = call.failed, _tuple(ToolFacts, ((call,), False))
        elif kind is None:
            return None
        elif kind is _AGENT:
            facts = self._agent(facts, raw, once)
        session = None
        if self._has_conversation:
            undecoded = raw[CONVERSATION]
            last, session = self._last
            if last != undecoded:
                session = self._session(undecoded, once)
        return _tuple(
            AgentSpan,
            (
                trace_id, span_id, parent_id, remote, start_ns, end_ns, span_kind, kind, failed, facts, self._scope, sender,
                session, None, (), None, None, (),
            ),
        )  # fmt: skip

    def _agent(self, facts: Any, raw: Raw, once: Once) -> InvocationFacts:
        _, weak, fallback, at_root, _, *others = facts
        named = values.name(once(raw[genai.AGENT_NAME])) if self._has_agent else None
        tokens = genai.known(self._tokens(raw, once)) if self._has_input or self._has_output else None
        return _tuple(InvocationFacts, (named, weak, fallback, at_root, tokens, *others))

    def _tokens(self, raw: Raw, once: Once) -> Tokens:
        given = once(raw[INPUT]) if self._has_input else None
        output = once(raw[OUTPUT]) if self._has_output else None
        if type(given) is not int or given < 0:
            given = values.integer(given)
        if type(output) is not int or output < 0:
            output = values.integer(output)
        return _tuple(Tokens, (given, output))

    def _call(self, call: Call, raw: Raw, once: Once) -> Call:
        return self._hasher.call(
            call.name,
            values.identifier(once(raw[genai.CALL_ID])) if self._has_call else None,
            once(raw[genai.ARGUMENTS]) if self._has_arguments else None,
            once(raw[genai.RESULT]) if self._has_result else None,
            failed=call.failed,
        )

    def _session(self, undecoded: Any, once: Once) -> Session | None:
        """The session of a conversation, which spans in a row share. Of what is no text, one may equal another."""
        found = values.identifier(once(undecoded))
        session = None if found is None else Session(CONVERSATION_RANK, found)
        if isinstance(undecoded, bytes | str):
            self._last = undecoded, session
        return session

    def _made(self, known: Known, key: tuple[Any, ...], span: RawSpan) -> Stencil:
        found = self.stencil(span)
        size = sum(map(_size, key))
        if size <= LONGEST:
            self._room.take(STENCIL_BYTES + size)
            known[key] = found
        return found

    def stencil(self, span: RawSpan) -> Stencil:
        """What the conventions say of a span that has nothing of its own, not even a name."""
        shared = {key: span.attributes[key] for key in self.shared}
        if not isinstance(shared[genai.OPERATION], str):
            return _NONE
        kind, facts, failed, _ = self._ask(span._replace(name="", attributes=shared))
        failed = span.status == STATUS_ERROR if failed is None else failed
        if isinstance(facts, ToolFacts) and facts.calls:
            name = None if facts.calls[0].name is None else self._names.of(facts.calls[0].name)
            return _NONE if name is None else Stencil(kind, failed, ToolFacts((facts.calls[0]._replace(name=name),)))
        return Stencil(kind, failed, facts)


def _size(value: Any) -> int:
    """Length of a shared value; too long for any stencil where one value may equal another of another type: 1 is True."""
    if isinstance(value, bytes | str):
        return len(value)
    return sum(map(_size, cast("tuple[Any, ...]", value))) if isinstance(value, tuple) else LONGEST + 1


def stencils(
    scope: str,
    keys: tuple[str, ...],
    conventions: tuple[Convention, ...],
    ask: Ask,
    names: ToolNames,
    hasher: Hasher,
    room: Room,
) -> Stencils | None:
    """The stencils for spans of these keys, of those that anybody looks at; None where the spans are not so plain."""
    until = next((at for at, convention in enumerate(conventions) if isinstance(convention, GenAI)), None)
    if until is None or genai.OPERATION not in keys or not _KNOWN.issuperset(keys):
        return None
    plain = all(isinstance(convention, _LIKE_GENAI) for convention in conventions[:until])
    return Stencils(scope, keys, ask, names, hasher, room) if plain else None
