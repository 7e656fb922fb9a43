"""A report as one file: the pictures of the pages, with everything they need inside it."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from markupsafe import Markup

from otel_reliability.pages.agent import agent_line, agent_view
from otel_reliability.pages.fleet import AgentLine, tier_counts
from otel_reliability.pages.look import UNWATCHED, AgentLook, recorded_look
from otel_reliability.pages.rendering import assets, report_page
from otel_reliability.report.changes import Finding
from otel_reliability.report.comparison import AgentChange, Comparison
from otel_reliability.report.recording import Recording
from otel_reliability.report.report import Report
from otel_reliability.report.scorecard import ALL_SPECS
from otel_reliability.report.sentences import changed
from otel_reliability.report.text import agent_name, count, measured, place, span_of_time

MOST_AGENTS: Final = 100
"""Agents that are told in full, those with the lowest scores; the table names all."""
STYLES: Final = ("vendor/uplot/uPlot.min.css", "page.css")
SCRIPTS: Final = ("vendor/uplot/uPlot.iife.min.js", "chart.js")


class Moved(NamedTuple):
    """A number that is another than before. `kind`: better or worse, where it is more than chance."""

    title: str
    before: str
    after: str
    told: str
    kind: str


class Compared(NamedTuple):
    """An agent beside what it was."""

    name: str
    place: str
    moved: Sequence[Moved]
    same: int


def render(
    recording: Recording, report: Report, findings: Iterable[Finding], comparison: Comparison | None = None
) -> str:
    """The report on a closed recording. `findings` say of each agent whether it changed."""
    changes = {finding.key: finding for finding in findings}
    cards = sorted(report.cards, key=lambda card: (card.score is None, card.score or 0.0, card.key))
    looks = [recorded_look(recording, card, changes.get(card.key)) for card in cards[:MOST_AGENTS]]
    rest = [AgentLook(card, (), (), UNWATCHED) for card in cards[MOST_AGENTS:]]
    lines = [agent_line(look) for look in (*looks, *rest)]
    style, script = (Markup("\n").join(map(_inside, names)) for names in (STYLES, SCRIPTS))
    return report_page(
        "report.html",
        style=style,
        script=script,
        policy=f"default-src 'none'; img-src data:; style-src {_hash(style)}; script-src {_hash(script)}",
        views=[agent_view(look) for look in looks],
        told=frozenset(line.id for line in lines[:MOST_AGENTS]),
        lines=lines,
        tiers=tier_counts(lines),
        link=_link,
        about=_about(report),
        compared=[] if comparison is None else [_compared(each) for each in comparison.agents],
    )


def _inside(name: str) -> Markup:
    """A file as it stands within a page. None of them holds what would end it there."""
    return Markup(assets()[name].body.decode())  # noqa: S704  the files are ours, not what a span says


def _hash(text: str) -> str:
    """What a page's policy names a text by that may stand in it."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _link(line: AgentLine) -> str:
    return f"#agent-{line.id}"


def _about(report: Report) -> list[str]:
    runs = sum(card.runs for card in report.cards)
    found = [f"{count(len(report.cards), 'agent')}, {count(runs, 'run')}"]
    if report.cards:
        start, end = min(card.start_ns for card in report.cards), max(card.end_ns for card in report.cards)
        found[0] += f"; {span_of_time(start, end)}"
    fates = ", ".join(f"{number:,} {name}" for name, number in report.spans.items() if number and name != "received")
    found.append(f"{count(report.spans['received'], 'span')} received: {fates or 'nothing'}")
    if report.problems:
        unread = ", ".join(f"{number:,} {reason}" for reason, number in sorted(report.problems.items()))
        found.append(f"could not be read: {unread}")
    return [*found, *report.notes]


def _compared(each: AgentChange) -> Compared:
    moved = [change for change in each.changes if change.verdict not in {"same", "changed"}]
    lines = [
        Moved(
            ALL_SPECS[change.name].title,
            *(measured(ALL_SPECS[change.name], reading.value) for reading in (change.before, change.after)),
            told=changed(change),
            kind=change.verdict if change.clear is not False and change.verdict in {"better", "worse"} else "",
        )
        for change in moved
    ]
    return Compared(agent_name(each.new.key), place(each.new.key), lines, len(each.changes) - len(moved))
