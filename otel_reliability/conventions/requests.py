"""The request of a run: what the user asked, as spans of each convention carry it.

It is the last message of the user at the beginning of the run; where that says next to nothing
("yes, do it"), with the message of the assistant before it. A request that is data counts by its
keys and short values. Its sketch (`conventions.sketch`) leaves here, and no text.

Each convention names the keys of its inputs (`Convention.request`); `known` are those of all.

An invocation carries its request in its input. A model call holds it only where the user's message
is the last one: later calls of a run end in what tools returned, and are passed over without
parsing them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Final, NamedTuple, TypeAlias, cast

from msgspec.structs import replace

from otel_reliability.conventions import values
from otel_reliability.conventions.base import Answer, Own, itself
from otel_reliability.conventions.masks import REDACTED
from otel_reliability.conventions.sketch import sketch_of, words_of
from otel_reliability.model.span import (
    ANSWERS_TOOL,
    INVOCATIONS,
    Facts,
    InvocationFacts,
    Kind,
    ModelFacts,
)

PREFIXES: Final = ("gen_ai.prompt.", "llm.input_messages.")
"""Prefixes of the keys of conventions that write each part of a message as an attribute."""

MAX_CHARACTERS: Final = 12_288
"""Characters of a value that are read, from its end. (Of text, the beginning counts more: of that,
as many from its beginning.)"""
MIN_WORDS: Final = 4
"""Words below which a request needs the message before it."""
MAX_SHORT: Final = 48
"""Characters of a value of a request that is data; longer values are content, and left out."""
MAX_PARTS: Final = 64
"""Keys and values of such a request that count."""
MAX_MESSAGES: Final = 256
MAX_DEPTH: Final = 4

_FLAT: Final = re.compile(
    r"(?:gen_ai\.prompt|llm\.input_messages)\.(\d{1,6})\.(?:message\.)?"
    r"(role|content|contents\.\d+\.message_content\.text)"
)
_JSON: Final = re.compile(r'\s*(?:\{\s*["\'}]|\[\s*[{\["\'(\]]|")')
_ROLE: Final = re.compile(r'"role"\s*:\s*"(\w+)"')
_MESSAGE: Final = re.compile(r'\{\s*"(?:role|content|parts)"')
_OBJECT: Final = re.compile(r"<[^<>]* at 0x[0-9a-fA-F]+>")
"""Matches the text by which Python prints an object: it is no request."""

USER: Final = "user"
ASSISTANT: Final = "assistant"
_ROLES: Final = {
    "user": USER,
    "human": USER,
    "humanmessage": USER,
    "humanmessagechunk": USER,
    "assistant": ASSISTANT,
    "ai": ASSISTANT,
    "aimessage": ASSISTANT,
    "model": ASSISTANT,
    "system": "system",
    "systemmessage": "system",
    "developer": "system",
    "tool": "tool",
    "toolmessage": "tool",
    "function": "tool",
}
_HOLDERS: Final = ("messages", "input", "inputs", "prompt", "kwargs", "args", "contents")
"""Keys below which messages are searched first."""
_TEXTS: Final = (
    "prompt",
    "query",
    "question",
    "task",
    "input",
    "text",
    "request",
    "message",
    "user_input",
    "user_prompt",
    "content",
)
"""Keys under which an object without messages has the request."""
_EVENTS: Final[Mapping[str, tuple[str, ...]]] = {
    "gen_ai.content.prompt": ("gen_ai.prompt",),
    "gen_ai.user.message": ("content", "gen_ai.event.content"),
    "gen_ai.assistant.message": (),
    "gen_ai.tool.message": (),
}
"""Events that are part of the input of a span, with the attributes that hold a request."""
_NO_TEXT: Final = frozenset({"tool_result", "tool_call_response", "tool_call", "tool_use"})
"""Types of the parts of messages that no person wrote."""


class Message(NamedTuple):
    """A message: whose it is, and its text."""

    role: str
    text: str


AFTER_TOOL: Final = ""
"""The request of a model call whose input ends in what a tool returned: there is none."""
_TOOL: Final = "tool"
_RETURNED: Final = frozenset({"tool_result", "tool_call_response"})
"""Types of the parts of messages that hold what a tool returned."""
Values: TypeAlias = Mapping[str, Any]
Once: TypeAlias = Callable[[Own, tuple[Any, ...], Callable[[Any], Any]], Any]
_NONE: Final[list[Message]] = []
_ASKED: Final = INVOCATIONS | {Kind.MODEL}
"""Kinds of spans that may carry a request."""


# --- Spans ----------------------------------------------------------------------------------------


def completed(answer: Answer, keys: AbstractSet[str], known: Iterable[str]) -> Answer:
    """Return the answer with the sketch of the request that spans of these keys carry."""
    facts = answer.facts
    own = own_of(keys, known, is_model=answer.kind is Kind.MODEL)
    if own is None:
        return answer
    if isinstance(facts, ModelFacts | InvocationFacts):
        return replace(answer, facts=replace(facts, request=own))
    if isinstance(facts, Own) and answer.kind in _ASKED:
        return replace(answer, facts=_with_request(facts, own))
    return answer


def _with_request(facts: Own, request: Own) -> Own:
    """Return how facts that a convention reads as a whole are read together with a request."""
    number = len(facts.keys)

    def read(*given: Any) -> Any:
        found = facts.of(given[:number], itself)
        if not isinstance(found, ModelFacts | InvocationFacts):
            return found
        return replace(found, request=request.of(given[number:], itself))

    return Own(read, (*facts.keys, *request.keys), joined=True)


def own_of(keys: AbstractSet[str], known: Iterable[str], *, is_model: bool) -> Own | None:
    """Return how the request is read from spans of these keys; None where none of them holds it."""
    flat = flat_keys(keys)
    if flat:
        return Own(_of_flat_model if is_model else _of_flat, flat, joined=True, once=True)
    found = tuple(key for key in known if key in keys)
    if not found:
        return None
    return Own(of_model if is_model else of_invocation, found, once=True)


def of_attributes(attributes: Values, known: Iterable[str], *, is_model: bool) -> bytes | None:
    """Return the sketch of the request that attributes hold."""
    own = own_of(attributes.keys(), known, is_model=is_model)
    return (
        None if own is None else own.of(tuple(map(attributes.get, own.keys)), lambda value: value)
    )


def in_events(events: Iterable[Any]) -> dict[str, Any]:
    """Return the text of the request in the events of a span (the whole prompt, or an event for
    each message), under a key for `of_attributes`; empty where the last message is not the user's.

    >>> from otel_reliability.testing import span
    >>> in_events(span(events=[("gen_ai.user.message", {"content": "Where is A7?"})]).events)
    {'gen_ai.prompt': 'Where is A7?'}
    """
    found: Any = None
    for event in events:
        if event.name in _EVENTS:
            given: Values = event.attributes or {}
            held = [given[key] for key in _EVENTS[event.name] if key in given]
            found = held[0] if held else None
    return {} if found is None else {"gen_ai.prompt": found}


def from_events(facts: Facts | None, events: Iterable[Any], once: Once) -> Facts | None:
    """Return facts with the sketch of the request that events hold, where attributes hold none.
    `once` (`Hasher.once`) makes the sketch of a text that is not known yet.
    """
    if not isinstance(facts, ModelFacts | InvocationFacts) or facts.request is not None:
        return facts
    texts = in_events(events)
    own = own_of(texts.keys(), texts, is_model=isinstance(facts, ModelFacts))
    return facts if own is None else replace(facts, request=once(own, (*texts.values(),), itself))


def of_event(facts: Facts | None, request: object) -> Facts | None:
    """Return the facts of a log event with the sketch of the request that it holds."""
    if isinstance(facts, InvocationFacts):
        return replace(facts, request=of_invocation(request))
    if isinstance(facts, ModelFacts) and request is not None:
        return replace(facts, request=of_model(request))
    return facts


def keys_of(keys: Iterable[str], known: Iterable[str]) -> tuple[str, ...]:
    """Return those of a span's keys that its request is read from."""
    given = frozenset(keys)
    return flat_keys(given) or tuple(key for key in known if key in given)


