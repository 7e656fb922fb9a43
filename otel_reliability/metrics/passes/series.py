"""pass@k and pass^k over a window: one reading for each k for which every task has attempts."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from math import comb
from typing import Final

from otel_reliability.metrics._support.task_outcomes import Shape, TaskOutcomes, mean_over_tasks
from otel_reliability.metrics.base import Series
from otel_reliability.model.reading import NO_DATA, MetricSpec, Reading

LARGEST_K: Final = 8
EMITTED_K: Final = (1, 2, 4, 8)
"""The k that become series; reports show them all."""


class PassSeries(TaskOutcomes):
    """The mean over tasks of an estimate for k attempts, k = 1 … min(least attempts of a task, 8):
    a series of k.

    The plain reading is that at the greatest k. Where no run names a task, the window is taken as
    attempts at one.
    """

    __slots__ = ()

    @abstractmethod
    def estimate(self, passed: int, runs: int, k: int) -> float:
        """Return the estimate of one task from its passes, its attempts and k."""

    def by_k(self) -> dict[int, Reading]:
        """The reading for each k, from 1 on."""
        shapes = self.attempted()
        least = min((runs for runs, _ in shapes), default=0)
        return {k: self.noted(self._at(shapes, k)) for k in range(1, min(least, LARGEST_K) + 1)}

    def value(self) -> Reading:
        """The reading at the greatest k there is; its note names it."""
        shapes = self.attempted()
        k = min((*(runs for runs, _ in shapes), LARGEST_K))
        return self.noted(self._at(shapes, k)._replace(note=f"k = {k}")) if shapes else NO_DATA

    def series(self) -> Series:
        found = self.by_k()
        return tuple(((("k", str(k)),), found[k]) for k in EMITTED_K if k in found)

    def _at(self, shapes: Mapping[Shape, int], k: int) -> Reading:
        return mean_over_tasks(shapes, lambda passed, runs: self.estimate(passed, runs, k))


class PassAtK(PassSeries):
    """pass@k, unbiased: the mean over tasks of 1 − C(n − c, k)/C(n, k), the chance that k of n
    attempts hold a pass.

    >>> from otel_reliability.testing import row
    >>> from otel_reliability.model.run import Outcome
    >>> metric = PassAtK()
    >>> for task, outcome in (
    ...     ("a", "success"),
    ...     ("a", "failure"),
    ...     ("b", "failure"),
    ...     ("b", "failure"),
    ...     ("b", "failure"),
    ... ):
    ...     metric.add(row(task=task, outcome=Outcome(outcome)))
    >>> {k: reading.value for k, reading in metric.by_k().items()}
    {1: 0.25, 2: 0.5}
    """

    __slots__ = ()

    spec = MetricSpec(
        name="pass_at_k",
        title="pass@k",
        family="passes",
        direction="higher",
        description="The chance that at least one of k attempts at a task succeeds.",
        formula="mean over tasks of 1 − C(n − c, k)/C(n, k), k = 1 … min(least n, 8)",
        required_data="k runs of each task with a known outcome; without task ids k runs",
        source=(
            "Chen et al. 2021, Evaluating Large Language Models Trained on Code: pass@k, unbiased"
        ),
        improve=(
            "Far above pass^k, the agent can do the work but not dependably: inspect what "
            "its failed attempts did otherwise."
        ),
        interval="tasks",
    )

    def estimate(self, passed: int, runs: int, k: int) -> float:
        return 1.0 - comb(runs - passed, k) / comb(runs, k)


class PassHatK(PassSeries):
    """pass^k, unbiased: the mean over tasks of C(c, k)/C(n, k), the chance that k of n attempts are
    all passes.

    At k = 1 it is the mean pass rate.
    """

    __slots__ = ()

    spec = MetricSpec(
        name="pass_hat_k",
        title="pass^k",
        family="passes",
        direction="higher",
        description="The chance that all of k attempts at a task succeed.",
        formula="mean over tasks of C(c, k)/C(n, k), k = 1 … min(least n, 8)",
        required_data="k runs of each task with a known outcome; without task ids k runs",
        source="Yao et al. 2024, tau-bench: pass^k, unbiased",
        improve=(
            "Raise the tasks that pass sometimes before those that never do: they cost pass^k most."
        ),
        interval="tasks",
    )

    def estimate(self, passed: int, runs: int, k: int) -> float:
        return comb(passed, k) / comb(runs, k)
