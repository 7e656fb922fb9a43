"""The sections of a report on an agent: tables of text, the same on a terminal and in Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from heapq import nsmallest
from typing import Final, NamedTuple, TypeAlias

from rich.text import Text

from otel_reliability.metrics import ALL_SPECS, TABLE
from otel_reliability.metrics.base import Derived
from otel_reliability.metrics.sessions import FAMILY, consistency_band, reliability_band
from otel_reliability.metrics.stability.score import PENALTIES
from otel_reliability.metrics.stability.tables import TaskEffects, TaskRow
from otel_reliability.metrics.stability.tier import Tier
from otel_reliability.report import words
from otel_reliability.report.findings import differing
from otel_reliability.report.text import (
    ABSENT,
    MINUS,
    POINTS,
    agent_name,
    clean,
    count,
    listed,
    measured,
    number,
    percent,
    place,
    share,
)
from otel_reliability.report.view import (
    AgentComparison,
    AgentView,
    ComparedReading,
    Cost,
    QualityFinding,
    ReadingView,
)

COLOURS: Final = {
    Tier.STABLE: "green",
    Tier.VARIABLE: "yellow",
    Tier.UNSTABLE: "dark_orange",
    Tier.CRITICAL: "red",
}
STYLES: Final = {"better": "green", "worse": "red"}
APART: Final = (
    "apart: how much the attempts at a task differ in what they changed; calls differ by "
    "arguments, which are never shown. "
    "Set tools.reads for tools that only read; otel-reliability inspect lists them."
)

EVALUATION_FAMILIES: Final = frozenset(
    {"consistency", "predictability", "robustness", "safety", "reliability"}
)
"""Families of the evaluation methodology."""
EXAMPLES: Final = 3
"""Groups of which a terminal shows example traces."""
_ELSEWHERE: Final = frozenset(
    {*PENALTIES, "score", "score_coverage", "tier", "flag", "pass_at_k", "pass_hat_k"}
)
"""Numbers that a report shows in a section of their own."""


def _of(*families: str) -> tuple[str, ...]:
    return tuple(
        name
        for name, spec in ALL_SPECS.items()
        if spec.family in families and name not in _ELSEWHERE
    )


STABILITY: Final = _of("stability")
EVALUATION: Final = _of(*EVALUATION_FAMILIES)
PASSES: Final = _of("passes")
CODING: Final = _of("coding")
SESSION_GAUGES: Final = _of(FAMILY)

_NEEDS: Final[Mapping[str, tuple[str, ...]]] = {
    row.spec.name: row.needs
    for row in TABLE
    if issubclass(row, Derived) and row.spec.family in EVALUATION_FAMILIES
}

Cell: TypeAlias = str | Text
"""Text, with styles where it is on a terminal."""


class Section(NamedTuple):
    """A table, the headings of its columns (the first is the title), and sentences below it.

    `align` has a letter for each column: `l` text, `n` text that stays on one line, `c` a name of
    code, `r` a number. A note without a style of its own matters less than the table.
    """

    titles: Sequence[str]
    align: str
    rows: Sequence[Sequence[Cell]]
    notes: Sequence[Cell] = ()

    def without_empty_columns(self) -> Section:
        """Return the section without the columns that have no text in any row."""
        kept = [at for at in range(len(self.titles)) if any(row[at] for row in self.rows)]
        titles = [self.titles[at] for at in kept]
        align = "".join(self.align[at] for at in kept)
        return self._replace(
            titles=titles, align=align, rows=[[row[at] for at in kept] for row in self.rows]
        )


def dim(text: str) -> Text:
    """Return text that matters less."""
    return Text(text, "dim")


def points_lost(points: float) -> str:
    """Return the points that a part lowers the score by.

    >>> points_lost(16.54), points_lost(0.04)
    ('−16.5', '0.0')
    """
    return f"{MINUS}{points:.1f}" if round(points, 1) else "0.0"


def in_grade(verdict: str, grade: Tier | None, *, flagged: bool) -> Text:
    """Return a verdict with the sign and the colour of a grade, and a warning sign where a flag is
    set.
    """
    if grade is None:
        found = Text(verdict, "dim")
    else:
        found = Text(f"{grade.sign} {verdict}", COLOURS[grade])
    return found.append(" ⚠", "yellow") if flagged else found


def overview(agents: Sequence[AgentView], most: int | None = None) -> Section:
    """Return a line for each agent, for the first `most` of them."""
    rows = [
        (
            Text.assemble((agent_name(agent.key), "bold"), "  ", (place(agent.key), "dim")),
            in_grade(agent.verdict.value, agent.grade, flagged=bool(agent.flags)),
            share(agent.success_rate),
            share(agent.error_rate),
            number(agent.score, POINTS),
            "" if agent.score_coverage is None else f"{agent.score_coverage:.0f} of 100",
            f"{agent.runs:,}",
        )
        for agent in agents[:most]
    ]
    notes = _more(len(agents), len(rows), "agent")
    titles = ("Agents", "verdict", "succeed", "errors", "score", "assessed", "runs")
    return Section(titles, "llrrrrr", rows, notes)


def costs(agent: AgentView) -> Iterator[Section]:
    """Yield the parts of the score, and the points that each lowers it by; nothing where no part
    has data.
    """
    found = agent.findings.costs
    if any(cost.points is not None for cost in found):
        titles = ("What lowers the score", "", "value", "95 %", "runs", "points")
        yield Section(
            titles, "llrrrr", [_cost(agent, cost) for cost in found]
        ).without_empty_columns()


def details(agent: AgentView, *, brief: bool) -> Iterator[Section]:
    """Yield the sections behind the reasons for the score, those for which there are data.

    `brief`: for a terminal, with at most 5 tasks and 3 sessions; a document has 20 and 10.
    """
    yield from tasks(agent, brief=brief)
    yield from _readings("Work on files", CODING, agent, brief=brief)
    yield from _readings("Other readings", STABILITY, agent, brief=brief)
    yield from _readings("Evaluation", EVALUATION, agent, brief=brief)
    yield from _passes(agent, brief=brief)
    yield from _readings("Sessions", SESSION_GAUGES, agent, brief=brief, notes=_derived(agent))
    yield from sessions(agent, brief=brief)


def request_groups(agent: AgentView, *, brief: bool) -> Iterator[Section]:
    """Yield the kinds of work of an agent, the one that goes wrong most first, with example traces;
    `brief`: 5 of them, else 20.
    """
    groups = agent.request_groups[: 5 if brief else 20]
    rows = [
        (
            words.kind_of_work(group),
            f"{group.runs:,}",
            share(group.success_rate),
            share(group.error_rate),
            ABSENT if group.distinct_paths is None else f"{group.distinct_paths:,}",
            number(group.path_entropy),
            number(group.retries),
            "" if group.tokens is None else f"{group.tokens:,.0f}",
            "" if group.cost is None else f"${group.cost:,.4f}",
            words.trend(group),
        )
        for group in groups
    ]
    if rows:
        titles = ("Which kinds of request go wrong", "runs", "succeed", "errors", "paths")
        means = ("entropy", "retries", "tokens", "cost", "trend")
        notes = _more(len(agent.request_groups), len(rows), "group")
        examples = groups[:EXAMPLES] if brief else groups
        notes += [
            f"{words.kind_of_work(group)}: traces {', '.join(group.trace_ids)}"
            for group in examples
        ]
        notes += filter(None, [words.alone(agent)])
        yield Section((*titles, *means), "lrrrrrrrrr", rows, notes).without_empty_columns()


def gaps(agent: AgentView) -> Iterator[Section]:
    """Yield the data that an agent's runs lack."""
    rows = [
        (gap.missing, f"{gap.of - gap.runs:,} of {gap.of:,}", gap.unlocks, gap.remedy)
        for gap in agent.missing
    ]
    if rows:
        yield Section(("Missing data", "runs that have it", "for", "how to add it"), "lrll", rows)


