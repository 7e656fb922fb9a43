"""The metrics as plain batch formulas, as near to their sources as Python can be: what the sums are
checked against.

Nothing here is fast or incremental, and nothing in the package uses it. `NAIVE` is the table of
pairs: metric name → formula over the rows of a window.
"""

from __future__ import annotations

import math
import random
import statistics
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from itertools import accumulate, combinations, pairwise

from otel_reliability.config import ObjectiveSettings, Settings
from otel_reliability.model.row import Row

Formula = Callable[[Sequence[Row], Settings], float | None]


def baseline(rows: Iterable[Row]) -> list[Row]:
    return [row for row in rows if row.condition == "baseline"]


def traced(rows: Iterable[Row]) -> list[Row]:
    """The undisturbed runs that have a path."""
    return [row for row in baseline(rows) if row.path is not None]


def path(row: Row) -> tuple[str, ...]:
    assert row.path is not None
    return row.path.names


def entropy(values: Iterable[Hashable]) -> float:
    """Shannon entropy in bits."""
    counts = Counter(values)
    total = counts.total()
    return -sum(count / total * math.log2(count / total) for count in counts.values())


def edits(left: Sequence[str], right: Sequence[str]) -> int:
    """Levenshtein distance by the textbook's table."""
    line = list(range(len(right) + 1))
    for i, one in enumerate(left, 1):
        above = line
        line = [i]
        for j, other in enumerate(right, 1):
            line.append(min(above[j] + 1, line[-1] + 1, above[j - 1] + (one != other)))
    return line[-1]


def similarity(left: Sequence[str], right: Sequence[str]) -> float:
    """1 − Levenshtein distance / longer length; two empty paths are alike."""
    longer = max(len(left), len(right))
    return 1 - edits(left, right) / longer if longer else 1.0


def over_groups(of_group: Callable[[list[Row]], float]) -> Formula:
    """The mean over groups of at least 2 runs, each weighing as many as it has."""

    def formula(rows: Sequence[Row], settings: Settings) -> float | None:
        groups: dict[str | None, list[Row]] = {}
        for row in traced(rows):
            groups.setdefault(row.task if settings.metrics.group_by == "task" else None, []).append(
                row
            )
        shared = [group for group in groups.values() if len(group) >= 2]
        if not shared:
            return None
        return sum(len(group) * of_group(group) for group in shared) / sum(map(len, shared))

    return formula


def of_runs(
    of_row: Callable[[Row], float | None], total: Callable[[list[float]], float] = statistics.fmean
) -> Formula:
    """A number over the undisturbed runs that have one."""

    def formula(rows: Sequence[Row], settings: Settings) -> float | None:
        found = [value for row in baseline(rows) if (value := of_row(row)) is not None]
        return total(found) if found else None

    return formula


def variation(rows: list[Row]) -> float:
    """The mean over tools of min(pstdev / mean, 2) / 2 of the calls per run."""
    tools = {tool for row in rows for tool in path(row)}
    spreads: list[float] = []
    for tool in tools:
        calls = [path(row).count(tool) for row in rows]
        spreads.append(min(statistics.pstdev(calls) / statistics.fmean(calls), 2) / 2)
    return statistics.fmean(spreads) if spreads else 0.0


def branch_instability(rows: Sequence[Row], settings: Settings) -> float | None:
    """Σ (n − modal) / Σ n over (input class, else task; decision) of at least 2 runs."""
    groups: dict[Hashable, list[Hashable]] = {}
    for row in baseline(rows):
        alike = ("class", row.input_class) if row.input_class is not None else ("task", row.task)
        known = row.input_class is not None or row.task is not None
        for decision, branch in row.branches:
            groups.setdefault((alike if known else None, decision), []).append(branch)
        if known and not row.branches and row.path is not None:
            groups.setdefault((alike, None), []).append(path(row))
    shared = [taken for taken in groups.values() if len(taken) >= 2]
    if not shared:
        return None
    return sum(len(taken) - max(Counter(taken).values()) for taken in shared) / sum(
        map(len, shared)
    )


