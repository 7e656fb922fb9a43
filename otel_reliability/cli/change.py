"""`otel-reliability change`."""

from __future__ import annotations

import click

from otel_reliability.change.recording import Observations
from otel_reliability.cli.options import Choice, of_recordings
from otel_reliability.cli.output import show, write
from otel_reliability.cli.reading import read, recording_of
from otel_reliability.reference import pinned_by
from otel_reliability.report import change_json, change_page
from otel_reliability.report.changes import Finding, UnitsOf, compared, judged, since


@click.command("change")
@click.option(
    "--before",
    multiple=True,
    metavar="OLD",
    help="An earlier recording: does FILE differ from it by more than chance? Repeatable.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(("terminal", "json")),
    default="terminal",
    show_default=True,
    help="How to write it.",
)
@of_recordings
def command(choice: Choice, before: tuple[str, ...], form: str) -> None:
    """Has an agent's behaviour changed? One sentence an agent: changed, since when and by which signals; no change; or no
    verdict, and why.

    \b
      otel-reliability change spans.jsonl                          somewhere in this recording?
      otel-reliability change --before old.jsonl new.jsonl         between these two?
      otel-reliability change --set change.reference=good.jsonl spans.jsonl

    In one recording the first 40 units of an agent (runs, or sessions) are what the later are measured against, and 20 more are
    needed before a change can be told; two recordings need 20 units each. `gate --no-change` makes a test of it.
    """
    units = Observations()
    recording_of(choice, units.add)
    findings = findings_of(choice, units.found(), before)
    if form == "json":
        write(change_json.render_json(findings, choice.settings.change))
    else:
        show(lambda console: change_page.render(findings, choice.settings.change, console))


def findings_of(choice: Choice, units: UnitsOf, before: tuple[str, ...]) -> list[Finding]:
    """What can be said of the agents of a recording, by itself or beside an earlier one. `--since` is about the new one."""
    settings, latest = choice.settings, since(units, choice.since_ns)
    if not before:
        return judged(latest, settings.change, pinned_by(settings), choice.agents)
    earlier = Observations()
    read(before, settings, quiet=choice.quiet, settled=earlier.add)
    return compared(earlier.found(), latest, settings.change, choice.agents)
