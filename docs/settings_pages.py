"""The page of all settings, and their JSON schema, by which editors complete and check a YAML file.

Begin such a file with `# yaml-language-server: $schema=settings.schema.json`.
"""

from __future__ import annotations

import ast
import functools
import inspect
import itertools
from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal, cast, get_args, get_origin

import msgspec
from msgspec import Struct

from otel_reliability import config
from otel_reliability.loading import (
    Field,
    allowed_by,
    extra_of,
    is_section,
    own_fields,
    variable,
    without_none,
)
from otel_reliability.service.settings import KafkaSettings, ServiceSettings

CONFIGURATION: Final = f"""# Settings

Set a setting in code, in a file, or in the environment. Code overrides the environment, and the environment overrides the file.

```pycon
>>> from otel_reliability.config import Settings
>>> file = {{"assembly": {{"linger": "5s"}}, "windows": [{{"last": 100}}, {{"name": "day", "period": "24h"}}]}}
>>> environment = {{"OTEL_RELIABILITY_METRICS_MIN_RUNS": "10"}}
>>> settings = Settings.load(file, environment, agent_key=["service.version"])
>>> settings.assembly.linger, settings.metrics.min_runs, settings.agent_key
(5.0, 10, ('service.version',))

```

In the environment a setting is called by its path in upper case after `{config.PREFIX}`: `assembly.idle_timeout` is
`{variable("assembly.idle_timeout", config.PREFIX)}`. Write lists as `a, b`, mappings as `a=1, b=2`, or both as JSON.
Write durations as `10m`, `1h30m` or `250ms` (a number is seconds), sizes as `64KiB` or `512MiB` (a number is bytes).
An invalid or unknown setting is an error that names it, its value, what is allowed and what to do. In an agent's process an
invalid variable is logged instead, and the defaults are used.
"""


SERVICE: Final = f"""# Settings of the service

`otel-reliability serve` reads a file (`--config`, in YAML, TOML or JSON) with the settings above and, below `service`, those
that follow. The environment overrides the file; there the settings of the service begin with `{config.SERVICE_PREFIX}`
(`service.push` is `{variable("push", config.SERVICE_PREFIX)}`). Flags override both: `--set service.drain=20s` sets any setting.
`otel-reliability serve --check` checks the settings and prints the result.

```yaml
# yaml-language-server: $schema=settings.schema.json
windows:
  - {{name: recent, last: 100}}
  - {{name: day, period: 24h}}
service:
  http: 0.0.0.0:4318
  token_file: /run/secrets/tokens
  push: http://collector:4317
limits:
  memory: 2GiB
```
"""


WORKERS: Final = f"""# Settings of the workers on Kafka

`otel-reliability kafka assemble` and `kafka aggregate` read the same file: the settings of the engine, the endpoints `metrics`
and `ui` of `service` with their protection, and below `kafka` those that follow. In the environment these begin with
`{config.KAFKA_PREFIX}` (`kafka.session_timeout` is `{variable("session_timeout", config.KAFKA_PREFIX)}`).
"""


def page() -> str:
    """Return the page of all settings: a section for each part, a row for each setting."""
    kinds = (("", config.Settings), ("service.", ServiceSettings), ("kafka.", KafkaSettings))
    engine, service, kafka = ("\n".join(_sections(prefix, kind)) for prefix, kind in kinds)
    return f"{CONFIGURATION}\n{engine}\n{SERVICE}\n{service}\n{WORKERS}\n{kafka}"


def _sections(prefix: str, kind: type[Struct]) -> Iterator[str]:
    """Yield a table of the struct's own settings, then those of its sections."""
    parts = list(own_fields(kind))
    meanings = descriptions(kind)
    rows = "".join(
        (
            f"| `{prefix}{one.path}` | {_allowed(one.type)} | {_default(one)} | "
            f"{meanings[one.path]} |\n"
        )
        for one in parts
        if not is_section(one.type)
    )
    about = (inspect.getdoc(kind) or "").partition("\n")[0]
    title = f"`{prefix.removesuffix('.')}`" if prefix else "Settings of the engine"
    yield (
        f"## {title}\n\n{about}\n\n| setting | type | default | meaning "
        f"|\n|---|---|---|---|\n{rows}"
    )
    for one in parts:
        inner = item_of(one.type)
        if is_section(inner):
            within = f"{prefix}{one.path}[…]." if inner is not one.type else f"{prefix}{one.path}."
            yield from _sections(within, inner)


