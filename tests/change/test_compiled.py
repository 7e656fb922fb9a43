"""What the compiled module makes of a value is what Python makes of it."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_reliability.change import compiled
from otel_reliability.change.compiled import NATIVE
from otel_reliability.change.growth import growth
from otel_reliability.change.martingale import KEPT, SHARED, STRONG, WEAK, Jumper
from otel_reliability.change.rank import Ranks

pytestmark = pytest.mark.skipif(NATIVE is None, reason="the compiled module (native/) is not installed")

VALUES = st.one_of(
    st.sampled_from([0, 1, 2.5, 0.1, -0.0, True, 2**24 + 1, -(2**70), float("inf"), float("-inf")]),
    st.integers(-5, 5), st.floats(allow_nan=False),
)  # fmt: skip
NAMES = st.binary(max_size=20)


def small(window: int) -> Callable[..., float | None]:
    """The compiled module with a window that is soon full."""
    made: Callable[..., float | None] = NATIVE.Growth(growth_within(window), window, KEPT, SHARED, WEAK, STRONG)
    return made


def growth_within(window: int) -> Callable[[Ranks, Jumper, float, bytes], float | None]:
    """What Python makes of it with such a window."""

    def within(ranks: Ranks, jumper: Jumper, value: float, name: bytes) -> float | None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("otel_reliability.change.rank.WINDOW", window)
            return growth(ranks, jumper, value, name)

    return within


def everything(ranks: Ranks, jumper: Jumper) -> object:
    """All that both hold, to the bit."""
    return ranks.to_state(), repr((ranks._sorted, ranks.only, jumper.weights)), ranks._sorted is ranks._latest


@given(st.integers(2, 9), st.lists(st.tuples(VALUES, NAMES), max_size=40))
def test_the_same_growth(window: int, values: list[tuple[float, bytes]]) -> None:
    """Of ties, of constants, of numbers that have no single and of what is none, in windows that fill and go on."""
    ours, oracle = small(window), growth_within(window)
    one, other = (Ranks(), Jumper()), (Ranks(), Jumper())
    for value, name in values:
        assert repr(ours(*one, value, name)) == repr(oracle(*other, value, name))
        assert everything(*one) == everything(*other)


def test_the_same_growth_of_as_many_values_as_are_kept() -> None:
    """With the window that is used, whatever leaves and wherever it stood."""
    dice = random.Random(5)
    one, other = (Ranks(), Jumper()), (Ranks(), Jumper())
    for at in range(3_000):
        value = dice.choice((dice.randrange(3), dice.randrange(10**6), dice.random()))
        assert compiled.growth(*one, value, b"%d" % at) == growth(*other, value, b"%d" % at)
        assert everything(*one) == everything(*other)


def full() -> tuple[Ranks, Jumper]:
    """Three different values."""
    ranks = Ranks()
    for value in (1, 2, 3):
        ranks.rank(value, 0.5)
    return ranks, Jumper()


class Count(int):
    """An int of another class."""


@pytest.mark.parametrize("value", [Count(2), 10**400, float("nan"), None, "2"])
def test_what_is_unusual_is_left_to_python(value: Any) -> None:
    """Also what Python refuses: then it is Python that says so, or the same is said."""
    ours, oracle = full(), full()
    assert said(small(3), ours, value) == said(growth_within(3), oracle, value)


def said(one: Callable[..., float | None], to: tuple[Ranks, Jumper], value: Any) -> object:
    """What comes back, or how it is refused."""
    try:
        return one(*to, value, b"")
    except (TypeError, OverflowError) as error:
        return type(error)


def test_arrays_that_are_not_as_they_should_be_are_left_alone() -> None:
    """Of another length or kind, or without the value that is to leave: nothing is written."""
    asked: list[float] = []

    def plain(ranks: Ranks, jumper: Jumper, value: float, name: bytes) -> None:
        asked.append(value)

    ours = NATIVE.Growth(plain, 3, KEPT, SHARED, WEAK, STRONG)
    for spoil in ("_latest", "_sorted"):
        for kind, values in (("f", [9, 9]), ("d", [1, 2, 3]), ("i", [1, 2, 3]), ("f", [8, 9, 9, 9])):
            ranks, jumper = full()
            setattr(ranks, spoil, type(ranks._latest)(kind, values))
            before = everything(ranks, jumper)
            ours(ranks, jumper, 2, b"")
            assert everything(ranks, jumper) == before
    ranks, jumper = full()
    ranks._sorted = type(ranks._latest)("f", [2, 3, 4])
    jumper.weights = weights = (0.5, 0.5, 0.0, 0.0, 0.0)
    ours(ranks, jumper, 7, b"")
    assert (ranks._sorted.tolist(), jumper.weights is weights, len(asked)) == ([2, 3, 4], True, 9)


def test_nothing_is_there_half_made() -> None:
    """An object that was never told how many values are kept would read where there are none."""
    with pytest.raises(TypeError):
        NATIVE.Growth.__new__(NATIVE.Growth)


def test_nothing_leaks() -> None:
    """Thousands of calls hold on to nothing they were given."""
    ours, (ranks, jumper), value, name = small(3), full(), 1_234.5, bytes(100)
    given_before = sys.getrefcount(value), sys.getrefcount(name)
    for at in range(5_000):
        ours(ranks, jumper, value + at, name)
        ours(ranks, jumper, value, name)
    assert (sys.getrefcount(value), sys.getrefcount(name)) == given_before
    assert (len(ranks._latest), len(ranks._sorted)) == (3, 3)
