"""`otel-reliability badge`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import click

from otel_reliability.cli.options import Choice, of_recordings, under
from otel_reliability.cli.output import write
from otel_reliability.cli.reading import recording_of
from otel_reliability.errors import ConfigurationError
from otel_reliability.quantities import Real
from otel_reliability.report import badge
from otel_reliability.report.report import report_of
from otel_reliability.report.scorecard import Scorecard
from otel_reliability.report.text import agent_name, listed

NO_SCORE = 3
"""The exit code where evidence is missing, as in a gate."""


@click.command("badge")
@click.option(
    "--format",
    "form",
    type=click.Choice(("text", "svg", "json")),
    default="text",
    show_default=True,
    help="How to draw it.",
)
@click.option(
    "--trust",
    callback=under(Real(0, 100)),
    metavar="SCORE",
    help="Your own trust score, 0 to 100: the left half.",
)
@click.option("--label", metavar="TEXT", help="The words in front; the agent's name if not given.")
@click.option(
    "--output",
    "-o",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    metavar="FILE",
    help="Where to write it.",
)
@of_recordings
def command(choice: Choice, form: str, trust: float | None, label: str | None, output: Path | None) -> None:
    """The badge of an agent: its tier and score, beside a trust score of yours.

    \b
      otel-reliability badge spans.jsonl                                 🟢 STABLE 87/100
      otel-reliability badge spans.jsonl --trust 94                      ✅ SECURED 94/100 | 🟢 STABLE 87/100
      otel-reliability badge spans.jsonl --agent support --format svg -o badge.svg
      otel-reliability badge spans.jsonl --agent support --format json   for img.shields.io/endpoint

    Exits 3 where there is no score: then there is no badge.
    """
    report = report_of(recording_of(choice), choice.agents, choice.since_ns, most_for_intervals=0)
    cards = report.cards
    if not cards:
        sys.exit(_no_badge("there are no agent runs"))
    if form == "text" and label is None and len(cards) > 1:
        drawn = "".join(f"{agent_name(card.key)}: {_text(card, trust)}\n" for card in cards)
    else:
        drawn = _drawn(_only(cards), form, trust, label)
    if output is None:
        write(drawn)
    else:
        output.write_text(drawn, encoding="utf-8")


def _only(cards: Sequence[Scorecard]) -> Scorecard:
    if len(cards) > 1:
        names = listed(agent_name(card.key) for card in cards)
        raise ConfigurationError("--agent", None, "one agent, which a badge is of", f"choose one of {names}")
    return cards[0]


def _drawn(card: Scorecard, form: str, trust: float | None, label: str | None) -> str:
    if card.score is None:
        sys.exit(_no_badge(card.readings["score"].note))
    name = agent_name(card.key) if label is None else label
    match form:
        case "svg":
            return badge.svg(card.score, trust, name)
        case "json":
            return badge.endpoint(card.score, trust, name) + "\n"
        case _:
            return ("" if label is None else f"{label}: ") + badge.text(card.score, trust) + "\n"


def _text(card: Scorecard, trust: float | None) -> str:
    return f"no score ({card.readings['score'].note})" if card.score is None else badge.text(card.score, trust)


def _no_badge(why: str) -> int:
    print(f"otel-reliability: no score, so no badge: {why}.", file=sys.stderr)
    return NO_SCORE
