"""verdict: what a person reads first, from two questions: does it succeed, and is it stable?

An agent that fails every time in the same way is perfectly stable, so the score alone misleads; an
agent that succeeds by a new path every time is not what its success rate alone says. The verdict
is `failing` where the agent misses its objective, or, without one, fails more often than it
succeeds, by more than chance, and where it fails now: its latest runs failed, one after another,
however well it did before. Otherwise it is the tier of the score, which keeps its formula and its
words. The *grade* decides colour and order: the worse of the two answers, each on the scale of
the tiers. An agent most of whose tool calls fail does not work, whatever its runs report: where no
outcome says better, its grade is the lowest.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple, Protocol

from otel_reliability.metrics.base import Derived
from otel_reliability.metrics.stability.tier import Tier, tier_of
from otel_reliability.metrics.success.failed_in_a_row import FAILS_NOW
from otel_reliability.metrics.success.objective import ERRORS, SUCCESS
from otel_reliability.model.reading import MetricSpec, Reading
from otel_reliability.statistics.intervals import wilson

MIN_SUCCESS: Final = 0.5
"""The success rate below which an agent is failing: it fails more often than it succeeds."""
MOST_CALLS: Final = 0.5
"""The share of failed tool calls above which, without outcomes, the grade is the lowest."""


class Verdict(enum.Enum):
    """Verdict on an agent, the worst first; UNDECIDED: not enough data."""

    FAILING = "failing"
    CRITICAL = "critical"
    UNSTABLE = "unstable"
    VARIABLE = "variable"
    STABLE = "stable"
    UNDECIDED = "undecided"


_OF_TIER: Final = {tier: Verdict(tier.name.lower()) for tier in Tier}
_WORST_FIRST: Final = tuple(reversed(Tier))

NEEDED: Final = (
    "success_rate",
    "error_rate",
    "failed_run_share",
    "failed_in_a_row",
    "failed_call_share",
    "score",
    "objective",
)
"""The readings that a verdict is made of."""

RANKS: Final = {
    verdict: float(rank)
    for rank, verdict in enumerate(one for one in Verdict if one is not Verdict.UNDECIDED)
}
"""The value of each verdict: 0 for FAILING to 4 for STABLE."""


class Rate(Protocol):
    """A share and the runs behind it: a reading, or what a report shows of one."""

    @property
    def value(self) -> float | None: ...
    @property
    def runs(self) -> int: ...
    @property
    def note(self) -> str: ...


class Assessment(NamedTuple):
    """The verdict on an agent, and the tier by whose colour and rank it is shown; None: nothing is
    known.
    """

    verdict: Verdict
    grade: Tier | None


def assess(ask: Callable[[str], Rate]) -> Assessment:
    """Return the verdict from the readings named in `NEEDED`.

    >>> def readings(**values: float) -> Callable[[str], Rate]:
    ...     return lambda name: Reading(values.get(name), 20, note="success")
    >>> assess(readings(failed_run_share=1.0, score=100.0)).verdict
    <Verdict.FAILING: 'failing'>
    >>> assess(readings(success_rate=0.7, score=90.0))
    Assessment(verdict=<Verdict.STABLE: 'stable'>, grade=<Tier.VARIABLE: (60, ...)>)
    >>> assess(readings(success_rate=0.7, score=90.0, objective=0.95)).verdict
    <Verdict.FAILING: 'failing'>
    >>> assess(readings(success_rate=0.7, score=90.0, failed_in_a_row=12)).verdict
    <Verdict.FAILING: 'failing'>
    """
    success = ask("success_rate")
    failed = ask("failed_run_share")
    score = ask("score").value
    tier = None if score is None else tier_of(score)
    if is_failing(ask) or fails_now(ask):
        return Assessment(Verdict.FAILING, Tier.CRITICAL)
    of_calls = Tier.CRITICAL if most_calls_fail(success, ask("failed_call_share")) else None
    known = [one for one in (tier, _grade_of_success(success, failed), of_calls) if one is not None]
    grade = min(known, key=_WORST_FIRST.index, default=None)
    return Assessment(Verdict.UNDECIDED if tier is None else _OF_TIER[tier], grade)


def is_failing(ask: Callable[[str], Rate]) -> bool:
    """Return whether an agent misses its objective (the reading's note is its signal), by more than
    chance; without an objective on success, whether it fails more often than it succeeds.
    """
    errors = ask("error_rate")
    objective = ask("objective")
    if objective.value is not None and objective.note == ERRORS and errors.value is not None:
        ended = round(errors.value * errors.runs)
        if 1.0 - wilson(ended, errors.runs)[0] < objective.value:
            return True
    of_success = objective.value is not None and objective.note == SUCCESS
    least = objective.value if objective.value is not None and of_success else MIN_SUCCESS
    most = success_bound(ask("success_rate"), ask("failed_run_share"))
    return most is not None and most < least


def fails_now(ask: Callable[[str], Rate]) -> bool:
    """Return whether an agent fails now: so many runs have failed in a row, up to the latest."""
    return (ask("failed_in_a_row").value or 0.0) >= FAILS_NOW


def only_fails_now(ask: Callable[[str], Rate]) -> bool:
    """Return whether an agent fails now, though its window as a whole would not say so."""
    return fails_now(ask) and not is_failing(ask)


def success_bound(success: Rate, failed: Rate) -> float | None:
    """Return the most that the success rate may be: the upper end of its interval where outcomes
    are known, else what the share of failed runs leaves of it; None where neither is known.

    Intervals are Wilson's at 95 %.
    """
    if success.value is not None:
        return wilson(round(success.value * success.runs), success.runs)[1]
    if failed.value is not None:
        return 1.0 - wilson(round(failed.value * failed.runs), failed.runs)[0]
    return None


def most_calls_fail(success: Rate, calls: Rate) -> bool:
    """Return whether no outcome is known and most tool calls fail, by more than chance; `calls` is
    their share. Calls of one run are alike, so the runs are counted.

    >>> unknown = Reading(None, 0)
    >>> most_calls_fail(unknown, Reading(0.9, 20)), most_calls_fail(unknown, Reading(0.6, 20))
    (True, False)
    """
    if success.value is not None or calls.value is None:
        return False
    return wilson(round(calls.value * calls.runs), calls.runs)[0] > MOST_CALLS


def _grade_of_success(success: Rate, failed: Rate) -> Tier | None:
    """Return the tier of the success rate in percent; where no success is known, that of 1 − the
    share of failed runs. None if none is known to have failed: an end without an error is no
    success.
    """
    if success.value is not None:
        return tier_of(100.0 * success.value)
    return None if not failed.value else tier_of(100.0 * (1.0 - failed.value))


class VerdictRank(Derived):
    """The verdict as a reading: 4 for `stable` to 0 for `failing`, the word in `note`.

    No value where it is undecided.

    >>> VerdictRank().derive(
    ...     {
    ...         "success_rate": Reading(0.0, 12),
    ...         "error_rate": Reading(1.0, 12),
    ...         "failed_run_share": Reading(1.0, 12),
    ...         "failed_in_a_row": Reading(12.0, 12),
    ...         "failed_call_share": Reading(None, 0),
    ...         "score": Reading(100.0, 12),
    ...         "objective": Reading(None, 0),
    ...     }
    ... )
    Reading(value=0.0, runs=12, parts=(), note='failing')
    """

    spec = MetricSpec(
        name="verdict",
        title="Verdict",
        family="success",
        unit="{verdict}",
        high=4.0,
        direction="higher",
        description="0 failing, 1 critical, 2 unstable, 3 variable, 4 stable: failing where the "
        "agent misses its objective (without one: fails more often than it succeeds), or its "
        f"latest {FAILS_NOW} runs failed; else the tier of the score.",
        formula="0 where the upper bound of the success rate (or of 1 − failed_run_share, where no "
        "success is known) is below the objective (0.5 without one), or failed_in_a_row is at "
        f"least {FAILS_NOW}; else 1 + the rank of the tier",
        required_data="a score, outcomes, or ends in an error",
        source="this project",
        improve="First make it succeed (success_rate, error_rate), then make it stable (score).",
    )
    needs = NEEDED

    def derive(self, readings: Mapping[str, Reading]) -> Reading:
        verdict = assess(readings.__getitem__).verdict
        runs = max(readings[name].runs for name in self.needs)
        return Reading(RANKS.get(verdict), runs, note=verdict.value)


class GradeRank(Derived):
    """Rank by which agents are sorted and coloured, as a reading; `note` is the name of the tier,
    CRITICAL for both 0 (failing) and 1.

    No value where neither a score, outcomes nor errors are known.

    >>> readings = {"success_rate": Reading(0.55, 90), "error_rate": Reading(0.0, 90)}
    >>> rest = {"objective": Reading(None, 0), "failed_call_share": Reading(0.0, 90)}
    >>> rest |= {"failed_run_share": Reading(0.45, 90), "failed_in_a_row": Reading(1.0, 1)}
    >>> GradeRank().derive({**readings, **rest, "score": Reading(90.0, 90)})
    Reading(value=2.0, runs=90, parts=(), note='UNSTABLE')
    """

    spec = MetricSpec(
        name="grade",
        title="Grade",
        family="success",
        unit="{grade}",
        high=4.0,
        direction="higher",
        description="0 failing, 1 critical, 2 unstable, 3 variable, 4 stable: the worse of what "
        "the score and the success rate in percent are on the scale of the tiers; 1 where no "
        "outcome is known and most tool calls fail. Agents are sorted and coloured by it.",
        formula="0 where the verdict is failing; else 1 + the lower rank of the tiers of score and "
        "100 × success_rate (100 × (1 − failed_run_share) where no success is known and a failure "
        "is; 0 where no outcome is known and the lower bound of failed_call_share is above 0.5)",
        required_data="a score, outcomes, or ends in an error",
        source="this project",
        improve="As for the verdict.",
    )
    needs = NEEDED

    def derive(self, readings: Mapping[str, Reading]) -> Reading:
        verdict, grade = assess(readings.__getitem__)
        runs = max(readings[name].runs for name in self.needs)
        if grade is None:
            return Reading(None, runs)
        rank = 0.0 if verdict is Verdict.FAILING else 1.0 + _WORST_FIRST.index(grade)
        return Reading(rank, runs, note=grade.name)
