"""`otel-reliability explain`."""

from __future__ import annotations

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from otel_reliability.cli.output import show
from otel_reliability.report.explanation import ABOUT_CHANGE, CHANGE, OF_TARGETS, explain, families


@click.command("explain")
@click.argument("metric", required=False)
def command(metric: str | None) -> None:
    """Explain a metric: its meaning, formula, required data, source, and how to improve it. Without METRIC: list all of them.

    \b
      otel-reliability explain path_entropy
      otel-reliability explain reliability.passhat_k
      otel-reliability explain change                   how a change of behaviour is detected
    """
    show(_list if metric is None else lambda console: _one(metric, console))


def _one(metric: str, console: Console) -> None:
    (title, description), *facts = explain(metric)
    console.print(Text.assemble((title, "bold"), f": {description}"))
    console.print()
    table = Table.grid(padding=(0, 2, 0, 0))
    for what, text in facts:
        table.add_row(Text(what, "dim"), Text(text))
    console.print(table)


def _list(console: Console) -> None:
    for family, specs in families().items():
        console.print(Text(family.capitalize(), "bold"))
        console.print(_table([(spec.name, spec.description) for spec in specs]))
    console.print(Text("Behaviour", "bold"))
    console.print(_table([(CHANGE, ABOUT_CHANGE)]))
    console.print(Text("Targets of a task", "bold"))
    console.print(_table(list(OF_TARGETS.items())))


def _table(lines: list[tuple[str, str]]) -> Table:
    table = Table.grid(padding=(0, 2, 0, 2))
    table.add_column(no_wrap=True)
    for name, description in lines:
        table.add_row(Text(name, "cyan"), Text(description))
    return table
