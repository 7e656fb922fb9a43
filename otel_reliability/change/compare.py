"""Two recordings: do they differ by more than chance?

The order of units does not matter here, so tasks may stand in blocks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from otel_reliability.change.alarm import Summary, ToolShift, tool_shifts
from otel_reliability.change.signals import PATH, SIGNALS, checked
from otel_reliability.change.units import Steps, Unit
from otel_reliability.change.verdict import Verdict
from otel_reliability.statistics.edits import edit_share
from otel_reliability.statistics.permutation import Floats, distance_p, scalar_p
from otel_reliability.statistics.significance import holm

MIN_UNITS: Final = 20
"""Units that either side needs."""

MAX_UNITS: Final = 1_000
"""Units of a side that are compared, the latest: the path signal looks at every pair."""

LEVEL: Final = 0.01
"""The chance, over all signals together, of calling two recordings of one behaviour different."""


class SignalTest(NamedTuple):
    """One signal's test. `p` is adjusted for the number of signals tested. For the path signal, the summaries are of each
    unit's mean distance to the other units of the earlier side.
    """

    signal: str
    p: float
    before: Summary | None
    after: Summary | None

    @property
    def differs(self) -> bool:
        """Whether the sides differ in this signal by more than chance."""
        return self.p <= LEVEL


class Comparison(NamedTuple):
    """The verdict on two recordings, the most telling signal first. `why` says why there is none.

    `shared_tasks` is the share of all units whose task the other side has too, None where not all tasks are known: a
    different mix of tasks is a difference too, and no fault of the agent.
    """

    verdict: Verdict
    tests: tuple[SignalTest, ...] = ()
    tools: tuple[ToolShift, ...] = ()
    shared_tasks: float | None = None
    why: str = ""


def compare(before: Sequence[Unit], after: Sequence[Unit], signals: Sequence[str], seed: int = 0) -> Comparison:
    """Whether the units of two recordings differ, with at most a 1 % chance of a false word.

    Numbers are compared by the difference of their mean ranks, paths by the mean distance between the sides less those
    within, both by a seeded permutation test and Holm's rule over the signals that 20 units of either side have.
    """
    one, two = before[-MAX_UNITS:], after[-MAX_UNITS:]
    if min(len(one), len(two)) < MIN_UNITS:
        why = f"either side needs {MIN_UNITS} units; there are {len(one)} before and {len(two)} after"
        return Comparison(Verdict.NO_VERDICT, why=why)
    raw = [test for signal in checked(signals) if (test := _test(signal, one, two, seed)) is not None]
    if not raw:
        return Comparison(Verdict.NO_VERDICT, why=f"no signal is known of {MIN_UNITS} units on either side")
    tests = [test._replace(p=p) for test, p in zip(raw, holm([test.p for test in raw]), strict=True)]
    tests.sort(key=lambda test: test.p)
    tools = tool_shifts([unit.path for unit in one], [unit.path for unit in two])
    verdict = Verdict.CHANGED if tests[0].differs else Verdict.NO_CHANGE
    return Comparison(verdict, tuple(tests), tools if tests[0].differs else (), _shared_tasks(one, two))


def _test(signal: str, before: Sequence[Unit], after: Sequence[Unit], seed: int) -> SignalTest | None:
    """The unadjusted test of one signal, None where a side has fewer than 20 units with evidence for it."""
    if signal == PATH:
        return _path_test(
            [u.path for u in before if u.path is not None], [u.path for u in after if u.path is not None], seed
        )
    read = SIGNALS[signal].read
    earlier = [value for unit in before if (value := read(unit)) is not None]
    later = [value for unit in after if (value := read(unit)) is not None]
    if min(len(earlier), len(later)) < MIN_UNITS:
        return None
    return SignalTest(signal, scalar_p(earlier, later, seed), Summary.of(earlier), Summary.of(later))


def _path_test(before: Sequence[Steps], after: Sequence[Steps], seed: int) -> SignalTest | None:
    n = len(before)
    if min(n, len(after)) < MIN_UNITS:
        return None
    between = distances([*before, *after])
    to_before = between[:, :n].sum(axis=1)
    to_before[:n] /= n - 1
    to_before[n:] /= n
    values: list[float] = to_before.tolist()
    return SignalTest(PATH, distance_p(between, n, seed), Summary.of(values[:n]), Summary.of(values[n:]))


def distances(paths: Sequence[Steps]) -> Floats:
    """The normalised Levenshtein distances of all pairs, each pair of distinct paths compared once."""
    letters: dict[str, str] = {}
    codes = ["".join(letters.setdefault(tool, chr(len(letters) + 1)) for tool in path) for path in paths]
    distinct = {code: i for i, code in enumerate(dict.fromkeys(codes))}
    table = np.zeros((len(distinct), len(distinct)))
    for one, i in distinct.items():
        for other, j in distinct.items():
            if i < j:
                table[i, j] = table[j, i] = edit_share(one, other)
    at = np.array([distinct[code] for code in codes])
    return table[np.ix_(at, at)]


def _shared_tasks(before: Sequence[Unit], after: Sequence[Unit]) -> float | None:
    earlier, later = {unit.task for unit in before}, {unit.task for unit in after}
    if None in earlier | later:
        return None
    shared = sum(unit.task in later for unit in before) + sum(unit.task in earlier for unit in after)
    return shared / (len(before) + len(after))
