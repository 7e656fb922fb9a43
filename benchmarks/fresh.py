"""Works that need something new each time, such as requests: what they are given is made before the clock runs."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence
from typing import Generic, NamedTuple, TypeVar

from benchmarks.measure import ROUNDS

T = TypeVar("T")


class Fed(NamedTuple, Generic[T]):
    """A work, and what makes the next thing it is given."""

    work: Callable[[T], object]
    make: Callable[[], T]


def seconds(*works: Fed[T], each: int, rounds: int = ROUNDS) -> list[list[float]]:
    """CPU seconds of one call of each of these works in each round, of so many calls. Every round begins with another."""
    found: list[list[float]] = [[] for _ in works]
    for turn in range(rounds):
        for place in range(len(works)):
            which = (turn + place) % len(works)
            found[which].append(_timed(works[which].work, [works[which].make() for _ in range(each)]))
    return found


def _timed(work: Callable[[T], object], given: Sequence[T]) -> float:
    gc.collect()
    began = time.process_time()
    for one in given:
        work(one)
    return (time.process_time() - began) / len(given)