def no_effect_share(rows: Sequence[Row], settings: Settings) -> float | None:
    """The share of runs without an effect, where not all are."""
    idle = [row.effects is not None and not row.effects for row in traced(rows)]
    return None if all(idle) else statistics.fmean(idle)


def distinct_paths(rows: Sequence[Row], settings: Settings) -> float | None:
    return len({path(row) for row in traced(rows)}) or None


def retry_explosion(rows: Sequence[Row], settings: Settings) -> float | None:
    chains = [row.retries.longest_chain for row in baseline(rows) if row.retries is not None]
    return (
        float(any(chain >= settings.metrics.retry_threshold for chain in chains))
        if chains
        else None
    )


def explosion_share(rows: Sequence[Row], settings: Settings) -> float | None:
    """The share of the runs that have such a chain."""
    chains = [row.retries.longest_chain for row in baseline(rows) if row.retries is not None]
    return (
        sum(chain >= settings.metrics.retry_threshold for chain in chains) / len(chains)
        if chains
        else None
    )


def effective_runs(rows: Sequence[Row], settings: Settings) -> float | None:
    """(Σ w)² / Σ w²."""
    weights = [row.weight for row in baseline(rows)]
    return sum(weights) ** 2 / sum(weight**2 for weight in weights) if weights else None


PENALTIES = {
    "path_entropy": 15,
    "tool_variance": 20,
    "retry_explosion": 25,
    "branch_instability": 20,
    "token_budget_pressure": 20,
}


def score_coverage(rows: Sequence[Row], settings: Settings) -> float | None:
    """The points whose parts have data."""
    if not baseline(rows):
        return None
    return sum(
        points for name, points in PENALTIES.items() if NAIVE[name](rows, settings) is not None
    )


def score(rows: Sequence[Row], settings: Settings) -> float | None:
    """100 less the points lost, of 100 points or of those assessed, where there is data enough."""
    if len(baseline(rows)) < settings.metrics.min_runs:
        return None
    assessed = score_coverage(rows, settings) or 0
    if assessed < settings.metrics.min_coverage:
        return None
    costs = [points * (NAIVE[name](rows, settings) or 0) for name, points in PENALTIES.items()]
    of = 100 if settings.metrics.missing == "as_zero" else assessed
    return min(max(100 - sum(costs) * 100 / of, 0), 100)


def tier(rows: Sequence[Row], settings: Settings) -> float | None:
    """3 from 80, 2 from 60, 1 from 40, of the score rounded half up."""
    value = score(rows, settings)
    return (
        None
        if value is None
        else float(sum(math.floor(round(value, 9) + 0.5) >= least for least in (80, 60, 40)))
    )


def flag(rows: Sequence[Row], settings: Settings) -> float | None:
    """How many are set of: pressure above 0.8, predictability up to 0.1, a session that is full in
    3 turns.
    """
    rules: list[tuple[str, Callable[[float], bool]]] = [
        (
            "token_budget_pressure",
            lambda pressure: pressure > settings.metrics.pressure_flag + 1e-9,
        ),
        ("step_predictability", lambda predictability: predictability <= 0.1 + 1e-9),
        ("context_turns_left", lambda turns: turns <= 3),
    ]
    found = [
        is_set(value)
        for name, is_set in rules
        if (value := NAIVE[name](rows, settings)) is not None
    ]
    return float(sum(found)) if found else None


