from __future__ import annotations

from otel_reliability.metrics.examples import row
from otel_reliability.metrics.passes import VarianceAmplification
from otel_reliability.model.run import Outcome


def test_runs_of_equally_flaky_tasks_all_count() -> None:
    """One pass of four and three passes of four are equally flaky; the reading rests on both tasks' runs."""
    metric = VarianceAmplification()
    for task, passed in (("a", 1), ("b", 3)):
        for attempt in range(4):
            metric.add(row(task=task, outcome=Outcome.SUCCESS if attempt < passed else Outcome.FAILURE))

    assert metric.value() == (87.0, 8, (), "worst of 2 tasks")
