"""graceful_degradation: do failures come early, or late?"""

from __future__ import annotations

from collections.abc import Sequence

from otel_reliability.metrics.passes.worst_task import Numbers, WorstTask
from otel_reliability.model.reading import MetricSpec


def graceful_degradation(outcomes: Sequence[float]) -> int | None:
    """100 · Σ i·pass_i / Σ i over the positions i = 1 … N, rounded half away from zero; None without attempts.

    A late failure costs more than an early one: an agent that fails first and recovers is the more graceful. An outcome
    below 1 is a failure.

    >>> graceful_degradation([0, 1, 1, 1]), graceful_degradation([1, 1, 1, 0])
    (90, 60)
    """
    runs = len(outcomes)
    if not runs:
        return None
    total = runs * (runs + 1) // 2
    held = sum(position for position, outcome in enumerate(outcomes, 1) if outcome >= 1)
    return (200 * held + total) // (2 * total)


class GracefulDegradation(WorstTask):
    """The graceful degradation of the least graceful task of the window.

    State: one entry a run. Reading looks through the attempts of the tasks that changed. Where no run names a task, the
    window is taken as attempts at one.

    >>> from otel_reliability.metrics.examples import row
    >>> from otel_reliability.model.run import Outcome
    >>> metric = GracefulDegradation()
    >>> for outcome in ("success", "success", "success", "failure"):
    ...     metric.add(row(task="refund", outcome=Outcome(outcome)))
    ...     print(metric.value().value)
    100.0
    100.0
    100.0
    60.0

    References: mcptest, *Reliability reporting beyond pass^k*, "Graceful Degradation Score".
    """

    __slots__ = ()

    spec = MetricSpec(
        name="graceful_degradation",
        title="Graceful degradation",
        family="passes",
        unit="{percent}",
        high=100.0,
        direction="higher",
        description="100 when every attempt at a task passed; late failures cost most. Of several tasks the worst.",
        formula="round(100 · Σ i·pass_i / Σ i) over the attempts i = 1 … N in their order",
        evidence="1 run with a known outcome",
        source="mcptest, reliability reporting: graceful_degradation",
        improve="Late failures mean that something wears out: memory, quota, context, a changed service.",
    )

    def numbers(self, outcomes: Sequence[bool]) -> Numbers:
        return (graceful_degradation(outcomes) or 0,)
