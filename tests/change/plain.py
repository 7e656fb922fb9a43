"""The watch of one signal as its formulas are written: the oracle of the one that keeps what it needs up to date."""

from __future__ import annotations

from array import array
from typing import Final

from otel_reliability.change.rank import WINDOW, tie_breaker

STRENGTHS: Final = (-1.6, -0.8, 0.0, 0.8, 1.6)


def single(value: float) -> float:
    """The value in single precision."""
    return array("f", [value])[0]


class PlainWatch:
    """Keeps the values in a list, counts them all for each rank, and calculates in the order in which the formulas do."""

    def __init__(self, signal: str) -> None:
        self.signal = signal
        self.values: list[float] = []
        self.since = (0, 0)
        self.begin()

    def begin(self) -> None:
        """Nothing has been bet on yet."""
        self.evidence, self.gain, self.values_since = 0.0, 1.0, 0
        self.weights = [0.2] * len(STRENGTHS)

    def see(self, value: float, unit_id: str, ordinal: int, ns: int, *, count: bool) -> None:
        """The signal's next value."""
        before, value = self.values[-WINDOW:], single(value)
        self.values = [*before, value][-WINDOW:]
        greater, equal = sum(b > value for b in before), sum(b == value for b in before)
        if equal == len(before):
            self.begin()
            return
        p = (greater + tie_breaker(unit_id, self.signal, ordinal) * (equal + 1)) / (len(before) + 1)
        growth = self.bet(p)
        if count:
            self.evidence = (self.evidence + 1) * growth
        if not self.values_since:
            self.since = (ordinal, ns)
        self.gain, self.values_since = self.gain * growth, self.values_since + 1
        if self.gain <= 1:
            self.gain, self.values_since = 1.0, 0

    def bet(self, p: float) -> float:
        """The growth of the money."""
        factors = [1 - 1.6 * (p - 0.5), 1 - 0.8 * (p - 0.5), 1.0, 1 + 0.8 * (p - 0.5), 1 + 1.6 * (p - 0.5)]
        moved = [((1 - 0.02) * w + 0.02 / 5) * factor for w, factor in zip(self.weights, factors, strict=True)]
        growth = moved[0] + moved[1] + moved[2] + moved[3] + moved[4]
        self.weights = [w / growth for w in moved]
        return growth

    def told(self) -> list[object]:
        """Everything there is to compare."""
        return [self.evidence, self.gain, self.values_since, self.since, self.weights]
