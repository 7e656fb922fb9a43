"""Reference cycles are collected before what they hold is much."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

from otel_reliability.service.heap import MAX_GARBAGE, Garbage

THRESHOLDS = (1_000_000, 10, 20)


class Cycle:
    """An object that only the collector frees."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture
def _seldom() -> Iterator[None]:
    before = gc.get_threshold()
    gc.collect()
    gc.set_threshold(*THRESHOLDS)
    yield
    gc.set_threshold(*before)


@pytest.mark.usefixtures("_seldom")
def test_cycles_are_collected_when_much_was_left() -> None:
    garbage = Garbage()
    cycle = weakref.ref(Cycle())
    garbage.left(MAX_GARBAGE - 1)
    kept = cycle()
    assert kept is not None
    del kept
    garbage.left(1)

    assert cycle() is None
    assert gc.get_threshold() == THRESHOLDS


@pytest.mark.usefixtures("_seldom")
def test_what_was_alive_then_is_collected_later() -> None:
    garbage = Garbage()
    alive = [Cycle()]
    cycle = weakref.ref(alive[0])
    garbage.left(MAX_GARBAGE)
    alive.clear()
    for _ in range(2 + THRESHOLDS[1]):
        garbage.left(MAX_GARBAGE)

    assert cycle() is None
