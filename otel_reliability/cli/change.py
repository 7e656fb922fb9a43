"""`otel-reliability change`."""

from __future__ import annotations

import click

from otel_reliability.change.recording import Observations
from otel_reliability.cli.options import Choice, baseline_option, form, of_recordings
from otel_reliability.cli.output import show, write
from otel_reliability.cli.reading import read
from otel_reliability.reference import pinned_by
from otel_reliability.report import changes, json
from otel_reliability.report.changes import Finding, ObservationsOf


@click.command("change")
@baseline_option(
    "Compare with this earlier recording: does FILE differ by more than chance? Repeatable."
)
@form("terminal", "json")
@of_recordings
def command(choice: Choice, baseline: tuple[str, ...], form: str) -> None:
    """Detect whether an agent's behaviour changed. One sentence an agent: changed, since when and
    by which signals; no change; or no result, and why.

    \b
      otel-reliability change spans.jsonl                          within this recording?
      otel-reliability change --before old.jsonl new.jsonl         between these two?
      otel-reliability change --set change.reference=good.jsonl spans.jsonl

    In one recording the first 60 observations of an agent (runs, or sessions) are the baseline,
    which raises no alarm; two recordings need 20 observations each. `gate --no-change` makes a test
    of it.
    """
    observations = Observations()
    read(choice, final=observations.add)
    findings = findings_of(choice, observations, baseline)
    settings = choice.settings.change
    if form == "json":
        write(json.render(changes.document(findings, settings)))
    else:
        show(lambda console: changes.render(findings, settings, console))


def findings_of(
    choice: Choice, observations: ObservationsOf, baseline: tuple[str, ...]
) -> list[Finding]:
    """Return the result for each agent of a recording, alone or compared with an earlier one;
    `--since` is for the new one.
    """
    settings = choice.settings
    latest = changes.since(observations, choice.since_ns)
    if not baseline:
        return changes.detected(latest, settings.change, pinned_by(settings), choice.agents)
    earlier = Observations()
    read(choice, baseline, final=earlier.add)
    return changes.compared(earlier, latest, choice.agents)
