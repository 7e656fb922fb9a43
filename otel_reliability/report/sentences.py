"""The sentences about an agent that stand in every format."""

from __future__ import annotations

from otel_reliability.model.reading import MetricSpec
from otel_reliability.model.run import Outcome
from otel_reliability.report.comparison import CORRECTION, LEVEL, AgentChange, Change
from otel_reliability.report.scorecard import ALL_SPECS, Scorecard
from otel_reliability.report.text import MINUS, clean, count, measured, percent, span_of_time
from otel_reliability.statistics.intervals import wilson


def judged(card: Scorecard) -> str:
    """What the score means, or why there is none."""
    return f"{card.readings['score'].note}." if card.tier is None else card.tier.meaning


def about_score(card: Scorecard) -> str:
    """How far the score can be trusted."""
    coverage = f"{card.readings['score_coverage'].value or 0.0:.0f} of its 100 points rest on evidence"
    interval = card.intervals.get("score")
    if interval is None:
        return coverage
    return f"between {interval.low:.0f} and {interval.high:.0f} at 95 % confidence; {coverage}"


def interval_of(card: Scorecard, name: str) -> str:
    """Between which bounds a number lies at 95 % confidence, in its own unit; empty where that is not known."""
    interval = card.intervals.get(name)
    if interval is None:
        return ""
    return "–".join(_bound(ALL_SPECS[name], bound) for bound in (interval.low, interval.high))


def _bound(spec: MetricSpec, bound: float) -> str:
    """With one digit less than the value has: bounds are no more exact."""
    return f"{bound:.2f}" if spec.unit in {"{ratio}", "{score}"} and spec.high == 1 else measured(spec, bound)


def about_runs(card: Scorecard) -> str:
    """How many runs of what, from when to when."""
    tasks = len({row.task for row in card.rows if row.task is not None})
    parts = [count(card.runs, "run") + (f" of {count(tasks, 'task')}" if tasks else "")]
    parts += [f"{number:,} under {clean(condition)}" for condition, number in sorted(card.perturbed.items())]
    parts += [count(len(card.sessions), "session")] if card.sessions else []
    return f"{', '.join(parts)}; {span_of_time(card.start_ns, card.end_ns)}"


def about_outcomes(card: Scorecard) -> str:
    """How the runs ended, with no pass rate where none can be had."""
    if card.one_sided:
        failed = f"{card.known:,} failed; " if card.known else "No outcome is known; "
        ended = card.outcomes.get(Outcome.COMPLETED, 0)
        return f"{failed}{ended:,} ended without an error, which is no success yet"
    passed, unknown = card.outcomes.get(Outcome.SUCCESS, 0), card.runs - card.known
    low, high = wilson(passed, card.known)
    rest = f"; the outcome of {unknown:,} is unknown" if unknown else ""
    between = f"{percent(low)} to {percent(high)} at 95 % confidence"
    return f"{passed:,} of {count(card.known, 'run')} succeeded, {percent(passed / card.known)} ({between}){rest}"


def about_chance(each: AgentChange) -> str:
    """What `more than chance` means here; empty where nothing was weighed."""
    if not each.weighed:
        return ""
    return (
        f"More than chance: {count(each.weighed, 'number')} compared with {CORRECTION}'s correction for so many, so that for two "
        f"recordings of one behaviour any of these words is false in at most {percent(LEVEL)} of cases."
    )


def changed(change: Change) -> str:
    """How a number changed, and whether by more than chance."""
    if change.difference is None:
        return "no evidence before" if change.verdict == "gained" else "no evidence now"
    if change.verdict == "same":
        return "the same"
    sign = "+" if change.difference > 0 else MINUS
    words = {None: "", True: ", more than chance", False: ", within chance"}
    return f"{sign}{measured(ALL_SPECS[change.name], abs(change.difference))} {change.verdict}{words[change.clear]}"
