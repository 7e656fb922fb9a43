"""Options that the commands share which run a service: the source of their settings."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import click

from otel_reliability.cli.options import Option, assigned, put, with_options
from otel_reliability.service.config_file import load_config

EXAMPLE: Final = "limits.memory=1GiB"

METRICS: Final[Option] = click.option(
    "--metrics", metavar="HOST:PORT", help="Address of /metrics for Prometheus; off disables it."
)
_COMMON: Final[tuple[Option, ...]] = (
    click.option(
        "--config",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="Settings from a .yaml, .toml or .json file (docs/reference/settings.md).",
    ),
    click.option(
        "--allow-public", is_flag=True, help="Allow addresses that other machines reach, without TLS and tokens."
    ),
    click.option(
        "--set",
        "assignments",
        multiple=True,
        metavar="NAME=VALUE",
        help=f"One setting, like {EXAMPLE}; repeatable.",
    ),
    click.option(
        "--log-level",
        type=click.Choice(("debug", "info", "warning", "error")),
        default="info",
        show_default=True,
        help="Level of the log on standard error.",
    ),
)


def of_service(flags: Mapping[str, str], *options: Option) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add these options and the common ones. The command receives the settings as `config`; `flags` names the setting of each
    option that is one, every other setting has `--set`.
    """
    paths = {**flags, "allow_public": "service.allow_public"}

    def wrap(command: Callable[..., None]) -> Callable[..., None]:
        def chosen(config: Path | None, assignments: tuple[str, ...], **rest: Any) -> None:
            given = assigned(assignments, EXAMPLE)
            for flag, path in paths.items():
                value = rest.pop(flag)
                if value is not None and value is not False:
                    put(given, path, value)
            command(config=load_config(config, os.environ, given), **rest)

        return with_options((*options, *_COMMON), chosen, command)

    return wrap
