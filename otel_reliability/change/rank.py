"""The rank of a number among the latest ones: evenly spread over [0, 1] while nothing changes."""

from __future__ import annotations

from array import array
from base64 import b64decode, b64encode
from bisect import bisect_left, bisect_right
from hashlib import blake2b
from typing import Final

WINDOW: Final = 500
"""How many of the latest values a rank is taken among. Thinning them at random instead breaks the promise (measured)."""

_UNUSED_BITS: Final = 64 - 53
_STEP: Final = 2.0**-53


def tie_breaker(unit_id: str, signal: str, ordinal: int) -> float:
    """A number in [0, 1) that spreads ties evenly: from a hash, so that the same units give the same numbers everywhere.

    >>> tie_breaker("run-1", "calls", 41) == tie_breaker("run-1", "calls", 41) != tie_breaker("run-1", "calls", 42)
    True
    """
    return spread(f"{ordinal}\0{signal}\0{unit_id}".encode("utf-8", "surrogatepass"))


def spread(text: bytes) -> float:
    """The first 53 bits of a text's hash, as a number in [0, 1)."""
    return (int.from_bytes(blake2b(text, digest_size=8).digest(), "big") >> _UNUSED_BITS) * _STEP


class Ranks:
    """The last 500 values of one signal, and where a new one stands among them.

    `p = (greater + u * (equal + 1)) / (n + 1)`, with n the values before it: small for a great value. A value that is equal
    to all of them has no rank (None): where nothing differs there is nothing to tell, and a rank would be only noise of u.
    Values are kept in single precision (16 million tokens are still told apart), which halves what an agent costs. `only`
    is the value of all of them, None where they differ; while there is one they are kept once.

    >>> ranks = Ranks()
    >>> ranks.rank(5, 0.5), ranks.rank(7, 0.5), ranks.rank(5, 0.5), ranks.rank(1, 0.0)
    (None, 0.25, 0.6666666666666666, 0.75)
    """

    __slots__ = ("_latest", "_sorted", "only")

    def __init__(self, values: array[float] | None = None) -> None:
        self._latest = array("f") if values is None else values
        self._sorted = array("f", sorted(self._latest))
        self.only: float | None = None
        self._find_only()

    def rank(self, value: float, u: float) -> float | None:
        """The rank of a value among those before it, which it then joins."""
        latest = self._latest
        latest.append(value)
        value = latest[-1]
        if value == self.only:
            if len(latest) > WINDOW:
                del latest[-1]
            return None
        if self.only is not None:
            self._sorted, self.only = latest[:-1], None
        ordered = self._sorted
        n, low = len(ordered), bisect_left(ordered, value)
        high = bisect_right(ordered, value, low) if low < n and ordered[low] == value else low
        equal = high - low
        if n < WINDOW:
            ordered.insert(high, value)
        else:
            oldest = latest[0]
            del latest[0]
            if oldest != value:
                ordered.insert(high, value)
                del ordered[bisect_left(ordered, oldest)]
        if equal >= n - 1:
            self._find_only()
        return (n - high + u * (equal + 1)) / (n + 1) if n else None

    def _find_only(self) -> None:
        ordered = self._sorted
        if ordered and ordered[0] == ordered[-1]:
            self.only, self._sorted = ordered[0], self._latest

    def split(self, after: int) -> tuple[list[float], list[float]]:
        """The kept values, oldest first: those before the last `after`, and these."""
        values = self._latest.tolist()
        cut = max(0, len(values) - after)
        return values[:cut], values[cut:]

    def to_state(self) -> str:
        """The values as text: a few KB where a list of numbers would be five times as long."""
        return b64encode(self._latest.tobytes()).decode("ascii")

    @classmethod
    def from_state(cls, state: str) -> Ranks:
        """What `to_state` wrote."""
        values = array("f")
        values.frombytes(b64decode(state))
        return cls(values)
