"""Sums of numbers of which some may be unknown."""

from __future__ import annotations

from collections.abc import Iterable


def known_sum(numbers: Iterable[int | None]) -> int | None:
    """Return the sum of the numbers that are known; None without any.

    >>> known_sum([2, None, 3]), known_sum([None])
    (5, None)
    """
    known = [number for number in numbers if number is not None]
    return sum(known) if known else None


def complete_sum(numbers: Iterable[int | None]) -> int | None:
    """Return the sum where every number is known, else None.

    >>> complete_sum([2, 3]), complete_sum([2, None])
    (5, None)
    """
    found = list(numbers)
    known = [number for number in found if number is not None]
    return sum(known) if len(known) == len(found) else None
