"""The data of predictability: the confidence of an attempt, and how it ended."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TypeAlias

from otel_reliability.config import Settings
from otel_reliability.metrics._support.sums import clamp
from otel_reliability.metrics.base import CONFIDENCE, DEFAULTS, OUTCOME, UNDISTURBED, Metric, noted
from otel_reliability.model.reading import NO_DATA, Reading
from otel_reliability.model.row import Row

Block: TypeAlias = tuple[int, int]
"""The samples of one confidence: how many, how many of them failures."""


class ConfidenceMetric(Metric):
    """A metric of the (confidence, success) samples of the undisturbed runs that have both."""

    __slots__ = ("_by_status", "_runs")

    requires = UNDISTURBED | CONFIDENCE | OUTCOME

    of_outcomes = True

    def __init__(self, settings: Settings = DEFAULTS) -> None:
        super().__init__(settings)
        self._by_status = self._runs = 0

    @abstractmethod
    def count_sample(self, confidence: float, success: bool, sign: int) -> None:
        """A sample enters (1) or leaves (-1)."""

    @abstractmethod
    def estimate(self) -> float | None:
        """Return the value of the samples, of which there is at least one."""

    def count(self, row: Row, sign: int) -> None:
        if row.confidence is not None:
            self._runs += sign
            self._by_status += sign * row.by_status
            self.count_sample(row.confidence, row.success is True, sign)

    def value(self) -> Reading:
        value = self.estimate() if self._runs else None
        return (
            NO_DATA if value is None else noted(Reading(clamp(value), self._runs), self._by_status)
        )


class RankedSamples(ConfidenceMetric):
    """A metric of the samples in the order of their confidence.

    State: two integers a distinct confidence. Reading sorts the distinct confidences, O(D log D)
    and the cost of the formula.
    """

    __slots__ = ("_blocks",)

    def __init__(self, settings: Settings = DEFAULTS) -> None:
        super().__init__(settings)
        self._blocks: dict[float, Block] = {}

    @abstractmethod
    def formula(self, blocks: Sequence[Block], successes: int, failures: int) -> float | None:
        """Return the value of blocks, the most confident first, which hold so many successes and
        failures.
        """

    def count_sample(self, confidence: float, success: bool, sign: int) -> None:
        runs, failures = self._blocks.get(confidence, (0, 0))
        if runs + sign:
            self._blocks[confidence] = (runs + sign, failures + sign * (not success))
        else:
            del self._blocks[confidence]

    def estimate(self) -> float | None:
        blocks = [self._blocks[confidence] for confidence in sorted(self._blocks, reverse=True)]
        failures = sum(failed for _, failed in blocks)
        return self.formula(blocks, self._runs - failures, failures)
