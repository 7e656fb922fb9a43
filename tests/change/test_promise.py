"""The promise: while units are exchangeable, a false alarm comes no sooner than in c units on average."""

from __future__ import annotations

import pytest

from tests.change.corpora import CORPORA, recorded_units
from tests.change.simulate import Pool, lower_bound, units_to_alarm
from tests.change.streams import SYNTHETIC, recorded, synthetic

SLOW = {"fifty signals", "constants"}
"""Fifty signals take long each, and where four of five never speak, an alarm takes five times as long to come."""


@pytest.mark.parametrize("kind", SYNTHETIC)
def test_false_alarms_are_as_rare_as_promised(kind: str) -> None:
    """The lower 99 % bound of the mean number of units to an alarm is at or above .9 c, whatever the numbers look like."""
    keeps_the_promise(synthetic(kind), 200)


@pytest.mark.parametrize("kind", [pytest.param(kind, marks=[pytest.mark.soak] * (kind in SLOW)) for kind in SYNTHETIC])
def test_false_alarms_are_as_rare_as_promised_at_1000(kind: str) -> None:
    """The same for a rarer alarm, which takes more of the memory of 500 values to come."""
    keeps_the_promise(synthetic(kind), 1_000)


@pytest.mark.parametrize("corpus", CORPORA)
@pytest.mark.parametrize("c", [200, pytest.param(1_000, marks=pytest.mark.soak)])
def test_recorded_agents_keep_the_promise(corpus: str, c: int) -> None:
    """The same for streams drawn from the runs of recorded agents, paths and all."""
    keeps_the_promise(recorded(recorded_units(corpus)), c)


def keeps_the_promise(pool: Pool, c: int, streams: int = 250) -> None:
    """Follow so many streams to their first alarm."""
    lengths = units_to_alarm(pool, c, streams, seed=c)
    assert len(lengths) == streams
    assert lower_bound(lengths) >= 0.9 * c