def step_predictability(rows: Sequence[Row], settings: Settings) -> float | None:
    """(raw − base) / (1 − base), where raw is the mutual information of a step and its successor
    over H(successor).
    """
    paths = [path(row) for row in traced(rows)]
    steps = sorted(step for steps in paths for step in steps)
    if len(set(steps)) < 2 or len(steps) + len(paths) < 60 or len(steps) < 1.5 * len(paths):
        return None
    draw = random.Random(0)
    redrawn: list[float] = []
    for _ in range(20):
        drawn = draw.choices(steps, k=len(steps))
        lengths = sorted(len(steps) for steps in paths)
        ends = list(accumulate(lengths))
        redrawn.append(
            determined(
                [drawn[end - length : end] for end, length in zip(ends, lengths, strict=True)]
            )
        )
    base = statistics.fmean(redrawn)
    return max((determined(paths) - base) / (1 - base), -1)


def determined(paths: Iterable[Sequence[str]]) -> float:
    """1 − H(next | current) / H(next), the conditional entropy as the mean of the entropies after
    each step.
    """
    after: dict[str, list[str]] = {}
    for steps in paths:
        for current, following in pairwise(["start", *(f"step {step}" for step in steps), "end"]):
            after.setdefault(current, []).append(following)
    every = [following for found in after.values() for following in found]
    return 1 - sum(len(found) * entropy(found) for found in after.values()) / len(every) / entropy(
        every
    )


def chats(rows: Sequence[Row]) -> list[list[float]]:
    """The pressures of each session of at least 3 turns, in the order of their starts."""
    sessions: dict[str, list[Row]] = {}
    for row in sorted(baseline(rows), key=lambda row: (row.start_ns, row.run_id)):
        if row.session_id is not None and row.pressure is not None:
            sessions.setdefault(row.session_id, []).append(row)
    return [
        [row.pressure or 0.0 for row in turns] for turns in sessions.values() if len(turns) >= 3
    ]


def slope(filled: Sequence[float]) -> float:
    """The least-squares slope over 1, 2, …"""
    middle = (len(filled) + 1) / 2
    mean = statistics.fmean(filled)
    above = sum((at - middle) * (share - mean) for at, share in enumerate(filled, 1))
    return above / sum((at - middle) ** 2 for at in range(1, len(filled) + 1))


def turns_left(filled: Sequence[float]) -> float | None:
    """The turns until the line through the pressures reaches 1, at least 1 where the last turn has
    not.
    """
    if filled[-1] >= 1:
        return 0
    if slope(filled) <= 1e-9:
        return None
    line = statistics.fmean(filled) - slope(filled) * (len(filled) + 1) / 2
    return max(math.ceil((1 - line) / slope(filled) - 1e-9) - len(filled), 1)


def context_growth(rows: Sequence[Row], settings: Settings) -> float | None:
    """The mean slope over sessions."""
    return min(max(statistics.fmean(map(slope, chats(rows))), -1), 1) if chats(rows) else None


def context_turns_left(rows: Sequence[Row], settings: Settings) -> float | None:
    """The turns left to the session that is full first."""
    left = [turns for filled in chats(rows) if (turns := turns_left(filled)) is not None]
    return float(min(left)) if left else None


def effect_agreement(rows: Sequence[Row], settings: Settings) -> float | None:
    """1 − the mean Jaccard distance over pairs of one task's runs; tasks of at least 2 runs weigh
    as many as they have.
    """
    tasks: dict[str, list[Row]] = {}
    for row in baseline(rows):
        if row.effects is not None and row.task is not None:
            tasks.setdefault(row.task, []).append(row)
    tasks = {task: runs for task, runs in tasks.items() if len(runs) >= 2}
    total = sum(map(len, tasks.values()))
    apart = sum(
        len(runs) * statistics.fmean(jaccard(*pair) for pair in combinations(runs, 2))
        for runs in tasks.values()
    )
    return 1 - apart / total if total else None


def jaccard(one: Row, other: Row) -> float:
    """Jaccard distance of two runs' effects; by tool names where either does not know the arguments
    of a call.
    """
    left = one.effects or frozenset()
    right = other.effects or frozenset()
    if any(arguments is None for _, arguments in left | right):
        left, right = ({(tool, None) for tool, _ in effects} for effects in (left, right))
    return 1 - len(left & right) / len(left | right) if left | right else 0.0


