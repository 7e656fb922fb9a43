"""`otel-reliability change`."""

from __future__ import annotations

import click

from otel_reliability.change.recording import Observations
from otel_reliability.cli.options import Choice, baseline_option, form, of_recordings
from otel_reliability.cli.output import show, write
from otel_reliability.cli.reading import read
from otel_reliability.recording import Recording
from otel_reliability.reference import pinned_by
from otel_reliability.report import changes, json
from otel_reliability.report.changes import ChangeResult, ObservationsOf


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
    which raises no alarm; a shift of failures alone is a change from ten runs on. Two recordings
    need 20 complete runs each, and are compared as `report --baseline` compares them.
    `gate --no-change` makes a test of it.
    """
    observations = Observations()
    recording = read(choice, final=None if baseline else observations.add)
    findings = findings_of(choice, recording, observations, baseline)
    settings = choice.settings.change
    if form == "json":
        write(json.render(changes.document(findings, settings)))
    else:
        show(lambda console: changes.render(findings, settings, console))


def findings_of(
    choice: Choice,
    recording: Recording,
    observations: ObservationsOf,
    baseline: tuple[str, ...],
) -> list[ChangeResult]:
    """Return the result for each agent of a recording: of its observations alone, or of its runs
    compared with those of an earlier recording; `--since` is for the new one.
    """
    if baseline:
        earlier = read(choice, baseline).samples_by_agent()
        return changes.compared(earlier, recording.samples_by_agent(choice.since_ns), choice.agents)
    latest = changes.since(observations, choice.since_ns)
    settings = choice.settings
    samples = recording.samples_by_agent(choice.since_ns)
    pinned = pinned_by(settings)
    found = changes.detected(latest, settings.change, pinned, choice.agents, samples)
    return changes.with_shifts(found, lambda key: recording.window(key, choice.since_ns))
