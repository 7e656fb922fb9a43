"""The settings of a service: a file (YAML, TOML or JSON), over it the environment, over that what flags say.

The file holds the settings of the engine, below `service` those of the service, and below `kafka` those of workers on Kafka:

    windows: [{last: 100}, {name: day, period: 24h}]
    service:
      http: 0.0.0.0:4318
      token_file: /run/secrets/token
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar, cast

from msgspec import Struct

from otel_reliability.config import KAFKA_PREFIX, SERVICE_PREFIX, Settings
from otel_reliability.errors import ConfigurationError
from otel_reliability.loading import load, load_environment
from otel_reliability.service.checks import check
from otel_reliability.service.settings import KafkaSettings, ServiceSettings

T = TypeVar("T", bound=Struct)

SECTION = "service"
KAFKA = "kafka"


class Config(NamedTuple):
    """All settings of a service."""

    engine: Settings
    service: ServiceSettings
    kafka: KafkaSettings = KafkaSettings()


def load_config(
    file: Path | None = None, env: Mapping[str, str] | None = None, flags: Mapping[str, object] | None = None
) -> Config:
    """Read settings from wherever they stand, and check them as a whole. Raises `ConfigurationError`.

    >>> load_config(env={"OTEL_RELIABILITY_SERVICE_HTTP": "off"}, flags={"service": {"drain": "20s"}}).service.http
    'off'
    """
    engine, sections = _divided({} if file is None else read_file(file))
    engine_flags, flagged = _divided(flags or {})
    settings = Settings.from_environment(env or {}, base=Settings.from_mapping(engine))

    def section(kind: type[T], name: str, prefix: str) -> T:
        ours = {variable: value for variable, value in (env or {}).items() if variable.startswith(prefix)}
        own = load_environment(kind, ours, prefix, base=load(kind, sections[name], path=name))
        return load(kind, flagged[name], base=own, path=name)

    config = Config(
        Settings.from_mapping(engine_flags, base=settings),
        section(ServiceSettings, SECTION, SERVICE_PREFIX),
        section(KafkaSettings, KAFKA, KAFKA_PREFIX),
    )
    check(config.service)
    return config


def read_file(path: Path) -> Mapping[str, object]:
    """Return the settings of a file: none for an empty one."""
    reader = READERS.get(path.suffix.lower())
    if reader is None:
        raise ConfigurationError("--config", path.name, "a .yaml, .toml or .json file", "give it one of these endings")
    try:
        found = reader(path.read_text(encoding="utf-8"))
    except OSError as error:
        allowed = f"a file that can be read ({error.strerror})"
        raise ConfigurationError("--config", str(path), allowed, "give its path") from error
    except ValueError as error:
        allowed = f"what its ending says ({_where(error.__cause__ or error)})"
        raise ConfigurationError(
            "--config", path.name, allowed, "correct it there; often it is the indentation"
        ) from error
    if found is None:
        return {}
    if not isinstance(found, Mapping):
        kind = type(found).__name__
        raise ConfigurationError("--config", kind, "a mapping of settings", "write it like name: value")
    return cast("Mapping[str, object]", found)


def _yaml(text: str) -> Any:
    import yaml  # noqa: PLC0415  reports read settings too, and do not need it for other files

    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError from error


READERS: Final[Mapping[str, Callable[[str], Any]]] = {
    ".yaml": _yaml,
    ".yml": _yaml,
    ".toml": tomllib.loads,
    ".json": json.loads,
}


def _where(error: BaseException) -> str:
    """The place of a mistake; never what stands there."""
    mark = getattr(error, "problem_mark", None)
    if mark is not None:
        return f"line {mark.line + 1}, column {mark.column + 1}"
    line = getattr(error, "lineno", None)
    return "somewhere in it" if line is None else f"line {line}"


def _divided(given: Mapping[str, object]) -> tuple[dict[str, object], dict[str, object]]:
    """The settings of the engine, and those of each section."""
    rest = dict(given)
    return rest, {name: rest.pop(name, {}) for name in (SECTION, KAFKA)}
