"""The evidence of predictability: what an attempt said of itself, and how it ended."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

from otel_reliability.config import Settings
from otel_reliability.metrics._support.means import clamp
from otel_reliability.metrics._support.outcomes import told
from otel_reliability.metrics.base import DEFAULTS, Metric
from otel_reliability.metrics.evidence import CONFIDENCE, OUTCOME
from otel_reliability.model.reading import NO_EVIDENCE, Reading
from otel_reliability.model.row import Row


def samples(confidences: Iterable[float | None], outcomes: Iterable[float]) -> Iterator[tuple[float, bool]]:
    """(confidence, success) of the attempts that gave a confidence; an outcome below 1 is a failure.

    >>> list(samples([0.9, None, 0.2], [1, 1, 0]))
    [(0.9, True), (0.2, False)]
    """
    for confidence, outcome in zip(confidences, outcomes, strict=True):
        if confidence is not None and not math.isnan(confidence):
            yield confidence, outcome >= 1


Block: TypeAlias = tuple[float, int, int]
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


def sample_of(row: Row) -> tuple[float, bool] | None:
    """(confidence, success) of a baseline run that has both."""
    if row.confidence is None or not row.baseline:
        return None
    success = row.success
    return None if success is None else (row.confidence, success)


class RankedSamples(Metric):
    """A metric that looks at the window's samples in the order of their confidence.

    State: two integers a distinct confidence. Reading sorts the distinct confidences, O(D log D) and what the formula costs,
    and only when a sample has come or gone since the last read.
    """

    __slots__ = ("_blocks", "_by_status", "_reading")

    wants = CONFIDENCE | OUTCOME

    of_outcomes = True

    def __init__(self, settings: Settings = DEFAULTS) -> None:
        super().__init__(settings)
        self._by_status = 0
        self._blocks: dict[float, list[int]] = {}
        self._reading: Reading | None = NO_EVIDENCE

    @abstractmethod
    def _value(self, found: Sequence[Block]) -> float | None:
        """The formula."""

    def add(self, row: Row) -> None:
        self._move(row, 1)

    def evict(self, row: Row) -> None:
        self._move(row, -1)

    def _move(self, row: Row, step: int) -> None:
        sample = sample_of(row)
        if sample is None:
            return
        confidence, success = sample
        block = self._blocks.get(confidence)
        if block is None:
            block = self._blocks[confidence] = [0, 0]
        block[0] += step
        block[1] += step * (not success)
        if not block[0]:
            del self._blocks[confidence]
        self._by_status += step * row.by_status
        self._reading = None

    def read(self) -> Reading:
        if self._reading is None:
            found = [(value, runs, failures) for value, (runs, failures) in sorted(self._blocks.items(), reverse=True)]
            value = self._value(found)
            reading = NO_EVIDENCE if value is None else Reading(clamp(value), totals(found)[0])
            self._reading = told(reading, self._by_status)
        return self._reading
