"""The reliability decay curve: pass^k of the first k attempts, as k grows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate
from typing import Final

from otel_reliability.metrics.base import Series
from otel_reliability.metrics.passes.attempts import TaskNumbers, WorstTask, worst_of
from otel_reliability.metrics.passes.series import EMITTED_K
from otel_reliability.model.reading import MetricSpec

MAX_ENTRIES: Final = 1_000
"""Entries of a curve that are computed; a longer batch keeps its last entry beside the first of
these.
"""


def entry(passed: int, k: int) -> int:
    """⌊100 · (c/k)^k⌋ for c passes among the first k attempts.

    A float gives the whole number unless it comes within a millionth of one; then whole numbers
    decide, so that the truncation is always right. The float spares powers of a million digits.

    >>> entry(3, 4), entry(1, 2), entry(99_999, 100_000)
    (31, 25, 36)
    """
    percent = 100.0 * math.exp(k * math.log1p((passed - k) / k)) if passed else 0.0
    if percent < 0.5:
        return 0
    if passed == k or abs(percent - round(percent)) > 1e-6:
        return int(percent)
    return 100 * passed**k // k**k


def decay_curve(outcomes: Sequence[bool]) -> tuple[int, ...]:
    """Entry k = ⌊100 · (c_k / k)^k⌋, the maximum-likelihood estimate that all of k attempts pass, k
    = 1 … N (at most 1 000).

    It falls as failures come, and may rise again after an early one. The cost is O(N).

    >>> decay_curve([True, True, True, False]), decay_curve([False, True, True, True])
    ((100, 100, 100, 31), (0, 25, 29, 31))
    """
    return tuple(entry(passed, k) for k, passed in enumerate(accumulate(outcomes[:MAX_ENTRIES]), 1))


class DecayCurve(WorstTask):
    """The end of the decay curve of the worst task of the window, and as a series the points of the
    curve.

    The point at k is that of the task whose curve is lowest there, for each k that every task has.

    >>> from otel_reliability.testing import row
    >>> from otel_reliability.model.run import Outcome
    >>> metric = DecayCurve()
    >>> for outcome in ("success", "success", "success", "failure"):
    ...     metric.add(row(task="refund", outcome=Outcome(outcome)))
    >>> (
    ...     metric.value().value,
    ...     [(attributes[0][1], reading.value) for attributes, reading in metric.series()],
    ... )
    (31.0, [('1', 100.0), ('2', 100.0), ('4', 31.0)])
    """

    __slots__ = ()

    spec = MetricSpec(
        name="decay_curve",
        title="Reliability decay",
        family="passes",
        unit="{percent}",
        high=100.0,
        direction="higher",
        description=(
            "The estimate that all of the first k attempts at a task pass, as k grows. Of "
            "several tasks the worst."
        ),
        formula="⌊100 · (c_k / k)^k⌋, c_k passes among the first k attempts",
        required_data="1 run with a known outcome",
        source="mcptest, reliability reporting: reliability decay curve",
        improve=(
            "A curve that falls at once says that the task is not solved, one that falls "
            "late that it wears out."
        ),
    )

    def numbers(self, outcomes: Sequence[bool]) -> TaskNumbers:
        passed = list(accumulate(outcomes))
        points = (entry(passed[k - 1], k) for k in EMITTED_K if k <= len(passed))
        return (entry(passed[-1], len(passed)), *points)

    def series(self) -> Series:
        tasks = self.tasks()
        least = min((numbers[0] for numbers in tasks), default=0)
        points = [(at, k) for at, k in enumerate(EMITTED_K, 2) if k <= least]
        return tuple(((("k", str(k)),), worst_of(min, tasks, at)) for at, k in points)
