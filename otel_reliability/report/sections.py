"""The sections of one agent's scorecard on a terminal. Each shows only where there is evidence."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.measure import Measurement
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from otel_reliability.metrics.sessions import reliability_band
from otel_reliability.metrics.stability.effect_table import TaskEffects
from otel_reliability.metrics.stability.score import PENALTIES
from otel_reliability.metrics.stability.task_table import TaskRow
from otel_reliability.metrics.stability.tiers import Tier
from otel_reliability.report.beside import NOTHING, Beside
from otel_reliability.report.caveats import caveats_of
from otel_reliability.report.change_line import beside_the_score
from otel_reliability.report.charts import course_line, shapes
from otel_reliability.report.findings import Cost
from otel_reliability.report.metric_groups import EVALUATION, PASSES, SESSION_GAUGES, STABILITY, made_of
from otel_reliability.report.scorecard import ALL_SPECS, Scorecard, by_task
from otel_reliability.report.sentences import about_outcomes, about_runs, about_score, interval_of, judged
from otel_reliability.report.task_effects import ordered_tasks, parted
from otel_reliability.report.text import MINUS, agent_name, clean, count, measured, number, percent, place
from otel_reliability.report.why import EFFECTS, reasons_of

COLOURS: Final = {Tier.STABLE: "green", Tier.VARIABLE: "yellow", Tier.UNSTABLE: "dark_orange", Tier.CRITICAL: "red"}
INDENT: Final = (0, 0, 0, 2)
TASKS: Final = 5
SESSIONS: Final = 3
SPLITS: Final = 2
UNBOUNDED: Final = 10_000
APART: Final = (
    "apart: how much the attempts at a task differ in what they changed; calls differ by arguments, which are never shown. "
    "A tool that only looks should count for nothing here: tools.reads says so, inspect lists them."
)


def scorecard(card: Scorecard, beside: Beside = NOTHING) -> RenderableType:
    """All sections of one agent."""
    sections = [*_verdict(card, beside), *(part for section in SECTIONS for part in section(card))]
    spaced = [row for section in sections for row in (Text(), Padding(section, INDENT))]
    return Group(title(card), *spaced)


def dim(text: str) -> Text:
    """Something that matters less."""
    return Text(text, "dim")


def heading(text: str) -> Text:
    """The title of a section."""
    return Text.assemble((text, "bold underline"))  # a style of the whole would underline the rest of a column too


def columns(*titles: str, numbers: int) -> Table:
    """A table without lines; the last `numbers` columns are right-aligned."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="")
    for at, each in enumerate(titles):
        is_number = at >= len(titles) - numbers
        table.add_column(
            heading(each) if not at else dim(each), justify="right" if is_number else "left", no_wrap=is_number
        )
    return table


def title(card: Scorecard) -> RenderableType:
    """The agent's name, and where it runs."""
    line = Table.grid(expand=True, padding=(0, 1, 0, 0))
    line.add_column(no_wrap=True)
    line.add_column(ratio=1)
    line.add_column(justify="right")
    line.add_row(Text(agent_name(card.key), "bold"), Rule(style="dim"), dim(place(card.key)))
    return line


# --- The score --------------------------------------------------------------------------------------------------------


def _verdict(card: Scorecard, beside: Beside) -> Iterator[RenderableType]:
    finding = beside.changes.get(card.key)
    yield Group(
        _badge(card),
        *_about(card),
        *course_line(beside.course_of(card)),
        *(() if finding is None else beside_the_score(finding)),
        *(Text(f"⚠ {caveat}", "yellow") for caveat in caveats_of(card)),
    )


def _badge(card: Scorecard) -> Text:
    if card.tier is None or card.badge is None:
        return Text.assemble(("No score", "bold"), f": {judged(card)}")
    return Text.assemble((card.badge, f"bold {COLOURS[card.tier]}"), f"  {judged(card)}")


def _about(card: Scorecard) -> Iterator[Text]:
    if card.score is not None:
        yield dim(about_score(card))
    yield Text(about_runs(card))
    yield Text(about_outcomes(card))


