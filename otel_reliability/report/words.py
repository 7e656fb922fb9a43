"""Sentences about an agent that stand in every format."""

from __future__ import annotations

from typing import Final

from otel_reliability.change.result import Result
from otel_reliability.metrics.stability.tier import Tier
from otel_reliability.model.reading import MetricSpec
from otel_reliability.report.groups import ALL_SPECS
from otel_reliability.report.text import MINUS, clean, count, measured, percent, span_of_time
from otel_reliability.report.view import AgentComparison, AgentView, Compared, ReadingView
from otel_reliability.statistics.intervals import wilson

FULL_COVERAGE: Final = 100.0
MAX_INTERVAL: Final = 0.8
"""Share of a number's range from which an interval bounds nothing: that of a score then covers CRITICAL to STABLE."""


def meaning(agent: AgentView) -> str:
    """Return what the score means, or why there is none."""
    if agent.tier is None:
        return f"{agent.score_note}."
    if agent.tier is Tier.STABLE and agent.change is not None and agent.change.verdict is Result.CHANGED:
        return "Runs are alike, but the behaviour changed."
    if agent.tier is Tier.STABLE and agent.flags:
        return "Runs are alike, with a warning below."
    return agent.tier.meaning


def warnings(agent: AgentView) -> list[str]:
    """Return the sentences of the flags that are set."""
    return [caveat for caveat in agent.caveats if any(f"({flag})" in caveat for flag in agent.flags)]


def coverage(agent: AgentView) -> str:
    """Return the points that the score was assessed on; empty where all of them were."""
    assessed = agent.score_coverage or 0.0
    return "" if agent.score is None or assessed >= FULL_COVERAGE else f"from {assessed:.0f} of 100 points assessed"


def about(agent: AgentView) -> list[str]:
    """Return how far the score can be trusted, how many runs of what there are, and how they ended."""
    return [*filter(None, [about_score(agent)]), about_runs(agent), about_outcomes(agent)]


def about_score(agent: AgentView) -> str:
    """Return how far the score can be trusted; empty where there is none, or nothing limits it."""
    if agent.score is None:
        return ""
    reading, assessed = agent.metrics["score"], coverage(agent)
    if reading.low is None or reading.high is None:
        return assessed
    if is_bounded(ALL_SPECS["score"], reading):
        bounds = f"between {reading.low:.0f} and {reading.high:.0f} at 95 % confidence"
    else:
        bounds = f"{count(reading.runs, 'run')} are too few to bound the score at 95 % confidence"
    return ", ".join(filter(None, (bounds, assessed)))


def is_bounded(spec: MetricSpec, reading: ReadingView) -> bool:
    """Return whether the interval says more than that the number is somewhere in its range."""
    if reading.low is None or reading.high is None:
        return False
    return spec.low is None or spec.high is None or reading.high - reading.low <= MAX_INTERVAL * (spec.high - spec.low)


def about_runs(agent: AgentView) -> str:
    """Return how many runs of what there are, from when to when."""
    parts = [count(agent.runs, "run") + (f" of {count(agent.task_count, 'task')}" if agent.task_count else "")]
    parts += [f"{number:,} under {clean(condition)}" for condition, number in sorted(agent.perturbed_runs.items())]
    parts += [count(len(agent.sessions), "session")] if agent.sessions else []
    return f"{', '.join(parts)}; {span_of_time(agent.start, agent.end)}"


def about_outcomes(agent: AgentView) -> str:
    """Return how the runs ended, with no pass rate where only failures can be known."""
    if agent.one_sided:
        failed = f"{agent.known:,} failed; " if agent.known else "No outcome is known; "
        return f"{failed}{agent.outcomes['completed']:,} ended without an error, which is no success yet"
    unknown = agent.runs - agent.known
    low, high = wilson(agent.passed, agent.known)
    rest = f"; the outcome of {unknown:,} is unknown" if unknown else ""
    share = f"{percent(agent.passed / agent.known)} ({percent(low)} to {percent(high)} at 95 % confidence)"
    return f"{agent.passed:,} of {count(agent.known, 'run')} succeeded, {share}{rest}"


def missing(spec: MetricSpec, reading: ReadingView) -> str:
    """Return why there is no value; empty where there is one.

    >>> missing(ALL_SPECS["path_entropy"], ReadingView(None, 0))
    'not enough data: it needs 2 runs of a task with observable tools'
    """
    if reading.value is not None:
        return ""
    return f"not enough data: {clean(reading.note, 300) if reading.note else f'it needs {spec.evidence}'}"


def interval(name: str, reading: ReadingView) -> str:
    """Return the bounds of a number at 95 % confidence, in its own unit; empty where they are not known."""
    if reading.low is None or reading.high is None:
        return ""
    spec = ALL_SPECS[name]
    # One digit less than the value has: bounds are no more exact.
    short = spec.unit in {"{ratio}", "{score}"} and spec.high == 1
    low, high = (f"{bound:.2f}" if short else measured(spec, bound) for bound in (reading.low, reading.high))
    return f"{low}–{high}"


def about_chance(each: AgentComparison) -> str:
    """Return what `more than chance` means here; empty where nothing was tested."""
    if not each.chance.compared:
        return ""
    return (
        f"More than chance: {count(each.chance.compared, 'number')} compared with {each.chance.correction}'s correction for so "
        "many, so that for two recordings of one behaviour any of these words is false in at most "
        f"{percent(each.chance.level)} of cases."
    )


def compared(name: str, number: Compared) -> str:
    """Return how a number changed, and whether by more than chance."""
    if number.change is None:
        return f"not enough data {'before' if number.verdict == 'gained' else 'now'}"
    if number.verdict == "same":
        return "the same"
    sign = "+" if number.change > 0 else MINUS
    words = {None: "", True: ", more than chance", False: ", within chance"}
    amount = measured(ALL_SPECS[name], abs(number.change))
    return f"{sign}{amount} {number.verdict}{words[number.more_than_chance]}"


def moved(each: AgentComparison) -> tuple[dict[str, Compared], list[str]]:
    """Return the numbers that got better or worse, appeared or vanished, and the names of those that stayed the same."""
    changed = {name: one for name, one in each.metrics.items() if one.verdict not in {"same", "changed"}}
    return changed, [name for name, one in each.metrics.items() if one.verdict == "same"]
