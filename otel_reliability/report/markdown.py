"""The report as Markdown: for a pull request, a wiki, a chat."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from otel_reliability.report.caveats import caveats_of
from otel_reliability.report.comparison import Change, Comparison
from otel_reliability.report.gaps import gaps_of
from otel_reliability.report.metric_groups import EVALUATION, PASSES, SESSION_GAUGES, STABILITY, made_of
from otel_reliability.report.report import Report
from otel_reliability.report.scorecard import ALL_SPECS, Scorecard
from otel_reliability.report.sentences import about_outcomes, about_runs, changed, judged
from otel_reliability.report.text import MINUS, POINTS, agent_name, count, measured, number, percent, place
from otel_reliability.report.why import reasons_of

_SPECIAL: Final = re.compile(r"([\\`*_\[\]<>|#~$])")


def escaped(text: str) -> str:
    r"""Text that Markdown shows as it is: a tool may be called `<b>` or `a|b`.

    >>> print(escaped("get_order | <b>"))
    get\_order \| \<b\>
    """
    return _SPECIAL.sub(r"\\\1", text)


def render(report: Report, comparison: Comparison | None = None) -> str:
    """The report, or how it differs from an earlier one."""
    parts = _compared(comparison) if comparison is not None else _whole(report)
    return "\n".join(parts) + "\n"


def _whole(report: Report) -> Iterator[str]:
    yield "# Reliability report\n"
    if len(report.cards) > 1:
        yield from _table(("agent", "tier", "score", "runs"), map(_line, report.cards))
    for card in report.cards:
        yield from _card(card)
    if not report.cards:
        yield "No agent runs.\n"
    fates = ", ".join(f"{number:,} {name}" for name, number in report.spans.items() if number and name != "received")
    yield f"{count(report.spans['received'], 'span')} received: {fates or 'nothing'}."


def _line(card: Scorecard) -> tuple[str, ...]:
    tier = "no score" if card.tier is None else f"{card.tier.sign} {card.tier.name}"
    return escaped(agent_name(card.key)), tier, number(card.score, POINTS), f"{card.runs:,}"


def _card(card: Scorecard) -> Iterator[str]:
    where = place(card.key)
    yield f"## {escaped(agent_name(card.key))}" + (f" ({escaped(where)})" if where else "") + "\n"
    yield f"**{card.badge or 'No score'}** {escaped(judged(card))}\n"
    yield from (f"- {escaped(line)}" for line in (about_runs(card), about_outcomes(card)))
    yield from (f"- ⚠ {escaped(caveat)}" for caveat in caveats_of(card))
    yield ""
    yield from _table(("what costs points", "value", "runs", "points"), _costs(card))
    yield from _reasons(card)
    for title, names in (("beside the score", STABILITY), ("evaluation", EVALUATION)):
        yield from _metrics(title, names, card)
    if not card.one_sided:
        yield from _passes(card)
    yield from _metrics("sessions", SESSION_GAUGES, card)
    yield from _gaps(card)


def _costs(card: Scorecard) -> Iterator[tuple[str, ...]]:
    for cost in card.findings.costs:
        reading = card.readings[cost.name]
        points = f"of {cost.most:.0f}" if cost.points is None else f"{MINUS}{cost.points:.1f}"
        runs = f"{reading.runs:,}" if reading.value is not None else "no evidence"
        yield ALL_SPECS[cost.name].title, number(reading.value), runs, points


def _reasons(card: Scorecard) -> Iterator[str]:
    for reason in reasons_of(card):
        cost = "" if reason.points is None else f" ({MINUS}{reason.points:.1f})"
        yield f"**{reason.title}{cost}** {escaped(reason.sentence)}\n"
        yield from (f"- {escaped(detail)}" for detail in reason.details)
        yield ""


def _metrics(title: str, names: Sequence[str], card: Scorecard) -> Iterator[str]:
    known = [name for name in names if card.readings[name].value is not None]
    if known:
        yield from _table((title, "value", "runs", "note"), (_metric(card, name) for name in known))
        yield from (f"{escaped(line)}.\n" for line in made_of(card.readings, known))


def _metric(card: Scorecard, name: str) -> tuple[str, ...]:
    reading = card.readings[name]
    return f"`{name}`", measured(ALL_SPECS[name], reading.value), f"{reading.runs:,}", escaped(reading.note)


def _passes(card: Scorecard) -> Iterator[str]:
    hat, at = card.passes.hat, card.passes.at
    if hat:
        titles = ("repeated attempts", *(f"k = {k}" for k in hat))
        lines = (("pass@k, one of k passes", at), ("pass^k, all of k pass", hat))
        yield from _table(
            titles, ((title, *(percent(one.value or 0.0) for one in each.values())) for title, each in lines)
        )
        yield from _metrics("the worst task", PASSES, card)


def _gaps(card: Scorecard) -> Iterator[str]:
    gaps = gaps_of(card.rows)
    if gaps:
        lines = ((gap.missing, f"{gap.of - gap.runs:,} of {gap.of:,}", gap.unlocks, gap.remedy) for gap in gaps)
        titles = ("what would tell more", "runs that have it", "for", "how to add it")
        yield from _table(titles, ([escaped(cell) for cell in line] for line in lines))


def _compared(comparison: Comparison) -> Iterator[str]:
    yield "# Reliability, before and after\n"
    for each in comparison.agents:
        yield f"## {escaped(agent_name(each.new.key))}\n"
        yield f"{each.old.badge or 'no score'} → {each.new.badge or 'no score'}\n"
        yield from _table(("metric", "before", "runs", "after", "runs", ""), map(_change, each.changes))
    for title, cards in (("Only before", comparison.only_before), ("Only after", comparison.only_after)):
        if cards:
            yield f"{title}: {', '.join(escaped(agent_name(card.key)) for card in cards)}\n"


def _change(change: Change) -> tuple[str, ...]:
    spec = ALL_SPECS[change.name]
    before, after = (measured(spec, reading.value) for reading in (change.before, change.after))
    return f"`{change.name}`", before, f"{change.before.runs:,}", after, f"{change.after.runs:,}", changed(change)


def _table(titles: Sequence[str], lines: Iterable[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(titles)} |"
    yield f"|---|{'---:|' * (len(titles) - 1)}"
    yield from (f"| {' | '.join(line)} |" for line in lines)
    yield ""
