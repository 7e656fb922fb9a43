"""The state of one signal, bit for bit as its formulas say."""

from __future__ import annotations

import functools
import json
import math
import operator
import random
from array import array
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_reliability.change.signal_state import START, WINDOW, Ranks, SignalState, bet
from tests.change.build import observation, u_of


def single(value: float) -> float:
    return array("f", [value])[0]


class PlainState:
    """Keeps the values in a list, counts them all for each rank, and calculates in the order in
    which the formulas do.
    """

    def __init__(self, signal: str) -> None:
        self.signal = signal
        self.values: list[float] = []
        self.since = (0, 0)
        self.begin()

    def begin(self) -> None:
        """Nothing has been bet on yet."""
        self.evidence = 0.0
        self.gain = 1.0
        self.values_since = 0
        self.weights = [*START]

    def add(self, value: float, unit_id: str, ordinal: int, ns: int, *, count: bool) -> None:
        before = self.values[-WINDOW:]
        value = single(value)
        self.values = [*before, value][-WINDOW:]
        greater = sum(b > value for b in before)
        equal = sum(b == value for b in before)
        if equal == len(before):
            self.begin()
            return
        p = (greater + u_of(unit_id, self.signal, ordinal) * (equal + 1)) / (len(before) + 1)
        growth = self.bet(p)
        if count:
            self.evidence = (self.evidence + 1) * growth
        if not self.values_since:
            self.since = (ordinal, ns)
        self.gain = self.gain * growth
        self.values_since = self.values_since + 1
        if self.gain <= 1:
            self.gain = 1.0
            self.values_since = 0

    def bet(self, p: float) -> float:
        low = 0.5 / math.sqrt(max(p, 1e-4))
        high = 0.5 / math.sqrt(max(1 - p, 1e-4))
        steps = [0.5 * 2**n if p < 0.5**n else 0.5 / (1 - 0.5**n) for n in (6, 5, 4, 3, 2)]
        factors = [1 - 1.6 * (p - 0.5), low, 1.0, high, 1 + 1.6 * (p - 0.5), *steps]
        moved = [
            ((1 - 0.02) * w + 0.02 * start) * factor
            for w, start, factor in zip(self.weights, START, factors, strict=True)
        ]
        growth = functools.reduce(operator.add, moved)
        self.weights = [w / growth for w in moved]
        return growth

    def told(self) -> list[object]:
        return [self.evidence, self.gain, self.values_since, self.since, self.weights]


FEW = st.sampled_from([0, 1, 2, 0.1, 7.5])
MANY = st.one_of(st.integers(0, 10**9), st.floats(0, 1e6))
PHASES = st.lists(
    st.tuples(st.lists(st.one_of(FEW, MANY), min_size=1, max_size=6), st.integers(1, 60)),
    max_size=6,
)
"""Values that come again and again for a while, then others: signals that are constant, become so,
and are no more.
"""


def together(values: Sequence[float], *, first: int = 1, cut: int = -1) -> SignalState:
    """Shows values to a state and to the plain one, and compares them after each; at `cut` the
    state is restarted.
    """
    state = SignalState("calls")
    plain = PlainState("calls")
    for ordinal, value in enumerate(values, first):
        if ordinal - first == cut:
            state = SignalState.from_data("calls", json.loads(json.dumps(state.to_data())))
        one = observation(ordinal)
        count = ordinal % 11 > 3
        state.add(value, one, ordinal, 0, count=count)
        plain.add(value, one.id, ordinal, one.start_ns, count=count)
        assert told(state) == plain.told()
    assert values_of(state) == plain.values
    return state


def told(state: SignalState) -> list[object]:
    data = state.to_data()
    return [
        data["evidence"],
        data["gain"],
        data["values_since"],
        tuple(data["since"]),
        data["weights"],
    ]


def values_of(state: SignalState) -> list[float]:
    data = state.to_data()
    return Ranks.from_data(data["values"], data["groups"]).split(0)[0]


@given(PHASES, st.integers(-300, 300), st.integers(-1, 100))
def test_it_is_the_formula(phases: list[tuple[list[float], int]], first: int, cut: int) -> None:
    together([value for some, times in phases for value in some * times], first=first, cut=cut)


def constant(dice: random.Random) -> float:
    """Hardly ever another value."""
    return float(dice.random() < 0.004)


def tied(dice: random.Random) -> float:
    """A few values, of which one has no exact single."""
    return dice.choice((0.1, 0.2, 3))


def spread(dice: random.Random) -> float:
    """Hardly ever the same value."""
    return dice.paretovariate(1) * 100


def in_turns(dice: random.Random) -> float:
    """Now and then another kind of them."""
    return dice.choice((constant, tied, spread))(dice) if dice.random() < 0.3 else 5


@pytest.mark.parametrize("value", [constant, tied, spread, in_turns])
def test_a_full_window_is_the_formula(value: Callable[[random.Random], float]) -> None:
    dice = random.Random(value.__name__)
    together([value(dice) for _ in range(3 * WINDOW)], cut=2 * WINDOW)


def test_a_signal_that_becomes_constant_is_forgotten() -> None:
    values = [*range(100), *[0.1] * WINDOW]
    assert together(values[:-1]).evidence > 0
    assert together([*values, 0.1]).evidence == 0
    assert together([*values, 0.1, 2, 3, 4]).evidence > 0
    assert values_of(together([0.1] * (2 * WINDOW))) == [single(0.1)] * WINDOW


@given(st.lists(st.floats(0, 1), max_size=50))
def test_a_bet_is_fair(ranks: list[float]) -> None:
    """Whatever went before, the mean growth over uniform ranks is 1, less what the bound on extreme
    ranks costs.
    """
    weights = START
    for p in ranks:
        _, weights = bet(weights, p)
    grid = [(n + 0.5) / 5_000 for n in range(5_000)]
    assert 0.99 < sum(bet(weights, p)[0] for p in grid) / len(grid) <= 1 + 1e-12


@pytest.mark.parametrize("p", [0.0, 0.1, 0.9, 1.0])
def test_a_shift_either_way_wins(p: float) -> None:
    weights = START
    money = 1.0
    for rank in [1 - p] * 300 + [p] * 60:
        growth, weights = bet(weights, rank)
        money = money * growth if rank == p else 1.0
    assert money > 1_000


def test_the_money_never_overflows_or_runs_out() -> None:
    weights = START
    for _ in range(20_000):
        _, weights = bet(weights, 0.0)
    assert sum(weights) == pytest.approx(1)
    assert min(weights) > 1e-6


def test_ties_are_broken_evenly_and_by_nothing_but_names() -> None:
    """Over observations, signals and ordinals alike the tie breaker is spread over [0, 1)."""
    tenths = [0] * 10
    for n in range(4_000):
        tenths[int(10 * u_of(f"run-{n % 100}", "calls", n))] += 1
    assert min(tenths) > 320
    assert len({u_of("a", "calls", 1), u_of("b", "calls", 1), u_of("a", "path", 1)}) == 3


@pytest.mark.parametrize("unit_id", ["", "\ud800", "ü" * 1_000])
def test_any_id_breaks_ties(unit_id: str) -> None:
    assert 0 <= u_of(unit_id, "path", 0) < 1
