"""One signal under watch, bit for bit as its formulas say."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Sequence

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from otel_reliability.change import compiled, growth
from otel_reliability.change import watch as watch_module
from otel_reliability.change.rank import WINDOW, Ranks
from otel_reliability.change.watch import Watch, at
from tests.change.build import unit
from tests.change.plain import PlainWatch, single

FEW = st.sampled_from([0, 1, 2, 0.1, 7.5])
MANY = st.one_of(st.integers(0, 10**9), st.floats(0, 1e6))
PHASES = st.lists(st.tuples(st.lists(st.one_of(FEW, MANY), min_size=1, max_size=6), st.integers(1, 60)), max_size=6)
"""Values that come again and again for a while, then others: signals that are constant, become so, and are no more."""


def together(values: Sequence[float], *, first: int = 1, cut: int = -1) -> Watch:
    """Shows values to a watch and to the plain one, and compares them after each; at `cut` the watch is restarted."""
    watch, plain = Watch("calls"), PlainWatch("calls")
    for ordinal, value in enumerate(values, first):
        if ordinal - first == cut:
            watch = Watch.from_state("calls", json.loads(json.dumps(watch.to_state())))
        one, count = unit(ordinal), ordinal % 11 > 3
        watch.see(value, at(one, ordinal), count=count)
        plain.see(value, one.id, ordinal, one.start_ns, count=count)
        assert told(watch) == plain.told()
    assert values_of(watch) == plain.values
    return watch


def told(watch: Watch) -> list[object]:
    """Everything there is to compare."""
    state = watch.to_state()
    return [state["evidence"], state["gain"], state["values_since"], tuple(state["since"]), state["weights"]]


def values_of(watch: Watch) -> list[float]:
    """The kept values, oldest first."""
    return Ranks.from_state(watch.to_state()["values"]).split(0)[0]


@pytest.fixture(params=[growth.growth, compiled.growth], ids=["python", "compiled"], autouse=True)
def _grown(request: pytest.FixtureRequest) -> Iterator[None]:
    """Everything here by Python, and by the compiled module where there is one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(watch_module, "growth", request.param)
        yield


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])  # it is the same for all examples
@given(PHASES, st.integers(-300, 300), st.integers(-1, 100))
def test_it_is_the_formula(phases: list[tuple[list[float], int]], first: int, cut: int) -> None:
    """Whatever comes, and wherever it is restarted, all numbers are those of the plain one."""
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
    """The same when values leave at the other end, and after a restart there."""
    dice = random.Random(value.__name__)
    together([value(dice) for _ in range(3 * WINDOW)], cut=2 * WINDOW)


def test_a_signal_that_becomes_constant_is_forgotten() -> None:
    """As soon as only equal values are kept there is no evidence any more; what differs then is evidence again."""
    values = [*range(100), *[0.1] * WINDOW]
    assert together(values[:-1]).evidence > 0
    assert together([*values, 0.1]).evidence == 0
    assert together([*values, 0.1, 2, 3, 4]).evidence > 0
    assert values_of(together([0.1] * (2 * WINDOW))) == [single(0.1)] * WINDOW


def test_equal_values_are_kept_once() -> None:
    """What never differs takes half the room, also after a restart."""
    ranks = Ranks()
    for _ in range(10):
        assert ranks.rank(3, 0.5) is None
    for one in (ranks, Ranks.from_state(ranks.to_state())):
        assert (one.only, one._sorted is one._latest) == (3, True)
        assert one.rank(4, 0.5) == 0.5 / 11
        assert (one.only, one.split(2)) == (None, ([3.0] * 9, [3.0, 4.0]))
