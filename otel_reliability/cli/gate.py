"""`otel-reliability gate`."""

from __future__ import annotations

import sys

import click

from otel_reliability.change.recording import Observations
from otel_reliability.cli.change import findings_of
from otel_reliability.cli.options import Choice, baseline_option, form, of_recordings
from otel_reliability.cli.output import show, write
from otel_reliability.cli.reading import read
from otel_reliability.report import gate, json, junit
from otel_reliability.report.build import report_of
from otel_reliability.report.target import parse


@click.command("gate")
@click.option(
    "--require", "requirements", multiple=True, metavar="TARGET", help="What must hold; repeatable."
)
@click.option("--no-change", is_flag=True, help="Require that no agent has changed.")
@baseline_option("With --no-change: compare with this earlier recording; repeatable.")
@form("terminal", "json", "junit")
@of_recordings
def command(
    choice: Choice,
    requirements: tuple[str, ...],
    no_change: bool,
    baseline: tuple[str, ...],
    form: str,
) -> None:
    """Check a recording against targets: for CI, after the agents ran their tasks.

    \b
      otel-reliability gate spans.jsonl --require 'score>=80'
      otel-reliability gate spans.jsonl --require 'reliability.passhat_k>=90' --min-runs 20
      otel-reliability gate spans.jsonl --require 'agents["support"].path_entropy<=0.3'
      otel-reliability gate spans.jsonl --require 'tasks["refund"].reliability.pass_at_k>=100'
      otel-reliability gate new.jsonl --no-change --baseline old.jsonl

    A path without an agent must hold for every agent, one of reliability.… (whole percents) for
    every task. A result on fewer than 5 runs says that they prove little; --min-runs requires more.
    `explain` lists the numbers; pass_hat_k.4 is pass^k at k = 4.

    \b
    Exit codes, the first that applies:
      2  bad usage, or a path that names no metric
      1  a target failed, or an agent changed
      3  data is missing, a number has fewer runs than --min-runs, or there is no result on change
      0  every target held
    """
    targets = [parse(text) for text in requirements]
    if not targets and not no_change:
        raise click.UsageError("nothing is required; give --require TARGET, --no-change, or both.")
    if baseline and not no_change:
        raise click.UsageError("--baseline is what --no-change compares with; give both.")
    observations = Observations()
    detects = no_change and not baseline
    recording = read(choice, final=observations.add if detects else None, allow_empty=True)
    report = report_of(recording, choice.agents, choice.since_ns) if targets else None
    results = (
        [] if report is None else gate.check(report, targets, choice.settings.metrics.min_runs)
    )
    changes = findings_of(choice, recording, observations, baseline) if no_change else []
    match form:
        case "json":
            write(json.render(gate.document(results, changes)))
        case "junit":
            write(junit.render_gate(results, changes))
        case _:
            show(lambda console: gate.render(results, changes, console))
    sys.exit(gate.exit_code(results, changes))
