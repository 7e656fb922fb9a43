"""`otel-reliability runs`."""

from __future__ import annotations

from itertools import islice
from typing import Final

import click

from otel_reliability.cli.options import Choice, of_recordings
from otel_reliability.cli.output import write
from otel_reliability.cli.reading import recording_of
from otel_reliability.cli.sorting import Sorted
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

        recording_of(choice, keep)
        ordered = iter(lines)
        while batch := list(islice(ordered, BATCH)):
            write("\n".join((*batch, "")))


def _is_chosen(run: Run, choice: Choice) -> bool:
    named = not choice.agents or any(is_named(run.key, name) for name in choice.agents)
    return named and run.end_ns >= choice.since_ns
