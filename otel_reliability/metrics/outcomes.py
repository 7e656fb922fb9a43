"""How attempts ended, as plain numbers."""

from __future__ import annotations

from collections.abc import Iterable


def passes(outcomes: Iterable[float]) -> int:
    """How many of the outcomes are successes: those that reach 1. A partial reward is a failure.

    >>> passes([1, 0.9, 0, True])
    2
    """
    return sum(outcome >= 1 for outcome in outcomes)