def _costs(card: Scorecard) -> Iterator[RenderableType]:
    if all(cost.points is None for cost in card.findings.costs):
        return
    interval = "95 %" if card.intervals.keys() & PENALTIES.keys() else ""
    table = columns("What costs points", "", "value", interval, "runs", "points", numbers=4)
    for cost in card.findings.costs:
        reading = card.readings[cost.name]
        part = Text(ALL_SPECS[cost.name].title)
        if cost.points is None:
            table.add_row(part, dim("no evidence"), number(None), "", number(None), dim(f"of {cost.most:.0f}"))
        else:
            runs = f"{reading.runs:,}"
            table.add_row(
                part, _bar(cost), number(reading.value), dim(interval_of(card, cost.name)), runs, _points(cost.points)
            )
    yield table


def _bar(cost: Cost) -> Text:
    """Half as long as the points it can cost, filled as far as it does."""
    points, most = cost.points or 0.0, round(cost.most / 2)
    filled = 0 if points < 0.05 else max(1, round(points / 2))
    colour = "red" if points >= cost.most / 2 else "yellow" if points >= cost.most / 4 else "green"
    return Text.assemble(("━" * filled, colour), ("╌" * (most - filled), "dim"))


def _points(points: float) -> str:
    return f"{MINUS}{points:.1f}" if round(points, 1) else "0.0"


def _why(card: Scorecard) -> Iterator[RenderableType]:
    reasons = [reason for reason in reasons_of(card) if reason.title != EFFECTS]  # the table of tasks tells them
    if not reasons:
        return
    told: list[RenderableType] = [heading("Why, and where to look")]
    for reason in reasons:
        cost = "" if reason.points is None else f"  {_points(reason.points)}"
        told.append(Text.assemble((reason.title, "bold"), cost))
        told.append(Padding(Text(reason.sentence), INDENT))
        told += [Padding(Text(detail), (0, 0, 0, 4)) for detail in reason.details]
    yield Group(*told)


# --- Everything else that was measured --------------------------------------------------------------------------------


def _beside(card: Scorecard) -> Iterator[RenderableType]:
    yield from _group("Beside the score", STABILITY, card)


def _evaluation(card: Scorecard) -> Iterator[RenderableType]:
    yield from _group("Evaluation", EVALUATION, card)


def _group(title: str, names: Sequence[str], card: Scorecard) -> Iterator[RenderableType]:
    known = [name for name in names if card.readings[name].value is not None]
    if known:
        yield Group(Pairs(title, known, card), *(dim(line) for line in made_of(card.readings, known)))


