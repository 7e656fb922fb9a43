"""Small charts of characters: a course, how values are spread, a bar.

Heights and lengths tell, colour never does. Where a terminal lacks these characters, `cli.output` puts digits and `#` in
their place.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

STEPS: Final = "▁▂▃▄▅▆▇█"
EMPTY: Final = "·"
FILLED, REST = "━", "╌"
LEAST_RANGE: Final = 20.0
"""Points of score that a course spans at least: else the noise of a steady agent would fill the picture."""


def course(scores: Sequence[float], width: int = 16) -> str:
    """How a score went, the oldest first; empty for fewer than two points.

    >>> course([90, 84, 80, 70, 60]), course([100, 99, 100]), course([80])
    ('█▇▆▃▁', '███', '')
    >>> len(course(range(60)))
    16
    """
    if len(scores) < 2:
        return ""
    shown = scores if len(scores) <= width else [scores[at] for at in _spread(len(scores), width)]
    span = max(max(shown) - min(shown), LEAST_RANGE)
    top = min(100.0, (max(shown) + min(shown) + span) / 2)
    return "".join(_step(1 - (top - score) / span) for score in shown)


def spread(values: Sequence[float], high: float = 1.0, bins: int = 10) -> str:
    """How many of the values lie in each tenth of 0 to `high`: as high as the share, a dot for none.

    >>> spread([0.0, 0.02, 0.05, 0.51, 1.0]), spread([]), spread([0.04] * 30)
    ('█····▃···▃', '··········', '█·········')
    """
    counts = [0] * bins
    for value in values:
        counts[min(bins - 1, max(0, int(bins * value / high)))] += 1
    most = max(counts)
    return "".join(_step(number / most) if number else EMPTY for number in counts)


def bar(share: float, width: int = 10) -> tuple[str, str]:
    """The filled and the empty part of a bar: never empty for something, nor full for less than all.

    >>> ["".join(bar(share, 4)) for share in (0.0, 0.01, 0.5, 0.99, 1.0)]
    ['╌╌╌╌', '━╌╌╌', '━━╌╌', '━━━╌', '━━━━']
    """
    filled = round(min(max(share, 0.0), 1.0) * width)
    if 0 < share < 1:
        filled = min(max(filled, 1), width - 1)
    return FILLED * filled, REST * (width - filled)


def _step(share: float) -> str:
    return STEPS[min(len(STEPS) - 1, int(share * len(STEPS) + 1e-9))]


def _spread(number: int, most: int) -> list[int]:
    return [round(at * (number - 1) / (most - 1)) for at in range(most)]
