"""The report on a terminal: which agent is worst, its score, why, and which data is missing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from statistics import median
from typing import Final

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from otel_reliability.change.result import Result
from otel_reliability.metrics.sessions import reliability_band
from otel_reliability.metrics.stability.score import PENALTIES
from otel_reliability.metrics.stability.tables import TaskEffects, TaskRow
from otel_reliability.metrics.stability.tier import Tier
from otel_reliability.report import spark, words
from otel_reliability.report.changes import SYMBOLS, UNITS, lines
from otel_reliability.report.groups import ALL_SPECS, EVALUATION, PASSES, SESSION_GAUGES, STABILITY, made_of
from otel_reliability.report.reasons import EFFECTS, differing
from otel_reliability.report.text import (
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
)
from otel_reliability.report.view import AgentComparison, AgentView, Baseline, Cost, Gap, ReadingView, ReportView

COLOURS: Final = {Tier.STABLE: "green", Tier.VARIABLE: "yellow", Tier.UNSTABLE: "dark_orange", Tier.CRITICAL: "red"}
STYLES: Final = {"better": "green", "worse": "red"}
INDENT: Final = (0, 0, 0, 2)
MAX_DETAILED: Final = 10
"""Agents that are shown in full; the others have a line each."""
MAX_LISTED: Final = 40
"""Agents that have a line."""
MAX_TASKS: Final = 5
MAX_SESSIONS: Final = 3
MAX_TOOLS: Final = 3
MAX_SPLITS: Final = 2
HISTORY_WIDTH: Final = 24
APART: Final = (
    "apart: how much the attempts at a task differ in what they changed; calls differ by arguments, which are never shown. "
    "Set tools.reads for tools that only read; otel-reliability inspect lists them."
)


def render(report: ReportView, console: Console, detailed: int = MAX_DETAILED) -> None:
    """Print the report, or, with a baseline, the comparison. Of many agents, those with the lowest scores are shown in full."""
    for part in _page(report, detailed) if report.baseline is None else _comparison(report.baseline):
        console.print(part)
        console.print()


def worst_first(agents: Sequence[AgentView]) -> list[AgentView]:
    """Return the agents by score, the lowest first; those without one last."""
    return sorted(agents, key=lambda agent: (agent.score is None, agent.score or 0.0, agent.key))


# --- Parts of all pages -----------------------------------------------------------------------------------------------


def dim(text: str) -> Text:
    """Return text that matters less."""
    return Text(text, "dim")


def heading(text: str) -> Text:
    """Return the title of a section."""
    return Text.assemble((text, "bold underline"))  # a style of the whole would underline the rest of a column too


def columns(*titles: str, numbers: int) -> Table:
    """Return a table without lines; the last `numbers` columns are right-aligned."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="")
    for at, each in enumerate(titles):
        is_number = at >= len(titles) - numbers
        table.add_column(
            heading(each) if not at else dim(each), justify="right" if is_number else "left", no_wrap=is_number
        )
    return table


def title(agent: AgentView) -> RenderableType:
    """Return the agent's name, and where it runs."""
    line = Table.grid(expand=True, padding=(0, 1, 0, 0))
    line.add_column(no_wrap=True)
    line.add_column(ratio=1)
    line.add_column(justify="right")
    line.add_row(Text(agent_name(agent.key), "bold"), Rule(style="dim"), dim(place(agent.key)))
    return line


# --- The page ---------------------------------------------------------------------------------------------------------


def _page(report: ReportView, detailed: int) -> Iterator[RenderableType]:
    agents = worst_first(report.agents)
    if not agents:
        yield _no_agents(report)
    if len(agents) > 1:
        yield _overview(agents)
    for agent in agents[:detailed]:
        parts = [*_score_lines(agent), *(part for section in SECTIONS for part in section(agent))]
        yield Group(title(agent), *(row for part in parts for row in (Text(), Padding(part, INDENT))))
    if len(agents) > detailed:
        yield dim(
            f"{count(len(agents) - detailed, 'more agent')}; --agent NAME shows one in full, --format json all of them."
        )
    gaps = list(missing_data([(agent_name(agent.key), agent.missing) for agent in agents]))
    if gaps:
        yield Group(heading("Missing data, and how to add it"), *gaps)
    yield _spans(report)


def _no_agents(report: ReportView) -> Text:
    if report.spans["received"]:
        text = Text("No agent runs: none of the spans comes from a known agent framework.", "bold")
        return text.append("\notel-reliability inspect FILE shows what they are.", "not bold")
    return Text("No agent runs: there are no spans.", "bold")