def data_quality(found: Sequence[QualityFinding]) -> Iterator[Section]:
    """Yield the flaws of telemetry, one line each."""
    rows = [
        (
            one.finding,
            f"{one.count:,} of {count(one.of, one.unit.removesuffix('s'))}",
            one.affects,
            one.remedy,
        )
        for one in found
    ]
    if rows:
        titles = ("Data quality", "found in", "affects", "at the source")
        yield Section(titles, "lrll", rows)


def comparison(each: AgentComparison, *, brief: bool) -> Section:
    """Return the numbers of an agent before and after; brief: those alone that got better or worse,
    came or went.
    """
    moved, same = words.moved(each)
    before, now = words.labels_of_groups(each)
    notes = [f"{count(len(same), 'number')} the same: {listed(same, 5)}"] if same and brief else []
    notes += [*words.about_groups(each), *filter(None, [words.about_chance(each)])]
    changed = moved if brief else each.metrics
    what = {name: Text(words.compared(name, one), _style(one)) for name, one in changed.items()}
    if brief:
        runs = [group.runs for group in each.groups]
        cells = [
            (
                name,
                _brief_side(name, one.before, runs[0]),
                _brief_side(name, one.after, runs[1]),
                what[name],
            )
            for name, one in changed.items()
        ]
        return Section(("What changed", before, now, ""), "nlll", cells, notes)
    rows = [
        (name, *_side(name, one.before), *_side(name, one.after), what[name])
        for name, one in changed.items()
    ]
    titles = ("What changed", before, "95 %", "runs", now, "95 %", "runs", "")
    return Section(titles, "crrrrrrl", rows, notes).without_empty_columns()


