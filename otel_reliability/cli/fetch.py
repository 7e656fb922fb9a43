"""`otel-reliability fetch`."""

from __future__ import annotations

import json
import os
import re
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Final

import click
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from otel_reliability.cli.options import SECOND, since_ns
from otel_reliability.errors import ConfigurationError, SourceError
from otel_reliability.stores.table import STORES, client_of, first_of
from otel_reliability.stores.trace import Period

NOT_YET_S: Final = 60
"""The newest seconds are left out: their traces may not be complete, or not be found yet."""
_TRACE_ID: Final = re.compile(rb'"traceId": ?"([0-9a-fA-F]{32})"')


def _variables() -> str:
    """Return the table of stores: the variable of the address, and those of the credentials."""
    rows = (
        f"  {store.name:10} {store.url[0] if store.url else '--url'} "
        f"(default: {store.default_url})\n{'':13}{store.credentials}"
        for store in STORES.values()
    )
    return "\b\nAddress and credentials of each store:\n" + "\n".join(rows)


@click.command("fetch", epilog=_variables())
@click.argument("store", type=click.Choice([*STORES]))
@click.option(
    "--since",
    default="7d",
    show_default=True,
    metavar="TIME",
    help="Traces that began since: 2026-01-31, 2026-01-31T10:00Z, or a duration ago, like 7d.",
)
@click.option("--project", metavar="NAME", help="Its project, experiment, service or environment.")
@click.option("--url", metavar="URL", help="Where the store is; default: its own variable.")
@click.option(
    "--header",
    "headers",
    multiple=True,
    metavar="NAME=VARIABLE",
    help="A header, and the environment variable that holds its value; repeatable.",
)
@click.option(
    "--output",
    "-o",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Append to this file; traces that it holds are not fetched again. Default: standard output.",
)
@click.option("--quiet", "-q", is_flag=True, help="No progress.")
def command(
    store: str,
    since: str,
    project: str | None,
    url: str | None,
    headers: tuple[str, ...],
    output: Path | None,
    quiet: bool,
) -> None:
    """Fetch whole traces from a trace store, as OTLP-JSON lines that every command reads.

    \b
      otel-reliability fetch phoenix --since 7d > spans.jsonl
      otel-reliability fetch jaeger --project checkout --since 24h | otel-reliability report -
      otel-reliability fetch langfuse --since 30d --output spans.jsonl     call again to resume
      otel-reliability fetch tempo --header X-Scope-OrgID=TENANT

    Scores and annotations become evaluations, items of datasets tasks. What the store does not keep
    is named on standard error. Address and credentials come from the environment variables of the
    store's own SDK, named below.
    """
    chosen = STORES[store]
    env = os.environ
    client = client_of(chosen, env, url, _headers(headers))
    now_ns = time.time_ns()
    period = Period(since_ns(since, now_ns), now_ns - NOT_YET_S * SECOND)
    if period.start_ns >= period.end_ns:
        allowed = f"more than {NOT_YET_S} seconds ago"
        raise ConfigurationError("--since", since, allowed, "write it like 7d")
    known = _fetched(output)
    before = len(known)
    fetched = 0
    with ExitStack() as stack:
        file = stack.enter_context(_writer(output))
        progress = stack.enter_context(_progress(hidden=quiet or not sys.stderr.isatty()))
        task = progress.add_task(f"fetching from {store}", total=None)
        where = project or first_of(env, chosen.project)
        try:
            for trace in chosen.fetch(client, period, where, known.__contains__):
                if trace.trace_id in known:
                    continue  # the store listed it twice
                line = json.dumps(trace.document, ensure_ascii=False) + "\n"
                file.write(line.encode("utf-8", "replace"))
                file.flush()
                known.add(trace.trace_id)
                fetched += 1
                progress.update(task, description=f"fetching from {store}: {fetched:,} traces")
        except SourceError as error:
            raise SourceError(f"{error}{_so_far(fetched, output)}") from error
    there = f", {before:,} were there already" if before else ""
    print(f"{fetched:,} traces fetched from {store}{there}.", file=sys.stderr)
    for note, times in client.notes.items():
        print(f"{note} ({times:,} times)" if times > 1 else note, file=sys.stderr)
    if chosen.loses and fetched:
        print(f"{store} {chosen.loses}: what depends on it is unknown.", file=sys.stderr)


def _so_far(fetched: int, output: Path | None) -> str:
    if not fetched:
        return ""
    remedy = "call again with" + (" the same" if output else "") + " --output FILE to go on there"
    return f" {fetched:,} traces were fetched before; {remedy}."


def _headers(given: tuple[str, ...]) -> dict[str, str]:
    """Return headers whose values stand in variables: an argument would show in lists of processes."""
    found: dict[str, str] = {}
    for pair in given:
        name, _, variable = pair.partition("=")
        value = os.environ.get(variable)
        if not name or not value:
            allowed = "a header and a variable that is set"
            remedy = "write it like Authorization=STORE_AUTHORIZATION"
            raise ConfigurationError("--header", pair, allowed, remedy)
        found[name] = value
    return found


def _fetched(output: Path | None) -> set[str]:
    """Return the traces that a file holds, by id. A last line that was cut off is removed: its trace
    is fetched again.
    """
    if output is None or not output.exists():
        return set()
    found: set[str] = set()
    line = b""
    with output.open("rb+") as file:
        for line in file:
            first = _TRACE_ID.search(line) if line.endswith(b"\n") or _is_json(line) else None
            if first is not None:
                found.add(first[1].decode().lower())
        if line and not line.endswith(b"\n"):
            if _is_json(line):
                file.write(b"\n")
            else:
                file.truncate(file.seek(0, os.SEEK_END) - len(line))
    return found


def _is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except ValueError:
        return False
    return True


def _writer(output: Path | None) -> IO[bytes]:
    if output is None:
        return os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    try:
        return output.open("ab")
    except OSError as error:
        raise SourceError(f"{output}: {error.strerror}.") from None


def _progress(*, hidden: bool) -> Progress:
    columns = SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn()
    console = Console(stderr=True)
    return Progress(
        *columns, console=console, transient=True, redirect_stdout=False, disable=hidden
    )
