"""Since when an agent's runs fail, or no longer do: the cut of its runs into earlier and later ones
whose shares of failures differ by more than chance.

Change detection needs a baseline of 60 observations and finds changes of any kind as they happen.
This is one test of the runs that a report is about, of failures alone, which needs ten.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from math import prod
from typing import Final

from otel_reliability.change.result import Result
from otel_reliability.change.sentences import moment
from otel_reliability.metrics.base import one_sided
from otel_reliability.model.row import Row
from otel_reliability.report.failing_work import fails
from otel_reliability.report.text import count
from otel_reliability.report.view import ChangeView, End, FailureShift, Instant
from otel_reliability.statistics.cut import best_cut
from otel_reliability.statistics.significance import two_sided
from otel_reliability.statistics.strata import difference_within
from otel_reliability.windows.window import AgentWindow

MAX_RUNS: Final = 500
"""Runs that are examined, the newest: the test takes some 20 ms for so many."""
LEVEL: Final = 0.01
"""p-value up to which a shift is reported: every look at a page is another test."""
MIN_STREAK: Final = 5
"""Failed runs, one after another, from which they are shown."""
MIN_P: Final = 0.001
OTHER_WORK: Final = "; other requests since then may be why"


def ends_of(undisturbed: Sequence[Row], *, outcomes_known: bool) -> list[End]:
    """Return how the newest undisturbed runs ended, oldest first: by their outcomes where a success
    rate is known, else by failures and errors. Runs of which neither is known are left out.
    """
    found: list[End] = []
    first = max(0, len(undisturbed) - MAX_RUNS)
    for number, row in enumerate(undisturbed[first:], first + 1):
        failed = fails(row, by_error=False) if outcomes_known else row.failed
        if failed is not None:
            work = row.group if row.task is None else row.task
            by_error = row.ended_in_error
            found.append(End(row.run_id, row.end_ns, row.start_ns, number, failed, by_error, work))
    return found


def shift_of(
    ends: Sequence[End], undisturbed: Sequence[Row], *, outcomes_known: bool
) -> FailureShift | None:
    """Return the shift of failures in these ends of runs; None where there is none beyond chance.

    Where nothing but failures is known of one side, and of some of its runs nothing, labels may
    have become others: then it has to show too if those of which nothing is known count as runs
    that did not fail.
    """
    shift = _shift_of(ends, len(undisturbed), outcomes_known=outcomes_known)
    if shift is None or not outcomes_known:
        return shift
    later = len(undisturbed) - shift.run + 1
    runs = min(len(undisturbed), MAX_RUNS) - later, later
    sides = zip(runs, shift.runs, shift.failed, strict=True)
    if any(one_sided(every, known, known - failed) for every, known, failed in sides):
        every = ends_of(undisturbed, outcomes_known=False)
        other = _shift_of(every, len(undisturbed), outcomes_known=True)
        if other is None or other.is_worse is not shift.is_worse:
            return None
    return shift


def _shift_of(ends: Sequence[End], runs: int, *, outcomes_known: bool) -> FailureShift | None:
    cut = best_cut([one.failed for one in ends])
    if cut is None or cut.p > LEVEL:
        return None
    before, after = ends[: cut.at], ends[cut.at :]
    failed = sum(one.failed for one in before), sum(one.failed for one in after)
    by_error = not outcomes_known and all(one.by_error for one in ends if one.failed)
    return FailureShift(
        since=Instant(after[0].start_ns),
        run=after[0].number,
        failed=failed,
        runs=(len(before), len(after)),
        p=cut.p,
        by_error=by_error,
        other_work=_is_other_work(before, after),
        sentence=_sentence(
            failed,
            (len(before), len(after)),
            by_error=by_error,
            all_known=is_all_known(ends, runs),
        ),
    )


def shift_of_window(window: AgentWindow) -> FailureShift | None:
    """Return the shift of failures in the runs of a window."""
    outcomes_known = window.reading("success_rate").value is not None
    undisturbed = [row for row in window.rows() if row.undisturbed]
    ends = ends_of(undisturbed, outcomes_known=outcomes_known)
    return shift_of(ends, undisturbed, outcomes_known=outcomes_known)


def with_shift(change: ChangeView, shift: FailureShift | None, found: str) -> ChangeView:
    """Return the result of change detection together with that of failures alone, a test that needs
    no baseline: their shift, which `found` describes, is a change unless other work may be why.
    """
    if shift is None or change.result is Result.CHANGED:
        return change
    if shift.other_work:
        return replace(change, note="; ".join(filter(None, (change.note, found))))
    is_known = change.result is Result.NO_CHANGE
    others = "" if is_known else f"by other signals {_uncapitalized(change.sentence)}"
    note = "; ".join(filter(None, (others, change.note)))
    return replace(change, result=Result.CHANGED, sentence=found, note=note)


def _uncapitalized(sentence: str) -> str:
    return f"{sentence[:1].lower()}{sentence[1:]}"


def is_all_known(ends: Sequence[End], runs: int) -> bool:
    """Return whether it is known of each of the newest of so many runs how it ended."""
    return len(ends) == min(runs, MAX_RUNS)


def about_shift(shift: FailureShift) -> str:
    """Return both sides of a shift, and since when.

    >>> about_shift(
    ...     FailureShift(Instant(0), 21, (0, 20), (20, 20), 1e-9, False, True, "all failed")
    ... )
    'all failed: since run 21, 1970-01-01 00:00 UTC, more runs fail (p < 0.001 over all moments);
    other requests since then may be why'
    """
    return f"{shift.sentence}: {since_when(shift)}"


def since_when(shift: FailureShift) -> str:
    """Return since when more or fewer runs fail, and the probability of this by chance."""
    chance = f"p < {MIN_P:g}" if shift.p < MIN_P else f"p = {shift.p:.1g}"
    other = OTHER_WORK if shift.other_work else ""
    more = "more" if shift.is_worse else "fewer"
    since = f"since run {shift.run:,}, {moment(shift.since)}"
    return f"{since}, {more} runs fail ({chance} over all moments){other}"


def about_streak(ends: Sequence[End]) -> str:
    """Return which runs failed one after another: the latest, else the most in a row where that is
    beyond chance. Empty for a few of them, and where all runs did.

    >>> ends = [End("", 0, 0, at + 1, 20 <= at < 30, None, None) for at in range(50)]
    >>> about_streak(ends)
    '10 runs failed, one after another: from run 21, 1970-01-01 00:00 UTC, to run 30, 1970-01-01
    00:00 UTC'
    >>> about_streak(ends[:30]), about_streak(ends[20:30])
    ('the latest 10 runs failed, one after another', '')
    """
    streaks = [list(group) for failed, group in groupby(ends, lambda one: one.failed) if failed]
    if not streaks or len(streaks[-1]) == len(ends):
        return ""
    latest = streaks[-1]
    if latest[-1] is ends[-1] and len(latest) >= MIN_STREAK:
        return f"the latest {len(latest):,} runs failed, one after another"
    longest = max(streaks, key=len)
    chance = _chance_of_streak(len(longest), sum(map(len, streaks)), len(ends))
    if len(longest) < MIN_STREAK or chance > LEVEL:
        return ""
    first, last = longest[0], longest[-1]
    return (
        f"{len(longest):,} runs failed, one after another: from run {first.number:,}, "
        f"{moment(first.start_ns)}, to run {last.number:,}, {moment(last.start_ns)}"
    )


def _chance_of_streak(length: int, failed: int, runs: int) -> float:
    """Return a bound of the probability of so many failures in a row if the same failures came in
    random order: that of any one position, times their number.
    """
    each = prod((failed - at) / (runs - at) for at in range(length))
    return min(1.0, (runs - length + 1) * each)


def _sentence(
    failed: tuple[int, int], runs: tuple[int, int], *, by_error: bool, all_known: bool = True
) -> str:
    """Return both sides, the later one first.

    >>> _sentence((0, 20), (20, 20), by_error=False)
    'all of the latest 20 runs failed, none of the 20 before'
    >>> _sentence((18, 1), (20, 30), by_error=True)
    '1 of the latest 30 runs ended in an error, 18 of the 20 before'
    >>> _sentence((0, 5), (9, 5), by_error=False, all_known=False)
    'all of the latest 5 runs with a known outcome failed, none of the 9 before'
    """
    what = "ended in an error" if by_error else "failed"
    before, after = (_some(*side) for side in zip(failed, runs, strict=True))
    earlier = f"{before} of the {runs[0]:,} before"
    latest = count(runs[1], "run") + ("" if all_known else " with a known outcome")
    return f"{after} of the latest {latest} {what}, {earlier}"


def _some(failed: int, runs: int) -> str:
    return "none" if not failed else "all" if failed == runs else f"{failed:,}"


def _is_other_work(before: Sequence[End], after: Sequence[End]) -> bool:
    """Return whether other work may be why: where the task (else the kind of request) of most runs
    is known, and among runs of one task no more of the later ones fail than by chance.

    >>> def ends(work: str, failed: int, runs: int) -> list[End]:
    ...     return [End("", 0, 0, 0, at < failed, None, work) for at in range(runs)]
    >>> before = [*ends("easy", 2, 90), *ends("hard", 6, 10)]
    >>> _is_other_work(before, [*ends("easy", 0, 10), *ends("hard", 50, 90)])
    True
    >>> _is_other_work(before, [*ends("easy", 40, 90), *ends("hard", 9, 10)])
    False
    """
    sides = [[one for one in side if one.work is not None] for side in (before, after)]
    if any(2 * len(side) < len(every) for side, every in zip(sides, (before, after), strict=True)):
        return False
    runs = [Counter(one.work for one in side) for side in sides]
    failed = [Counter(one.work for one in side if one.failed) for side in sides]
    strata = [
        ((failed[0][work], runs[0][work]), (failed[1][work], runs[1][work]))
        for work in runs[0].keys() & runs[1].keys()
    ]
    return two_sided(difference_within(strata)) > LEVEL
