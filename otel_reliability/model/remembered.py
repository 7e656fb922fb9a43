"""A mapping that remembers what was found by key, up to a number of keys."""

from __future__ import annotations

from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Remembered(dict[K, V]):
    """Values by key, at most `most`: where one more comes, all before it are forgotten, and counted
    in `forgotten`.

    For what can be found again at a price. It is read like any dict, and nothing is kept of the
    order of use, so that a hit costs one lookup; values must be set by `known[key] = value`, as
    `setdefault` and `update` know no limit.

    >>> known = Remembered[str, int](2)
    >>> for number, key in enumerate("abac"):
    ...     known[key] = number
    >>> known, known.forgotten
    ({'c': 3}, 2)
    """

    __slots__ = ("forgotten", "most")

    def __init__(self, most: int) -> None:
        super().__init__()
        self.most = most
        self.forgotten = 0

    def __setitem__(self, key: K, value: V) -> None:
        if len(self) >= self.most and key not in self:
            self.forget()
        super().__setitem__(key, value)

    def forget(self) -> None:
        """Forget all values."""
        self.forgotten += len(self)
        self.clear()
