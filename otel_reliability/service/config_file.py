"""The settings of a service: a file (YAML, TOML or JSON), over it the environment, over that what
flags say.

The file holds the settings of the engine, below `service` those of the service, and below `kafka`
those of workers on Kafka:

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
from typing import Any, Final, cast

from otel_reliability.errors import ConfigurationError
from otel_reliability.service.checks import check
from otel_reliability.service.settings import Config


def load_config(
    file: Path | None = None,
    env: Mapping[str, str] | None = None,
    flags: Mapping[str, object] | None = None,
) -> Config:
    """Read settings from wherever they stand, and check them as a whole. Raises
    `ConfigurationError`.

    >>> load_config(
    ...     env={"OTEL_RELIABILITY_SERVICE_HTTP": "off"}, flags={"service": {"drain": "20s"}}
    ... ).service.http
    'off'
    """
    config = Config.load({} if file is None else read_file(file), env, **(flags or {}))
    check(config.service)
    return config


def read_file(path: Path) -> Mapping[str, object]:
    """Return the settings of a file: none for an empty one."""
    reader = READERS.get(path.suffix.lower())
    if reader is None:
        raise ConfigurationError(
            "--config", path.name, "a .yaml, .toml or .json file", "give it one of these endings"
        )
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
        raise ConfigurationError(
            "--config", kind, "a mapping of settings", "write it like name: value"
        )
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