def _brief_side(name: str, reading: ReadingView, runs: int) -> Text:
    """Return a number with its interval, and with its runs where these are not those of the
    group.
    """
    shown = Text(measured(ALL_SPECS[name], reading.value))
    if interval := words.interval(name, reading):
        shown.append(f" {interval}", "dim")
    if reading.runs != runs:
        shown.append(f" of {count(reading.runs, 'run')}", "dim")
    return shown


def made_of(metrics: Mapping[str, ReadingView], names: Sequence[str]) -> Iterator[str]:
    """Yield, for each aggregate among the names, the parts it was made of and those without data.

    >>> metrics = {
    ...     "reliability": ReadingView(0.7, 9, ("consistency",)),
    ...     "predictability": ReadingView(0.9, 9, ("brier_score",)),
    ... }
    >>> list(made_of(metrics, ["reliability", "predictability"]))
    ['reliability is made of consistency; not enough data for predictability, robustness']
    """
    for name in names:
        needs = _NEEDS.get(name, ())
        parts = metrics[name].parts
        absent = [part for part in needs if part not in parts]
        if absent:
            yield f"{name} is made of {', '.join(parts)}; not enough data for {', '.join(absent)}"
        elif len(needs) > 1:
            yield f"{name} is made of {', '.join(parts)}"


# --- One section ----------------------------------------------------------------------------------


def _more(found: int, shown: int, noun: str) -> list[str]:
    return [f"and {count(found - shown, f'more {noun}')}"] if found > shown else []


def _style(one: ComparedReading) -> str:
    return STYLES.get(one.result, "") if one.more_than_chance else "dim"


def _side(name: str, reading: ReadingView) -> tuple[Cell, ...]:
    return (
        measured(ALL_SPECS[name], reading.value),
        dim(words.interval(name, reading)),
        f"{reading.runs:,}",
    )


def _cost(agent: AgentView, cost: Cost) -> Sequence[Cell]:
    reading = agent.metrics[cost.name]
    title = ALL_SPECS[cost.name].title
    if cost.points is None:
        return title, dim("not enough data"), ABSENT, "", ABSENT, dim(f"of {cost.most:.0f}")
    interval = dim(words.interval(cost.name, reading))
    return (
        title,
        _bar(cost),
        number(reading.value),
        interval,
        f"{reading.runs:,}",
        points_lost(cost.points),
    )


def _bar(cost: Cost) -> Text:
    """Return a bar half as long as the points that the part can cost, filled by those it does."""
    points = cost.points or 0.0
    most = round(cost.most / 2)
    filled = 0 if points < 0.05 else max(1, round(points / 2))
    colour = "red" if points >= cost.most / 2 else "yellow" if points >= cost.most / 4 else "green"
    return Text.assemble(("━" * filled, colour), ("╌" * (most - filled), "dim"))


def _ordered_tasks(agent: AgentView) -> list[tuple[TaskRow, TaskEffects | None]]:
    """Return each task with its effects: those first whose attempts disagree most about them, then
    by their paths.
    """

    def order(pair: tuple[TaskRow, TaskEffects | None]) -> tuple[float, float, int, str]:
        task, effects = pair
        apart = 0.0 if effects is None else effects.disagreement
        return (-apart, -(task.path_entropy or 0.0), -task.runs, task.task_id or "")

    effects = {one.task: one for one in agent.findings.tasks_by_effects}
    return sorted(
        (
            (task, None if task.task_id is None else effects.get(task.task_id))
            for task in agent.tasks
        ),
        key=order,
    )


