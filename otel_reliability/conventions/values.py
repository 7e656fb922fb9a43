"""Total readers of attribute values.

Instrumentations disagree about types: arrays or JSON strings of arrays, integers or digits, objects
or their JSON or their Python repr. Each reader here takes anything, gives what was meant, or None;
none raises.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Protocol, TypeVar, cast

from otel_reliability.conventions.masks import is_masked_id
from otel_reliability.model.span import LONGEST, bounded, is_no_name

T = TypeVar("T")

MAX_TEXT: Final = 1 << 20
"""Characters beyond which a text is not parsed: no tool's arguments are that long, and parsing
would block.
"""

_ABSENT: Final = frozenset({"", "null", "None"})
_UUID: Final = re.compile(
    r"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}", re.IGNORECASE
)
_STARTS_JSON: Final = frozenset('"-0123456789')
_ENDS: Final[Mapping[str, str]] = {"{": "}", "[": "]", "(": ")"}
_JSON_WORDS: Final[Mapping[str, Any]] = {"true": True, "false": False, "null": None}


class Attributes(Protocol):
    """Values by key: a mapping, or a span as conventions see it."""

    def get(self, key: str, /) -> Any:
        """The value of a key, None where it is absent."""
        ...


def first(
    attributes: Attributes, keys: Iterable[str], reader: Callable[[object], T | None]
) -> T | None:
    """Return what the first of these keys says whose value can be read; a value of a wrong type
    hides none behind it.

    >>> first({"a": [], "b": "x"}, ("a", "b"), text)
    'x'
    """
    for key in keys:
        value = attributes.get(key)
        if value is not None:
            found = reader(value)
            if found is not None:
                return found
    return None


def raw(attributes: Attributes, keys: Iterable[str]) -> Any:
    """The value of the first of these keys that is there, whatever it is."""
    return next((value for key in keys if (value := attributes.get(key)) is not None), None)


def text(value: object) -> str | None:
    """A non-empty string of a bounded length, else None. `"null"` is what some exporters write for
    nothing.

    What it gives is plain (`bounded`).

    >>> text("a"), text("null"), text(3)
    ('a', None, None)
    """
    if type(value) is str and 4 < len(value) <= LONGEST:  # longer than those that say nothing
        return value
    return bounded(value) if isinstance(value, str) and value not in _ABSENT else None


def identifier(value: object) -> str | None:
    """A text, or a number as text: ids come as both. A mask in its place is none.

    >>> identifier(7), identifier("7"), identifier(True), identifier("[REDACTED]")
    ('7', '7', None, None)
    """
    if type(value) is not str and isinstance(value, int) and not isinstance(value, bool):
        return str(int(value)) if value.bit_length() < 64 else None
    found = text(value)
    return None if found is None or is_masked_id(found) else found


def word(value: object) -> str | None:
    """An identifier, or a boolean as JSON writes it.

    >>> word("eu"), word(7), word(True)
    ('eu', '7', 'true')
    """
    return str(value).lower() if isinstance(value, bool) else identifier(value)


def name(value: object) -> str | None:
    """A name: a text that is no UUID (a UUID names nothing that comes back), nor what programs
    write for none.

    >>> name(" support "), name("0d27ee01-4866-4a9b-989c-3ecf31ed47aa"), name("undefined")
    ('support', None, None)
    """
    found = text(value)
    found = None if found is None else found.strip()
    return None if not found or is_no_name(found) or _UUID.fullmatch(found) else found


def integer(value: object) -> int | None:
    """A whole number that is not negative, also as digits or as a float without a fraction.

    >>> integer(3), integer("3"), integer(3.0), integer(-1), integer("x"), integer(True)
    (3, 3, 3, None, None, None)
    """
    if type(value) is int:
        return value if 0 <= value < 1 << 63 else None
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        return int(value) if value.isascii() and value.isdigit() and len(value) < 20 else None
    if isinstance(value, int):
        return int(value) if 0 <= value < 1 << 63 else None
    if isinstance(value, float) and value.is_integer() and 0 <= value < 2.0**63:
        return int(value)
    return None


def number(value: object) -> float | None:
    """A finite number, also as text.

    >>> number(1), number("0.5"), number(float("nan")), number("much")
    (1.0, 0.5, None, None)
    """
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        found = float(value)
    except (ValueError, OverflowError):
        return None
    return found if math.isfinite(found) else None


def amount(value: object) -> float | None:
    """A finite number that is not negative: money.

    >>> amount("0.5"), amount(-1)
    (0.5, None)
    """
    found = number(value)
    return found if found is not None and found >= 0 else None


def positive(value: object) -> int | None:
    """A whole number from 1.

    >>> positive("7"), positive(0)
    (7, None)
    """
    return integer(value) or None


def truth(value: object) -> bool | None:
    """A boolean, also as text or as 0 and 1.

    >>> truth(True), truth("false"), truth(1), truth("perhaps")
    (True, False, True, None)
    """
    if isinstance(value, bool):
        return value
    if isinstance(value, int | float) and value in {0, 1}:
        return bool(value)
    if isinstance(value, str):
        return {"true": True, "1": True, "false": False, "0": False}.get(value.strip().lower())
    return None


def parsed(value: object) -> Any:
    """Return what a value means: JSON text is decoded, a Python literal is read as data, anything
    else is itself.

    >>> parsed('{"a": 1}'), parsed("{'a': 1}"), parsed("free text"), parsed("1234")
    ({'a': 1}, {'a': 1}, 'free text', 1234)
    """
    if not isinstance(value, str) or len(value) > MAX_TEXT:
        return value
    text = value.strip()
    end = _ENDS.get(text[:1])
    # What was cut off does not end like a collection, and most texts that were cut are long.
    if end is not None:
        found = _decoded(text, None) if text[-1] == end else value
        return literal(text, value) if found is None else found
    if text[:1] in _STARTS_JSON:
        return _decoded(text, value)
    return _JSON_WORDS.get(text, value)


def _decoded(text: str, otherwise: str | None) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return otherwise


def decoded_at(text: str, start: int) -> Any:
    """Return the JSON value that begins there in a text; None without one.

    >>> decoded_at('cut off"}, {"a": 1}]', 11)
    {'a': 1}
    """
    try:
        return _decode_at(text, start)[0]
    except (ValueError, RecursionError):
        return None


_decode_at: Final = json.JSONDecoder().raw_decode


def mapping(value: object) -> Mapping[str, Any]:
    """The object a value means, or an empty one.

    >>> mapping('{"a": 1}'), mapping("no"), mapping(None)
    ({'a': 1}, {}, {})
    """
    found = parsed(value)
    return cast("Mapping[str, Any]", found) if isinstance(found, Mapping) else {}


def items(value: object) -> Sequence[Any]:
    """The list a value means; a single value is a list of one, nothing is an empty list.

    >>> items(("a", "b")), items('["a"]'), items("a"), items(None)
    (('a', 'b'), ['a'], ['a'], ())
    """
    found = parsed(value)
    if found is None or found == "":
        return ()
    return cast("Sequence[Any]", found) if isinstance(found, list | tuple) else [found]


def objects(value: object) -> list[Mapping[str, Any]]:
    """The objects of a list; what is none is left out.

    >>> objects('[{"a": 1}, 2]'), objects({"a": 1}), objects("free text")
    ([{'a': 1}], [{'a': 1}], [])
    """
    return [cast("Mapping[str, Any]", item) for item in items(value) if isinstance(item, Mapping)]


def words(value: object) -> list[str]:
    """The texts of a list, in lower case.

    >>> words('["Stop"]'), words(("tool_calls", 3))
    (['stop'], ['tool_calls'])
    """
    return [item.lower() for item in items(value) if isinstance(item, str)]


# --- Python literals ------------------------------------------------------------------------------

MAX_LITERAL: Final = 1 << 16
"""Characters beyond which a text is left alone."""

_LITERAL_TOKEN: Final = re.compile(
    r"""(?P<text>'[^'\\]*(?:\\.[^'\\]*)*'|"[^"\\]*(?:\\.[^"\\]*)*")"""
    r"|['\"].*"  # a text without an end: nothing after it is read, and JSON refuses it
    r"|\b(?:True|False|None)\b"
    r"|,(?=\s*[)\]}])"
    r"|[()]",
    re.DOTALL,
)
_ESCAPE: Final = re.compile(r"\\(?:x(..)|u(.{4})|U(.{8})|(.))", re.DOTALL)
_LITERAL_JSON: Final[Mapping[str, str]] = {
    "True": "true",
    "False": "false",
    "None": "null",
    ",": "",
    "(": "[",
    ")": "]",
}
_ESCAPED: Final[Mapping[str, str]] = {
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "\\": "\\",
    "'": "'",
    '"': '"',
}


def literal(text: str, otherwise: str | None = None) -> Any:
    """Return the data that `repr` wrote; `otherwise`, or the text itself, where it is no literal.

    Some instrumentations write values that way (openlit, LlamaIndex). Python's own reader of
    literals compiles them, which costs much, warns on the host's standard error, and can exhaust
    its stack; so a literal is rewritten as JSON, in one pass.

    >>> literal("{'order': 7, 'tags': ('a', None)}"), literal("[print('no')]")
    ({'order': 7, 'tags': ['a', None]}, "[print('no')]")
    """
    if len(text) <= MAX_LITERAL:
        try:
            return json.loads(_LITERAL_TOKEN.sub(_token_as_json, text))
        except (ValueError, RecursionError, OverflowError):
            pass
    return text if otherwise is None else otherwise


def _token_as_json(token: re.Match[str]) -> str:
    if token["text"] is None:
        return _LITERAL_JSON.get(token[0], token[0])
    return json.dumps(_ESCAPE.sub(_meant, token["text"][1:-1]))


def _meant(escape: re.Match[str]) -> str:
    code = escape[1] or escape[2] or escape[3]
    if code is not None:
        return chr(int(code, 16))
    return _ESCAPED.get(escape[4], escape[0])
