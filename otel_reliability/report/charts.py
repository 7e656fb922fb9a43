"""Small charts of one agent's runs on a terminal: how its score went, how unlike its runs are, how full, what is retried."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from statistics import median
from typing import Final

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from otel_reliability.report.scorecard import Scorecard
from otel_reliability.report.spark import bar, course, spread
from otel_reliability.report.text import clean, count, number, percent

COURSE: Final = 24
TOOLS: Final = 3


def course_line(scores: Sequence[float]) -> Iterator[Text]:
    """How the score went; nothing where too few points are known."""
    drawn = course(scores, COURSE)
    if drawn:
        least = min(scores)
        lowest = "" if least >= min(scores[0], scores[-1]) - 0.5 else f", at least {least:.0f}"
        yield Text.assemble(
            "score so far  ", (drawn, "bold"), (f"  from {scores[0]:.0f} to {scores[-1]:.0f}{lowest}", "dim")
        )


def shapes(card: Scorecard, heading: Text) -> Iterator[RenderableType]:
    """A line for each thing that runs have different amounts of."""
    lines = [*_spreads(card), *_retries(card)]
    if lines:
        table = Table.grid(padding=(0, 2, 0, 0))
        table.add_column(no_wrap=True)
        table.add_column(no_wrap=True)
        table.add_row(heading, Text("0        1", "dim"))
        for line in lines:
            table.add_row(*line)
        yield table


def _spreads(card: Scorecard) -> Iterator[tuple[RenderableType, ...]]:
    distances = card.findings.distances
    if any(distances):
        told = f"half of {count(len(distances), 'run')} up to {number(median(distances))}, the oddest {number(max(distances))}"
        yield "path distance", spread(distances), told
    pressures = [row.pressure for row in card.rows if row.baseline and row.pressure is not None]
    if pressures:
        told = f"half of {count(len(pressures), 'run')} up to {percent(median(pressures))}, the fullest {percent(max(pressures))}"
        yield "token pressure", spread(pressures), told


def _retries(card: Scorecard) -> Iterator[tuple[RenderableType, ...]]:
    """By the tool of each run's longest chain."""
    retries, runs = Counter[str](), Counter[str]()
    for row in card.rows:
        if row.baseline and row.retries is not None and row.retries.number and row.retries.tool is not None:
            retries[row.retries.tool] += row.retries.number
            runs[row.retries.tool] += 1
    most = max(retries.values(), default=0)
    for tool, number_ in retries.most_common(TOOLS):
        filled, rest = bar(number_ / most)
        told = f"{clean(tool, 40)}: {count(number_, 'retry')} in {runs[tool]:,} of {count(card.runs, 'run')}"
        yield "retries", Text.assemble(filled, (rest, "dim")), told
