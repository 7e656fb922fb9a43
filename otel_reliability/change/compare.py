"""Two recordings: do they differ by more than chance?

The order of observations does not matter here, so tasks may come in blocks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from otel_reliability.change.alarm import Summary, ToolShift, tool_shifts
from otel_reliability.change.result import Result
from otel_reliability.change.signals import PATH, SIGNALS
from otel_reliability.model.observation import Observation, Steps
from otel_reliability.statistics.edits import coded, edit_shares
from otel_reliability.statistics.permutation import Floats, distance_p, scalar_p
from otel_reliability.statistics.significance import holm

MIN_OBSERVATIONS: Final = 20
"""Minimum observations of either side."""

MAX_OBSERVATIONS: Final = 1_000
"""Maximum observations of a side, the latest: the path signal compares every pair."""

LEVEL: Final = 0.01
"""The probability, over all signals together, of calling two recordings of one behaviour different.
"""


class SignalTest(NamedTuple):
    """One signal's test. `p` is adjusted for the number of signals tested. For the path signal, the
    summaries are of each observation's mean distance to the other observations of the earlier side.
    """

    signal: str
    p: float
    before: Summary | None
    after: Summary | None

    @property
    def differs(self) -> bool:
        """True if the sides differ in this signal by more than chance."""
        return self.p <= LEVEL


class Comparison(NamedTuple):
    """The result of two recordings, the signal with the least p first. `why` is the reason for
    NO_RESULT.

    `shared_tasks` is the share of all observations whose task the other side has too, None where
    not all tasks are known: a different mix of tasks is a difference too, and no fault of the
    agent.
    """

    result: Result
    tests: tuple[SignalTest, ...] = ()
    tools: tuple[ToolShift, ...] = ()
    shared_tasks: float | None = None
    why: str = ""


def compare(
    before: Sequence[Observation], after: Sequence[Observation], seed: int = 0
) -> Comparison:
    """Return whether the observations of two recordings differ, with at most 1 % probability of a
    false CHANGED.

    Numbers are compared by the difference of their mean ranks, paths by the mean distance between
    the sides less those within, both by a seeded permutation test and Holm's rule over the signals
    that 20 observations of either side have.
    """
    one = before[-MAX_OBSERVATIONS:]
    two = after[-MAX_OBSERVATIONS:]
    if min(len(one), len(two)) < MIN_OBSERVATIONS:
        why = (
            f"either side needs {MIN_OBSERVATIONS} observations; there are {len(one)} before "
            f"and {len(two)} after"
        )
        return Comparison(Result.NO_RESULT, why=why)
    raw = [test for signal in SIGNALS if (test := _test(signal, one, two, seed)) is not None]
    if not raw:
        return Comparison(
            Result.NO_RESULT,
            why=f"no signal is known of {MIN_OBSERVATIONS} observations on either side",
        )
    tests = [
        test._replace(p=p) for test, p in zip(raw, holm([test.p for test in raw]), strict=True)
    ]
    tests.sort(key=lambda test: test.p)
    tools = tool_shifts([each.path for each in one], [each.path for each in two])
    result = Result.CHANGED if tests[0].differs else Result.NO_CHANGE
    return Comparison(
        result, tuple(tests), tools if tests[0].differs else (), _shared_tasks(one, two)
    )


def _test(
    signal: str, before: Sequence[Observation], after: Sequence[Observation], seed: int
) -> SignalTest | None:
    """Return the unadjusted test of one signal, None where a side has fewer than 20 observations
    with data for it.
    """
    if signal == PATH:
        return _path_test(
            [u.path for u in before if u.path is not None],
            [u.path for u in after if u.path is not None],
            seed,
        )
    read = SIGNALS[signal].read
    earlier = [value for each in before if (value := read(each)) is not None]
    later = [value for each in after if (value := read(each)) is not None]
    if min(len(earlier), len(later)) < MIN_OBSERVATIONS:
        return None
    return SignalTest(
        signal, scalar_p(earlier, later, seed), Summary.of(earlier), Summary.of(later)
    )


def _path_test(before: Sequence[Steps], after: Sequence[Steps], seed: int) -> SignalTest | None:
    n = len(before)
    if min(n, len(after)) < MIN_OBSERVATIONS:
        return None
    between = distances([*before, *after])
    to_before = between[:, :n].sum(axis=1)
    to_before[:n] /= n - 1
    to_before[n:] /= n
    values: list[float] = to_before.tolist()
    return SignalTest(
        PATH, distance_p(between, n, seed), Summary.of(values[:n]), Summary.of(values[n:])
    )


def distances(paths: Sequence[Steps]) -> Floats:
    """Return the Levenshtein distances over the longer length of all pairs."""
    letters: dict[str, str] = {}
    codes = [coded(path, letters) for path in paths]
    distinct = {code: i for i, code in enumerate(dict.fromkeys(codes))}
    table = np.array([edit_shares(code, distinct) for code in distinct])
    at = np.array([distinct[code] for code in codes])
    return table[np.ix_(at, at)]


def _shared_tasks(before: Sequence[Observation], after: Sequence[Observation]) -> float | None:
    earlier = {each.task for each in before}
    later = {each.task for each in after}
    if None in earlier | later:
        return None
    shared = sum(each.task in later for each in before) + sum(
        each.task in earlier for each in after
    )
    return shared / (len(before) + len(after))
