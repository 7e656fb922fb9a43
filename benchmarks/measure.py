"""How everything here is measured: candidates in turns, CPU time, the median of many ratios.

Load from elsewhere on the machine hits neighbouring measurements alike, so each round gives one
ratio of candidates that ran side by side, and a row is the median of its rounds. Absolute times
vary by a third from minute to minute; ratios do not.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeVar

ROUNDS = 9
"""Default number of rounds of a row."""

K = TypeVar("K")
T = TypeVar("T")


class Row(NamedTuple):
    """One measured number. `spread`: the quartiles of the rounds. `at_most`: the limit, or None.

    `against`: what a ratio (unit `×`) is a multiple of, or what the number was measured on.
    """

    name: str
    value: float
    at_most: float | None
    unit: str
    spread: tuple[float, float]
    against: str

    @property
    def over(self) -> bool:
        """Return whether the number is above its limit."""
        return self.at_most is not None and self.value > self.at_most


def row(
    name: str,
    values: Sequence[float],
    *,
    against: str,
    at_most: float | None = None,
    unit: str = "×",
    scale: float = 1.0,
) -> Row:
    """Return the median of the rounds as a row.

    >>> row("a", [1.0, 2.0, 3.0, 4.0, 9.0], against="b")
    Row(name='a', value=3.0, at_most=None, unit='×', spread=(2.0, 4.0), against='b')
    """
    scaled = sorted(value * scale for value in values)
    low, middle, high = (
        statistics.quantiles(scaled, n=4, method="inclusive") if len(scaled) > 1 else scaled * 3
    )
    return Row(name, middle, at_most, unit, (low, high), against)


def ratios(ours: Sequence[float], theirs: Sequence[float]) -> list[float]:
    """Return one ratio per round.

    >>> ratios([2.0, 9.0], [1.0, 3.0])
    [2.0, 3.0]
    """
    return [one / other for one, other in zip(ours, theirs, strict=True)]


def in_turns(candidates: Mapping[K, Callable[[], T]], rounds: int = ROUNDS) -> dict[K, list[T]]:
    """Call each candidate once per round; every round begins with another of them.

    >>> in_turns({"a": lambda: 1, "b": lambda: 2}, rounds=2)
    {'a': [1, 1], 'b': [2, 2]}
    """
    found: dict[K, list[T]] = {name: [] for name in candidates}
    names = list(candidates)
    for turn in range(rounds):
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            found[name].append(candidates[name]())
    return found