def flat_keys(keys: Iterable[str]) -> tuple[str, ...]:
    """Return the keys of role and text of the last two messages that are an attribute for each
    part: four, the last message first. Absent ones are named all the same.

    >>> flat_keys([f"gen_ai.prompt.{n}.{part}" for n in range(9) for part in ("role", "content")])
    ('gen_ai.prompt.8.role', 'gen_ai.prompt.8.content', 'gen_ai.prompt.7.role',
     'gen_ai.prompt.7.content')
    """
    parts: dict[int, dict[str, str]] = {}
    for key in keys:
        if key.startswith(PREFIXES) and (match := _FLAT.fullmatch(key)):
            kind = "role" if match[2] == "role" else "text"
            part = parts.setdefault(int(match[1]), {})
            part[kind] = min(key, part.get(kind, key))
    last = sorted(parts)[-2:][::-1]
    named = tuple(
        parts[at].get(kind, f"gen_ai.prompt.{at}.{kind}")
        for at in last
        for kind in ("role", "text")
    )
    return named if parts else ()


def of_invocation(value: object) -> bytes | None:
    """Return the sketch of the request in the input of an invocation."""
    return _sketched(request_in(value))


def of_model(value: object) -> bytes | None:
    """Return the sketch of the request that ends the input of a model call."""
    return _sketched(request_in(value, must_end=True))


