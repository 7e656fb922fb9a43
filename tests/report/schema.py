"""Enough of JSON Schema to check documents against docs/report.schema.json; a keyword it does not know fails the test."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, cast

SCHEMA: Final[dict[str, Any]] = json.loads(
    (Path(__file__).parents[2] / "docs" / "report.schema.json").read_text("utf-8")
)

Schema = Mapping[str, Any]

_TYPES: Final[Mapping[str, Callable[[Any], bool]]] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
}
_SILENT: Final = frozenset({"$schema", "$defs", "title", "description"})


def faults(value: Any, schema: Schema = SCHEMA, place: str = "$") -> Iterator[str]:
    """Where a document is not what the schema says."""
    for keyword, rule in schema.items():
        if keyword not in _SILENT:
            yield from _KEYWORDS[keyword](value, rule, schema, place)


def _type(value: Any, rule: Any, schema: Schema, place: str) -> Iterator[str]:
    names: list[str] = [rule] if isinstance(rule, str) else rule
    if not any(_TYPES[name](value) for name in names):
        yield f"{place}: {value!r} is not {names}"


def _reference(value: Any, rule: Any, schema: Schema, place: str) -> Iterator[str]:
    yield from faults(value, SCHEMA["$defs"][rule.removeprefix("#/$defs/")], place)


def _any_of(value: Any, rule: Any, schema: Schema, place: str) -> Iterator[str]:
    tried = [list(faults(value, one, place)) for one in rule]
    if all(tried):
        yield from tried[0]


def _properties(value: Any, rule: Any, schema: Schema, place: str) -> Iterator[str]:
    if isinstance(value, dict):
        for name, one in rule.items():
            if name in value:
                yield from faults(value[name], one, f"{place}.{name}")


def _additional(value: Any, rule: Any, schema: Schema, place: str) -> Iterator[str]:
    if not isinstance(value, dict):
        return
    for name in value.keys() - schema.get("properties", {}).keys():
        if rule is False:
            yield f"{place}: {name!r} is not in the schema"
        else:
            yield from faults(value[name], rule, f"{place}.{name}")


def _required(value: Any, rule: Any, schema: Schema, place: str) -> Iterator[str]:
    if isinstance(value, dict):
        yield from (f"{place}: {name!r} is missing" for name in rule if name not in value)


def _names(value: Any, rule: Any, schema: Schema, place: str) -> Iterator[str]:
    if isinstance(value, dict):
        for name in cast("dict[str, Any]", value):
            yield from faults(name, rule, f"{place} (a name)")


def _items(value: Any, rule: Any, schema: Schema, place: str) -> Iterator[str]:
    if isinstance(value, list):
        for at, item in enumerate(cast("list[Any]", value)):
            yield from faults(item, rule, f"{place}[{at}]")


def _told(holds: Callable[[Any, Any], bool], words: str) -> Callable[[Any, Any, Schema, str], Iterator[str]]:
    def check(value: Any, rule: Any, schema: Schema, place: str) -> Iterator[str]:
        if not holds(value, rule):
            yield f"{place}: {value!r} {words} {rule!r}"

    return check


def _is_number(value: Any) -> bool:
    return _TYPES["number"](value)


_KEYWORDS: Final[Mapping[str, Callable[[Any, Any, Schema, str], Iterator[str]]]] = {
    "type": _type,
    "$ref": _reference,
    "anyOf": _any_of,
    "properties": _properties,
    "additionalProperties": _additional,
    "required": _required,
    "propertyNames": _names,
    "items": _items,
    "enum": _told(lambda value, rule: value in rule, "is none of"),
    "const": _told(lambda value, rule: value == rule, "is not"),
    "pattern": _told(lambda value, rule: not isinstance(value, str) or bool(re.search(rule, value)), "does not match"),
    "minimum": _told(lambda value, rule: not _is_number(value) or value >= rule, "is below"),
    "maximum": _told(lambda value, rule: not _is_number(value) or value <= rule, "is above"),
}
