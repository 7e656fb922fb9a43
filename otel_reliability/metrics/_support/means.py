"""Means over what exists: a part without evidence is left out, never counted as 0 or 1."""

from __future__ import annotations

import math
from collections.abc import Iterable


def mean_of_present(values: Iterable[float | None]) -> float | None:
    """The arithmetic mean of the values that exist; None where none does.

    >>> mean_of_present([1.0, None, 0.5])
    0.75
    >>> mean_of_present([None]) is None
    True
    """
    found = [value for value in values if value is not None]
    return math.fsum(found) / len(found) if found else None


def present(values: Iterable[float | None]) -> list[float]:
    """The values that exist: neither None nor NaN nor infinite.

    >>> present([0.5, None, float("nan")])
    [0.5]
    """
    return [value for value in values if value is not None and math.isfinite(value)]


def clamp(value: float) -> float:
    """The value cut to [0, 1]."""
    return min(max(value, 0.0), 1.0)
