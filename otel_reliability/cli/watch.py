"""`otel-reliability watch`."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final, Protocol

import click
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from otel_reliability.cli.asking import Asked, NoAnswer, token_in
from otel_reliability.cli.following import Followed
from otel_reliability.cli.interrupts import ended_as_by_ctrl_c
from otel_reliability.cli.options import live_settings_of
from otel_reliability.cli.output import bear_any_encoding, show
from otel_reliability.config import SERVICE_PREFIX
from otel_reliability.model.run import AgentKey
from otel_reliability.report.fleet_table import FleetRow, fleet_table, tiers, worst_first
from otel_reliability.report.sections import dim
from otel_reliability.report.text import agent_name, clean, count, place

ADDRESS: Final = "http://127.0.0.1:8080"
"""Where `otel-reliability serve` has its pages."""
_HOST_AND_PORT: Final = re.compile(r"(\[[0-9a-fA-F:]+\]|[\w.-]+):\d+")
MOST_ONCE: Final = 100
"""Agents of a frame that stands alone; a terminal shows as many as it has lines for."""
AROUND: Final = 6
"""Lines of a frame that are no agents."""
SHARE: Final = 4.0
"""How many times as long as an answer took it stands at least: so watching never takes more than a fifth of a service."""


class Watched(Protocol):
    """What is watched: its agents as they are now, and a line that tells what it is."""

    def look(self, patience: float) -> list[dict[str, Any]]:
        """A line for each agent, as the API of a service has it; within so many seconds where that can be chosen."""
        ...

    def told(self) -> str:
        """What is watched, and what there is to say of it."""
        ...

    def close(self) -> None:
        """Nobody looks any more."""
        ...


@click.command("watch")
@click.argument("source", metavar="[URL|FILE]", default=ADDRESS)
@click.option("--once", is_flag=True, help="Print one frame and end, as it does where no terminal is.")
@click.option(
    "--every",
    type=click.FloatRange(min=0.2),
    default=2.0,
    show_default=True,
    metavar="SECONDS",
    help="How often to look.",
)
@click.option(
    "--agent", multiple=True, metavar="NAME", help="Only this agent (or pattern, like 'support*'); repeatable."
)
@click.option(
    "--token-file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help=f"Bearer tokens, one a line: the first is sent. Without, {SERVICE_PREFIX}TOKEN is.",
)
@click.option(
    "--config",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="How to count what a file holds: .toml, .json or .yaml (docs/configuration.md).",
)
@click.option(
    "--set",
    "assignments",
    multiple=True,
    metavar="NAME=VALUE",
    help="One setting, like metrics.min_runs=2; repeatable.",
)
def command(
    source: str,
    *,
    once: bool,
    every: float,
    agent: tuple[str, ...],
    token_file: Path | None,
    config: Path | None,
    assignments: tuple[str, ...],
) -> None:
    """All agents as they are now, the least reliable first: from a running service, or from a file that grows.

    \b
      otel-reliability watch                         the service on this machine, at 127.0.0.1:8080
      otel-reliability watch http://box:8080 --token-file /run/secrets/token
      otel-reliability watch spans.jsonl             what is written to it, like tail -f
      otel-reliability watch spans.jsonl.gz --once   one frame, of all there is

    A course is that of the score since the service (or this) began to look. Changed: by more than chance, not for the worse
    (explain change). Ctrl-C ends it.
    """
    bear_any_encoding()
    console = Console(highlight=False)
    once = once or not console.is_terminal
    with ended_as_by_ctrl_c(), suppress(KeyboardInterrupt):
        if _is_address(source):
            token = token_in(token_file, os.environ.get(f"{SERVICE_PREFIX}TOKEN"))
            watched: Watched = _Service(Asked(source, token))
        else:
            watched = _File(source, Followed(source, live_settings_of(config, assignments, os.environ), once=once))
        try:
            _watch(watched, agent, console, every, once=once)
        finally:
            watched.close()


class _Service:
    """A running service. One that stops answering is asked again."""

    def __init__(self, asked: Asked) -> None:
        self._asked = asked
        self._last: list[dict[str, Any]] | None = None
        self._silent = ""
        self._next = 0.0

    def look(self, patience: float) -> list[dict[str, Any]]:
        begun = time.monotonic()
        if self._last is not None and begun < self._next:
            return self._last
        try:
            self._last, self._silent = self._asked.agents(), ""
        except NoAnswer as error:
            if self._last is None:
                raise
            self._silent = f"  No answer any more: {error}"
        self._next = begun + (1 + SHARE) * (time.monotonic() - begun)
        return self._last

    def told(self) -> str:
        return f"{self._asked.url}/{self._silent}"

    def close(self) -> None:
        """Each request was closed by itself."""


class _File:
    """A file, as far as it has been read."""

    def __init__(self, name: str, followed: Followed) -> None:
        self._name, self._followed = name, followed
        self._whole = True

    def look(self, patience: float) -> list[dict[str, Any]]:
        self._whole = self._followed.read(patience)
        return self._followed.agents()

    def told(self) -> str:
        unread = f", {count(self._followed.unread, 'line or span')} unreadable" if self._followed.unread else ""
        so_far = "" if self._whole else " so far"
        return f"{clean(self._name)}: {count(self._followed.spans, 'span')} read{so_far}{unread}."

    def close(self) -> None:
        self._followed.close()


def _is_address(source: str) -> bool:
    """Whether it is a service that is meant, and no file.

    >>> [_is_address(source) for source in ("http://box", "127.0.0.1:8080", "spans.jsonl", "-")]
    [True, True, False, False]
    """
    return "://" in source or (_HOST_AND_PORT.fullmatch(source) is not None and not Path(source).exists())


def _watch(watched: Watched, names: tuple[str, ...], console: Console, every: float, *, once: bool) -> None:
    if once:
        lines = watched.look(0.0)
        show(lambda page: page.print(_frame(lines, names, watched.told(), MOST_ONCE)))
        return
    with Live(console=console, auto_refresh=False, vertical_overflow="crop") as live:
        while True:
            begun = time.monotonic()
            lines = watched.look(every)
            most = max(1, console.height - AROUND)
            live.update(_frame(lines, names, f"{watched.told()}  Ctrl-C ends it.", most), refresh=True)
            time.sleep(max(0.0, every - (time.monotonic() - begun)))


def _frame(lines: list[dict[str, Any]], names: tuple[str, ...], told: str, most: int) -> RenderableType:
    rows = worst_first(_rows(lines, names))
    if not rows:
        nobody = "No agent has runs yet." if not lines else f"None of {count(len(lines), 'agent')} is meant by --agent."
        return Group(Text(nobody, "bold"), dim(told))
    return Group(tiers(rows), Text(), fleet_table(rows, time.time_ns(), most), Text(), dim(told))


def _rows(lines: list[dict[str, Any]], names: tuple[str, ...]) -> Iterator[FleetRow]:
    for line in lines:
        if not names or any(fnmatchcase(line["agent"], name) for name in names):
            yield row_of(line)


def row_of(line: Mapping[str, Any]) -> FleetRow:
    """The row of an agent, as the API tells it. What an older service does not tell is absent."""
    key = AgentKey(
        line["service_namespace"] or "",
        line["service"] or "",
        line["environment"] or "",
        line["agent"],
        tuple(sorted(line.get("attributes", {}).items())),
    )
    hurts, changed = line.get("hurts"), line.get("changed")
    return FleetRow(
        name=agent_name(key),
        place=place(key),
        score=line["score"],
        runs=line["runs"],
        note=clean(line["score_note"] or ""),
        hurts=None if hurts is None else (hurts["name"], hurts["points"]),
        flagged=bool(line.get("flags")),
        changed_ns=None if changed is None else _ns(changed["noticed"]),
        course=line.get("course", ()),
        last_ns=None if line["last_run"] is None else _ns(line["last_run"]),
    )


def _ns(instant: str) -> int:
    """A time of the API in Unix nanoseconds, to the second."""
    return int(datetime.fromisoformat(f"{instant[:19]}+00:00").timestamp()) * 1_000_000_000