def error_rate(rows: Sequence[Row], settings: Settings) -> float | None:
    return share(row.ended_in_error for row in baseline(rows))


def failed_run_share(rows: Sequence[Row], settings: Settings) -> float | None:
    return share(map(fails, baseline(rows)))


def fails(row: Row) -> bool | None:
    return row.ended_in_error if row.success is None else not row.success


def failed_in_a_row(rows: Sequence[Row], settings: Settings) -> float | None:
    known = [row for row in baseline(rows) if fails(row) is not None]
    succeed_at = {row.task for row in known if not fails(row)}
    last = max((at for at, row in enumerate(known) if not fails(row)), default=-1)
    counted = [row for row in known[last + 1 :] if row.task is None or row.task in succeed_at]
    return float(len(counted)) if known else None


def failed_call_share(rows: Sequence[Row], settings: Settings) -> float | None:
    counted = [row for row in baseline(rows) if row.retries is not None]
    calls = sum(row.tool_calls or 0 for row in counted)
    return sum(row.failed_calls or 0 for row in counted) / calls if calls else None


def cache_hit_share(rows: Sequence[Row], settings: Settings) -> float | None:
    given = sum(row.input_tokens for row in baseline(rows))
    return sum(row.cached_tokens for row in baseline(rows)) / given if given else None


def least_share(objective: ObjectiveSettings) -> float:
    return 1 - (objective.errors or 0) if objective.success is None else objective.success


def budget_left(rows: Sequence[Row], settings: Settings) -> float | None:
    if not settings.objectives:
        return None
    [objective] = settings.objectives
    if objective.success is None:
        failed = error_rate(rows, settings)
    else:
        outcomes = [row.success for row in baseline(rows)]
        succeed = share(outcomes)
        one_sided = True not in outcomes and None in outcomes
        failed = None if succeed is None or one_sided else 1 - succeed
    return None if failed is None else 1 - failed / (1 - least_share(objective))


