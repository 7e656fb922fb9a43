"""pass_at_k: would at least one of k attempts succeed?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import comb

from otel_reliability.metrics._support.means import mean_of_present
from otel_reliability.metrics._support.outcomes import passes
from otel_reliability.metrics.passes.series import PassSeries
from otel_reliability.model.reading import MetricSpec


def any_of(passed: int, runs: int, k: int) -> float:
    """1 − C(n − c, k) / C(n, k): the chance that k of the n attempts, drawn without replacement, hold a pass.

    >>> any_of(1, 4, 2)
    0.5
    """
    return 1.0 - comb(runs - passed, k) / comb(runs, k)


def pass_at_k(tasks: Iterable[Sequence[float]], k: int) -> float | None:
    """pass@k, unbiased: the mean of 1 − C(n − c, k)/C(n, k) over the tasks with at least k attempts; None without any.

    `tasks` holds the outcomes of the attempts at each task; an outcome below 1 is a failure. Grows with k.

    >>> pass_at_k([[1, 0, 0, 0], [1, 1, 1, 1]], 2)
    0.75
    """
    counted = ((passes(outcomes), len(outcomes)) for outcomes in tasks)
    return mean_of_present(any_of(passed, runs, k) for passed, runs in counted if runs >= k)


class PassAtK(PassSeries):
    """pass@k over the window, a series of k; the plain reading is that at the greatest k.

    >>> from otel_reliability.metrics.examples import row
    >>> from otel_reliability.model.run import Outcome
    >>> metric = PassAtK()
    >>> for task, outcome in (("a", "success"), ("a", "failure"), ("b", "failure"), ("b", "failure"), ("b", "failure")):
    ...     metric.add(row(task=task, outcome=Outcome(outcome)))
    >>> {k: reading.value for k, reading in metric.by_k().items()}
    {1: 0.25, 2: 0.5}

    References: M. Chen et al., *Evaluating Large Language Models Trained on Code* (2021).
    """

    __slots__ = ()

    spec = MetricSpec(
        name="pass_at_k",
        title="pass@k",
        family="passes",
        unit="{ratio}",
        low=0.0,
        high=1.0,
        direction="higher",
        description="The chance that at least one of k attempts at a task succeeds.",
        formula="mean over tasks of 1 − C(n − c, k)/C(n, k), k = 1 … min(least n, 8)",
        evidence="k runs of each task with a known outcome; without task ids k runs",
        source="Chen et al. 2021, Evaluating Large Language Models Trained on Code: pass@k, unbiased",
        improve="Far above pass^k, the agent can do the work but not dependably: look at what its failed attempts did otherwise.",
    )

    def estimate(self, passed: int, runs: int, k: int) -> float:
        return any_of(passed, runs, k)
