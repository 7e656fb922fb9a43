"""Options that the commands share which run a service: the source of their settings."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias, TypeVar

import click

from otel_reliability.cli.options import assigned, put
from otel_reliability.service.config_file import Config, load_config

R = TypeVar("R")

FLAGS: Final[Mapping[str, str]] = {
    "grpc": "service.grpc",
    "http": "service.http",
    "metrics": "service.metrics",
    "ui": "service.ui",
    "state": "service.state",
    "state_sync": "service.state_sync",
    "token_file": "service.token_file",
    "push": "service.push",
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
    "--metrics", metavar="HOST:PORT", help="Address of /metrics for Prometheus; off disables it."
)
ALLOW_PUBLIC: Final[Option] = click.option(
    "--allow-public", is_flag=True, help="Allow addresses that other machines reach, without TLS and tokens."
)
LOG_LEVEL: Final[Option] = click.option(
    "--log-level",
    type=click.Choice(("debug", "info", "warning", "error")),
    default="info",
    show_default=True,
    help="Level of the log on standard error.",
)


def one_setting(example: str) -> Option:
    """Return `--set`, for every setting that has no flag of its own."""
    text = f"One setting, like {example}; repeatable."
    return click.option("--set", "assignments", multiple=True, metavar="NAME=VALUE", help=text)


_OPTIONS: Final[Sequence[Option]] = (
    CONFIG,
    click.option("--grpc", metavar="HOST:PORT", help="Address of OTLP over gRPC; off disables it."),
    click.option("--http", metavar="HOST:PORT", help="Address of OTLP over HTTP; off disables it."),
    METRICS,
    click.option("--ui", metavar="HOST:PORT", help="Address of the UI, probes and API; off disables it."),
    click.option(
        "--state", metavar="DIR", help="Directory of the state: nothing acknowledged is lost when the process dies."
    ),
    click.option(
        "--state-sync",
        type=click.Choice(("normal", "full")),
        help="full: acknowledge only what survives a loss of power.",
    ),
    click.option(
        "--token-file", metavar="FILE", help="File of bearer tokens, one a line; clients must send one of them."
    ),
    ALLOW_PUBLIC,
    click.option("--push", metavar="URL", help="Endpoint that receives the metrics by OTLP."),
    one_setting("service.queue=1GiB"),
)


def of_service(command: Callable[..., R]) -> Callable[..., R]:
    """Add the options of settings, handed to the command as `config`."""

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
    """Return the settings of flags and assignments as nested mappings, without flags that were not given."""
    given = assigned(assignments, "service.queue=1GiB")
    for flag, value in flags.items():
        if value is not None and value is not False:
            put(given, paths[flag], value)
    return given
