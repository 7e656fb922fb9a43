"""Sample sizes: the runs that a pass rate needs, and the precision that a number of runs gives."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Final

from otel_reliability.errors import ConfigurationError

CRITICAL_VALUES: Final = {90: Fraction("1.645"), 95: Fraction("1.96"), 99: Fraction("2.576")}
"""Standard normal critical values by confidence level in percent, as the source rounds them."""


def recommend_runs(half_width: float | str, confidence: int = 95) -> int:
    """N = ⌈(z / h)² · ¼⌉: runs after which the pass rate is known to within ± h, whatever it is
    (Wald, worst case ½).

    `half_width` is a share (0.05: ± 5 points) and is taken as the decimal it is written as, so
    0.098 gives exactly 100.

    >>> recommend_runs(0.05), recommend_runs(0.098)
    (385, 100)
    """
    critical = _critical(confidence)
    width = _share(half_width)
    return math.ceil((critical / width) ** 2 / 4)


def confidence_band(runs: int, confidence: int = 95) -> float:
    """Z · √(¼ / N): the half-width that N runs buy in the worst case.

    >>> round(confidence_band(100), 3), round(confidence_band(5), 2)
    (0.098, 0.44)
    """
    critical = _critical(confidence)
    if isinstance(runs, bool) or runs < 1:
        raise ConfigurationError("runs", runs, "a whole number from 1", "count at least one run")
    return float(critical) * math.sqrt(0.25 / runs)


def _critical(confidence: int) -> Fraction:
    if confidence not in CRITICAL_VALUES:
        raise ConfigurationError(
            "confidence",
            confidence,
            "one of 90, 95 and 99",
            "choose one of these levels, in percent",
        )
    return CRITICAL_VALUES[confidence]


def _share(half_width: float | str) -> Fraction:
    try:
        width = Fraction(str(half_width))
    except (ValueError, ZeroDivisionError):
        width = Fraction(0)
    if not 0 < width <= 1:
        raise ConfigurationError(
            "half_width", half_width, "a share above 0 and up to 1", "write 5 points as 0.05"
        )
    return width
