"""Sentences about a recording and its agents, the same in every format; the caveats say what limits
the numbers of an agent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from otel_reliability.change.result import Result
from otel_reliability.change.sentences import moment
from otel_reliability.metrics import ALL_SPECS
from otel_reliability.metrics.base import UNKNOWN_INPUTS
from otel_reliability.metrics.stability.context_growth import growths
from otel_reliability.metrics.stability.flag import (
    CONTEXT_GROWTH,
    RANDOM_STEPS,
    TOKEN_PRESSURE_HIGH,
)
from otel_reliability.metrics.stability.tier import Tier
from otel_reliability.metrics.success.objective import ERRORS
from otel_reliability.metrics.success.verdict import (
    Rate,
    Verdict,
    most_calls_fail,
    only_fails_now,
)
from otel_reliability.model.reading import MetricSpec, Reading
from otel_reliability.model.row import Row
from otel_reliability.report.findings import MANY_FAILED_CALLS
from otel_reliability.report.shift import about_streak, is_all_known, since_when
from otel_reliability.report.text import (
    MINUS,
    clean,
    count,
    dollars,
    grouped,
    measured,
    percent,
    span_of_time,
)
from otel_reliability.report.view import (
    AgentComparison,
    AgentView,
    ComparedReading,
    ReadingView,
    ReportView,
    RequestGroup,
    WhyFinding,
)
from otel_reliability.statistics.intervals import MIN_RUNS, wilson

FULL_COVERAGE: Final = 100.0
MIN_P: Final = 0.001
"""p-value below which no difference is made."""
MAX_INTERVAL: Final = 0.8
"""Share of a number's range from which an interval bounds nothing: that of a score then covers
CRITICAL to STABLE.
"""

NEARLY_ALL: Final = 0.9
"""Share of the runs on the usual path from which nearly all take it."""
MAX_NAME: Final = 60
"""Characters of the name of a group of runs."""

LIMITING: Final = ("unknown", "left out")
"""Words of notes that limit what a value means; other notes explain it."""


def worst_first(agents: Sequence[AgentView]) -> list[AgentView]:
    """Return the agents by verdict, the worst first; those of which nothing is known last."""
    return sorted(
        agents,
        key=lambda agent: (
            badness(agent.verdict.value, agent.grade and agent.grade.name, agent.score),
            agent.key,
        ),
    )


def badness(
    verdict: str, grade: str | None, score: float | None
) -> tuple[bool, bool, float, bool, float]:
    """Return what agents are sorted by, from the fields of a line of the API: those that fail come
    first, then the lower grade and score; those of which nothing is known come last.

    >>> lines = [("stable", "STABLE", 90.0), ("failing", "CRITICAL", 100.0), ("undecided", None, 0)]
    >>> [verdict for verdict, *_ in sorted(lines, key=lambda line: badness(*line))]
    ['failing', 'stable', 'undecided']
    """
    least = 0.0 if grade is None else float(Tier[grade].least)
    is_failing = verdict == Verdict.FAILING.value
    return (grade is None, not is_failing, least, score is None, score or 0.0)


def about_recording(report: ReportView) -> list[str]:
    """Return how many spans were received and what became of them, then what could not be used, and
    the limits reached.
    """
    fates = ", ".join(
        f"{amount:,} {name}"
        for name, amount in report.spans.items()
        if amount and name != "received"
    )
    found = [
        f"{count(report.spans['received'], 'span')} received: {fates}"
        if fates
        else "No spans received"
    ]
    if report.problems:
        unread = ", ".join(
            f"{number:,} {reason}" for reason, number in sorted(report.problems.items())
        )
        found.append(f"could not be read: {unread}")
    for attribute, reasons in report.attributes_refused.items():
        found += [
            f"{clean(attribute)}: refused {count(times, 'time')} ({why})"
            for why, times in reasons.items()
        ]
    return [*found, *report.notes]


# --- An agent -------------------------------------------------------------------------------------


def meaning(agent: AgentView) -> str:
    """Return the verdict as a sentence: whether the agent succeeds, and how alike its runs are, or
    why that is not known.
    """
    ask = agent.metrics.__getitem__
    success = _with_failed_calls(about_success(agent), agent)
    if agent.shift is not None:
        success = f"{agent.shift.sentence}; {success}"
    elif only_fails_now(ask):
        success = f"{in_a_row(ask('failed_in_a_row'))}; {success}"
    alike = _alike(agent)
    if agent.verdict is Verdict.FAILING:
        return f"{failing_words(ask)}: {success}; {alike or 'no score'}."
    parts = [alike or clean(agent.score_note, 300), success]
    is_worse = agent.shift is not None and agent.shift.is_worse
    if is_worse or (agent.tier is not None and agent.grade is not agent.tier):
        parts.reverse()  # the worse of the two comes first
    sentence = "; ".join(parts)
    return f"{sentence[:1].upper()}{sentence[1:]}."


def about_success(agent: AgentView) -> str:
    """Return how often the agent succeeds; where only failures are known, and more than the errors
    show, how many.
    """
    success, errors = agent.metrics["success_rate"], agent.metrics["error_rate"]
    ended = round((errors.value or 0.0) * errors.runs)
    if success.value is None and agent.known > ended:
        return f"{agent.known:,} of {count(agent.runs, 'run')} failed, no success is known"
    found = success_words(success, errors)
    is_part = success.value is not None and success.runs < agent.runs
    return f"{found} with a known outcome" if is_part else found


def failing_words(ask: Callable[[str], Rate]) -> str:
    """Return why an agent is failing: by its objective, without one, or by its latest runs.

    >>> from otel_reliability.metrics.success.verdict import NEEDED
    >>> readings = dict.fromkeys(NEEDED, Reading(None, 0)) | {"success_rate": Reading(0.2, 50)}
    >>> failing_words(readings.__getitem__)
    'Fails more often than it succeeds'
    >>> failing_words({**readings, "objective": Reading(0.95, 0, note="success")}.__getitem__)
    'Misses its objective of 95 % success'
    >>> latest = {"success_rate": Reading(0.7, 50), "failed_in_a_row": Reading(12, 12)}
    >>> failing_words({**readings, **latest}.__getitem__)
    'Fails now'
    """
    if only_fails_now(ask):
        return "Fails now"
    objective = ask("objective")
    if objective.value is None:
        return "Fails more often than it succeeds"
    if objective.note == ERRORS:
        return f"Misses its objective of at most {percent(1.0 - objective.value)} errors"
    return f"Misses its objective of {percent(objective.value)} success"


def in_a_row(failed: Rate) -> str:
    """Return how many of the latest runs failed, one after another.

    >>> in_a_row(Reading(12.0, 50))
    'the latest 12 runs failed'
    """
    return f"the latest {count(round(failed.value or 0.0), 'run')} failed"


def about_budget(agent: AgentView) -> str:
    """Return how much of the error budget the runs of the window have left; empty without an
    objective.
    """
    objective = agent.metrics["objective"]
    left = agent.metrics["error_budget_left"]
    if objective.value is None:
        return ""
    demanded = (
        f"at most {percent(1.0 - objective.value)} errors"
        if objective.note == ERRORS
        else f"{percent(objective.value)} success"
    )
    if left.value is None:
        return f"objective: {demanded}; no run shows yet whether it holds"
    allowed = (1.0 - objective.value) * left.runs
    failed = round((1.0 - left.value) * allowed)
    budget = (
        f"{percent(left.value)} of the error budget is left"
        if left.value >= 0
        else "the error budget is used up"
    )
    return (
        f"objective: {demanded}; {failed:,} of {count(left.runs, 'run')} failed, "
        f"{grouped(allowed)} may: {budget}"
    )


def success_words(success: Reading | ReadingView, errors: Reading | ReadingView) -> str:
    """Return how often an agent succeeds, or that it is unknown, with the share of errors.

    >>> success_words(ReadingView(0.54, 100), ReadingView(None, 0))
    'succeeds in 54 % of 100 runs'
    >>> success_words(ReadingView(None, 0), ReadingView(1.0, 12))
    'success unknown, 100 % of 12 runs ended in an error'
    """
    if success.value is not None:
        return f"succeeds in {percent(success.value)} of {count(success.runs, 'run')}"
    if errors.value is None:
        return "success unknown"
    ended = percent(errors.value) if errors.value else "none"
    return f"success unknown, {ended} of {count(errors.runs, 'run')} ended in an error"


def _with_failed_calls(success: str, agent: AgentView) -> str:
    """Return what is said of success together with the share of tool calls that failed, where
    nothing says whether the runs succeeded. A small share is left out: a call that fails now
    and then is tried again.
    """
    known = agent.metrics["success_rate"]
    calls = agent.metrics["failed_call_share"]
    share = calls.value or 0.0
    if known.value is not None or share < MANY_FAILED_CALLS:
        return success
    failed = f"{percent(share)} of the tool calls failed"
    if most_calls_fail(known, calls):
        return f"{failed}; {success}"
    joined = "and" if agent.metrics["error_rate"].value else "but"
    return f"{success}, {joined} {failed}"


def _alike(agent: AgentView) -> str:
    """Return how alike the runs are, with what has to be known next to it; empty without a
    score.
    """
    if agent.tier is None:
        return ""
    found = _paths_and_points(agent, agent.tier)
    if agent.change is not None and agent.change.result is Result.CHANGED:
        return f"{found}; the behaviour changed"
    return f"{found}, with a warning below" if agent.flags else found


def _paths_and_points(agent: AgentView, tier: Tier) -> str:
    """Return how many runs take the usual path, and, of a score that is not stable, what lowers it
    most; the meaning of the tier where paths are unknown.
    """
    usual = agent.metrics["modal_path_share"]
    if agent.paths and not any(steps for _, steps in agent.paths):
        return "no run called a tool, so that all paths are alike"
    costs = [cost for cost in agent.findings.costs if cost.points is not None]
    largest = max(costs, key=lambda cost: cost.points or 0.0, default=None)
    if usual.value is None:
        return tier.meaning
    if usual.value >= NEARLY_ALL:
        same = "the same" if usual.value == 1.0 else "nearly the same"
        paths = {steps for _, steps in agent.paths}
        alike = len(paths) == 1 or UNKNOWN_INPUTS in usual.note
        found = f"takes {same} path {'every time' if alike else 'for the same input'}"
    else:
        which = "" if UNKNOWN_INPUTS in usual.note else " for their input"
        found = f"{percent(usual.value)} of the runs took the most common path{which}"
    if tier is Tier.STABLE or largest is None:
        return found
    title = ALL_SPECS[largest.name].title.lower()
    return f"{found}; {title} costs {largest.points:.0f} points"


def warnings(agent: AgentView) -> list[str]:
    """Return the sentences of the flags that are set."""
    return [
        caveat for caveat in agent.caveats if any(f"({flag})" in caveat for flag in agent.flags)
    ]


def coverage(agent: AgentView) -> str:
    """Return the points that the score was assessed on; empty where all of them were."""
    assessed = agent.score_coverage or 0.0
    return (
        ""
        if agent.score is None or assessed >= FULL_COVERAGE
        else f"from {assessed:.0f} of 100 points assessed"
    )


def about(agent: AgentView) -> list[str]:
    """Return how far the score can be trusted, how many runs of what there are, and
    how they ended.
    """
    return [
        about_outcomes(agent),
        *filter(None, [about_errors(agent), about_failures(agent), about_score(agent)]),
        *filter(None, [about_budget(agent)]),
        about_runs(agent),
        *filter(None, [about_cost(agent)]),
    ]


def about_score(agent: AgentView) -> str:
    """Return how far the score can be trusted; empty where there is none, or nothing limits it."""
    if agent.score is None:
        return ""
    reading = agent.metrics["score"]
    assessed = coverage(agent)
    is_missing = reading.low is None or reading.high is None
    if is_missing and reading.runs >= MIN_RUNS:
        return assessed and f"score {assessed}"
    if is_bounded(ALL_SPECS["score"], reading):
        bounds = f"score between {reading.low:.0f} and {reading.high:.0f} at 95 % confidence"
    else:
        bounds = f"{count(reading.runs, 'run')} are too few to bound the score"
    return ", ".join(filter(None, (bounds, assessed)))


def is_bounded(spec: MetricSpec, reading: ReadingView) -> bool:
    """Return whether the interval says more than that the number is somewhere in its range."""
    if reading.low is None or reading.high is None:
        return False
    return (
        spec.low is None
        or spec.high is None
        or reading.high - reading.low <= MAX_INTERVAL * (spec.high - spec.low)
    )


def about_runs(agent: AgentView) -> str:
    """Return how many runs of what there are, from when to when."""
    parts = [
        count(agent.runs, "run")
        + (f" of {count(agent.task_count, 'task')}" if agent.task_count else "")
    ]
    parts += [
        f"{number:,} under {clean(condition)}"
        for condition, number in sorted(agent.perturbed_runs.items())
    ]
    parts += [count(len(agent.sessions), "session")] if agent.sessions else []
    return f"{', '.join(parts)}; {span_of_time(agent.start, agent.end)}"


def about_outcomes(agent: AgentView) -> str:
    """Return how the runs ended, with no pass rate where only failures can be known."""
    if agent.one_sided:
        failed = f"{agent.known:,} failed; " if agent.known else "No outcome is known; "
        return (
            f"{failed}{agent.outcomes['completed']:,} ended without an error, which is no "
            "success yet"
        )
    unknown = agent.runs - agent.known
    low, high = wilson(agent.passed, agent.known)
    rest = f"; the outcome of {unknown:,} is unknown" if unknown else ""
    share = (
        f"{percent(agent.passed / agent.known)} ({percent(low)} to {percent(high)} at 95 % "
        "confidence)"
    )
    return f"{agent.passed:,} of {count(agent.known, 'run')} succeeded, {share}{rest}"


def about_errors(agent: AgentView) -> str:
    """Return how many runs ended in an error; empty where no end was observed."""
    reading = agent.metrics["error_rate"]
    if reading.value is None:
        return ""
    errors = round(reading.value * reading.runs)
    low, high = wilson(errors, reading.runs)
    return (
        f"{errors:,} of {count(reading.runs, 'run')} ended in an error, {percent(reading.value)} "
        f"({percent(low)} to {percent(high)} at 95 % confidence)"
    )


def about_failures(agent: AgentView) -> str:
    """Return since when runs fail, or no longer do; else which of them failed one after another.
    Empty where neither is known.
    """
    if agent.shift is not None:
        return since_when(agent.shift)
    return about_streak(agent.ends)


def about_ends(agent: AgentView) -> str:
    """Return how many of the runs of its chart failed."""
    failed = sum(one.failed for one in agent.ends)
    known = "" if is_all_known(agent.ends, agent.runs) else " with a known outcome"
    return f"{failed:,} of {count(len(agent.ends), 'run')}{known} failed"


def about_cost(agent: AgentView) -> str:
    """Return what a run costs, and how old the prices are; empty where no cost is known."""
    reading = agent.metrics["cost_per_run"]
    if reading.value is None:
        return ""
    known = f"of {count(agent.runs, 'run')}, the cost of {reading.runs:,} is known"
    table = f"; where none is reported, at list prices ({agent.price_table})"
    return f"{dollars(reading.value)} a run; {known}{table if agent.price_table else ''}"


def missing(spec: MetricSpec, reading: ReadingView) -> str:
    """Return why there is no value; empty where there is one.

    >>> missing(ALL_SPECS["path_entropy"], ReadingView(None, 0))
    'not enough data: it needs 2 runs of a task with observable tools'
    """
    if reading.value is not None:
        return ""
    return (
        "not enough data: "
        f"{clean(reading.note, 300) if reading.note else f'it needs {spec.required_data}'}"
    )


def interval(name: str, reading: ReadingView) -> str:
    """Return the bounds of a number at 95 % confidence, in its own unit; empty where they are not
    known.
    """
    if reading.low is None or reading.high is None:
        return ""
    spec = ALL_SPECS[name]
    # One digit less than the value has: bounds are no more exact.
    short = spec.unit in {"{ratio}", "{score}"} and spec.high == 1
    low, high = (
        f"{bound:.2f}" if short else measured(spec, bound) for bound in (reading.low, reading.high)
    )
    return f"{low}–{high}"


# --- Two recordings -------------------------------------------------------------------------------


def about_why(agent: AgentView) -> list[str]:
    """Return what failing runs have in common, a line each, with the traces that show it."""
    return list(map(_with_traces, agent.why))


def about_contrasts(agent: AgentView) -> list[tuple[str, list[str]]]:
    """Return what was contrasted of runs that stand out, with its findings, a line each; without
    those that found nothing.
    """
    return [
        (one.note, list(map(_with_traces, one.findings))) for one in agent.contrasts if one.findings
    ]


def _with_traces(one: WhyFinding) -> str:
    return f"{one.sentence} ({chance(one)}; traces {', '.join(one.traces)})"


def chance(one: WhyFinding) -> str:
    """Return how probable a finding is by chance."""
    return f"p ≤ {max(one.p, MIN_P):.2g}"


def kind_of_work(group: RequestGroup) -> str:
    """Return what a group of runs is called; one without a name, by its letter and usual path."""
    if group.name:
        return clean(group.name, MAX_NAME)
    path = " → ".join(group.usual_path)
    return clean(f"{group.id}: {path}" if path else group.id, MAX_NAME)


def trend(group: RequestGroup) -> str:
    """Return how the success of a group moved, in percentage points; empty where it is unknown."""
    if group.trend is None:
        return ""
    points = round(100 * group.trend)
    return f"+{points}" if points > 0 else f"{MINUS}{-points}" if points else "0"


def alone(agent: AgentView) -> str:
    """Return how many runs are in no group; empty where all are."""
    grouped = sum(group.runs for group in agent.request_groups)
    missing = agent.runs - grouped
    if not missing or not grouped:
        return ""
    return f"{count(missing, 'run')} in no group: no other run has an alike request"


MAX_LABEL: Final = 16
"""Characters of the name of a group that stands above a column."""


def labels_of_groups(each: AgentComparison) -> tuple[str, str]:
    """Return the names of both sets of runs; for longer ones, which stand below the table, their
    order.
    """
    before, after = each.groups
    if max(len(before.name), len(after.name)) <= MAX_LABEL:
        return before.name, after.name
    return "first", "second"


def about_groups(each: AgentComparison) -> list[str]:
    """Return, of each set of runs that is compared, how many there are, and where it begins."""
    return [
        f"{group.name if group.name == label else f'{label}, {group.name}'}: "
        f"{count(group.runs, 'run')}, the first at {moment(group.start)}, trace {group.trace_id}"
        for label, group in zip(labels_of_groups(each), each.groups, strict=True)
    ]


def about_chance(each: AgentComparison) -> str:
    """Return what `more than chance` means here; empty where nothing was tested."""
    if not each.chance.compared:
        return ""
    return (
        f"More than chance: {count(each.chance.compared, 'number')} compared with "
        f"{each.chance.correction}'s correction for so "
        "many, so that for two recordings of one behaviour any of these words is false in at most "
        f"{percent(each.chance.level)} of cases."
    )


def compared(name: str, number: ComparedReading) -> str:
    """Return how a number changed, and whether by more than chance."""
    if number.change is None:
        return f"not enough data {'before' if number.result == 'gained' else 'now'}"
    if number.result == "same":
        return "the same"
    sign = "+" if number.change > 0 else MINUS
    words = {None: ", not tested", True: ", more than chance", False: ", within chance"}
    amount = measured(ALL_SPECS[name], abs(number.change))
    return f"{sign}{amount} {number.result}{words[number.more_than_chance]}"


def moved(each: AgentComparison) -> tuple[dict[str, ComparedReading], list[str]]:
    """Return the numbers that got better or worse, appeared or vanished, and the names of those
    that stayed the same.
    """
    changed = {
        name: one for name, one in each.metrics.items() if one.result not in {"same", "changed"}
    }
    return changed, [name for name, one in each.metrics.items() if one.result == "same"]


# --- Caveats --------------------------------------------------------------------------------------


def caveats_of(agent: AgentView, rows: Sequence[Row]) -> list[str]:
    """Return the caveats of an agent whose window holds these rows."""
    return [
        *_of_flags(agent, rows),
        *_of_telemetry(agent),
        *_of_window(agent, rows),
        *_of_outcomes(agent),
        *_of_readings(agent),
    ]


def _of_flags(agent: AgentView, rows: Sequence[Row]) -> Iterator[str]:
    pressure = agent.metrics["token_budget_pressure"].value
    if TOKEN_PRESSURE_HIGH in agent.flags and pressure is not None:
        yield (
            f"UNSTABLE by token pressure: the context window is {percent(pressure)} full on "
            f"average ({TOKEN_PRESSURE_HIGH})"
        )
    predictability = agent.metrics["step_predictability"].value
    if RANDOM_STEPS in agent.flags and predictability is not None:
        determined = f"the current step determines {percent(max(predictability, 0.0))} of the next"
        yield f"chooses its tools as if at random: {determined} ({RANDOM_STEPS})"
    if CONTEXT_GROWTH in agent.flags:
        soonest = growths(rows)[0]
        rate = (
            f"{percent(soonest.filled)} full at turn {soonest.turns}, "
            f"{percent(soonest.slope)} more each turn"
        )
        until = f"{'at this rate full' if soonest.turns_left else 'full'} at turn {soonest.full_at}"
        yield (
            f"the context window of session {clean(soonest.session_id)} is {rate}: {until} "
            f"({CONTEXT_GROWTH})"
        )


def _of_telemetry(agent: AgentView) -> Iterator[str]:
    """Yield the flaws of telemetry that can turn a verdict."""
    for one in agent.data_quality:
        if one.decisive:
            yield (
                f"{one.finding} in {one.count:,} of {count(one.of, 'run')}, which affects "
                f"{one.affects}"
            )


def _of_window(agent: AgentView, rows: Sequence[Row]) -> Iterator[str]:
    if agent.runs_left_out:
        yield (
            f"{count(agent.runs_left_out, 'older run')} left out: the report covers the "
            f"newest {len(rows):,}"
        )
    effective = agent.metrics["window.effective_runs"].value
    if effective is not None and round(effective) < agent.runs:
        yield (
            f"the runs were sampled at different rates: they are worth {effective:.0f} "
            "equally sampled ones"
        )
    weighted = sum(row.weight for row in rows)
    if weighted > len(rows):
        yield (
            f"the runs are a sample and stand for about {weighted:,}; the numbers are of the "
            "runs as they are"
        )


def _of_outcomes(agent: AgentView) -> Iterator[str]:
    by_status = agent.outcomes["by_status"]
    if by_status:
        yield (
            f"{by_status} of {count(agent.passed, 'success')} rest on no more than an end "
            "without error "
            "(outcome.fallback: status): pass rates built on them are too high"
        )


def _of_readings(agent: AgentView) -> Iterator[str]:
    """Yield each limiting note once, with the names of all numbers that have it."""
    found: dict[str, list[str]] = {}
    for name, reading in agent.metrics.items():
        if reading.value is not None and any(word in reading.note for word in LIMITING):
            found.setdefault(reading.note, []).append(name)
    for note, names in found.items():
        yield f"{note} ({', '.join(names)})"
