"""pass_hat_k (pass^k): would all of k attempts succeed?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import comb

from otel_reliability.metrics._support.means import mean_of_present
from otel_reliability.metrics._support.outcomes import passes
from otel_reliability.metrics.passes.series import PassSeries
from otel_reliability.model.reading import MetricSpec


def all_of(passed: int, runs: int, k: int) -> float:
    """C(c, k) / C(n, k): the chance that k of the n attempts, drawn without replacement, are all passes.

    >>> all_of(3, 4, 2)
    0.5
    """
    return comb(passed, k) / comb(runs, k)


def pass_hat_k(tasks: Iterable[Sequence[float]], k: int) -> float | None:
    """pass^k, unbiased: the mean of C(c, k)/C(n, k) over the tasks with at least k attempts; None without any.

    `tasks` holds the outcomes of the attempts at each task; an outcome below 1 is a failure. Falls as k grows; at k = 1 it
    is the mean pass rate.

    >>> pass_hat_k([[1, 1, 1, 0], [1, 1, 1, 1]], 2)
    0.75
    """
    counted = ((passes(outcomes), len(outcomes)) for outcomes in tasks)
    return mean_of_present(all_of(passed, runs, k) for passed, runs in counted if runs >= k)


class PassHatK(PassSeries):
    """pass^k over the window, a series of k; the plain reading is that at the greatest k.

    >>> from otel_reliability.metrics.examples import row
    >>> from otel_reliability.model.run import Outcome
    >>> metric = PassHatK()
    >>> for task, outcome in (("a", "success"), ("a", "failure"), ("b", "success"), ("b", "success"), ("b", "success")):
    ...     metric.add(row(task=task, outcome=Outcome(outcome)))
    >>> {k: reading.value for k, reading in metric.by_k().items()}
    {1: 0.75, 2: 0.5}

    References: S. Yao et al., *τ-bench: A Benchmark for Tool-Agent-User Interaction in Real-World Domains* (2024).
    """

    __slots__ = ()

    spec = MetricSpec(
        name="pass_hat_k",
        title="pass^k",
        family="passes",
        unit="{ratio}",
        low=0.0,
        high=1.0,
        direction="higher",
        description="The chance that all of k attempts at a task succeed.",
        formula="mean over tasks of C(c, k)/C(n, k), k = 1 … min(least n, 8)",
        evidence="k runs of each task with a known outcome; without task ids k runs",
        source="Yao et al. 2024, tau-bench: pass^k, unbiased",
        improve="Raise the tasks that pass sometimes before those that never do: they cost pass^k most.",
    )

    def estimate(self, passed: int, runs: int, k: int) -> float:
        return all_of(passed, runs, k)
