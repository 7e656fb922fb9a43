"""`otel-reliability runs`."""

from __future__ import annotations

import sys
from dataclasses import replace

import click

from otel_reliability.cli.options import Choice, of_recordings
from otel_reliability.cli.output import write
from otel_reliability.cli.reading import read
from otel_reliability.model.run import Run
from otel_reliability.report.build import is_named
from otel_reliability.report.json import line


@click.command("runs")
@of_recordings
def command(choice: Choice) -> None:
    """Print the runs that were rebuilt from spans, one JSON object a line.

    A run is one agent invocation, with the path of its tool calls, its retries, tokens and outcome.
    What the telemetry does not contain is null. A run is printed when no later line can change it;
    of standard input, at its end.

    \b
      otel-reliability runs spans.jsonl | jq 'select(.longest_retry_chain >= 3) | .trace_id'
      otel-reliability runs spans.jsonl | jq -sc 'sort_by(.start)[]'
      zcat spans.jsonl.gz | otel-reliability runs -

    Lines and spans that cannot be read are reported on standard error and skipped.
    """

    def put(runs: list[Run]) -> None:
        write("".join(line(run) + "\n" for run in runs if _is_chosen(run, choice)))

    read(
        replace(choice, quiet=choice.quiet or sys.stdout.isatty()), final=put, allow_empty=True
    )  # no bar between lines on a terminal


def _is_chosen(run: Run, choice: Choice) -> bool:
    named = not choice.agents or any(is_named(run.key, name) for name in choice.agents)
    return named and run.end_ns >= choice.since_ns