def _of_flat(*parts: object) -> bytes | None:
    return _sketched(_requested(list(_messages_of_flat(parts))))


def _of_flat_model(*parts: object) -> bytes | None:
    return _sketched(_requested(list(_messages_of_flat(parts)), must_end=True))


def _messages_of_flat(parts: Sequence[object]) -> Iterator[Message]:
    for role, content in list(zip(parts[::2], parts[1::2], strict=True))[::-1]:
        if (found := _message({"role": role or USER, "content": content})) is not None:
            yield found


def _sketched(text: str | None) -> bytes | None:
    if text == AFTER_TOOL:
        return ANSWERS_TOOL
    if text is None or text in REDACTED or _OBJECT.search(text):
        return None
    return sketch_of(text)


# --- Values ---------------------------------------------------------------------------------------


def needed_of(value: object) -> str | tuple[str, ...] | None:
    """Return what is read of an attribute's value, for those who hold it to be read later: of a
    sequence its short texts. None where it holds no request.

    >>> needed_of(("refund", 7, "x" * 100)), needed_of(7)
    (('refund',), None)
    """
    if isinstance(value, str):
        return cut(value)
    if isinstance(value, list | tuple):
        return tuple(_parts_of(cast("Sequence[object]", value), [], 0)) or None
    return None


def cut(value: str) -> str:
    """Return what is read of a text: all of it, or of messages those at the end, of other text the
    beginning.

    >>> cut('[{"role": "system", "content": "' + "x" * 20_000 + '"}, {"role": "user"}]')
    '[{"role": "user"}]'
    """
    if len(value) <= MAX_CHARACTERS:
        return value
    if _JSON.match(value) is None:
        return value[:MAX_CHARACTERS]
    end = value[1 - MAX_CHARACTERS :]
    first = _MESSAGE.search(end)
    return "" if first is None else "[" + end[first.start() :]


def request_in(value: object, *, must_end: bool = False) -> str | None:
    """Return the request in a value: in messages, JSON of them, an object, or text. `must_end`:
    only if the last message is the user's.

    >>> request_in('[{"role": "user", "parts": [{"type": "text", "content": "Cancel my order"}]}]')
    'Cancel my order'
    >>> request_in({"messages": [["human", "Is it paid?"], ["ai", "No."]]}, must_end=True)
    >>> request_in("Where is my parcel?")
    'Where is my parcel?'
    >>> request_in({"action": "refund", "amount": 12.5, "reason": "late"})
    'action refund amount reason late'
    """
    if isinstance(value, str):
        return _request_in_text(value, must_end=must_end)
    messages = _messages_in(value, 0)
    if messages:
        return _requested(messages, must_end=must_end)
    return _text_of_data(value)


def _request_in_text(value: str, *, must_end: bool) -> str | None:
    value = cut(value)
    if _JSON.match(value) is None:
        return value.strip() or None
    if must_end and (at := value.rfind('"role"')) >= 0:
        role = _ROLE.match(value, at)
        whose = USER if role is None else _ROLES.get(role[1].lower())
        if whose != USER:
            return AFTER_TOOL if whose == _TOOL else None
    meant = values.parsed(value)
    if isinstance(meant, str):
        if meant != value or value.lstrip().startswith('"'):
            return meant
        return _requested(_messages_at_end(value), must_end=must_end)
    return request_in(meant, must_end=must_end)


def _messages_at_end(text: str) -> list[Message]:
    """Return the whole messages at the end of JSON that was cut."""
    starts = [match.start() for match in _MESSAGE.finditer(text)][-MAX_MESSAGES:]
    found = (_message(values.decoded_at(text, start)) for start in starts)
    return [message for message in found if message is not None]


