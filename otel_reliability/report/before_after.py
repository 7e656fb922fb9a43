"""Two recordings side by side, on a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from otel_reliability.report.comparison import AgentChange, Change, Comparison
from otel_reliability.report.scorecard import ALL_SPECS, Scorecard
from otel_reliability.report.sections import COLOURS, INDENT, columns, dim, title
from otel_reliability.report.sentences import about_chance, changed, interval_of
from otel_reliability.report.text import agent_name, count, listed, measured

STYLES: Final = {"better": "green", "worse": "red"}


def render(comparison: Comparison, console: Console) -> None:
    """Print how each agent changed. Numbers of which neither direction is better (how many runs there are) stand beside all."""
    for part in _page(comparison):
        console.print(part)
        console.print()


def _page(comparison: Comparison) -> Iterator[RenderableType]:
    yield from map(_agent, comparison.agents)
    for cards, where in ((comparison.only_before, "before"), (comparison.only_after, "now")):
        if cards:
            yield dim(f"Only {where}: {listed((agent_name(card.key) for card in cards), 10)}.")
    if not comparison.agents:
        yield Text("No agent is in both recordings: agents are matched by service, environment and name.", "bold")


def _agent(each: AgentChange) -> RenderableType:
    moved = [change for change in each.changes if change.verdict not in {"same", "changed"}]
    same = [change.name for change in each.changes if change.verdict == "same"]
    body: list[RenderableType] = [_badges(each), Text()]
    if moved:
        body.append(_table(each, moved))
    if same:
        body.append(dim(f"{count(len(same), 'number')} the same: {listed(same, 5)}"))
    if each.weighed:
        body.append(dim(about_chance(each)))
    return Group(title(each.new), *(Padding(part, INDENT) for part in body))


def _badges(each: AgentChange) -> Text:
    return Text.assemble(*_badge(each.old), "  →  ", *_badge(each.new))


def _badge(card: Scorecard) -> tuple[tuple[str, str]]:
    return (("no score", "dim"),) if card.tier is None or card.badge is None else ((card.badge, COLOURS[card.tier]),)


def _table(each: AgentChange, changes: Sequence[Change]) -> RenderableType:
    table = columns("What changed", "before", "95 %", "runs", "now", "95 %", "runs", "", numbers=7)
    table.columns[-1].no_wrap = False
    for change in changes:
        spec = ALL_SPECS[change.name]
        style = STYLES.get(change.verdict, "") if change.clear is not False else "dim"
        table.add_row(
            change.name,
            *(measured(spec, change.before.value), dim(interval_of(each.old, change.name)), f"{change.before.runs:,}"),
            *(measured(spec, change.after.value), dim(interval_of(each.new, change.name)), f"{change.after.runs:,}"),
            Text(changed(change), style),
        )
    return table
