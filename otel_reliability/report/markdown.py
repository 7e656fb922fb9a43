"""The report as Markdown: for a pull request, a wiki, a chat."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from otel_reliability.metrics.stability.effect_table import TaskEffects
from otel_reliability.metrics.stability.task_table import TaskRow
from otel_reliability.model.reading import Reading
from otel_reliability.report.beside import NOTHING, Beside
from otel_reliability.report.caveats import caveats_of
from otel_reliability.report.change_line import BEHAVIOUR, MARKS, since_then
from otel_reliability.report.changes import Finding
from otel_reliability.report.comparison import AgentChange, Comparison
from otel_reliability.report.gaps import gaps_of
from otel_reliability.report.metric_groups import EVALUATION, PASSES, SESSION_GAUGES, STABILITY, made_of
from otel_reliability.report.report import Report
from otel_reliability.report.scorecard import ALL_SPECS, Scorecard, by_task
from otel_reliability.report.sentences import (
    about_chance,
    about_outcomes,
    about_runs,
    about_score,
    changed,
    interval_of,
    judged,
)
from otel_reliability.report.task_effects import ordered_tasks, parted
from otel_reliability.report.text import MINUS, POINTS, agent_name, clean, count, measured, number, percent, place
from otel_reliability.report.why import reasons_of

TASKS: Final = 20
_SPECIAL: Final = re.compile(r"([\\`*_\[\]<>|#~$])")


def escaped(text: str) -> str:
    r"""Text that Markdown shows as it is: a tool may be called `<b>` or `a|b`.

    >>> print(escaped("get_order | <b>"))
    get\_order \| \<b\>
    """
    return _SPECIAL.sub(r"\\\1", text)


def render(report: Report, comparison: Comparison | None = None, beside: Beside = NOTHING) -> str:
    """The report, or how it differs from an earlier one."""
    parts = _compared(comparison) if comparison is not None else _whole(report, beside)
    return "\n".join(parts) + "\n"


def _whole(report: Report, beside: Beside) -> Iterator[str]:
    yield "# Reliability report\n"
    if len(report.cards) > 1:
        yield from _table(("agent", "tier", "score", "runs"), map(_line, report.cards))
    for card in report.cards:
        yield from _card(card, beside.changes.get(card.key))
    if not report.cards:
        yield "No agent runs.\n"
    fates = ", ".join(f"{number:,} {name}" for name, number in report.spans.items() if number and name != "received")
    yield f"{count(report.spans['received'], 'span')} received: {fates or 'nothing'}."


def _line(card: Scorecard) -> tuple[str, ...]:
    tier = "no score" if card.tier is None else f"{card.tier.sign} {card.tier.name}"
    return escaped(agent_name(card.key)), tier, number(card.score, POINTS), f"{card.runs:,}"


def _card(card: Scorecard, finding: Finding | None) -> Iterator[str]:
    where = place(card.key)
    yield f"## {escaped(agent_name(card.key))}" + (f" ({escaped(where)})" if where else "") + "\n"
    yield f"**{card.badge or 'No score'}** {escaped(judged(card))}\n"
    yield from (f"- {escaped(line)}" for line in _about(card))
    if finding is not None:
        yield from _changed(finding)
    yield from (f"- ⚠ {escaped(caveat)}" for caveat in caveats_of(card))
    yield ""
    yield from _table(("what costs points", "value", "95 %", "runs", "points"), _costs(card))
    yield from _reasons(card)
    yield from _tasks(card)
    for title, names in (("beside the score", STABILITY), ("evaluation", EVALUATION)):
        yield from _metrics(title, names, card)
    if not card.one_sided:
        yield from _passes(card)
    yield from _metrics("sessions", SESSION_GAUGES, card)
    yield from _gaps(card)


def _about(card: Scorecard) -> Iterator[str]:
    if card.score is not None:
        yield about_score(card)
    yield about_runs(card)
    yield about_outcomes(card)


def _changed(finding: Finding) -> Iterator[str]:
    """The sentence, what it was measured against, and how to see the agent since."""
    note = f" ({escaped(finding.note)})" if finding.note else ""
    yield f"- {MARKS[finding.verdict][0]} {BEHAVIOUR}{escaped(finding.sentence)}{note}"
    look = since_then(finding)
    if look:
        yield f"- since then: {escaped(look)}"


def _tasks(card: Scorecard) -> Iterator[str]:
    tasks = [(task, effects) for task, effects in ordered_tasks(card) if task.task_id is not None][:TASKS]
    if tasks:
        outcomes = {task: [row.success for row in rows] for task, rows in by_task(card.rows).items()}
        titles = ("task, the one to look at first", "passed", "runs", "apart", "paths", "path entropy")
        lines = ((*_task(task, effects, outcomes[task.task_id]), _parted(effects)) for task, effects in tasks)
        yield from _table((*titles, "where the changes of its attempts part"), lines)


def _task(task: TaskRow, effects: TaskEffects | None, outcomes: Sequence[bool | None]) -> tuple[str, ...]:
    known = [outcome for outcome in outcomes if outcome is not None]
    return (
        escaped(clean(task.task_id or "")),
        f"{sum(known)} of {len(known)}" if known else number(None),
        f"{task.runs:,}",
        number(None) if effects is None else percent(effects.disagreement),
        f"{task.distinct_paths or 0:,}",
        number(task.path_entropy),
    )


def _parted(effects: TaskEffects | None) -> str:
    return "" if effects is None else escaped(parted(effects))


def _costs(card: Scorecard) -> Iterator[tuple[str, ...]]:
    for cost in card.findings.costs:
        reading = card.readings[cost.name]
        points = f"of {cost.most:.0f}" if cost.points is None else f"{MINUS}{cost.points:.1f}"
        runs = f"{reading.runs:,}" if reading.value is not None else "no evidence"
        yield ALL_SPECS[cost.name].title, number(reading.value), interval_of(card, cost.name), runs, points


def _reasons(card: Scorecard) -> Iterator[str]:
    for reason in reasons_of(card):
        cost = "" if reason.points is None else f" ({MINUS}{reason.points:.1f})"
        yield f"**{reason.title}{cost}** {escaped(reason.sentence)}\n"
        yield from (f"- {escaped(detail)}" for detail in reason.details)
        yield ""


def _metrics(title: str, names: Sequence[str], card: Scorecard) -> Iterator[str]:
    known = [name for name in names if card.readings[name].value is not None]
    if known:
        yield from _table((title, "value", "95 %", "runs", "note"), (_metric(card, name) for name in known))
        yield from (f"{escaped(line)}.\n" for line in made_of(card.readings, known))


def _metric(card: Scorecard, name: str) -> tuple[str, ...]:
    reading = card.readings[name]
    value = measured(ALL_SPECS[name], reading.value)
    return f"`{name}`", value, interval_of(card, name), f"{reading.runs:,}", escaped(reading.note)


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
        yield from _table(("metric", "before", "95 %", "runs", "after", "95 %", "runs", ""), _changes(each))
        if each.weighed:
            yield f"{about_chance(each)}\n"
    for title, cards in (("Only before", comparison.only_before), ("Only after", comparison.only_after)):
        if cards:
            yield f"{title}: {', '.join(escaped(agent_name(card.key)) for card in cards)}\n"


def _changes(each: AgentChange) -> Iterator[tuple[str, ...]]:
    for change in each.changes:
        before, after = (_side(*side, change.name) for side in ((each.old, change.before), (each.new, change.after)))
        yield f"`{change.name}`", *before, *after, changed(change)


def _side(card: Scorecard, reading: Reading, name: str) -> tuple[str, str, str]:
    return measured(ALL_SPECS[name], reading.value), interval_of(card, name), f"{reading.runs:,}"


def _table(titles: Sequence[str], lines: Iterable[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(titles)} |"
    yield f"|---|{'---:|' * (len(titles) - 1)}"
    yield from (f"| {' | '.join(line)} |" for line in lines)
    yield ""
