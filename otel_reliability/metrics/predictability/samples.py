"""The evidence of predictability: what an attempt said of itself, and how it ended."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence


def samples(confidences: Iterable[float | None], outcomes: Iterable[float]) -> Iterator[tuple[float, bool]]:
    """(confidence, success) of the attempts that gave a confidence; an outcome below 1 is a failure.

    >>> list(samples([0.9, None, 0.2], [1, 1, 0]))
    [(0.9, True), (0.2, False)]
    """
    for confidence, outcome in zip(confidences, outcomes, strict=True):
        if confidence is not None and not math.isnan(confidence):
            yield confidence, outcome >= 1


Block = tuple[float, int, int]
"""All samples of one confidence: (confidence, how many, how many of them failures)."""


def blocks(pairs: Iterable[tuple[float, bool]]) -> list[Block]:
    """The samples gathered by confidence, the most confident first.

    >>> blocks([(0.2, False), (0.9, True), (0.2, True)])
    [(0.9, 1, 0), (0.2, 2, 1)]
    """
    found = list(pairs)
    runs = Counter(confidence for confidence, _ in found)
    failures = Counter(confidence for confidence, success in found if not success)
    return [(confidence, runs[confidence], failures[confidence]) for confidence in sorted(runs, reverse=True)]


def totals(found: Sequence[Block]) -> tuple[int, int]:
    """(samples, failures) of all blocks."""
    return sum(block[1] for block in found), sum(block[2] for block in found)
