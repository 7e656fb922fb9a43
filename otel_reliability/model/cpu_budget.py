"""Processor time for work that can be put off."""

from __future__ import annotations


class CpuBudget:
    """Seconds of processor time: a share of one processor in the long run, more after a pause.

    Work is done while `left` is above 0, and what it takes is subtracted there.

    >>> budget = CpuBudget(share=0.05, most=0.1)
    >>> budget.refill(7.0)
    >>> budget.left -= 0.1
    >>> budget.refill(8.0)
    >>> round(budget.left, 3)
    0.05
    """

    __slots__ = ("_most", "_refilled", "_share", "left")

    def __init__(self, share: float, most: float) -> None:
        self._share = share
        self._most = most
        self._refilled = float("inf")
        self.left = most

    def refill(self, now: float) -> None:
        """Add what the time since the last call gives."""
        self.left = min(self._most, self.left + self._share * max(0.0, now - self._refilled))
        self._refilled = now