def _overview(agents: Sequence[AgentView]) -> RenderableType:
    table = columns("Agents", "", "score", "assessed", "runs", "passed", numbers=4)
    for agent in agents[:MAX_LISTED]:
        tier = (
            Text("no score")
            if agent.tier is None
            else Text(f"{agent.tier.sign} {agent.tier.name}", COLOURS[agent.tier])
        )
        table.add_row(
            Text.assemble((agent_name(agent.key), "bold"), "  ", (place(agent.key), "dim")),
            tier.append(" ⚠", "yellow") if agent.flags else tier,
            number(agent.score, POINTS),
            "" if agent.score_coverage is None else f"{agent.score_coverage:.0f} of 100",
            f"{agent.runs:,}",
            number(None) if agent.one_sided else percent(agent.passed / agent.known),
        )
    if len(agents) > MAX_LISTED:
        table.add_row(dim(f"and {count(len(agents) - MAX_LISTED, 'more agent')}"))
    return table


def missing_data(gaps: Sequence[tuple[str, Sequence[Gap]]]) -> Iterator[RenderableType]:
    """Yield what the runs of these agents lack, each gap once for all of them."""
    found: dict[str, list[tuple[str, Gap]]] = {}
    for name, lacking in gaps:
        for gap in lacking:
            found.setdefault(gap.missing, []).append((name, gap))
    for missing, every in found.items():
        of = sum(gap.of for _, gap in every)
        known = of - sum(gap.runs for _, gap in every)
        whose = "" if len(every) == len(gaps) else f" of {listed(name for name, _ in every)}"
        gap, remedies = every[0][1], dict.fromkeys(gap.remedy for _, gap in every)
        yield Padding(
            Text.assemble((missing, "bold"), (f" ({known:,} of {count(of, 'run')}{whose})", "dim"), f": {gap.unlocks}"),
            INDENT,
        )
        for remedy in remedies:
            yield Padding(Text(remedy, "cyan"), (0, 0, 0, 4))


def _spans(report: ReportView) -> Text:
    fates = [f"{amount:,} {name}" for name, amount in report.spans.items() if amount and name != "received"]
    received = f"{count(report.spans['received'], 'span')} received: {', '.join(fates)}."
    text = dim(received if fates else "No spans received.")
    for attribute, reasons in report.evidence_refused.items():
        for reason, times in reasons.items():
            text.append(f"\n{clean(attribute)}: refused {count(times, 'time')} ({reason}).", "yellow")
    for note in report.notes:
        text.append(f"\n{note}.", "yellow")
    return text


# --- One agent --------------------------------------------------------------------------------------------------------


def _score_lines(agent: AgentView) -> Iterator[RenderableType]:
    badge = (
        Text.assemble(("No score", "bold"), f": {words.meaning(agent)}")
        if agent.tier is None or agent.badge is None
        else Text.assemble((agent.badge, f"bold {COLOURS[agent.tier]}"), f"  {words.meaning(agent)}")
    )
    trust = words.about_score(agent)
    yield Group(
        badge,
        *([dim(trust)] if trust else []),
        Text(words.about_runs(agent)),
        Text(words.about_outcomes(agent)),
        *_history(agent),
        *_change(agent),
        *(Text(f"⚠ {caveat}", "yellow") for caveat in agent.caveats),
    )


def _history(agent: AgentView) -> Iterator[Text]:
    scores = [point.score for point in agent.history]
    chart = spark.history(scores, HISTORY_WIDTH)
    if chart:
        least = min(scores)
        lowest = "" if least >= min(scores[0], scores[-1]) - 0.5 else f", lowest {least:.0f}"
        yield Text.assemble(
            "score over time  ", (chart, "bold"), (f"  from {scores[0]:.0f} to {scores[-1]:.0f}{lowest}", "dim")
        )


def _change(agent: AgentView) -> Iterator[Text]:
    if agent.change is not None:
        symbol, colour = SYMBOLS[agent.change.verdict]
        changed = agent.change.verdict is Result.CHANGED
        first, *more = lines(agent.change)
        first.stylize("bold" if changed else "dim")
        yield Text.assemble((f"{symbol} ", colour), ("Behaviour: ", "dim"), first)
        if changed:
            yield from (Text.assemble("  ", line) for line in (*more, dim(UNITS)))


def _costs(agent: AgentView) -> Iterator[RenderableType]:
    if all(cost.points is None for cost in agent.findings.costs):
        return
    bounds = "95 %" if any(agent.metrics[name].method for name in PENALTIES) else ""
    table = columns("What lowers the score", "", "value", bounds, "runs", "points", numbers=4)
    for cost in agent.findings.costs:
        reading, part = agent.metrics[cost.name], Text(ALL_SPECS[cost.name].title)
        if cost.points is None:
            table.add_row(part, dim("not enough data"), number(None), "", number(None), dim(f"of {cost.most:.0f}"))
        else:
            interval = dim(words.interval(cost.name, reading))
            table.add_row(part, _bar(cost), number(reading.value), interval, f"{reading.runs:,}", _points(cost.points))
    yield table