def tasks(agent: AgentView, *, brief: bool) -> Iterator[Section]:
    """Yield the tasks of an agent, those first whose attempts differ most."""
    ordered = [
        pair for pair in _ordered_tasks(agent) if not brief or pair[0].path_entropy is not None
    ]
    known_apart = any(effects is not None for _, effects in ordered)

    def row(task: TaskRow, effects: TaskEffects | None) -> tuple[str, ...]:
        passed, known = agent.task_outcomes[task.task_id]
        paths = (number(task.path_entropy), number(task.path_similarity))
        apart = ("", "") if not known_apart else (ABSENT, "not enough data")
        if effects is not None:
            apart = percent(effects.disagreement), differing(effects, 2 if brief else 4) or "none"
        return (
            "(without a task)"
            if task.task_id is None
            else clean(task.task_id, 30 if brief else 60),
            f"{passed:,} of {known:,}" if known else ABSENT,
            f"{task.runs:,}",
            f"{task.distinct_paths or 0:,}",
            *(("", "") if brief and known_apart else paths),
            *apart,
        )

    rows = [row(*pair) for pair in ordered[: 5 if brief else 20]]
    if rows:
        parted = any(effects is not None and effects.partings for _, effects in ordered)
        notes = [*_more(len(ordered), len(rows), "task"), *([APART] if parted else [])]
        titles = (
            "Tasks to inspect first",
            "passed",
            "runs",
            "paths",
            "entropy",
            "similarity",
            "apart",
        )
        yield Section(
            (*titles, "tools whose calls differ"), "nrrrrrrl", rows, notes
        ).without_empty_columns()


def _readings(
    title: str, names: Sequence[str], agent: AgentView, *, brief: bool, notes: Sequence[str] = ()
) -> Iterator[Section]:
    known = {name: agent.metrics[name] for name in names if agent.metrics[name].value is not None}
    rows = [
        (name, *_side(name, reading), "" if brief else reading.note)
        for name, reading in known.items()
    ]
    if rows:
        titles = (title, "value", "95 %", "runs", "note")
        notes = [*made_of(agent.metrics, list(known)), *notes]
        yield Section(titles, "crrrl", rows, notes).without_empty_columns()


def _passes(agent: AgentView, *, brief: bool) -> Iterator[Section]:
    passes = agent.passes
    if not passes.pass_hat_k or agent.one_sided:
        return
    rows = [
        (
            name,
            *(ABSENT if value is None else percent(value) for value in series.values()),
            f"{passes.runs:,}",
        )
        for name, series in (
            ("pass@k, one of k passes", passes.pass_at_k),
            ("pass^k, all of k pass", passes.pass_hat_k),
        )
    ]
    ks = [f"k = {k}" for k in passes.pass_hat_k]
    yield Section(("Repeated attempts", *ks, "runs"), "n" + "r" * (len(ks) + 1), rows)
    if not brief or any(task.summary.runs > 1 for task in passes.tasks):
        title = "The worst task" if len(passes.tasks) > 1 else "In their order"
        yield from _readings(title, PASSES, agent, brief=brief)


def _derived(agent: AgentView) -> list[str]:
    names = sorted({name for session in agent.sessions for name in session.derived})
    return [f"derived from tool calls, without an evaluation: {', '.join(names)}"] if names else []


def sessions(agent: AgentView, *, brief: bool) -> Iterator[Section]:
    """Yield the sessions of an agent, the lowest first; `brief`: only those that are not perfectly
    reliable.
    """
    scored = (
        (None if one.reliability is None else one.reliability.score, one.session_id)
        for one in agent.sessions
    )
    ranked = ((score is None, score or 0.0, id_, at) for at, (score, id_) in enumerate(scored))
    worst = [key for key in ranked if not brief or (not key[0] and key[1] < 1)]
    most = 3 if brief else 10
    rows: list[tuple[Cell, ...]] = []
    for *_, at in nsmallest(most, worst):
        session = agent.sessions[at]
        band = "not enough data: no run has a signal"
        if session.reliability is not None:
            band = reliability_band(session.reliability.score)
        if session.consistency is not None and not brief:
            band += f"; {consistency_band(session.consistency.score).partition(' — ')[0].lower()}"
        meaning = dim(band.partition(" — ")[0] if brief else band)
        scores = (
            number(None if each is None else each.score)
            for each in (session.reliability, session.consistency)
        )
        rows.append(
            (
                clean(session.session_id, 24 if brief else 60),
                meaning,
                f"{len(session.runs):,}",
                *scores,
            )
        )
    if rows:
        titles = ("Sessions, the lowest first", "meaning", "runs", "reliability", "consistency")
        yield Section(titles, "llrrr", rows, _more(len(worst), len(rows), "session"))
