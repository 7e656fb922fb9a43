"""Total readers of attribute values.

Instrumentations disagree about types: arrays or JSON strings of arrays, integers or digits, objects or their JSON or their
Python repr. Each reader here takes anything, gives what was meant, or None; none raises.
"""

from __future__ import annotations

import ast
import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

MAX_TEXT: Final = 1 << 20
"""Characters beyond which a text is not parsed: nobody's tool arguments, and parsing would block."""

_ABSENT: Final = frozenset({"", "null", "None"})
_UUID: Final = re.compile(r"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}", re.IGNORECASE)
_STARTS_JSON: Final = frozenset('{["-0123456789tfn')


def text(value: object) -> str | None:
    """A non-empty string, else None. `"null"` is what some exporters write for nothing.

    >>> text("a"), text("null"), text(3)
    ('a', None, None)
    """
    if isinstance(value, str) and value not in _ABSENT:
        return value
    return None


def identifier(value: object) -> str | None:
    """A text, or a number as text: ids come as both.

    >>> identifier(7), identifier("7"), identifier(True)
    ('7', '7', None)
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return text(value)


def name(value: object) -> str | None:
    """A name: a text that is no UUID (a UUID names nothing that comes back).

    >>> name("support"), name("0d27ee01-4866-4a9b-989c-3ecf31ed47aa")
    ('support', None)
    """
    found = text(value)
    return None if found is None or _UUID.fullmatch(found) else found


def integer(value: object) -> int | None:
    """A whole number that is not negative, also as digits or as a float without a fraction.

    >>> integer(3), integer("3"), integer(3.0), integer(-1), integer("x"), integer(True)
    (3, 3, 3, None, None, None)
    """
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        return int(value) if value.isascii() and value.isdigit() and len(value) < 20 else None
    if isinstance(value, int):
        return value if 0 <= value < 1 << 63 else None
    if isinstance(value, float) and value.is_integer() and 0 <= value < 2.0**63:
        return int(value)
    return None


def number(value: object) -> float | None:
    """A finite number, also as text.

    >>> number(1), number("0.5"), number(float("nan")), number("much")
    (1.0, 0.5, None, None)
    """
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return None
    if isinstance(value, int | float):
        try:
            found = float(value)
        except OverflowError:
            return None
        return found if math.isfinite(found) else None
    return None


def truth(value: object) -> bool | None:
    """A boolean, also as text or as 0 and 1.

    >>> truth(True), truth("false"), truth(1), truth("perhaps")
    (True, False, True, None)
    """
    if isinstance(value, bool):
        return value
    if isinstance(value, int | float) and value in (0, 1):
        return bool(value)
    if isinstance(value, str):
        return {"true": True, "1": True, "false": False, "0": False}.get(value.strip().lower())
    return None


def parsed(value: object) -> Any:
    """What a value means: JSON text is decoded, a Python literal is read as data, anything else is itself.

    >>> parsed('{"a": 1}'), parsed("{'a': 1}"), parsed("free text"), parsed("1234")
    ({'a': 1}, {'a': 1}, 'free text', 1234)
    """
    if not isinstance(value, str):
        return value
    stripped = value.strip()
    if not stripped or len(stripped) > MAX_TEXT:
        return value
    if stripped[0] in _STARTS_JSON:
        try:
            return json.loads(stripped)
        except (ValueError, RecursionError):
            pass
    if stripped[0] in "{[(":
        try:
            return ast.literal_eval(stripped)
        except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
            pass
    return value


def mapping(value: object) -> Mapping[str, Any]:
    """The object a value means, or an empty one.

    >>> mapping('{"a": 1}'), mapping("no"), mapping(None)
    ({'a': 1}, {}, {})
    """
    found = parsed(value)
    return found if isinstance(found, Mapping) else {}


def items(value: object) -> Sequence[Any]:
    """The list a value means; a single value is a list of one, nothing is an empty list.

    >>> items(("a", "b")), items('["a"]'), items("a"), items(None)
    (('a', 'b'), ['a'], ['a'], ())
    """
    found = parsed(value)
    if found is None or found == "":
        return ()
    if isinstance(found, list | tuple):
        return found
    return [found]


def words(value: object) -> list[str]:
    """The texts of a list, in lower case.

    >>> words('["Stop"]'), words(("tool_calls", 3))
    (['stop'], ['tool_calls'])
    """
    return [item.lower() for item in items(value) if isinstance(item, str)]
