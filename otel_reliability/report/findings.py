"""The findings of a window: which runs, tools and steps are behind its numbers, what lowers the
score most, and this in words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from heapq import nsmallest
from itertools import islice
from types import MappingProxyType
from typing import Final, TypeAlias

from otel_reliability.config import Settings
from otel_reliability.metrics import ALL_SPECS
from otel_reliability.metrics.base import UNKNOWN_INPUTS
from otel_reliability.metrics.stability.score import PENALTIES, Score
from otel_reliability.metrics.stability.tables import (
    Decision,
    Divergence,
    TaskEffects,
    decision_table,
    divergences,
    tasks_by_disagreement,
    tool_use,
)
from otel_reliability.model.reading import Reading
from otel_reliability.model.row import OTHER_TASK, Row
from otel_reliability.report.compression import compression_reasons
from otel_reliability.report.text import (
    clean,
    count,
    dollars,
    listed,
    number,
    percent,
    route,
    seconds,
    trace_of,
)
from otel_reliability.report.view import (
    CompressionView,
    Cost,
    ExplodingRun,
    Findings,
    FullRun,
    ReadingView,
    ScoreReason,
    UnusualRun,
)

UNUSUAL_RUNS: Final = 3
"""Runs unlike the others that are named."""
FULL_RUNS: Final = 3
"""Runs nearest their context limit that are named."""
MAX_DETAILS: Final = 3
"""Details of one cause that are shown; the rest is counted."""
MIN_POINTS: Final = 0.05
"""Points from which a cost is shown: below, it rounds to none."""

MANY_FAILED_CALLS: Final = 0.1
"""Share of failed tool calls from which they are named: one that fails now and then is tried
again.
"""

UNUSUAL: Final = "Runs unlike the others"
EFFECTS: Final = "Changes to the world"
WASTE: Final = "Cost of retries and loops"
FAILED_RUNS: Final = "Runs that fail"
MIXED_TASKS: Final = "Tasks that succeed only sometimes"
FAILED_CALLS: Final = "Calls that fail"
FAILURES: Final = (FAILED_RUNS, MIXED_TASKS, FAILED_CALLS)
"""Titles of the reasons that are about success."""

Ask: TypeAlias = Callable[[str], Reading | ReadingView]
"""Return the reading of that name."""
Metrics: TypeAlias = Mapping[str, ReadingView]
Cause: TypeAlias = tuple[str, Sequence[str]] | None
"""A sentence and its details; None where there is nothing to report."""


def findings_of(
    rows: Sequence[Row],
    metrics: Mapping[str, ReadingView],
    distances: Mapping[str, float],
    settings: Settings,
    compression: CompressionView | None,
    *,
    has_tasks: bool,
    failed_tools: Mapping[str, int] = MappingProxyType({}),
) -> Findings:
    """Return what is behind the numbers of these runs. `distances` are their path distances, the
    largest first; `failed_tools` in how many, of those that have samples, a call of each tool
    fails.
    """
    found = Findings(
        costs=ranked_costs(metrics, settings),
        reasons=(),
        tools=tuple(tool_use(rows)),
        divergences=tuple(divergences(rows, by_task=settings.metrics.group_by == "task")),
        decisions=tuple(decision_table(rows)),
        exploding_runs=exploding_runs(rows, settings.metrics.retry_threshold),
        runs_nearest_limit=tuple(_runs_nearest_limit(rows)),
        runs_unlike_others=tuple(_runs_unlike_others(rows, distances)),
        tasks_by_effects=tuple(tasks_by_disagreement(rows, settings)),
    )
    reasons = [
        *failures_of(rows, failed_tools),
        *reasons_of(found, metrics, has_tasks=has_tasks),
        *compression_reasons(compression),
    ]
    return replace(found, reasons=tuple(reasons))


def ranked_costs(metrics: Mapping[str, ReadingView], settings: Settings) -> tuple[Cost, ...]:
    """Return the parts of the score, the largest penalty first, those without data last.

    >>> metrics = dict.fromkeys(PENALTIES, ReadingView(None, 0)) | {
    ...     "path_entropy": ReadingView(0.5, 9),
    ...     "tool_variance": ReadingView(1.0, 9),
    ... }
    >>> [(cost.name, round(cost.points or 0, 1)) for cost in ranked_costs(metrics, Settings())][:3]
    [('tool_variance', 57.1), ('path_entropy', 21.4), ('retry_explosion', 0)]
    """
    readings = {name: Reading(metrics[name].value, metrics[name].runs) for name in PENALTIES}
    found = Score(settings).penalties(readings)
    costs = (Cost(name, *found.get(name, (None, points))) for name, points in PENALTIES.items())
    return tuple(sorted(costs, key=lambda cost: (cost.points is None, -(cost.points or 0.0))))


# --- Which runs -----------------------------------------------------------------------------------


def exploding_runs(rows: Iterable[Row], threshold: int) -> tuple[ExplodingRun, ...]:
    """Return the runs with a chain of at least `threshold` retries, the longest chain first.

    >>> from otel_reliability.testing import row
    >>> [
    ...     (found.tool, found.retries)
    ...     for found in exploding_runs([row(retries=2), row(retries=3), row(retries=7)], 3)
    ... ]
    [('tool', 7), ('tool', 3)]
    """
    found = [
        ExplodingRun(
            row.run_id,
            trace_of(row.run_id),
            retries.tool,
            retries.longest_chain,
            retries.tokens,
            retries.duration_ns / 1e9,
        )
        for row in rows
        if (retries := row.retries) is not None
        and row.undisturbed
        and retries.longest_chain >= threshold
    ]
    return tuple(sorted(found, key=lambda run: (-run.retries, run.run_id)))


def _runs_nearest_limit(rows: Iterable[Row]) -> Iterator[FullRun]:
    known = (
        (row.pressure, row.run_id) for row in rows if row.undisturbed and row.pressure is not None
    )
    for pressure, run_id in nsmallest(FULL_RUNS, known, key=lambda one: (-one[0], one[1])):
        yield FullRun(run_id, trace_of(run_id), pressure)


def path_distances(
    rows: Iterable[Row], distances: Callable[[Sequence[Row]], Sequence[Reading]]
) -> dict[str, float]:
    """Return how unlike the others of its group each run is (`AgentWindow.path_distances`), the
    most unlike first.

    Runs that took the same path in the same group are equally far: each path is measured once.

    >>> from otel_reliability.testing import rows_of
    >>> from otel_reliability.metrics.stability.path_similarity import PathSimilarity
    >>> similarity, rows = PathSimilarity(), rows_of("a b", "a b", "c")
    >>> for row in rows:
    ...     similarity.add(row)
    >>> list(path_distances(rows, lambda rows: [*map(similarity.distance, rows)]).values())
    [1.0, 0.5, 0.5]
    """
    alike: dict[tuple[str | None, int | None, str], list[Row]] = {}
    for row in rows:
        if row.path is not None and row.undisturbed:
            alike.setdefault((row.task, row.group, row.path.code), []).append(row)
    groups = list(alike.values())
    readings = distances([group[0] for group in groups])
    found = {
        row.run_id: reading.value
        for group, reading in zip(groups, readings, strict=True)
        if reading.value is not None
        for row in group
    }
    return dict(sorted(found.items(), key=lambda item: (-item[1], item[0])))


def _runs_unlike_others(
    rows: Sequence[Row], distances: Mapping[str, float]
) -> Iterator[UnusualRun]:
    named = {
        run_id: value for run_id, value in islice(distances.items(), UNUSUAL_RUNS) if value > 0
    }
    by_id = {row.run_id: row for row in rows} if named else {}
    for run_id, value in named.items():
        row = by_id[run_id]
        steps = 0 if row.path is None else len(row.path.names)
        yield UnusualRun(run_id, trace_of(run_id), value, row.task, steps)


# --- In words -------------------------------------------------------------------------------------


def reasons_of(found: Findings, metrics: Metrics, *, has_tasks: bool) -> Iterator[ScoreReason]:
    """Yield why the score is what it is, the largest penalty first; then what else is worth
    inspecting.
    """
    for cost in found.costs:
        if (cost.points or 0.0) >= MIN_POINTS:
            cause = _CAUSES[cost.name](found, metrics)
            if cause is not None:
                yield ScoreReason(
                    ALL_SPECS[cost.name].title, cost.points, cause[0], tuple(cause[1])
                )
    wasted = [
        *_wasted("retry", "retries_per_run", "retry", metrics),
        *_wasted("repeated call", "loops", "loop", metrics),
    ]
    if wasted:
        sentence = "What calls that did no work cost, with the model calls that asked for them:"
        yield ScoreReason(WASTE, None, sentence, tuple(wasted))
    if found.runs_unlike_others:
        others = "the others of its task" if has_tasks else "the others"
        sentence = f"How far a run's path is from {others} (1: no step in common), by trace:"
        yield ScoreReason(UNUSUAL, None, sentence, tuple(map(_unusual, found.runs_unlike_others)))
    effects = [one for one in found.tasks_by_effects if one.disagreement > 0]
    if effects:
        sentence = (
            f"{count(len(effects), 'task')} whose attempts did not end in the same changes. "
            "Inspect these first:"
        )
        yield ScoreReason(
            EFFECTS, None, sentence, tuple(_some("task", map(_task_effects, effects)))
        )


def failures_of(
    rows: Iterable[Row], failed_tools: Mapping[str, int] = MappingProxyType({})
) -> Iterator[ScoreReason]:
    """Yield which runs fail, the latest first, which tasks succeed only sometimes, and which runs
    make calls that fail.

    >>> from otel_reliability.model.run import Outcome
    >>> from otel_reliability.testing import row
    >>> ends = [Outcome.SUCCESS, Outcome.FAILURE, Outcome.SUCCESS]
    >>> found = failures_of([row("pay", task="refund-7", outcome=end) for end in ends])
    >>> [(reason.sentence, reason.details[0].split("  ")[-1]) for reason in found]
    [('1 of 3 runs failed. The latest, by trace:', 'task refund-7, after pay'),
     ('1 task has successes and failures:', 'refund-7: 2 of 3 succeed')]
    """
    undisturbed = [row for row in rows if row.undisturbed]
    failed = [row for row in undisturbed if row.failed]
    if failed:
        errors = sum(row.ended_in_error is True for row in failed)
        by_error = f", {errors:,} by an error" if errors else ""
        known = _with_known_end(undisturbed)
        of = count(known, "run") + ("" if known == len(undisturbed) else " with a known outcome")
        sentence = f"{len(failed):,} of {of} failed{by_error}. The latest, by trace:"
        latest = tuple(_some("run", map(_failed_run, reversed(failed))))
        yield ScoreReason(FAILED_RUNS, None, sentence, latest)
    outcomes: dict[str, list[bool]] = {}
    for row in undisturbed:
        if row.task is not None and row.task != OTHER_TASK and row.success is not None:
            outcomes.setdefault(row.task, []).append(row.success)
    mixed = sorted(
        (sum(each) / len(each), f"{clean(task)}: {sum(each)} of {len(each)} succeed")
        for task, each in outcomes.items()
        if 0 < sum(each) < len(each)
    )
    if mixed:
        verb = "has" if len(mixed) == 1 else "have"
        sentence = f"{count(len(mixed), 'task')} {verb} successes and failures:"
        lines = tuple(_some("task", (line for _, line in mixed)))
        yield ScoreReason(MIXED_TASKS, None, sentence, lines)
    failing = [row for row in undisturbed if row.failed_calls]
    calls = sum(row.tool_calls or 0 for row in undisturbed)
    failed_calls = sum(row.failed_calls or 0 for row in failing)
    if calls and failed_calls / calls >= MANY_FAILED_CALLS:
        sentence = (
            f"{failed_calls:,} of {count(calls, 'tool call')} failed, in "
            f"{len(failing):,} of {count(len(undisturbed), 'run')}{_by_tool(failed_tools)}. "
            "The latest, by trace:"
        )
        latest = tuple(_some("run", map(_failed_calls, reversed(failing))))
        yield ScoreReason(FAILED_CALLS, None, sentence, latest)


def _with_known_end(undisturbed: Sequence[Row]) -> int:
    """Return how many of these runs are known to have failed, or to have succeeded; where no
    success is known, or not to have failed.
    """
    if any(row.success for row in undisturbed):
        return sum(row.success is not None or row.failed is True for row in undisturbed)
    return sum(row.failed is not None for row in undisturbed)


def _by_tool(failed_tools: Mapping[str, int]) -> str:
    """Return the tools of which calls fail, that of the most runs first.

    >>> _by_tool({"search": 2, "pay": 40})
    '; most often pay, search'
    """
    most = sorted(failed_tools.items(), key=lambda one: (-one[1], one[0]))[:MAX_DETAILS]
    return f"; most often {', '.join(clean(tool, 40) for tool, _ in most)}" if most else ""


def _failed_calls(row: Row) -> str:
    steps = "" if row.path is None else f": {route(row.path.names)}"
    calls = count(row.tool_calls or 0, "call")
    return f"{trace_of(row.run_id)}  {row.failed_calls:,} of {calls} failed{steps}"


def _failed_run(row: Row) -> str:
    task = [] if row.task is None else [f"task {clean(row.task)}"]
    end = ["ended in an error"] if row.ended_in_error else []
    names = () if row.path is None else row.path.names
    step = [f"after {clean(names[-1], 40)}"] if names else []
    return f"{trace_of(row.run_id)}  {', '.join([*task, *end, *step]) or 'failed'}"


def short_reason(name: str, ask: Ask) -> str:
    """Return why a part lowers the score, from readings alone: a table of thousands of agents can
    afford it.

    Without task ids all runs are attempts at one task.
    """
    value = ask(name).value or 0.0
    match name:
        case "path_entropy":
            distinct = ask("distinct_paths")
            common = ask("modal_path_share")
            if distinct.value is None or common.value is None:
                return "The order of tool calls varies from run to run."
            paths = f"{count(round(distinct.value), 'path')} in {count(distinct.runs, 'run')}"
            which = "" if UNKNOWN_INPUTS in common.note else " for their input"
            return f"{paths}; {percent(common.value)} took the most common one{which}."
        case "tool_variance":
            return f"Runs combine the tools differently ({percent(value)} tool variance)."
        case "retry_explosion":
            share = ask("retry_explosion_share")
            longest = ask("longest_retry_chain")
            if share.value is None or longest.value is None:
                return "A failing call was retried again and again."
            runs = f"{round(share.value * share.runs)} of {count(share.runs, 'run')}"
            return (
                f"{runs} kept retrying a failing call, "
                f"up to {count(round(longest.value), 'time')}; "
                "one such run takes all the points of this part."
            )
        case "branch_instability":
            return (
                f"Decisions flip although the input is the same ({percent(value)} branch "
                "instability)."
            )
        case _:
            return f"The context window is {percent(value)} full on average."


def _paths(found: Findings, metrics: Metrics) -> Cause:
    return short_reason("path_entropy", metrics.__getitem__), _some(
        "task", map(_divergence, found.divergences)
    )


def _divergence(one: Divergence) -> str:
    where = "" if one.task_id is None else f"task {clean(one.task_id)}: "
    after = f"after {route(one.shared)}, " if one.shared else "at the first step, "
    turns = (
        f"{percent(turn.share)} {'end there' if turn.step is None else clean(turn.step, 40)}"
        for turn in one.turns
    )
    return f"{where}{after}{listed(turns)}"


def _tools(found: Findings, metrics: Metrics) -> Cause:
    rare = [use for use in reversed(found.tools) if use.rare]
    if not found.tools:
        return None
    if rare:
        were = "was" if len(rare) == 1 else "were"
        sentence = (
            f"{len(rare)} of {count(len(found.tools), 'tool')} {were} used in fewer than one "
            "run in five."
        )
    else:
        sentence = (
            f"No tool is rare; the {count(len(found.tools), 'tool')} are combined differently "
            "from run to run."
        )
    uneven = sorted(
        (use for use in found.tools if use.share < 1), key=lambda use: abs(use.share - 0.5)
    )
    runs = count(metrics["distinct_paths"].runs, "run")
    return sentence, _some(
        "tool",
        (
            f"{clean(use.tool)}: {percent(use.share)}, {use.runs} of {runs}"
            for use in rare or uneven
        ),
    )


def _retries(found: Findings, metrics: Metrics) -> Cause:
    return short_reason("retry_explosion", metrics.__getitem__), _some(
        "run", map(_explosion, found.exploding_runs)
    )


def _explosion(one: ExplodingRun) -> str:
    tool = "a tool" if one.tool is None else clean(one.tool, 40)
    cost = f", {one.tokens:,} tokens" if one.tokens else ""
    return f"{one.trace_id}  {tool} retried {one.retries}×, {seconds(one.seconds)}{cost}"


def _branches(found: Findings, metrics: Metrics) -> Cause:
    if not found.decisions:
        return (
            (
                "No branch is named, so the whole path of a task counts as one decision (see "
                "path entropy)."
            ),
            (),
        )
    sentence = (
        f"{count(len(found.decisions), 'named decision')} flipped although the input was the same."
    )
    return sentence, _some("decision", map(_decision, found.decisions))


def _decision(one: Decision) -> str:
    of = f" of {one.kind} {clean(one.name)}" if one.kind else ""
    branches = listed(f"{clean(branch, 40)} {runs}" for branch, runs in one.branches.items())
    return f"{clean(one.decision)}{of}: {branches}"


def _pressure(found: Findings, metrics: Metrics) -> Cause:
    nearest = [f"{one.trace_id}  {percent(one.token_pressure)}" for one in found.runs_nearest_limit]
    sentence = short_reason("token_budget_pressure", metrics.__getitem__)
    return f"{sentence} Nearest their limit, by trace:", nearest


_CAUSES: Final[Mapping[str, Callable[[Findings, Metrics], Cause]]] = {
    "path_entropy": _paths,
    "tool_variance": _tools,
    "retry_explosion": _retries,
    "branch_instability": _branches,
    "token_budget_pressure": _pressure,
}


def _wasted(noun: str, per_run: str, prefix: str, metrics: Metrics) -> Iterator[str]:
    amount = _total(metrics[per_run])
    if amount:
        tokens, spent, cost = (
            metrics[f"{prefix}_{unit}_per_run"] for unit in ("tokens", "seconds", "cost")
        )
        parts = [f"{_total(tokens):,.0f} tokens"] if tokens.value else []
        parts += [seconds(_total(spent))] if spent.value else []
        known = f"in the {count(cost.runs, 'run')} whose cost is known"
        parts += [f"{dollars(_total(cost))} {known}"] if cost.value else []
        runs = count(metrics[per_run].runs, "run")
        yield f"{count(round(amount), noun)} in {runs}: {', '.join(parts) or 'no tokens known'}"


def _total(per_run: ReadingView) -> float:
    return (per_run.value or 0.0) * per_run.runs


def _unusual(one: UnusualRun) -> str:
    task = "" if one.task is None else f"task {clean(one.task)}, "
    steps = count(one.steps, "step") if one.steps else "no tool called"
    return f"{one.trace_id}  {number(one.path_distance)}  {task}{steps}"


def _task_effects(one: TaskEffects) -> str:
    failed = f"; {one.failed} of {one.judged} failed" if one.judged else ""
    return (
        f"task {clean(one.task)}: {percent(one.disagreement)} apart: "
        f"{differing(one, MAX_DETAILS)}{failed}"
    )


def _some(noun: str, details: Iterable[str]) -> list[str]:
    every = list(details)
    rest = len(every) - MAX_DETAILS
    return [*every[:MAX_DETAILS], *([f"and {count(rest, f'more {noun}')}"] if rest > 0 else [])]


def differing(effects: TaskEffects, most: int) -> str:
    """Return the tools whose calls differ between the attempts at a task, and how many attempts
    made which.

    The most evenly split tools come first; arguments are never shown.

    >>> from otel_reliability.metrics.stability.tables import Parting
    >>> differing(
    ...     TaskEffects(
    ...         "refund", 6, 0.5, (Parting("pay", 2), Parting("mail", 1), Parting("mail", 1)), 0, 0
    ...     ),
    ...     3,
    ... )
    'pay by 2 of 6; mail: 2 different calls, each by 1 of 6'
    """
    tools: dict[str, list[int]] = {}
    for parting in effects.partings:
        tools.setdefault(parting.tool, []).append(parting.attempts)

    def unevenness(tool: str) -> int:
        return abs(2 * min(effects.runs, sum(tools[tool])) - effects.runs)

    found = (
        clean(tool, 40) + _split(tools[tool], effects.runs)
        for tool in sorted(tools, key=unevenness)
    )
    return listed(found, most, "; ")


def _split(attempts: Sequence[int], runs: int) -> str:
    """Return how many of the attempts made each of the calls of a tool.

    >>> _split([2], 6), _split([1] * 5, 6)
    (' by 2 of 6', ': 5 different calls, each by 1 of 6')
    >>> _split([3, 2, 1, 1], 6)
    ': 4 different calls, by 3, 2, 1, … of 6'
    """
    if len(attempts) == 1:
        return f" by {attempts[0]} of {runs}"
    if len(set(attempts)) == 1:
        return f": {len(attempts)} different calls, each by {attempts[0]} of {runs}"
    shown = ", ".join(map(str, attempts[:3])) + (", …" if len(attempts) > 3 else "")
    return f": {len(attempts)} different calls, by {shown} of {runs}"
