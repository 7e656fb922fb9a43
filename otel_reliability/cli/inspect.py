"""`otel-reliability inspect`."""

from __future__ import annotations

import click

from otel_reliability.cli.options import Choice, form, of_recordings
from otel_reliability.cli.output import show, write
from otel_reliability.cli.reading import read
from otel_reliability.report import json
from otel_reliability.report.data_quality import quality_of_spans
from otel_reliability.report.inspection import Inspection, render
from otel_reliability.report.text import agent_name


@click.command("inspect")
@form("terminal", "json")
@of_recordings
def command(choice: Choice, form: str) -> None:
    """Show what is recognized in your traces and what is not: run this first.

    Flaws of the telemetry, the numbers they affect, and what to change at the source; spans by convention, kind and instrumentation scope; log events by name; unknown scopes, and
    their attribute keys; the runs found and the data they carry; which tools change the world, and
    why; the missing data of each number, and the line that adds it.

    \b
      otel-reliability inspect spans.jsonl
      otel-reliability inspect spans.jsonl --set 'mapping.agent=["app.bot"]'

    Names and counts only: no prompt, argument or result is shown.
    """
    inspection = Inspection(choice.settings)
    recording = read(choice, final=inspection.take, batches=inspection.see)
    of_spans = quality_of_spans(
        recording.engine.accounts,
        recording.spans["received"],
        recording.problems.total(),
        recording.engine.lost_annotations,
    )
    found = inspection.found(of_spans)
    if form == "json":
        write(json.render(found))
        return
    windows = ((key, recording.window(key, choice.since_ns)) for key in recording.agents())
    rows = [(agent_name(key), window.rows()) for key, window in windows if window is not None]
    show(lambda console: render(found, rows, console))