def _allowed(kind: Any) -> str:
    """Return what a setting can be, in words."""
    if without_none(kind) is not kind:
        return f"{_allowed(without_none(kind))}, or nothing"
    if item_of(kind) is not kind:
        return f"a list; each: {_allowed(item_of(kind))}"
    if get_origin(kind) is Mapping:
        return f"a mapping; each value: {_allowed(get_args(kind)[1])}"
    if is_section(kind):
        return "a section, see below"
    if get_origin(kind) is Literal:
        return " or ".join(f"`{word}`" for word in sorted(get_args(kind)))
    return allowed_by(kind)


def _default(one: Field) -> str:
    """Return a default as a user would write it."""
    if one.default is None:
        return "nothing"
    if one.default in ((), {}):
        return "none"
    if one.path == "windows":
        return "the last 100 runs"
    if item_of(one.type) is not one.type:
        return ", ".join(f"`{item}`" for item in cast("tuple[str, ...]", one.default))
    units = extra_of(one.type).get("units")
    if units is None or not isinstance(one.default, int | float):
        return f"`{str(one.default).lower() if isinstance(one.default, bool) else str(one.default).removesuffix('.0')}`"
    unit = max(
        (unit for unit, size in units.items() if one.default % size == 0),
        key=lambda unit: units[unit],
    )
    return f"`{one.default / units[unit]:g}{unit}`"


# --- The schema -----------------------------------------------------------------------------------


Schema = dict[str, Any]

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
"""The name of the dialect; nothing is fetched from there."""


def schema() -> Schema:
    """Return the schema of a settings file: msgspec's, with the descriptions of all fields and
    without internal ones.
    """
    kinds = (config.Settings, ServiceSettings, KafkaSettings)
    _, parts = msgspec.json.schema_components(kinds, ref_template="#/$defs/{name}")
    sections = {
        part.__name__: _section(part, parts[part.__name__])
        for kind in kinds
        for part in _structs(kind)
    }
    root = sections.pop(config.Settings.__name__)
    root["properties"]["service"] = {"$ref": f"#/$defs/{ServiceSettings.__name__}"}
    root["properties"]["kafka"] = {"$ref": f"#/$defs/{KafkaSettings.__name__}"}
    return {"$schema": DIALECT, "title": "Settings of otel-reliability", **root, "$defs": sections}


@functools.cache
def descriptions(kind: type[Struct]) -> Mapping[str, str]:
    """Return the text below each field of a struct."""
    tree = ast.parse(inspect.getsource(kind))
    body = next(node.body for node in tree.body if isinstance(node, ast.ClassDef))
    found: dict[str, str] = {}
    for field, below in itertools.pairwise(body):
        match field, below:
            case ast.AnnAssign(target=ast.Name(name)), ast.Expr(
                value=ast.Constant(value=str(text))
            ):
                found[name] = inspect.cleandoc(text).replace("\n", " ")
            case _:
                continue
    return found


def item_of(kind: Any) -> Any:
    """Return X of `tuple[X, ...]`, and any other type as it is."""
    return get_args(kind)[0] if get_args(kind)[1:] == (...,) else kind


def _structs(kind: type[Struct]) -> list[type[Struct]]:
    """A struct and those within it."""
    inner = [item_of(field.type) for field in own_fields(kind)]
    return [kind, *(found for one in inner if is_section(one) for found in _structs(one))]


def _section(kind: type[Struct], made: Schema) -> Schema:
    about = descriptions(kind)
    properties = {
        field.path: _property(field, made["properties"][field.path], about.get(field.path, ""))
        for field in own_fields(kind)
    }
    title = (kind.__doc__ or "").partition("\n")[0]
    return {
        "type": "object",
        "description": title,
        "additionalProperties": False,
        "properties": properties,
    }


def _property(field: Field, made: Schema, about: str) -> Schema:
    """One field: a duration or a size is a number, or text with units."""
    if "units" in extra_of(without_none(field.type)):
        made = {
            "anyOf": [{"type": "number", "minimum": 0}, {"type": "string"}],
            **_only(made, "default"),
        }
    if "$ref" in made:
        return _only(made, "$ref")
    return {**made, **({"description": about} if about else {})}


def _only(made: Schema, *names: str) -> Schema:
    return {name: made[name] for name in names if name in made}
