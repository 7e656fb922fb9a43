"""The rank of a number among the latest ones: uniform over [0, 1] while nothing changes."""

from __future__ import annotations

from array import array
from base64 import b64decode, b64encode
from bisect import bisect_left, bisect_right
from typing import Final

from otel_reliability.model.blake2 import blake2b

WINDOW: Final = 500
"""Number of the latest values that a rank is taken among. Thinning them at random breaks the guarantee (measured)."""

_UNUSED_BITS: Final = 64 - 53
_STEP: Final = 2.0**-53


def tie_breaker(name: bytes) -> float:
    """Return the first 53 bits of a name's hash, as a number in [0, 1): the same observations give the same numbers everywhere.

    >>> tie_breaker(b"41 calls run-1") == tie_breaker(b"41 calls run-1") != tie_breaker(b"42 calls run-1")
    True
    """
    return (int.from_bytes(blake2b(name, digest_size=8).digest(), "big") >> _UNUSED_BITS) * _STEP


class Ranks:
    """The last 500 values of one signal, and the rank of a new one among them.

    `p = (greater + u * (equal + 1)) / (n + 1)`, with n the values before it and u the tie breaker: small for a great value. A
    value that is equal to all of them has no rank (None): where nothing differs there is nothing to detect, and a rank would
    be only the noise of u. Values are kept in single precision (exact to 16 million tokens).

    >>> ranks = Ranks()
    >>> [p and round(p, 4) for p in (ranks.rank(value, b"") for value in (5, 7, 5, 1))]
    [None, 0.4466, 0.9288, 0.9733]
    """

    __slots__ = ("_latest", "_sorted")

    def __init__(self, values: array[float] | None = None) -> None:
        self._latest = array("f") if values is None else values
        self._sorted = array("f", sorted(self._latest))

    def rank(self, value: float, name: bytes) -> float | None:
        """Return the rank of a value among those before it, which it then joins. `name` breaks ties."""
        latest, ordered = self._latest, self._sorted
        latest.append(value)
        value = latest[-1]
        n, low = len(ordered), bisect_left(ordered, value)
        high = bisect_right(ordered, value, low)
        ordered.insert(high, value)
        if n == WINDOW:
            del ordered[bisect_left(ordered, latest[0])], latest[0]
        equal = high - low
        return None if equal == n else (n - high + tie_breaker(name) * (equal + 1)) / (n + 1)

    def split(self, after: int) -> tuple[list[float], list[float]]:
        """Return the kept values, oldest first: those before the last `after`, and these."""
        values = self._latest.tolist()
        cut = max(0, len(values) - after)
        return values[:cut], values[cut:]

    def to_data(self) -> str:
        """Return the values, oldest first, as base64 of single-precision numbers: a fifth of a list of numbers."""
        return b64encode(self._latest.tobytes()).decode("ascii")

    @classmethod
    def from_data(cls, data: str) -> Ranks:
        """Return the ranks of which `to_data` gave the values."""
        values = array("f")
        values.frombytes(b64decode(data))
        return cls(values)
