"""A chart of characters: a score over time. Heights carry the meaning, colour never does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

STEPS: Final = "▁▂▃▄▅▆▇█"
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
    heights = (min(len(STEPS) - 1, int((1 - depth) * len(STEPS) + 1e-9)) for depth in depths(shown))
    return "".join(STEPS[height] for height in heights)


def depths(scores: Sequence[float]) -> list[float]:
    """Return how far below the top of a chart each score lies, as a share of its height.

    >>> depths([90, 80, 70]), depths([100, 98])
    ([0.0, 0.5, 1.0], [0.0, 0.1])
    """
    span = max(max(scores) - min(scores), MIN_RANGE)
    top = min(100.0, (max(scores) + min(scores) + span) / 2)
    return [(top - score) / span for score in scores]
