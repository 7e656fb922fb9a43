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

from otel_reliability.cli.options import Choice, of_recordings
from otel_reliability.cli.output import show, write
from otel_reliability.cli.reading import recording_of
from otel_reliability.report import gate, junit
from otel_reliability.report.gate import State, Verdict
from otel_reliability.report.report import report_of
from otel_reliability.report.target import Target, parse
from otel_reliability.report.text import count, grouped

SHOWN = 5
"""Verdicts on one target that are told; the others are counted."""
MARKS = {State.HELD: ("✓", "green"), State.FAILED: ("✗", "red"), State.MISSING: ("?", "yellow")}


@click.command("gate")
@click.option(
    "--require", "requirements", multiple=True, required=True, metavar="TARGET", help="What must hold; repeatable."
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
def command(choice: Choice, requirements: tuple[str, ...], form: str) -> None:
    """Hold a recording against targets: for CI, after the agents ran their tasks.

    \b
      otel-reliability gate spans.jsonl --require 'score>=80'
      otel-reliability gate spans.jsonl --require 'reliability.passhat_k>=90' --min-runs 20
      otel-reliability gate spans.jsonl --require 'agents["support"].path_entropy<=0.3'
      otel-reliability gate spans.jsonl --require 'tasks["refund"].reliability.pass_at_k>=100'

    A path without an agent must hold for every agent, one of reliability.… (whole percents) for every task. `explain` lists
    the numbers; pass_hat_k.4 is pass^k at k = 4.

    \b
    Exit codes, the first that applies:
      2  bad usage, or a path that names no metric
      1  a target failed
      3  evidence is missing, or fewer runs than --min-runs stand behind a number
      0  every target held
    """
    targets = [parse(text) for text in requirements]
    report = report_of(recording_of(choice), choice.agents, choice.since_ns)
    verdicts = gate.judge(report, targets, choice.settings.metrics.min_runs)
    match form:
        case "json":
            write(json.dumps(_document(verdicts), indent=2, ensure_ascii=False) + "\n")
        case "junit":
            write(junit.render_gate(verdicts))
        case _:
            show(lambda console: _tell(targets, verdicts, console))
    sys.exit(gate.exit_code(verdicts))


def _tell(targets: Sequence[Target], verdicts: Sequence[Verdict], console: Console) -> None:
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
    console.print()
    console.print(Text(gate.summary(verdicts), "bold"))
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


def _gravity(verdict: Verdict) -> int:
    return gate.PRECEDENCE.index(verdict.state)


def _document(verdicts: Sequence[Verdict]) -> dict[str, Any]:
    return {
        "exit_code": gate.exit_code(verdicts),
        "summary": gate.summary(verdicts),
        "warning": gate.warning(verdicts),
        "verdicts": [_object(verdict) for verdict in verdicts],
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