def _bar(cost: Cost) -> Text:
    """Return a bar half as long as the points that the part can cost, filled by those it does."""
    points, most = cost.points or 0.0, round(cost.most / 2)
    filled = 0 if points < 0.05 else max(1, round(points / 2))
    colour = "red" if points >= cost.most / 2 else "yellow" if points >= cost.most / 4 else "green"
    return Text.assemble((spark.FILLED * filled, colour), (spark.REST * (most - filled), "dim"))


def _points(points: float) -> str:
    return f"{MINUS}{points:.1f}" if round(points, 1) else "0.0"


def _why(agent: AgentView) -> Iterator[RenderableType]:
    reasons = [reason for reason in agent.findings.reasons if reason.title != EFFECTS]  # the table of tasks has them
    if not reasons:
        return
    parts: list[RenderableType] = [heading("Why, and what to inspect")]
    for reason in reasons:
        cost = "" if reason.points is None else f"  {_points(reason.points)}"
        parts.append(Text.assemble((reason.title, "bold"), cost))
        parts.append(Padding(Text(reason.sentence), INDENT))
        parts += [Padding(Text(detail), (0, 0, 0, 4)) for detail in reason.details]
    yield Group(*parts)


def _spreads(agent: AgentView) -> Iterator[RenderableType]:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_row(heading("How runs differ"), Text("0        1", "dim"))
    distances, pressures = list(agent.distances.values()), [one.share for one in agent.pressures]
    if any(distances):
        half = f"half of {count(len(distances), 'run')} up to {number(median(distances))}"
        table.add_row("path distance", spark.spread(distances), f"{half}, at most {number(max(distances))}")
    if pressures:
        half = f"half of {count(len(pressures), 'run')} up to {percent(median(pressures))}"
        table.add_row("token pressure", spark.spread(pressures), f"{half}, at most {percent(max(pressures))}")
    for one in agent.retried[:MAX_TOOLS]:
        filled, rest = spark.bar(one.retries / agent.retried[0].retries)
        retries = f"{clean(one.tool, 40)}: {count(one.retries, 'retry')} in {one.runs:,} of {count(agent.runs, 'run')}"
        table.add_row("retries", Text.assemble(filled, (rest, "dim")), retries)
    if table.row_count > 1:
        yield table


def _tasks(agent: AgentView) -> Iterator[RenderableType]:
    tasks = [pair for pair in ordered_tasks(agent) if pair[0].path_entropy is not None]
    if not tasks:
        return
    apart = any(effects is not None for _, effects in tasks)
    last = ("apart", "tools whose calls differ") if apart else ("entropy", "similarity")
    table = columns("Tasks to inspect first", "passed", "runs", "paths", *last, numbers=3 + len(last))
    table.columns[0].no_wrap = True
    if apart:
        table.columns[-1].justify, table.columns[-1].no_wrap = "left", False
    for task, effects in tasks[:MAX_TASKS]:
        passed, known = agent.task_outcomes[task.task_id]
        table.add_row(
            "(without a task)" if task.task_id is None else clean(task.task_id, 30),
            f"{passed:,}" if known else number(None),
            f"{task.runs:,}",
            f"{task.distinct_paths or 0:,}",
            *(_apart(effects) if apart else (number(task.path_entropy), number(task.path_similarity))),
        )
    if len(tasks) > MAX_TASKS:
        table.add_row(dim(f"and {count(len(tasks) - MAX_TASKS, 'more task')}"))
    yield Group(table, dim(APART)) if any(effects is not None and effects.partings for _, effects in tasks) else table


def ordered_tasks(agent: AgentView) -> list[tuple[TaskRow, TaskEffects | None]]:
    """Return each task with its effects: those first whose attempts disagree most about them, then by their paths."""
    effects = {one.task: one for one in agent.findings.tasks_by_effects}
    tasks = ((task, None if task.task_id is None else effects.get(task.task_id)) for task in agent.tasks)
    return sorted(tasks, key=lambda pair: _task_order(*pair))


def _task_order(task: TaskRow, effects: TaskEffects | None) -> tuple[float, float, int, str]:
    apart = 0.0 if effects is None else effects.disagreement
    return (-apart, -(task.path_entropy or 0.0), -task.runs, task.task_id or "")


def _apart(effects: TaskEffects | None) -> tuple[str, str]:
    if effects is None:
        return number(None), "not enough data"
    return percent(effects.disagreement), differing(effects, MAX_SPLITS) or "none"


def _other_readings(agent: AgentView) -> Iterator[RenderableType]:
    yield from _group("Other readings", STABILITY, agent)
    yield from _group("Evaluation", EVALUATION, agent)


