"""The settings as a JSON schema: editors complete and check a YAML file with it.

Begin the file with `# yaml-language-server: $schema=settings.schema.json`.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import itertools
import re
import types
from collections.abc import Iterator, Mapping
from typing import Any, Final, Union, cast, get_args, get_origin, get_type_hints

from otel_reliability.config import Settings
from otel_reliability.loading import rule_of
from otel_reliability.quantities import Boolean, OneOf, Real, Rule, Scaled, Whole
from otel_reliability.service.config_file import KAFKA, SECTION
from otel_reliability.service.kafka_settings import KafkaSettings
from otel_reliability.service.settings import ServiceSettings

Schema = dict[str, Any]

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
"""The name of the dialect; nothing is fetched from there."""


def schema() -> Schema:
    """The schema of a settings file.

    >>> schema()["properties"]["service"]["properties"]["queue"]["default"]
    268435456
    """
    found = _object(Settings)
    found["properties"][SECTION] = _object(ServiceSettings)
    found["properties"][KAFKA] = _object(KafkaSettings)
    return {"$schema": DIALECT, "title": "Settings of otel-reliability", **found}


def told(kind: type[Any]) -> Mapping[str, str]:
    """What stands beneath each field of a dataclass.

    >>> told(ServiceSettings)["metrics"]
    'Where Prometheus reads `/metrics`.'
    """
    tree = ast.parse(inspect.getsource(kind))
    return dict(_pairs(next(node.body for node in tree.body if isinstance(node, ast.ClassDef))))


def _pairs(statements: list[ast.stmt]) -> Iterator[tuple[str, str]]:
    for field, beneath in itertools.pairwise(statements):
        match field, beneath:
            case ast.AnnAssign(target=ast.Name(name)), ast.Expr(value=ast.Constant(value=str(text))):
                yield name, inspect.cleandoc(text).replace("\n", " ")
            case _:
                continue


def _object(kind: type[Any]) -> Schema:
    about, default = told(kind), kind()
    hints = get_type_hints(kind, include_extras=True)
    return {
        "type": "object",
        "description": (inspect.getdoc(kind) or "").partition("\n\n")[0],
        "additionalProperties": False,
        "properties": {name: _field(hint, about.get(name, ""), getattr(default, name)) for name, hint in hints.items()},
    }


def _field(hint: Any, about: str, default: object) -> Schema:
    found = _value(hint)
    if about:
        found["description"] = about
    if isinstance(default, bool | int | float | str):
        found["default"] = default
    return found


def _value(hint: Any) -> Schema:
    origin, args = get_origin(hint), get_args(hint)
    if origin in {Union, types.UnionType}:
        inner = _value(next(arg for arg in args if arg is not types.NoneType))
        return {"anyOf": [inner, {"type": "null"}]}
    if origin is tuple:
        return {"type": "array", "items": _value(args[0])}
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {"type": "object", "additionalProperties": _value(args[1])}
    if dataclasses.is_dataclass(hint):
        return _object(cast("type[Any]", hint))
    return _ruled(rule_of(hint))


def _ruled(rule: Rule) -> Schema:
    """What one kind of value may be. Text that is not a plain number is told by its rule, since no pattern says it better."""
    match rule:
        case OneOf():
            return {"enum": list(rule.words)}
        case Boolean():
            return {"type": "boolean"}
        case Real():
            kind = "integer" if isinstance(rule, Whole) else "number"
            bounds = {"minimum": rule.least, "maximum": rule.most}
            return {"type": kind, **{name: bound for name, bound in bounds.items() if bound is not None}}
        case Scaled():
            return {
                "anyOf": [{"type": "number", "minimum": 0}, {"type": "string"}],
                "examples": re.split(r", | or ", rule.example),
            }
        case _:
            return {"type": "string", "minLength": 1}
