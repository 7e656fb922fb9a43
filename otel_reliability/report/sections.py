"""The sections of one agent's scorecard on a terminal. Each shows only where there is evidence."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from otel_reliability.metrics.sessions import reliability_band
from otel_reliability.metrics.stability.score import PENALTIES
from otel_reliability.metrics.stability.task_table import TaskRow
from otel_reliability.metrics.stability.tiers import Tier
from otel_reliability.report.caveats import caveats_of
from otel_reliability.report.findings import Cost
from otel_reliability.report.metric_groups import EVALUATION, PASSES, SESSION_GAUGES, STABILITY, made_of
from otel_reliability.report.scorecard import ALL_SPECS, Scorecard, by_task
from otel_reliability.report.sentences import about_outcomes, about_runs, about_score, judged
from otel_reliability.report.text import MINUS, agent_name, clean, count, measured, number, percent, place
from otel_reliability.report.why import reasons_of
from otel_reliability.windows.session import SessionScores

COLOURS: Final = {Tier.STABLE: "green", Tier.VARIABLE: "yellow", Tier.UNSTABLE: "dark_orange", Tier.CRITICAL: "red"}
INDENT: Final = (0, 0, 0, 2)
TASKS: Final = 5
SESSIONS: Final = 3


def scorecard(card: Scorecard) -> RenderableType:
    """All sections of one agent."""
    sections = [part for section in SECTIONS for part in section(card)]
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


def _verdict(card: Scorecard) -> Iterator[RenderableType]:
    yield Group(_badge(card), *_about(card), *(Text(f"⚠ {caveat}", "yellow") for caveat in caveats_of(card)))


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
            table.add_row(part, _bar(cost), number(reading.value), _range(card, cost.name), runs, _points(cost.points))
    yield table


def _range(card: Scorecard, name: str) -> Text:
    interval = card.intervals.get(name)
    return dim("" if interval is None else f"{interval.low:.2f}–{interval.high:.2f}")


def _bar(cost: Cost) -> Text:
    """Half as long as the points it can cost, filled as far as it does."""
    points, most = cost.points or 0.0, round(cost.most / 2)
    filled = 0 if points < 0.05 else max(1, round(points / 2))
    colour = "red" if points >= cost.most / 2 else "yellow" if points >= cost.most / 4 else "green"
    return Text.assemble(("━" * filled, colour), ("╌" * (most - filled), "dim"))


def _points(points: float) -> str:
    return f"{MINUS}{points:.1f}" if round(points, 1) else "0.0"


def _why(card: Scorecard) -> Iterator[RenderableType]:
    reasons = reasons_of(card)
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
        yield Group(_pairs(title, known, card), *(dim(line) for line in made_of(card.readings, known)))


def _pairs(title: str, names: Sequence[str], card: Scorecard) -> Table:
    """Two metrics a line: down the left half first."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="")
    for half in (heading(title), "")[: len(names)]:
        table.add_column(half, no_wrap=True)
        table.add_column(dim("value"), justify="right", no_wrap=True)
        table.add_column(dim("runs"), justify="right", no_wrap=True)
    lines = (len(names) + 1) // 2
    for at in range(lines):
        table.add_row(*(cell for name in names[at::lines] for cell in _cells(name, card)))
    return table


def _cells(name: str, card: Scorecard) -> tuple[str, str, str]:
    reading = card.readings[name]
    return name, measured(ALL_SPECS[name], reading.value), f"{reading.runs:,}"


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
    measured = [task for task in card.tasks if task.path_entropy is not None]
    if not measured:
        return
    outcomes = {task: [row.success for row in rows] for task, rows in by_task(card.rows).items()}
    table = columns("Tasks, the most divergent first", "passed", "runs", "paths", "entropy", "similarity", numbers=5)
    for task in sorted(measured, key=_divergence)[:TASKS]:
        known = [outcome for outcome in outcomes[task.task_id] if outcome is not None]
        table.add_row(
            "(without a task)" if task.task_id is None else clean(task.task_id, 30),
            f"{sum(known):,}" if known else number(None),
            f"{task.runs:,}",
            f"{task.distinct_paths or 0:,}",
            number(task.path_entropy),
            number(task.path_similarity),
        )
    if len(measured) > TASKS:
        table.add_row(dim(f"and {count(len(measured) - TASKS, 'more task')}"))
    yield table


def _divergence(task: TaskRow) -> tuple[float, float, int, str]:
    return (-(task.path_entropy or 0.0), task.path_similarity or 0.0, -task.runs, task.task_id or "")


def _sessions(card: Scorecard) -> Iterator[RenderableType]:
    gauges = list(_group("Sessions", SESSION_GAUGES, card))
    if gauges:
        derived = sorted({name for session in card.sessions for name in session.derived})
        note = [dim(f"derived from tool calls, where nobody judged: {', '.join(derived)}")] if derived else []
        yield Group(*gauges, *note)
    worst = sorted(_faulty_sessions(card), key=lambda one: (one[0], one[1].session_id))
    if worst:
        yield _worst_sessions(worst)


def _faulty_sessions(card: Scorecard) -> Iterator[tuple[float, SessionScores]]:
    for session in card.sessions:
        if session.reliability is not None and session.reliability.score < 1:
            yield session.reliability.score, session


def _worst_sessions(worst: Sequence[tuple[float, SessionScores]]) -> RenderableType:
    table = columns("Sessions, the worst first", "", "runs", "reliability", "consistency", numbers=3)
    for reliability, session in worst[:SESSIONS]:
        consistency = None if session.consistency is None else session.consistency.score
        band, runs = reliability_band(reliability).partition(" — ")[0], f"{len(session.runs):,}"
        table.add_row(clean(session.session_id, 24), dim(band), runs, number(reliability), number(consistency))
    if len(worst) > SESSIONS:
        table.add_row(dim(f"and {count(len(worst) - SESSIONS, 'more session')}"))
    return table


Section = Callable[[Scorecard], Iterator[RenderableType]]

SECTIONS: Final[Sequence[Section]] = (_verdict, _costs, _why, _beside, _evaluation, _passes, _tasks, _sessions)
