"""Write the pages that are made from the code: `make docs`. A test fails when a page has fallen behind."""

from __future__ import annotations

import inspect
import json
import runpy
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Literal, cast, get_args, get_origin

from msgspec import Struct

from otel_reliability import config
from otel_reliability.loading import Field, allowed_by, extra_of, is_section, own_fields, variable, without_none
from otel_reliability.service.config_file import KAFKA, SECTION
from otel_reliability.service.kafka_settings import KafkaSettings
from otel_reliability.service.schema import descriptions, item_of, schema
from otel_reliability.service.settings import ServiceSettings

HERE: Final = Path(__file__).resolve().parent
BEHIND: Final = "<!-- Made from the code by `make docs`. -->\n\n"
MEASURED: Final = "<!-- Made by `make docs` from what `make bench` found. -->\n\n"

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


def settings_page() -> str:
    """Return the page of all settings: a section for each part, a row for each setting."""
    kinds = (("", config.Settings), (f"{SECTION}.", ServiceSettings), (f"{KAFKA}.", KafkaSettings))
    engine, service, kafka = ("\n".join(_sections(prefix, kind)) for prefix, kind in kinds)
    return f"{BEHIND}{CONFIGURATION}\n{engine}\n{SERVICE}\n{service}\n{WORKERS}\n{kafka}"


def _sections(prefix: str, kind: type[Struct]) -> Iterator[str]:
    """Yield a table of the struct's own settings, then those of its sections."""
    parts, meanings = list(own_fields(kind)), descriptions(kind)
    rows = "".join(
        f"| `{prefix}{one.path}` | {_allowed(one.type)} | {_default(one)} | {meanings[one.path]} |\n"
        for one in parts
        if not is_section(one.type)
    )
    about = (inspect.getdoc(kind) or "").partition("\n")[0]
    title = f"`{prefix.removesuffix('.')}`" if prefix else "Settings of the engine"
    yield f"## {title}\n\n{about}\n\n| setting | type | default | meaning |\n|---|---|---|---|\n{rows}"
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
    unit = max((unit for unit, size in units.items() if one.default % size == 0), key=lambda unit: units[unit])
    return f"`{one.default / units[unit]:g}{unit}`"


def metrics() -> str:
    """Return the page of all metrics."""
    page: Callable[[], str] = runpy.run_path(str(HERE / "metric_pages.py"))["page"]
    return BEHIND + page()


def performance() -> str:
    """Return the page of costs, from the measurements."""
    page: Callable[[], str] = runpy.run_path(str(HERE / "performance_page.py"))["page"]
    return MEASURED + page()


def http_api() -> str:
    """Return the page of the service's HTTP API."""
    page: Callable[[], str] = runpy.run_path(str(HERE / "http_api.py"))["page"]
    return BEHIND + page()


def openapi() -> str:
    """Return the OpenAPI document of the service's HTTP API."""
    document: Any = runpy.run_path(str(HERE / "http_api.py"))["DOCUMENT"]
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def settings_schema() -> str:
    """Return the schema of a settings file, for editors."""
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"


def _of_reference(name: str) -> Callable[[], str]:
    def page() -> str:
        write: Callable[[], str] = runpy.run_path(str(HERE / "reference_pages.py"))[name]
        return BEHIND + write()

    return page


PAGES: Final[Mapping[str, Callable[[], str]]] = {
    "reference/cli.md": _of_reference("cli"),
    "reference/http-api.md": http_api,
    "reference/openapi.json": openapi,
    "reference/prometheus.md": _of_reference("prometheus"),
    "reference/python-api.md": _of_reference("python_api"),
    "reference/settings.md": settings_page,
    "reference/metrics.md": metrics,
    "explanation/performance.md": performance,
    "reference/settings.schema.json": settings_schema,
}


if __name__ == "__main__":
    for name, page in PAGES.items():
        (HERE / name).write_text(page(), encoding="utf-8")
        print(HERE / name)
