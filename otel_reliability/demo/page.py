"""What the demo shows: the fleet, its live metrics, the scorecard of its spans, that they agree, and where to look next."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from rich.console import Console, RenderableType
from rich.text import Text

from otel_reliability.demo.agreement import Agreement, agreement
from otel_reliability.demo.fleet import FLEET, LETTERS, RUNS
from otel_reliability.demo.live import SETTINGS, Numbers, of_agent, perform_live
from otel_reliability.model.run import Run
from otel_reliability.report import terminal
from otel_reliability.report.recording import Recording, for_report
from otel_reliability.report.report import report_of
from otel_reliability.report.sections import columns, dim, heading
from otel_reliability.report.text import ABSENT, count
from otel_reliability.telemetry.names import PREFIX

SHOWN: Final = {
    "score": "score",
    "path_entropy": "path entropy",
    "tool_variance": "tool variance",
    "longest_retry_chain": "retry chain",
    "token_budget_pressure": "pressure",
}
"""Metric names, and what the page calls them."""
PROGRAM: Final = "otel-reliability"


def show(path: Path, seed: int, console: Console) -> bool:
    """Run the demo and print its page. False: the two doors disagree."""
    runs: list[Run] = []
    console.print(_opening(), "")
    live, spans = perform_live(path, seed)
    recording = Recording(for_report(SETTINGS), settled=runs.extend)
    recording.read(path)
    report = report_of(recording.close())
    console.print(_live(live))
    console.print(dim(f"as {PREFIX}… of a MeterProvider; the {count(spans, 'span')} are in {path}\n"))
    console.print(heading("The scorecard of the file"))
    console.print()
    terminal.render(report, console, detailed=1)
    agreed = agreement(live, recording, runs)
    console.print(_verdict(agreed))
    console.print(heading("Where to look next"))
    for line in _next(path):
        console.print(line, soft_wrap=True)  # a command that is broken over two lines cannot be copied
    return not agreed.differing


def _opening() -> RenderableType:
    table = columns("Six agents of a bookshop", "", numbers=0)
    for agent in FLEET:
        table.add_row(agent.name, agent.character)
    return table


def _live(live: Numbers) -> RenderableType:
    table = columns("Live, in the process", *SHOWN.values(), numbers=len(SHOWN))
    for agent in FLEET:
        numbers = of_agent(live, agent.name)
        values = (numbers.get(PREFIX + name) for name in SHOWN)
        table.add_row(agent.name, *(ABSENT if value is None else f"{value:.3g}" for value in values))
    return table


def _verdict(agreed: Agreement) -> Text:
    if not agreed.differing:
        return Text(
            f"✓ The live metrics and the scorecard agree: {agreed.compared:,} numbers, all equal.\n", "bold green"
        )
    told = Text(f"✗ {len(agreed.differing):,} of {agreed.compared:,} numbers differ:\n", "bold red")
    for name, live, recorded in agreed.differing[:10]:
        told.append(f"  {name}: live {live}, recorded {recorded}\n")
    return told


def _next(path: Path) -> Iterator[Text]:
    program = _program()
    steps = (
        ("one agent in full", f"{program} report {path} --agent importer"),
        ("its runs, one JSON object a line", f"{program} runs {path} --agent importer"),
        ("who changed, since when, and in what", f"{program} change {path}"),
        ("triage, only since it changed", f"{program} report {path} --agent triage --window {RUNS * LETTERS // 2}"),
        ("what a number means, and what to do about it", f"{program} explain token_budget_pressure"),
        ("a gate for CI", f"{program} gate {path} --require 'score>=60'"),
        ("the same in your own process", "provider.add_span_processor(ReliabilitySpanProcessor())"),
    )
    for what, command in steps:
        yield Text(f"  {what}")
        yield Text(f"    {command}", "cyan")


def _program() -> str:
    """How the command line is called here: in an environment that is not active, by its path."""
    script = Path(sys.executable).with_name(PROGRAM)
    if shutil.which(PROGRAM) or not script.exists():
        return PROGRAM
    return str(script.relative_to(Path.cwd()) if script.is_relative_to(Path.cwd()) else script)
