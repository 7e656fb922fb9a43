"""Write the pages that are made from the code: `make docs`. A test fails when a page has fallen behind."""

from __future__ import annotations

import dataclasses
import inspect
import json
import runpy
import types
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Union, cast, get_args, get_origin, get_type_hints

from otel_reliability import config
from otel_reliability.loading import Field, fields, rule_of, variable
from otel_reliability.service.config_file import KAFKA, SECTION
from otel_reliability.service.kafka_settings import KafkaSettings
from otel_reliability.service.schema import schema, told
from otel_reliability.service.settings import AGENTS, ServiceSettings

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
(`service.push.endpoint` is `{variable("push.endpoint", config.SERVICE_PREFIX)}`), and over that its flags.
Every setting has a flag, like `--set service.queue=1GiB`. `otel-reliability serve --check` checks them and starts nothing.

```yaml
# yaml-language-server: $schema=settings.schema.json
windows:
  - {{name: recent, last: 100}}
  - {{name: day, period: 24h}}
service:
  http: 0.0.0.0:4318
  token_file: /run/secrets/tokens
  push:
    endpoint: http://collector:4317
```

In a service `limits.agents` is {AGENTS} if nobody says otherwise.
"""


WORKERS: Final = f"""# Settings of the workers on Kafka

`otel-reliability kafka assemble` and `kafka aggregate` read the same file: the settings of the whole, of `service` the doors
`metrics` and `pages` with what guards them, and below `kafka` those that follow. In the environment these begin with
`{config.KAFKA_PREFIX}` (`kafka.session_timeout` is `{variable("session_timeout", config.KAFKA_PREFIX)}`).
"""


def configuration() -> str:
    """The page of all settings: a section for each part, a row for each setting."""
    sections = [CONFIGURATION, _section("Settings of the whole", "", config.Settings)]
    sections.append(_section("`windows[…]`", "windows[…].", config.WindowSettings))
    sections.extend(_section(f"`{part}`", f"{part}.", kind) for part, kind in _parts(config.Settings))
    sections += [SERVICE, _section(f"`{SECTION}`", f"{SECTION}.", ServiceSettings)]
    sections.extend(
        _section(f"`{SECTION}.{part}`", f"{SECTION}.{part}.", kind) for part, kind in _parts(ServiceSettings)
    )
    sections += [WORKERS, _section(f"`{KAFKA}`", f"{KAFKA}.", KafkaSettings)]
    return BEHIND + "\n".join(sections)


def _parts(kind: type[Any]) -> Iterator[tuple[str, type[Any]]]:
    """The parts of settings, in order."""
    for name, part in get_type_hints(kind).items():
        if dataclasses.is_dataclass(part):
            yield name, cast("type[Any]", part)


def _section(title: str, prefix: str, kind: type[Any]) -> str:
    meanings = told(kind)
    about = "" if kind is config.Settings else (inspect.getdoc(kind) or "").partition("\n\n")[0] + "\n\n"
    rows = "".join(
        f"| `{prefix}{one.path}` | {_allowed(one.hint)} | {_default(one)} | {meanings.get(one.path, '')} |\n"
        for one in fields(kind)
        if "." not in one.path
    )
    return f"## {title}\n\n{about}| setting | what it can be | default | meaning |\n|---|---|---|---|\n{rows}"


def _allowed(hint: Any) -> str:
    """What a setting can be, in words."""
    origin, args = get_origin(hint), get_args(hint)
    if origin in {Union, types.UnionType}:
        return f"{_allowed(args[0])}, or nothing"
    if origin is tuple:
        return f"a list; each: {_allowed(args[0])}"
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return f"a mapping; each value: {_allowed(args[1])}"
    return "a window, see below" if hint is config.WindowSettings else rule_of(hint).allowed


def _default(one: Field) -> str:
    """A default, as a user would write it."""
    if one.default is None:
        return "nothing"
    if one.default in ((), {}):
        return "none"
    if one.path == "windows":
        return "the last 100 runs"
    if get_origin(one.hint) is tuple:
        return ", ".join(f"`{item}`" for item in cast("tuple[str, ...]", one.default))
    return f"`{rule_of(one.hint).write(one.default)}`"


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
    "configuration.md": configuration,
    "metrics.md": metrics,
    "performance.md": performance,
    "settings.schema.json": settings_schema,
}


if __name__ == "__main__":
    for name, page in PAGES.items():
        (HERE / name).write_text(page(), encoding="utf-8")
        print(HERE / name)
