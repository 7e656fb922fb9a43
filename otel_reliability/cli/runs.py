"""`otel-reliability runs`."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final, Self

import click

from otel_reliability.cli.options import Choice, of_recordings
from otel_reliability.cli.output import write
from otel_reliability.cli.reading import read
from otel_reliability.model.run import Run
from otel_reliability.report.build import is_named
from otel_reliability.report.json import line

BATCH: Final = 1_000
"""Lines that are written at once."""


@click.command("runs")
@of_recordings
def command(choice: Choice) -> None:
    """Print the runs that were rebuilt from spans, one JSON object a line, by start time.

    A run is one agent invocation, with the path of its tool calls, its retries, tokens and outcome. What the telemetry does
    not contain is null.

    \b
      otel-reliability runs spans.jsonl | jq 'select(.longest_retry_chain >= 3) | .trace_id'
      zcat spans.jsonl.gz | otel-reliability runs -

    Lines and spans that cannot be read are reported on standard error and skipped.
    """
    with Sorted() as lines:

        def keep(runs: list[Run]) -> None:
            lines.add((run.start_ns, run.run_id, line(run)) for run in runs if _is_chosen(run, choice))

        read(choice, final=keep)
        ordered = iter(lines)
        while batch := list(islice(ordered, BATCH)):
            write("\n".join((*batch, "")))


def _is_chosen(run: Run, choice: Choice) -> bool:
    named = not choice.agents or any(is_named(run.key, name) for name in choice.agents)
    return named and run.end_ns >= choice.since_ns


class Sorted:
    """Lines that are added in any order and read by (number, text); a temporary database holds what memory should not.

    >>> with Sorted() as lines:
    ...     lines.add((at, "", f"line {at}") for at in (3, 1, 2))
    ...     list(lines)
    ['line 1', 'line 2', 'line 3']
    """

    def __init__(self) -> None:
        self._database = sqlite3.connect("")  # in memory while it is small, then in a file that nobody else sees
        self._database.execute("PRAGMA journal_mode = OFF")
        self._database.execute("CREATE TABLE lines (number INTEGER, text TEXT, line BLOB)")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Delete the database."""
        self._database.close()

    def add(self, lines: Iterable[tuple[int, str, str]]) -> None:
        """Add lines, each after the number and the text that it is sorted by."""
        rows = ((number, text, line.encode("utf-8", "surrogatepass")) for number, text, line in lines)
        self._database.executemany("INSERT INTO lines VALUES (?, ?, ?)", rows)

    def __iter__(self) -> Iterator[str]:
        """Yield all lines in order."""
        for (found,) in self._database.execute("SELECT line FROM lines ORDER BY number, text"):
            yield found.decode("utf-8", "surrogatepass")