def _requested(messages: Sequence[Message], *, must_end: bool = False) -> str | None:
    """Return the text of the last message of the user, with the one before it where it is short."""
    if must_end and messages and messages[-1].role == _TOOL:
        return AFTER_TOOL
    asked = [at for at, message in enumerate(messages) if message.role == USER and message.text]
    if not asked or (must_end and asked[-1] != len(messages) - 1):
        return None
    at = asked[-1]
    text = messages[at].text
    if len(words_of(text)) < MIN_WORDS:
        before = next((one for one in messages[:at][::-1] if one.role == ASSISTANT), None)
        text = f"{before.text} {text}" if before is not None else text
    return text


def _messages_in(value: object, depth: int) -> list[Message]:
    """Return the messages in a value: those of the first list of some."""
    if depth > MAX_DEPTH:
        return []
    if isinstance(value, list | tuple):
        items = cast("Sequence[Any]", value)
        found = [one for item in items[-MAX_MESSAGES:] if (one := _message(item)) is not None]
        if found:
            return found
        return next(filter(None, (_messages_in(item, depth + 1) for item in items[:4])), _NONE)
    if isinstance(value, Mapping):
        pairs = cast("Values", value)
        inside = [pairs[key] for key in _HOLDERS if key in pairs] or list(pairs.values())[:4]
        found = next(filter(None, (_messages_in(item, depth + 1) for item in inside)), _NONE)
        if not found and depth and (single := _message(pairs)) is not None:
            return [single]
        return found
    return []


def _message(value: object) -> Message | None:
    """Return what is a message to any of the conventions; None where it is none."""
    if isinstance(value, list | tuple):
        pair = cast("Sequence[Any]", value)
        if len(pair) == 2 and all(isinstance(part, str) for part in pair):
            role = _ROLES.get(pair[0].lower())
            return None if role is None else Message(role, pair[1])
        return None
    if not isinstance(value, Mapping):
        return None
    given = cast("Values", value)
    kind = given.get("id") if given.get("lc") is not None else None
    if isinstance(kind, list | tuple) and kind:  # LangChain's own form
        of_class: object = cast("Sequence[object]", kind)[-1]
        return _message({"role": of_class, **values.mapping(given.get("kwargs"))})
    role = given.get("role") or given.get("type")
    known = _ROLES.get(role.lower()) if isinstance(role, str) else None
    if known is None:
        return None
    inner = given.get("data")
    holder = cast("Values", inner) if isinstance(inner, Mapping) else given
    content = holder.get("content", holder.get("parts", holder.get("text")))
    if known == USER and _is_of_tool(content):
        known = _TOOL
    return Message(known, _text_of(content if content is not None else holder.get("parts")))


def _is_of_tool(content: object) -> bool:
    """Return whether a message in the user's name holds what tools returned, and nothing else."""
    if not isinstance(content, list | tuple):
        return False
    parts = values.objects(cast("Sequence[object]", content))
    return bool(parts) and all(values.text(part.get("type")) in _RETURNED for part in parts)


def _text_of(content: object) -> str:
    """Return the text of a message, without parts that no person wrote."""
    if isinstance(content, str):
        return content
    texts: list[str] = []
    for part in values.items(content):
        if isinstance(part, str):
            texts.append(part)
        elif isinstance(part, Mapping):
            given = cast("Values", part)
            if values.text(given.get("type")) not in _NO_TEXT:
                texts += [
                    text for key in ("text", "content") if isinstance(text := given.get(key), str)
                ]
    return " ".join(texts)


def _text_of_data(value: object) -> str | None:
    """Return the request in an object without messages: under a key that names it, else its keys
    and short values.
    """
    if isinstance(value, Mapping):
        pairs = cast("Values", value)
        for key in _TEXTS:
            text = pairs.get(key)
            if isinstance(text, str) and " " in text:
                return text
    return " ".join(_parts_of(cast("object", value), [], 0)) or None


def _parts_of(value: object, parts: list[str], depth: int) -> list[str]:
    if len(parts) < MAX_PARTS and depth <= MAX_DEPTH:
        if isinstance(value, Mapping):
            for key, item in cast("Mapping[object, object]", value).items():
                parts.append(str(key))
                _parts_of(item, parts, depth + 1)
        elif isinstance(value, list | tuple):
            for item in cast("Iterable[object]", value):
                _parts_of(item, parts, depth + 1)
        elif isinstance(value, str) and len(value) <= MAX_SHORT:
            parts.append(value)
    return parts[:MAX_PARTS]