def _group(name: str, names: Sequence[str], agent: AgentView) -> Iterator[RenderableType]:
    known = {each: agent.metrics[each] for each in names if agent.metrics[each].value is not None}
    if known:
        yield Group(_readings(name, known), *(dim(line) for line in made_of(agent.metrics, list(known))))


def _readings(name: str, metrics: dict[str, ReadingView]) -> Table:
    bounds = any(reading.method for reading in metrics.values())
    table = columns(name, "value", *(("95 %",) if bounds else ()), "runs", numbers=2 + bounds)
    table.columns[0].no_wrap = True
    for each, reading in metrics.items():
        interval = (dim(words.interval(each, reading)),) if bounds else ()
        table.add_row(each, measured(ALL_SPECS[each], reading.value), *interval, f"{reading.runs:,}")
    return table


def _passes(agent: AgentView) -> Iterator[RenderableType]:
    passes = agent.passes
    if not passes.pass_hat_k or agent.one_sided:
        return
    ks = [f"k = {k}" for k in passes.pass_hat_k]
    table = columns("Repeated attempts", *ks, "runs", numbers=len(ks) + 1)
    for name, series in (("pass@k, one of k passes", passes.pass_at_k), ("pass^k, all of k pass", passes.pass_hat_k)):
        table.add_row(name, *(percent(value) for value in series.values() if value is not None), f"{passes.runs:,}")
    yield table
    if any(task.runs > 1 for task in passes.tasks):
        yield from _group("The worst task" if len(passes.tasks) > 1 else "In their order", PASSES, agent)


def _sessions(agent: AgentView) -> Iterator[RenderableType]:
    gauges = list(_group("Sessions", SESSION_GAUGES, agent))
    if gauges:
        derived = sorted({name for session in agent.sessions for name in session.derived})
        note = f"derived from tool calls, without an evaluation: {', '.join(derived)}"
        yield Group(*gauges, *([dim(note)] if derived else []))
    scored = ((one.reliability, one.id, at) for at, one in enumerate(agent.sessions))
    worst = sorted((score, id_, at) for score, id_, at in scored if score is not None and score < 1)
    if worst:
        table = columns("Sessions, the worst first", "", "runs", "reliability", "consistency", numbers=3)
        for score, _, at in worst[:MAX_SESSIONS]:
            session = agent.sessions[at]
            band = dim(reliability_band(score).partition(" — ")[0])
            runs = f"{len(session.runs):,}"
            table.add_row(clean(session.id, 24), band, runs, number(score), number(session.consistency))
        if len(worst) > MAX_SESSIONS:
            table.add_row(dim(f"and {count(len(worst) - MAX_SESSIONS, 'more session')}"))
        yield table


Section = Callable[[AgentView], Iterator[RenderableType]]

SECTIONS: Final[Sequence[Section]] = (_costs, _why, _spreads, _tasks, _other_readings, _passes, _sessions)


# --- Two recordings ---------------------------------------------------------------------------------------------------


def _comparison(baseline: Baseline) -> Iterator[RenderableType]:
    yield from map(_compared, baseline.agents)
    for keys, where in ((baseline.only_before, "before"), (baseline.only_after, "now")):
        if keys:
            yield dim(f"Only {where}: {listed((clean(key.agent) for key in keys), 10)}.")
    if not baseline.agents:
        yield Text("No agent is in both recordings: agents are matched by service, environment and name.", "bold")


def _compared(each: AgentComparison) -> RenderableType:
    moved, same = words.moved(each)
    body: list[RenderableType] = [Text.assemble(*_badge(each.old), "  →  ", *_badge(each.new)), Text()]
    if moved:
        is_group = each.old.key != each.new.key
        before, now = (
            (clean(side.key.extra[-1][1], 24) for side in (each.old, each.new)) if is_group else ("before", "now")
        )
        table = columns("What changed", before, "95 %", "runs", now, "95 %", "runs", "", numbers=7)
        table.columns[-1].no_wrap = False
        for name, one in moved.items():
            style = STYLES.get(one.verdict, "") if one.more_than_chance is not False else "dim"
            table.add_row(
                name, *_side(name, one.before), *_side(name, one.after), Text(words.compared(name, one), style)
            )
        body.append(table)
    if same:
        body.append(dim(f"{count(len(same), 'number')} the same: {listed(same, 5)}"))
    chance = words.about_chance(each)
    return Group(title(each.new), *(Padding(part, INDENT) for part in (*body, *([dim(chance)] if chance else []))))


def _badge(agent: AgentView) -> tuple[tuple[str, str]]:
    return (
        (("no score", "dim"),) if agent.tier is None or agent.badge is None else ((agent.badge, COLOURS[agent.tier]),)
    )


def _side(name: str, reading: ReadingView) -> tuple[RenderableType, ...]:
    return measured(ALL_SPECS[name], reading.value), dim(words.interval(name, reading)), f"{reading.runs:,}"
