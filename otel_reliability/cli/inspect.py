"""`otel-reliability inspect`."""

from __future__ import annotations

import json

import click

from otel_reliability.cli.options import Choice, of_recordings
from otel_reliability.cli.output import show, write
from otel_reliability.cli.reading import read
from otel_reliability.report.inspection import Inspection, as_json
from otel_reliability.report.inspection_page import render


@click.command("inspect")
@of_recordings
@click.option(
    "--format", "form", type=click.Choice(["terminal", "json"]), default="terminal", help="How to write it; terminal."
)
def command(choice: Choice, form: str) -> None:
    """What was recognised in your traces and what was not: the first thing to run on them.

    Spans by convention, kind and instrumentation scope; scopes that nobody knows, and what they offer; the runs found and
    what they tell; which tools change the world, and why; what is missing for which number, and the line that adds it.

    \b
      otel-reliability inspect spans.jsonl
      otel-reliability inspect spans.jsonl --set 'mapping.agent=["app.bot"]'

    Names and counts only: no prompt, argument or result is shown.
    """
    inspection = Inspection(choice.settings)
    recording = read(choice.files, choice.settings, quiet=choice.quiet, settled=inspection.take, spans=inspection.see)
    if form == "json":
        write(json.dumps(as_json(inspection), indent=2, ensure_ascii=False) + "\n")
        return
    windows = (recording.window(key, choice.since_ns) for key in recording.agents())
    rows = [window.rows() for window in windows if window is not None]
    show(lambda console: render(inspection, rows, console))
