"""The rank of a number among the latest ones: evenly spread over [0, 1] while nothing changes."""

from __future__ import annotations

import hashlib
from array import array
from base64 import b64decode, b64encode
from bisect import bisect_left, bisect_right
from typing import Final

WINDOW: Final = 500
"""How many of the latest values a rank is taken among. Thinning them at random instead breaks the promise (measured)."""

_FRACTION_BITS: Final = 53


def tie_breaker(unit_id: str, signal: str, ordinal: int) -> float:
    """A number in [0, 1) that spreads ties evenly: from a hash, so that the same units give the same numbers everywhere.

    >>> tie_breaker("run-1", "calls", 41) == tie_breaker("run-1", "calls", 41) != tie_breaker("run-1", "calls", 42)
    True
    """
    text = f"{ordinal}\0{signal}\0{unit_id}".encode("utf-8", "surrogatepass")
    digest = hashlib.blake2b(text, digest_size=8).digest()
    return (int.from_bytes(digest, "big") >> (64 - _FRACTION_BITS)) / (1 << _FRACTION_BITS)


class Ranks:
    """The last 500 values of one signal, and where a new one stands among them.

    `p = (greater + u * (equal + 1)) / (n + 1)`, with n the values before it: small for a great value. A value that is equal
    to all of them has no rank (None): where nothing differs there is nothing to tell, and a rank would be only noise of u.
    Values are kept in single precision (16 million tokens are still told apart), which halves what an agent costs.

    >>> ranks = Ranks()
    >>> ranks.rank(5, 0.5), ranks.rank(7, 0.5), ranks.rank(5, 0.5), ranks.rank(1, 0.0)
    (None, 0.25, 0.6666666666666666, 0.75)
    """

    __slots__ = ("_latest", "_sorted")

    def __init__(self, values: array[float] | None = None) -> None:
        self._latest = array("f") if values is None else values
        self._sorted = array("f", sorted(self._latest))

    def rank(self, value: float, u: float) -> float | None:
        """The rank of a value among those before it, which it then joins."""
        latest, ordered = self._latest, self._sorted
        latest.append(value)
        value = latest[-1]
        n, low = len(ordered), bisect_left(ordered, value)
        high = bisect_right(ordered, value, low)
        equal = high - low
        p = (n - high + u * (equal + 1)) / (n + 1) if equal < n else None
        ordered.insert(high, value)
        if n == WINDOW:
            del ordered[bisect_left(ordered, latest[0])]
            del latest[0]
        return p

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
