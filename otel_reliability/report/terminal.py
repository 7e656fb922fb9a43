"""The report on a terminal: which agent is worst, what it is worth, why, and what would tell more."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from otel_reliability.model.run import Outcome
from otel_reliability.report.beside import NOTHING, Beside
from otel_reliability.report.gaps import Gap, gaps_of
from otel_reliability.report.report import Report
from otel_reliability.report.scorecard import Scorecard
from otel_reliability.report.sections import COLOURS, INDENT, columns, dim, heading, scorecard
from otel_reliability.report.text import POINTS, agent_name, clean, count, listed, number, percent, place

DETAILED: Final = 10
"""Agents that are told in full; the others have a line each."""
LISTED: Final = 40
"""Agents that have a line."""


def render(report: Report, console: Console, detailed: int = DETAILED, beside: Beside = NOTHING) -> None:
    """Print the report. Of many agents, those with the lowest scores are told in full."""
    cards = worst_first(report.cards)
    for part in _page(report, cards, detailed, beside):
        console.print(part)
        console.print()


def worst_first(cards: Sequence[Scorecard]) -> list[Scorecard]:
    """The agents by score, the lowest first; those without one last."""
    return sorted(cards, key=lambda card: (card.score is None, card.score or 0.0, card.key))


def _page(report: Report, cards: Sequence[Scorecard], detailed: int, beside: Beside) -> Iterator[RenderableType]:
    if not cards:
        yield _nothing(report)
    if len(cards) > 1:
        yield overview(cards)
    for card in cards[:detailed]:
        yield scorecard(card, beside)
    if len(cards) > detailed:
        yield dim(f"{count(len(cards) - detailed, 'more agent')}; --agent NAME tells one in full, --format json all.")
    gaps = missing(cards)
    if gaps is not None:
        yield gaps
    yield _spans(report)


def overview(cards: Sequence[Scorecard]) -> RenderableType:
    """A line for each agent, the worst first."""
    table = columns("Agents", "", "score", "covered", "runs", "passed", numbers=4)
    for card in cards[:LISTED]:
        covered = number(card.readings["score_coverage"].value, "{score}")
        table.add_row(_who(card), _tier(card), number(card.score, POINTS), covered, f"{card.runs:,}", _passed(card))
    if len(cards) > LISTED:
        table.add_row(dim(f"and {count(len(cards) - LISTED, 'more agent')}"))
    return table


def _tier(card: Scorecard) -> Text:
    tier = Text("no score") if card.tier is None else Text(f"{card.tier.sign} {card.tier.name}", COLOURS[card.tier])
    return tier.append(" ⚠", "yellow") if card.flags else tier


def _passed(card: Scorecard) -> str:
    return number(None) if card.one_sided else percent(card.outcomes.get(Outcome.SUCCESS, 0) / card.known)


def _who(card: Scorecard) -> Text:
    return Text.assemble((agent_name(card.key), "bold"), "  ", (place(card.key), "dim"))


def missing(cards: Sequence[Scorecard]) -> RenderableType | None:
    """What would tell more: what several agents lack stands here once."""
    told: list[RenderableType] = [heading("What would tell more")]
    for gap, lacking in _shared_gaps(cards):
        extent = f" ({gap.of - gap.runs:,} of {count(gap.of, 'run')}{_whose(lacking, cards)})"
        missed = Text.assemble((gap.missing, "bold"), (extent, "dim"), f": {gap.unlocks}")
        told += [Padding(missed, INDENT), Padding(Text(gap.remedy, "cyan"), (0, 0, 0, 4))]
    return Group(*told) if len(told) > 1 else None


def _shared_gaps(cards: Sequence[Scorecard]) -> Iterator[tuple[Gap, list[Scorecard]]]:
    found: dict[str, tuple[Gap, list[Scorecard]]] = {}
    for card in cards:
        for gap in gaps_of(card.rows):
            total, lacking = found.get(gap.missing, (gap._replace(runs=0, of=0), []))
            found[gap.missing] = (total._replace(runs=total.runs + gap.runs, of=total.of + gap.of), [*lacking, card])
    yield from found.values()


def _whose(lacking: Sequence[Scorecard], cards: Sequence[Scorecard]) -> str:
    return "" if len(lacking) == len(cards) else " of " + listed(agent_name(card.key) for card in lacking)


def _nothing(report: Report) -> Text:
    if report.spans["received"]:
        told = Text("No agent runs: none of the spans comes from an agent framework that is known here.", "bold")
        return told.append("\notel-reliability inspect FILE shows what they are.", "not bold")
    return Text("No agent runs: there are no spans.", "bold")


def _spans(report: Report) -> Text:
    fates = [f"{number:,} {name}" for name, number in report.spans.items() if number and name != "received"]
    told = dim(
        f"{count(report.spans['received'], 'span')} received: {', '.join(fates)}." if fates else "No spans received."
    )
    for (attribute, reason), times in report.evidence_refused.items():
        told.append(f"\n{clean(attribute)}: refused {count(times, 'time')} ({reason}).", "yellow")
    for note in report.notes:
        told.append(f"\n{note}.", "yellow")
    return told
