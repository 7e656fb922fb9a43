"""Write the pages that are made from the code: `make docs`. A test fails when a page has fallen behind."""

from __future__ import annotations

import inspect
import json
import runpy
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, cast

from msgspec import Struct
from msgspec.inspect import DictType, LiteralType, StructType, UnionType, VarTupleType

from otel_reliability import config
from otel_reliability.loading import Field, bounds_of, extra_of, public_fields, variable, written
from otel_reliability.service.config_file import KAFKA, SECTION
from otel_reliability.service.kafka_settings import KafkaSettings
from otel_reliability.service.schema import schema
from otel_reliability.service.settings import ServiceSettings

HERE: Final = Path(__file__).resolve().parent
BEHIND: Final = "<!-- Made from the code by `make docs`. -->\n\n"
MEASURED: Final = "<!-- Made by `make docs` from what `make bench` found. -->\n\n"

CONFIGURATION: Final = f"""# Settings

Every setting can be given in code, as a mapping (a file's content, say) and in the environment.
Code is over the environment, the environment over the file.

```pycon
>>> from otel_reliability.config import Settings
>>> file = {{"assembly": {{"linger": "5s"}}, "windows": [{{"last": 100}}, {{"name": "day", "period": "24h"}}]}}
>>> environment = {{"OTEL_RELIABILITY_METRICS_MIN_RUNS": "10"}}
>>> settings = Settings.load(file, environment, agent_key=["service.version"])
>>> settings.assembly.linger, settings.metrics.min_runs, settings.agent_key
(5.0, 10, ('service.version',))

```

In the environment a setting is its path in upper case behind `{config.PREFIX}`: `assembly.idle_timeout` is
`{variable("assembly.idle_timeout", config.PREFIX)}`. There, lists are written `a, b`, mappings `a=1, b=2`, and both also as JSON.
Durations are written `10m`, `1h30m` or `250ms` (a number is seconds), sizes `64KiB` or `512MiB` (a number is bytes).
What is wrong is refused with the name of the setting, its value, what is allowed and what to do.
"""


SERVICE: Final = f"""# Settings of the service

`otel-reliability serve` reads a file (`--config`, in YAML, TOML or JSON) that holds the settings above, and below `service` those
that follow. Over the file it reads the environment, where these begin with `{config.SERVICE_PREFIX}`
(`service.push` is `{variable("push", config.SERVICE_PREFIX)}`), and over that its flags.
Every setting has a flag, like `--set service.drain=20s`. `otel-reliability serve --check` only checks them.

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

`otel-reliability kafka assemble` and `kafka aggregate` read the same file: the settings of the whole, of `service` the doors
`metrics` and `pages` with what guards them, and below `kafka` those that follow. In the environment these begin with
`{config.KAFKA_PREFIX}` (`kafka.session_timeout` is `{variable("session_timeout", config.KAFKA_PREFIX)}`).
"""


def settings_page() -> str:
    """Return the page of all settings: a section for each part, a row for each setting."""
    kinds = (("", config.Settings), (f"{SECTION}.", ServiceSettings), (f"{KAFKA}.", KafkaSettings))
    engine, service, kafka = ("\n".join(_sections(prefix, kind)) for prefix, kind in kinds)
    return f"{BEHIND}{CONFIGURATION}\n{engine}\n{SERVICE}\n{service}\n{WORKERS}\n{kafka}"


def _sections(prefix: str, kind: type[Struct]) -> Iterator[str]:
    """A table of the struct's own settings, then those of its sections."""
    parts = list(public_fields(kind))
    rows = "".join(
        f"| `{prefix}{one.path}` | {_allowed(one.type)} | {_default(one)} | {one.description} |\n"
        for one in parts
        if not isinstance(one.type, StructType)
    )
    about = (inspect.getdoc(kind) or "").partition("\n")[0]
    title = f"`{prefix.removesuffix('.')}`" if prefix else "Settings of the engine"
    yield f"## {title}\n\n{about}\n\n| setting | type | default | meaning |\n|---|---|---|---|\n{rows}"
    for one in parts:
        inner = one.type.item_type if isinstance(one.type, VarTupleType) else one.type
        if isinstance(inner, StructType):
            within = f"{prefix}{one.path}[…]." if inner is not one.type else f"{prefix}{one.path}."
            yield from _sections(within, inner.cls)


def _allowed(kind: Any) -> str:
    """What a setting can be, in words."""
    if isinstance(kind, UnionType):
        return f"{_allowed(kind.types[0])}, or nothing"
    if isinstance(kind, VarTupleType):
        return f"a list; each: {_allowed(kind.item_type)}"
    if isinstance(kind, DictType):
        return f"a mapping; each value: {_allowed(kind.value_type)}"
    if isinstance(kind, StructType):
        return "a section, see below"
    if isinstance(kind, LiteralType):
        return " or ".join(f"`{word}`" for word in kind.values)
    return str(extra_of(kind).get("allowed") or bounds_of(kind))


def _default(one: Field) -> str:
    """A default, as a user would write it."""
    if one.default is None:
        return "nothing"
    if one.default in ((), {}):
        return "none"
    if one.path == "windows":
        return "the last 100 runs"
    if isinstance(one.type, VarTupleType):
        return ", ".join(f"`{item}`" for item in cast("tuple[str, ...]", one.default))
    return f"`{written(one)}`"


def metrics() -> str:
    """The page of all metrics."""
    page: Callable[[], str] = runpy.run_path(str(HERE / "metric_pages.py"))["page"]
    return BEHIND + page()


def performance() -> str:
    """The page of costs, from what was measured."""
    page: Callable[[], str] = runpy.run_path(str(HERE / "performance_page.py"))["page"]
    return MEASURED + page()


def settings_schema() -> str:
    """The schema of a settings file, for editors."""
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"


PAGES: Final[Mapping[str, Callable[[], str]]] = {
    "reference/settings.md": settings_page,
    "reference/metrics.md": metrics,
    "explanation/performance.md": performance,
    "reference/settings.schema.json": settings_schema,
}


if __name__ == "__main__":
    for name, page in PAGES.items():
        (HERE / name).write_text(page(), encoding="utf-8")
        print(HERE / name)