class Pairs:
    """Metrics with their intervals: two a line where there is room, down the left half first."""

    def __init__(self, title: str, names: Sequence[str], card: Scorecard) -> None:
        self._title, self._names, self._card = title, names, card

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """As many columns as fit."""
        pairs = self._table(2)
        needed = Measurement.get(console, options.update_width(UNBOUNDED), pairs).maximum
        yield pairs if needed <= options.max_width else self._table(1)

    def _table(self, halves: int) -> Table:
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="")
        between = any(name in self._card.intervals for name in self._names)
        for half in (heading(self._title), "")[: min(halves, len(self._names))]:
            table.add_column(half, no_wrap=True)
            for title in ("value", *(("95 %",) if between else ()), "runs"):
                table.add_column(dim(title), justify="right", no_wrap=True)
        lines = -(-len(self._names) // halves)
        for at in range(lines):
            table.add_row(*(cell for name in self._names[at::lines] for cell in self._cells(name, between=between)))
        return table

    def _cells(self, name: str, *, between: bool) -> tuple[RenderableType, ...]:
        reading = self._card.readings[name]
        told = (dim(interval_of(self._card, name)),) if between else ()
        return name, measured(ALL_SPECS[name], reading.value), *told, f"{reading.runs:,}"


def _passes(card: Scorecard) -> Iterator[RenderableType]:
    passes = card.passes
    if not passes.hat or card.one_sided:
        return
    table = columns("Repeated attempts", *(f"k = {k}" for k in passes.hat), "runs", numbers=len(passes.hat) + 1)
    for title, series in (("pass@k, one of k passes", passes.at), ("pass^k, all of k pass", passes.hat)):
        shares = [percent(reading.value) for reading in series.values() if reading.value is not None]
        table.add_row(title, *shares, f"{max(reading.runs for reading in series.values()):,}")
    yield table
    if any(summary.runs > 1 for summary in passes.summaries.values()):
        yield from _group("The worst task" if len(passes.summaries) > 1 else "In their order", PASSES, card)


def _tasks(card: Scorecard) -> Iterator[RenderableType]:
    tasks = [pair for pair in ordered_tasks(card) if pair[0].path_entropy is not None]
    if not tasks:
        return
    apart = any(effects is not None for _, effects in tasks)
    told = ("apart", "where their changes part") if apart else ("entropy", "similarity")
    table = columns("Tasks to look at first", "passed", "runs", "paths", *told, numbers=3 + len(told))
    table.columns[0].no_wrap = True
    if apart:
        table.columns[-1].justify, table.columns[-1].no_wrap = "left", False
    outcomes = {task: [row.success for row in rows] for task, rows in by_task(card.rows).items()}
    for task, effects in tasks[:TASKS]:
        more = _apart(effects) if apart else (number(task.path_entropy), number(task.path_similarity))
        table.add_row(*_task(task, [known for known in outcomes[task.task_id] if known is not None]), *more)
    if len(tasks) > TASKS:
        table.add_row(dim(f"and {count(len(tasks) - TASKS, 'more task')}"))
    yield Group(table, dim(APART)) if any(effects is not None and effects.partings for _, effects in tasks) else table


def _task(task: TaskRow, known: Sequence[bool]) -> Iterator[str]:
    yield "(without a task)" if task.task_id is None else clean(task.task_id, 30)
    yield f"{sum(known):,}" if known else number(None)
    yield f"{task.runs:,}"
    yield f"{task.distinct_paths or 0:,}"


def _apart(effects: TaskEffects | None) -> tuple[str, str]:
    if effects is None:
        return number(None), "nobody can tell"
    return percent(effects.disagreement), parted(effects, SPLITS) or "nowhere"


def _sessions(card: Scorecard) -> Iterator[RenderableType]:
    gauges = list(_group("Sessions", SESSION_GAUGES, card))
    if gauges:
        derived = sorted({name for session in card.sessions for name in session.derived})
        note = [dim(f"derived from tool calls, where nobody judged: {', '.join(derived)}")] if derived else []
        yield Group(*gauges, *note)
    worst = sorted(_faulty_sessions(card))
    if worst:
        yield _worst_sessions(card, worst)


def _faulty_sessions(card: Scorecard) -> Iterator[tuple[float, str, int]]:
    """The score, the id and the place of each."""
    for at, session in enumerate(card.sessions):
        if session.reliability is not None and session.reliability.score < 1:
            yield session.reliability.score, session.session_id, at


def _worst_sessions(card: Scorecard, worst: Sequence[tuple[float, str, int]]) -> RenderableType:
    table = columns("Sessions, the worst first", "", "runs", "reliability", "consistency", numbers=3)
    for reliability, _, at in worst[:SESSIONS]:
        session = card.sessions[at]
        consistency = None if session.consistency is None else session.consistency.score
        band, runs = reliability_band(reliability).partition(" — ")[0], f"{len(session.runs):,}"
        table.add_row(clean(session.session_id, 24), dim(band), runs, number(reliability), number(consistency))
    if len(worst) > SESSIONS:
        table.add_row(dim(f"and {count(len(worst) - SESSIONS, 'more session')}"))
    return table


def _shapes(card: Scorecard) -> Iterator[RenderableType]:
    yield from shapes(card, heading("How runs differ"))


Section = Callable[[Scorecard], Iterator[RenderableType]]

SECTIONS: Final[Sequence[Section]] = (_costs, _why, _shapes, _tasks, _beside, _evaluation, _passes, _sessions)
