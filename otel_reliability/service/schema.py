"""The settings as a JSON schema: editors complete and check a YAML file with it.

Begin the file with `# yaml-language-server: $schema=settings.schema.json`.
"""

from __future__ import annotations

import ast
import functools
import inspect
import itertools
from collections.abc import Mapping
from typing import Any, Final, get_args

import msgspec

from otel_reliability.config import Settings
from otel_reliability.loading import Field, extra_of, is_section, own_fields, without_none
from otel_reliability.service.config_file import KAFKA, SECTION
from otel_reliability.service.kafka_settings import KafkaSettings
from otel_reliability.service.settings import ServiceSettings

Schema = dict[str, Any]

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
"""The name of the dialect; nothing is fetched from there."""


def schema() -> Schema:
    """Return the schema of a settings file: msgspec's, with the descriptions of all fields and without internal ones.

    >>> schema()["$defs"]["ServiceSettings"]["properties"]["state_limit"]["default"]
    4294967296
    """
    kinds = (Settings, ServiceSettings, KafkaSettings)
    _, parts = msgspec.json.schema_components(kinds, ref_template="#/$defs/{name}")
    sections = {part.__name__: _section(part, parts[part.__name__]) for kind in kinds for part in _structs(kind)}
    root = sections.pop(Settings.__name__)
    root["properties"][SECTION] = {"$ref": f"#/$defs/{ServiceSettings.__name__}"}
    root["properties"][KAFKA] = {"$ref": f"#/$defs/{KafkaSettings.__name__}"}
    return {"$schema": DIALECT, "title": "Settings of otel-reliability", **root, "$defs": sections}


@functools.cache
def descriptions(kind: type[msgspec.Struct]) -> Mapping[str, str]:
    """Return the text below each field of a struct.

    >>> descriptions(Settings)["windows"]
    'Which runs count now; each agent has each of these windows.'
    """
    tree = ast.parse(inspect.getsource(kind))
    body = next(node.body for node in tree.body if isinstance(node, ast.ClassDef))
    found: dict[str, str] = {}
    for field, below in itertools.pairwise(body):
        match field, below:
            case ast.AnnAssign(target=ast.Name(name)), ast.Expr(value=ast.Constant(value=str(text))):
                found[name] = inspect.cleandoc(text).replace("\n", " ")
            case _:
                continue
    return found


def item_of(kind: Any) -> Any:
    """Return X of `tuple[X, ...]`, and any other type as it is."""
    return get_args(kind)[0] if get_args(kind)[1:] == (...,) else kind


def _structs(kind: type[msgspec.Struct]) -> list[type[msgspec.Struct]]:
    """A struct and those within it."""
    inner = [item_of(field.type) for field in own_fields(kind)]
    return [kind, *(found for one in inner if is_section(one) for found in _structs(one))]


def _section(kind: type[msgspec.Struct], made: Schema) -> Schema:
    about = descriptions(kind)
    properties = {
        field.path: _property(field, made["properties"][field.path], about.get(field.path, ""))
        for field in own_fields(kind)
    }
    title = (kind.__doc__ or "").partition("\n")[0]
    return {"type": "object", "description": title, "additionalProperties": False, "properties": properties}


def _property(field: Field, made: Schema, about: str) -> Schema:
    """One field: a duration or a size is a number, or text with units."""
    if "units" in extra_of(without_none(field.type)):
        made = {"anyOf": [{"type": "number", "minimum": 0}, {"type": "string"}], **_only(made, "default")}
    if "$ref" in made:
        return _only(made, "$ref")
    return {**made, **({"description": about} if about else {})}


def _only(made: Schema, *names: str) -> Schema:
    return {name: made[name] for name in names if name in made}
