"""variance_amplification: how flaky are the attempts?"""

from __future__ import annotations

from collections import Counter
from math import isqrt

from otel_reliability.metrics._support.outcomes import TaskOutcomes
from otel_reliability.metrics.passes.worst_task import Numbers, worst_of
from otel_reliability.model.reading import MetricSpec, Reading


def variance_amplification(passed: int, runs: int) -> int | None:
    """100 · (population standard deviation of the attempts) / 0.5, rounded half away from zero; None without attempts.

    0: all end alike; 100: half and half. With c passes of n it is 200·√(c(n − c)) / n, rounded in whole numbers.

    >>> variance_amplification(3, 4), variance_amplification(2, 4), variance_amplification(4, 4)
    (87, 100, 0)
    """
    if not runs:
        return None
    doubled = isqrt(160_000 * passed * (runs - passed) // (runs * runs))
    return (doubled + 1) // 2


class VarianceAmplification(TaskOutcomes):
    """The variance amplification of the flakiest task of the window. State: two integers a task.

    Where no run names a task, the window is taken as attempts at one.

    >>> from otel_reliability.metrics.examples import row
    >>> from otel_reliability.model.run import Outcome
    >>> metric = VarianceAmplification()
    >>> for task, outcome in (("a", "success"), ("a", "failure"), ("b", "success")):
    ...     metric.add(row(task=task, outcome=Outcome(outcome)))
    >>> metric.value()
    Reading(value=100.0, runs=3, parts=(), note='worst of 2 tasks')

    References: mcptest, *Reliability reporting beyond pass^k*, "Variance Amplification Factor".
    """

    __slots__ = ()

    spec = MetricSpec(
        name="variance_amplification",
        title="Variance amplification",
        family="passes",
        unit="{percent}",
        high=100.0,
        direction="lower",
        description="How flaky the attempts at a task are: 0 all end alike, 100 half and half. Of several tasks the worst.",
        formula="round(100 · population standard deviation of pass / 0.5)",
        evidence="1 run with a known outcome",
        source="mcptest, reliability reporting: variance_amplification",
        improve="Compare a passing and a failing attempt of the flakiest task, step by step.",
    )

    def value(self) -> Reading:
        found: Counter[Numbers] = Counter()
        for (runs, passed), tasks in self.attempted().items():
            found[runs, variance_amplification(passed, runs) or 0] += tasks
        return self.noted(worst_of(max, found))
