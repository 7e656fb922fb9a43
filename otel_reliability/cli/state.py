"""`otel-reliability state`."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import click

from otel_reliability.errors import ConfigurationError
from otel_reliability.service.journal_view import Contents, Unreadable, contents_of

MOST: Final = 20
"""Agents that are listed where nobody asks for all."""


@click.command("state")
@click.argument("directory", type=click.Path(path_type=Path), metavar="DIR")
@click.option("--all", "everyone", is_flag=True, help=f"Every agent, not only the {MOST} with most runs.")
def command(directory: Path, *, everyone: bool) -> None:
    """What a state directory of `serve` holds: its size, what is to be read at the next start, and whose runs.

    \b
      otel-reliability state /var/lib/otel-reliability

    It changes nothing, and may be asked while the service runs.
    """
    try:
        contents = contents_of(directory)
    except Unreadable as error:
        raise ConfigurationError(
            "DIR", str(directory), f"a state directory ({error})", "give that of --state"
        ) from None
    for line in lines(contents, None if everyone else MOST):
        print(line)


def lines(contents: Contents, most: int | None) -> list[str]:
    """The contents, for people."""
    told = [
        f"size        {contents.size:,} bytes",
        f"checkpoint  {'none yet' if contents.checkpoint_ns is None else _instant(contents.checkpoint_ns)}",
        f"since       {contents.requests:,} requests, {contents.moments:,} moments",
        f"last entry  {'none' if contents.last_ns is None else _instant(contents.last_ns)}",
        f"agents      {len(contents.agents):,} in the checkpoint",
    ]
    told += [f"set aside   {name}" for name in contents.damaged]
    agents = sorted(contents.agents, key=lambda one: (-one.runs, one.key))
    told += [f"  {one.runs:>7,} runs  {'/'.join(part for part in one.key[:4] if part)}" for one in agents[:most]]
    if most is not None and len(agents) > most:
        told.append(f"  and {len(agents) - most:,} more: --all")
    return told


def _instant(time_ns: int) -> str:
    return datetime.fromtimestamp(time_ns / 1e9, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
