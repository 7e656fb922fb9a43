"""The findings of a scorecard as sentences, one list a cause, for every format to write down."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from otel_reliability.metrics.stability.divergence import Divergence, Turn
from otel_reliability.metrics.stability.effect_table import TaskEffects
from otel_reliability.metrics.stability.notable_runs import Explosion, Notable
from otel_reliability.metrics.stability.tool_use import ToolUse
from otel_reliability.model.row import Row
from otel_reliability.report.scorecard import ALL_SPECS, Scorecard
from otel_reliability.report.task_effects import parted
from otel_reliability.report.text import clean, count, listed, number, percent, route, seconds, trace_of

SHOWN: Final = 3
"""Details of one cause that are told; the rest is counted."""
WORTH_TELLING: Final = 0.05
"""Points from which a cost is told: below, it rounds to none."""


EFFECTS: Final = "Changes to the world"
"""The title of what the effects of attempts tell; a table of the tasks tells the same."""


class Reason(NamedTuple):
    """One cause: what it is about, the points it costs (None: none of the score's), what is so, and the details to look at."""

    title: str
    points: float | None
    sentence: str
    details: tuple[str, ...] = ()


Told = Iterator[tuple[str, Sequence[str]]]
"""A sentence and its details; nothing where there is nothing to tell."""


def reasons_of(card: Scorecard) -> list[Reason]:
    """Why the score is what it is, the dearest cause first; then what is worth a look beside it."""
    costs = [cost for cost in card.findings.costs if (cost.points or 0.0) >= WORTH_TELLING]
    told = [
        Reason(ALL_SPECS[cost.name].title, cost.points, sentence, tuple(details))
        for cost in costs
        for sentence, details in _CAUSES[cost.name](card)
    ]
    return [*told, *(Reason(title, None, *_fixed(each)) for title, tell in _BESIDE for each in tell(card))]


def _fixed(each: tuple[str, Sequence[str]]) -> tuple[str, tuple[str, ...]]:
    return each[0], tuple(each[1])


# --- What costs points -----------------------------------------------------------------------------------------------


def _paths(card: Scorecard) -> Told:
    distinct, usual = card.readings["distinct_paths"], card.readings["modal_path_share"]
    if distinct.value is None or usual.value is None:
        return
    of_task = " of their task" if card.tasks else ""
    sentence = (
        f"{count(round(distinct.value), 'distinct path')} in {count(distinct.runs, 'run')}; "
        f"{percent(usual.value)} of the runs took the usual one{of_task}."
    )
    yield sentence, _some([_divergence(one) for one in card.findings.divergences], "task")


def _divergence(found: Divergence) -> str:
    where = "" if found.task is None else f"task {clean(found.task)}: "
    after = f"after {route(found.shared)}, " if found.shared else "at the first step, "
    return f"{where}{after}{listed(map(_turn, found.turns))}"


def _turn(turn: Turn) -> str:
    return f"{percent(turn.share)} {'end there' if turn.step is None else clean(turn.step, 40)}"


def _tools(card: Scorecard) -> Told:
    rare, tools = card.findings.rare_tools, card.findings.tools
    if not tools:
        return
    if rare:
        were = "was" if len(rare) == 1 else "were"
        sentence = f"{len(rare)} of {count(len(tools), 'tool')} {were} used in fewer than one run in five."
    else:
        sentence = f"No tool is rare; the {count(len(tools), 'tool')} are combined differently from run to run."
    runs = card.readings["distinct_paths"].runs
    yield sentence, _some([_tool(use, runs) for use in rare or _uneven(tools)], "tool")


def _tool(use: ToolUse, runs: int) -> str:
    return f"{clean(use.tool)}: {percent(use.share)}, {use.runs} of {count(runs, 'run')}"


def _uneven(tools: Sequence[ToolUse]) -> list[ToolUse]:
    """The tools that some runs use and some do not, the most evenly split first."""
    return sorted((use for use in tools if use.share < 1), key=lambda use: abs(use.share - 0.5))


def _retries(card: Scorecard) -> Told:
    found = card.findings.explosions
    if found:
        runs = card.readings["retry_explosion"].runs
        sentence = f"{len(found)} of {count(runs, 'run')} kept retrying a call that failed, by trace:"
        yield sentence, _some([_explosion(one) for one in found], "run")


def _explosion(one: Explosion) -> str:
    tool = "a tool" if one.tool is None else clean(one.tool, 40)
    cost = f", {one.tokens:,} tokens" if one.tokens else ""
    return f"{trace_of(one.run_id)}  {tool} retried {one.retries}×, {seconds(one.seconds)}{cost}"


def _branches(card: Scorecard) -> Told:
    decisions = card.findings.decisions
    if decisions:
        sentence = f"{count(len(decisions), 'named decision')} flipped although the input was alike."
        yield sentence, _some([_decision(*one) for one in decisions], "decision")
    else:
        yield "No branch is named, so the whole path of a task counts as one decision (see path entropy).", ()


def _decision(kind: str, name: str, decision: str, branches: Sequence[tuple[str, int]]) -> str:
    alike = f" of {kind} {clean(name)}" if kind else ""
    taken = listed(f"{clean(branch, 40)} {runs}" for branch, runs in branches)
    return f"{clean(decision)}{alike}: {taken}"


def _pressure(card: Scorecard) -> Told:
    reading = card.readings["token_budget_pressure"]
    if reading.value is None:
        return
    sentence = f"The context window is {percent(reading.value)} full on average. Nearest their limit, by trace:"
    yield sentence, [f"{trace_of(one.run_id)}  {percent(one.value)}" for one in card.findings.fullest]


_CAUSES: Final[Mapping[str, Callable[[Scorecard], Told]]] = {
    "path_entropy": _paths,
    "tool_variance": _tools,
    "retry_explosion": _retries,
    "branch_instability": _branches,
    "token_budget_pressure": _pressure,
}


# --- What is worth a look --------------------------------------------------------------------------------------------


def _odd_runs(card: Scorecard) -> Told:
    if card.findings.oddest:
        others = "the others of its task" if card.tasks else "the others"
        rows = {row.run_id: row for row in card.rows}
        odd = [_odd(run, rows[run.run_id]) for run in card.findings.oddest]
        yield f"How far a run's path is from {others} (1: no step alike), by trace:", odd


def _odd(run: Notable, row: Row) -> str:
    task = "" if row.task is None else f"task {clean(row.task)}, "
    steps = 0 if row.path is None else len(row.path.names)
    return f"{trace_of(run.run_id)}  {number(run.value)}  {task}{count(steps, 'step') if steps else 'no tool called'}"


def _effects(card: Scorecard) -> Told:
    effects = [one for one in card.findings.effects if one.disagreement > 0]
    if effects:
        sentence = f"{count(len(effects), 'task')} whose attempts did not end in the same changes. Look at these first:"
        yield sentence, _some([_task_effects(one) for one in effects], "task")


def _task_effects(one: TaskEffects) -> str:
    failed = f"; {one.failed} of {one.judged} failed" if one.judged else ""
    return f"task {clean(one.task)}: {percent(one.disagreement)} apart: {parted(one, SHOWN)}{failed}"


_BESIDE: Final[Sequence[tuple[str, Callable[[Scorecard], Told]]]] = (
    ("Runs unlike the others", _odd_runs),
    (EFFECTS, _effects),
)


def _some(details: Sequence[str], noun: str) -> list[str]:
    rest = len(details) - SHOWN
    more = [f"and {count(rest, f'more {noun}')}"] if rest > 0 else []
    return [*details[:SHOWN], *more]
