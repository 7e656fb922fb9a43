"""Small charts of characters: a score over time, the spread of values, a bar.

Heights and lengths carry the meaning, colour never does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

STEPS: Final = "▁▂▃▄▅▆▇█"
EMPTY: Final = "·"
FILLED, REST = "━", "╌"
MIN_RANGE: Final = 20.0
"""Points of score that a chart spans at least: otherwise the noise of a steady agent would fill it."""


def history(scores: Sequence[float], width: int = 16) -> str:
    """Return the score over time, oldest first; empty for fewer than two points.

    >>> history([90, 84, 80, 70, 60]), history([100, 99, 100]), history([80])
    ('█▇▆▃▁', '███', '')
    >>> len(history(range(60)))
    16
    """
    if len(scores) < 2:
        return ""
    last = len(scores) - 1
    shown = scores if last < width else [scores[round(at * last / (width - 1))] for at in range(width)]
    return "".join(_step(1 - depth) for depth in depths(shown))


def depths(scores: Sequence[float]) -> list[float]:
    """Return how far below the top of a chart each score lies, as a share of its height.

    >>> depths([90, 80, 70]), depths([100, 98])
    ([0.0, 0.5, 1.0], [0.0, 0.1])
    """
    span = max(max(scores) - min(scores), MIN_RANGE)
    top = min(100.0, (max(scores) + min(scores) + span) / 2)
    return [(top - score) / span for score in scores]


def spread(values: Sequence[float], bins: int = 10) -> str:
    """Return how many of the values lie in each tenth of 0 to 1: as high as the share, a dot for none.

    >>> spread([0.0, 0.02, 0.05, 0.51, 1.0]), spread([]), spread([0.04] * 30)
    ('█····▃···▃', '··········', '█·········')
    """
    counts = [0] * bins
    for value in values:
        counts[min(bins - 1, max(0, int(bins * value)))] += 1
    most = max(counts)
    return "".join(_step(number / most) if number else EMPTY for number in counts)


def bar(share: float, width: int = 10) -> tuple[str, str]:
    """Return the filled and the empty part of a bar: never empty for something, nor full for less than all.

    >>> ["".join(bar(share, 4)) for share in (0.0, 0.01, 0.5, 0.99, 1.0)]
    ['╌╌╌╌', '━╌╌╌', '━━╌╌', '━━━╌', '━━━━']
    """
    filled = round(min(max(share, 0.0), 1.0) * width)
    if 0 < share < 1:
        filled = min(max(filled, 1), width - 1)
    return FILLED * filled, REST * (width - filled)


def _step(share: float) -> str:
    return STEPS[min(len(STEPS) - 1, int(share * len(STEPS) + 1e-9))]