def mean_of(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None


def share(answers: Iterable[bool | None]) -> float | None:
    """The share of yes among yes and no."""
    known = [answer for answer in answers if answer is not None]
    return sum(known) / len(known) if known else None


def most_of(yes: int, of: int) -> float:
    """The share whose test against what was counted just keeps it at 5 %: the greater root p of
    (counted − p)² = z² p (1 − p) / n.
    """
    squared = 1.959963984540054**2 / of
    half = yes / of + squared / 2
    return (half + math.sqrt(half * half - (1 + squared) * (yes / of) ** 2)) / (1 + squared)


def verdict(rows: Sequence[Row], settings: Settings) -> float | None:
    """0 for failing, else 1 + the rank of the tier."""
    outcomes = [row.success for row in baseline(rows)]
    known = [outcome for outcome in outcomes if outcome is not None]
    if True in known or (known and len(known) == len(outcomes)):
        most = most_of(known.count(True), len(known))
    else:
        failed = [failed for row in baseline(rows) if (failed := fails(row)) is not None]
        most = most_of(failed.count(False), len(failed)) if failed else 1.0
    grade = tier(rows, settings)
    if most < 0.5 or (failed_in_a_row(rows, settings) or 0) >= 10:
        return 0.0
    return None if grade is None else grade + 1


def worse_grade(rows: Sequence[Row], settings: Settings) -> float | None:
    """0 for failing, else the lowest of 1 + the tier of the score, of the success rate, and of 0
    points where no outcome is known and more than half of the calls fail, by more than chance.
    """
    successes = [row.success for row in baseline(rows)]
    succeed = share(successes)
    ranks = [rank for rank in (tier(rows, settings),) if rank is not None]
    if succeed is None or (True not in successes and None in successes):
        failed = failed_run_share(rows, settings)
        succeed = 1 - failed if failed else None
        calls = failed_call_share(rows, settings)
        if calls is not None:
            counted = sum(
                row.retries is not None and bool(row.tool_calls) for row in baseline(rows)
            )
            if most_of(counted - round(calls * counted), counted) < 0.5:
                ranks.append(0)
    if succeed is not None:
        ranks.append(
            sum(math.floor(round(100 * succeed, 9) + 0.5) >= least for least in (80, 60, 40))
        )
    if verdict(rows, settings) == 0.0:
        return 0.0
    return 1.0 + min(ranks) if ranks else None


def wasted(row: Row, tokens: int) -> float | None:
    """What so many of a run's tokens cost."""
    return row.cost * min(tokens / row.tokens, 1.0) if row.cost is not None and row.tokens else None


NAIVE: Mapping[str, Formula] = {
    "window.runs": lambda rows, settings: float(len(baseline(rows))),
    "window.effective_runs": effective_runs,
    "data_quality.findings": lambda rows, settings: float(
        sum(bool(row.flaws) for row in baseline(rows))
    ),
    "error_rate": error_rate,
    "failed_run_share": failed_run_share,
    "failed_in_a_row": failed_in_a_row,
    "failed_call_share": failed_call_share,
    "cache_hit_share": cache_hit_share,
    "objective": lambda _, settings: next(map(least_share, settings.objectives), None),
    "objective_period": lambda _, settings: next((one.period for one in settings.objectives), None),
    "error_budget_left": budget_left,
    "cost_per_run": lambda rows, _: mean_of(
        [row.cost for row in baseline(rows) if row.cost is not None]
    ),
    "verdict": verdict,
    "grade": worse_grade,
    "path_entropy": over_groups(lambda rows: entropy(map(path, rows)) / math.log2(len(rows))),
    "path_entropy_bits": over_groups(lambda rows: entropy(map(path, rows))),
    "modal_path_share": over_groups(
        lambda rows: max(Counter(map(path, rows)).values()) / len(rows)
    ),
    "tool_variance": over_groups(
        lambda rows: entropy(frozenset(path(row)) for row in rows) / math.log2(len(rows))
    ),
    "tool_call_variation": over_groups(variation),
    "path_similarity": over_groups(
        lambda rows: statistics.fmean(
            similarity(path(one), path(other)) for one, other in combinations(rows, 2)
        )
    ),
    "effect_agreement": effect_agreement,
    "no_effect_share": no_effect_share,
    "distinct_paths": distinct_paths,
    "retry_explosion": retry_explosion,
    "retry_explosion_share": explosion_share,
    "longest_retry_chain": of_runs(lambda row: row.retries and row.retries.longest_chain, max),
    "retries_per_run": of_runs(lambda row: row.retries and row.retries.number),
    "retry_tokens_per_run": of_runs(lambda row: row.retries and row.retries.tokens),
    "retry_seconds_per_run": of_runs(lambda row: row.retries and row.retries.duration_ns / 1e9),
    "loops": of_runs(lambda row: row.retries and row.retries.repeats),
    "loop_share": of_runs(lambda row: row.retries and float(row.retries.repeats > 0)),
    "loop_tokens_per_run": of_runs(lambda row: row.retries and row.retries.repeat_tokens),
    "loop_seconds_per_run": of_runs(lambda row: row.retries and row.retries.repeat_ns / 1e9),
    "loop_cost_per_run": of_runs(
        lambda row: row.retries and wasted(row, row.retries.repeat_tokens)
    ),
    "retry_cost_per_run": of_runs(lambda row: row.retries and wasted(row, row.retries.tokens)),
    "branch_instability": branch_instability,
    "token_budget_pressure": of_runs(
        lambda row: None if row.pressure is None else min(max(row.pressure, 0.0), 1.0)
    ),
    "score": score,
    "score_coverage": score_coverage,
    "tier": tier,
    "flag": flag,
    "step_predictability": step_predictability,
    "context_growth": context_growth,
    "context_turns_left": context_turns_left,
    "context_growth_per_step": of_runs(lambda row: row.step_growth),
}
