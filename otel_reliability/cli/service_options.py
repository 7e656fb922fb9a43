"""What commands that run or check a service have in common: where their settings stand."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias, TypeVar, cast

import click

from otel_reliability.errors import ConfigurationError
from otel_reliability.service.config_file import Config, load_config

R = TypeVar("R")

FLAGS: Final[Mapping[str, str]] = {
    "grpc": "service.grpc",
    "http": "service.http",
    "metrics": "service.metrics",
    "pages": "service.pages",
    "state": "service.state",
    "state_sync": "service.state_sync",
    "token_file": "service.token_file",
    "push": "service.push.endpoint",
}
"""The settings that have a flag of their own; every other has `--set`."""

Option: TypeAlias = Callable[[Any], Any]

CONFIG: Final[Option] = click.option(
    "--config",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Settings from a .yaml, .toml or .json file (docs/configuration.md).",
)
METRICS: Final[Option] = click.option(
    "--metrics", metavar="HOST:PORT", help="Where Prometheus reads /metrics; off closes the door."
)
ALLOW_PUBLIC: Final[Option] = click.option(
    "--allow-public", is_flag=True, help="Listen to other machines without encryption and tokens."
)
LOG_LEVEL: Final[Option] = click.option(
    "--log-level",
    type=click.Choice(("debug", "info", "warning", "error")),
    default="info",
    show_default=True,
    help="What the process tells of itself on standard error.",
)


def one_setting(example: str) -> Option:
    """`--set`, for every setting that has no flag of its own."""
    told = f"One setting, like {example}; repeatable."
    return click.option("--set", "assignments", multiple=True, metavar="NAME=VALUE", help=told)


_OPTIONS: Final[Sequence[Option]] = (
    CONFIG,
    click.option("--grpc", metavar="HOST:PORT", help="Where OTLP comes in over gRPC; off closes the door."),
    click.option("--http", metavar="HOST:PORT", help="Where OTLP comes in over HTTP."),
    METRICS,
    click.option("--pages", metavar="HOST:PORT", help="Where pages, probes and API are."),
    click.option(
        "--state", metavar="DIR", help="Keep state there, so that nothing acknowledged is lost when the process dies."
    ),
    click.option(
        "--state-sync",
        type=click.Choice(("normal", "full")),
        help="full: acknowledge only what outlives a loss of power.",
    ),
    click.option("--token-file", metavar="FILE", help="Bearer tokens, one a line, of which clients must send one."),
    ALLOW_PUBLIC,
    click.option("--push", metavar="URL", help="Send metrics there by OTLP."),
    one_setting("service.queue=1GiB"),
)


def of_service(command: Callable[..., R]) -> Callable[..., R]:
    """The options that give settings, handed to the command as `config`."""

    def chosen(config: Path | None, assignments: tuple[str, ...], *, allow_public: bool, **rest: Any) -> R:
        flags = {flag: rest.pop(flag) for flag in FLAGS}
        paths = {**FLAGS, "allow_public": "service.allow_public"}
        given = given_by(assignments, paths, {**flags, "allow_public": allow_public})
        loaded: Config = load_config(config, os.environ, given)
        return command(config=loaded, **rest)

    chosen.__doc__, chosen.__name__ = command.__doc__, command.__name__
    chosen.__dict__.update(command.__dict__)  # click keeps the options declared so far here
    for option in reversed(_OPTIONS):
        chosen = option(chosen)
    return chosen


def given_by(assignments: Sequence[str], paths: Mapping[str, str], flags: Mapping[str, Any]) -> dict[str, Any]:
    """What flags and assignments say, as nested mappings. A flag that was not given says nothing."""
    given: dict[str, Any] = {}
    for flag, value in flags.items():
        if value is not None and value is not False:
            put(given, paths[flag], value)
    for assignment in assignments:
        path, divided, value = assignment.partition("=")
        if not divided or not path.strip():
            raise ConfigurationError("--set", assignment, "a setting", "write it like service.queue=1GiB")
        put(given, path.strip(), value)
    return given


def put(settings: dict[str, Any], path: str, value: object) -> None:
    """Put one setting into nested mappings.

    >>> found = {}
    >>> put(found, "service.push.endpoint", "http://box:4317")
    >>> found
    {'service': {'push': {'endpoint': 'http://box:4317'}}}
    """
    *parents, name = path.split(".")
    for parent in parents:
        inner: object = settings.setdefault(parent, {})
        if not isinstance(inner, dict):
            raise ConfigurationError("--set", path, "a setting of its own", f"{parent} was set already")
        settings = cast("dict[str, Any]", inner)
    settings[name] = value
