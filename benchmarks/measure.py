"""How everything here is measured: works taken in turns, CPU time, the median of many ratios.

What else the machine does hits neighbours alike, so each round gives one ratio of works that ran side by side, and a row is
the median of the rounds. Absolute times wander by a third from minute to minute; ratios of one run do not.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, TypeAlias

ROUNDS: Final = 11
"""Rounds of a row, at least seven."""
LEAST: Final = 0.05
"""Seconds that one work takes in one round, at least: it is repeated until it does."""

Work: TypeAlias = Callable[[], object]


class Row(NamedTuple):
    """One number. `spread`: between which values the middle half of the rounds lie. `at_most` None: held to nothing.

    `against` says what a ratio (unit `×`) is a multiple of, or on what the number was measured.
    """

    name: str
    value: float
    at_most: float | None
    unit: str
    spread: tuple[float, float]
    against: str

    @property
    def over(self) -> bool:
        """Whether the number is above its limit."""
        return self.at_most is not None and self.value > self.at_most


def seconds(
    *works: Work, rounds: int = ROUNDS, least: float = LEAST, between: Work | None = None, calls: int | None = None
) -> list[list[float]]:
    """CPU seconds (of all threads) of one call of each of these works in each round. Every round begins with another of them.

    `between` is done before each measurement, unmeasured. `calls` says how often to repeat a work in one measurement, where
    `least` is not to decide.
    """
    numbers = [_calls(work, least) if calls is None else calls for work in works]
    found: list[list[float]] = [[] for _ in works]
    for turn in range(rounds):
        for place in range(len(works)):
            which = (turn + place) % len(works)
            if between is not None:
                between()
            found[which].append(_timed(works[which], numbers[which]))
    return found


def row(
    name: str,
    values: Sequence[float],
    *,
    against: str,
    at_most: float | None = None,
    unit: str = "×",
    scale: float = 1.0,
) -> Row:
    """The median of the rounds, as a row.

    >>> row("a", [1.0, 2.0, 3.0, 4.0, 9.0], against="b")
    Row(name='a', value=3.0, at_most=None, unit='×', spread=(2.0, 4.0), against='b')
    """
    scaled = sorted(value * scale for value in values)
    low, middle, high = statistics.quantiles(scaled, n=4, method="inclusive") if len(scaled) > 1 else scaled * 3
    return Row(name, middle, at_most, unit, (low, high), against)


def ratios(ours: Sequence[float], theirs: Sequence[float]) -> list[float]:
    """One ratio a round."""
    return [one / other for one, other in zip(ours, theirs, strict=True)]


def ratio(
    name: str, work: Work, other: Work, *, against: str, at_most: float | None = None, rounds: int = ROUNDS
) -> Row:
    """What one work costs as a multiple of another, taken in turns."""
    return row(name, ratios(*seconds(work, other, rounds=rounds)), against=against, at_most=at_most)


def _calls(work: Work, least: float) -> int:
    """How many calls take as long as one measurement should; the work is warm afterwards."""
    work()
    number, took = 1, _timed(work, 1)
    while took * number < least:
        number = max(number * 2, min(number * 10, int(least / max(took, 1e-9))))
        took = _timed(work, number)
    return number


def _timed(work: Work, calls: int) -> float:
    gc.collect()
    began = time.process_time()
    for _ in range(calls):
        work()
    return (time.process_time() - began) / calls
