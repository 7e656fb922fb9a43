"""`otel-reliability gate`."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any

import click
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from otel_reliability.change.recording import Observations
from otel_reliability.cli.change import findings_of
from otel_reliability.cli.options import Choice, of_recordings
from otel_reliability.cli.output import show, write
from otel_reliability.cli.reading import recording_of
from otel_reliability.report import gate, junit
from otel_reliability.report.change_json import finding_object
from otel_reliability.report.change_page import name_of
from otel_reliability.report.gate import State, Unchanged, Verdict
from otel_reliability.report.recording import Recording
from otel_reliability.report.report import report_of
from otel_reliability.report.target import Target, parse
from otel_reliability.report.text import count, grouped

SHOWN = 5
"""Verdicts on one target that are told; the others are counted."""
MARKS = {State.HELD: ("✓", "green"), State.FAILED: ("✗", "red"), State.MISSING: ("?", "yellow")}


@click.command("gate")
@click.option("--require", "requirements", multiple=True, metavar="TARGET", help="What must hold; repeatable.")
@click.option("--no-change", is_flag=True, help="No agent may have changed.")
@click.option(
    "--baseline",
    multiple=True,
    metavar="OLD",
    help="With --no-change: changed since this earlier recording? Repeatable.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(("terminal", "json", "junit")),
    default="terminal",
    show_default=True,
    help="How to write it.",
)
@of_recordings
def command(
    choice: Choice, requirements: tuple[str, ...], no_change: bool, baseline: tuple[str, ...], form: str
) -> None:
    """Hold a recording against targets: for CI, after the agents ran their tasks.

    \b
      otel-reliability gate spans.jsonl --require 'score>=80'
      otel-reliability gate spans.jsonl --require 'reliability.passhat_k>=90' --min-runs 20
      otel-reliability gate spans.jsonl --require 'agents["support"].path_entropy<=0.3'
      otel-reliability gate spans.jsonl --require 'tasks["refund"].reliability.pass_at_k>=100'
      otel-reliability gate new.jsonl --no-change --baseline old.jsonl

    A path without an agent must hold for every agent, one of reliability.… (whole percents) for every task. `explain` lists
    the numbers; pass_hat_k.4 is pass^k at k = 4.

    \b
    Exit codes, the first that applies:
      2  bad usage, or a path that names no metric
      1  a target failed, or an agent changed
      3  evidence is missing, fewer runs than --min-runs stand behind a number, or there is no verdict on change
      0  every target held
    """
    targets = [parse(text) for text in requirements]
    _check(targets, baseline, no_change=no_change)
    units = Observations()
    recording = recording_of(choice, units.add if no_change else None)
    verdicts = _held(recording, targets, choice)
    unchanged = [Unchanged(each) for each in findings_of(choice, units.found(), baseline)] if no_change else []
    match form:
        case "json":
            write(json.dumps(_document(verdicts, unchanged), indent=2, ensure_ascii=False) + "\n")
        case "junit":
            write(junit.render_gate(verdicts, unchanged))
        case _:
            show(lambda console: _tell(targets, verdicts, unchanged, console))
    sys.exit(gate.exit_code([*verdicts, *unchanged]))


def _check(targets: Sequence[Target], baseline: tuple[str, ...], *, no_change: bool) -> None:
    if not targets and not no_change:
        raise click.UsageError("nothing is demanded: give --require TARGET, --no-change, or both.")
    if baseline and not no_change:
        raise click.UsageError("--baseline is what --no-change compares with; give both.")


def _held(recording: Recording, targets: Sequence[Target], choice: Choice) -> list[Verdict]:
    if not targets:
        return []
    report = report_of(recording, choice.agents, choice.since_ns)
    return gate.judge(report, targets, choice.settings.metrics.min_runs)


def _tell(
    targets: Sequence[Target], verdicts: Sequence[Verdict], unchanged: Sequence[Unchanged], console: Console
) -> None:
    for target in dict.fromkeys(targets):
        ranked = sorted((each for each in verdicts if each.target == target), key=_gravity)
        for verdict in ranked[:SHOWN]:
            _tell_one(verdict, console)
        if len(ranked) > SHOWN:
            rest = gate.summary(ranked[SHOWN:])
            console.print(
                Padding(
                    Text(f"and {count(len(ranked) - SHOWN, 'more number')} of this target: {rest}", "dim"), (0, 0, 0, 2)
                )
            )
    for one in sorted(unchanged, key=_gravity):
        mark, colour = MARKS[one.state]
        console.print(Text.assemble((f"{mark} no change", colour), f"  {name_of(one.finding)}: {one.finding.sentence}"))
        if one.finding.note:
            console.print(Padding(Text(one.finding.note, "dim"), (0, 0, 0, 2)))
    console.print()
    console.print(Text(gate.summary([*verdicts, *unchanged]), "bold"))
    warning = gate.warning(verdicts)
    if warning:
        console.print(Text(warning, "yellow"))


def _tell_one(verdict: Verdict, console: Console) -> None:
    mark, colour = MARKS[verdict.state]
    console.print(
        Text.assemble((f"{mark} {verdict.target.text}", colour), f"  {junit.of_whom(verdict)}: {_found(verdict)}")
    )
    for sentence in (verdict.why if verdict.reading.value is not None else "", verdict.doubt):
        if sentence:
            console.print(Padding(Text(sentence, "dim"), (0, 0, 0, 2)))


def _found(verdict: Verdict) -> str:
    value, runs, note = verdict.reading.value, verdict.reading.runs, verdict.reading.note
    if value is None:
        return verdict.why
    shown = note if verdict.target.name == "tier" else grouped(value)
    return f"{shown} ({count(runs, 'run' if verdict.card is not None else 'span')})"


def _gravity(verdict: Verdict | Unchanged) -> int:
    return gate.PRECEDENCE.index(verdict.state)


def _document(verdicts: Sequence[Verdict], unchanged: Sequence[Unchanged]) -> dict[str, Any]:
    every = [*verdicts, *unchanged]
    return {
        "exit_code": gate.exit_code(every),
        "summary": gate.summary(every),
        "warning": gate.warning(verdicts),
        "verdicts": [_object(verdict) for verdict in verdicts],
        "changes": [{**finding_object(one.finding), "state": one.state.name.lower()} for one in unchanged],
    }


def _object(verdict: Verdict) -> dict[str, Any]:
    return {
        "target": verdict.target.text,
        "agent": None if verdict.card is None else verdict.card.key.agent,
        "task": verdict.task,
        "value": verdict.reading.value,
        "runs": verdict.reading.runs,
        "state": verdict.state.name.lower(),
        "why": verdict.why,
        "doubt": verdict.doubt,
    }
