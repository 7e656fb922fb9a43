from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from otel_reliability.metrics.base import Metric
from otel_reliability.metrics.examples import row
from otel_reliability.metrics.passes.decay_curve import DecayCurve
from otel_reliability.metrics.passes.series import LARGEST_K, PassAtK, PassHatK
from otel_reliability.model.run import Outcome


def over(metric: Metric, *tasks: str | None, passed: int = 10**6) -> Metric:
    """The metric over one run for each name of a task, of which the first `passed` succeeded."""
    for at, task in enumerate(tasks):
        metric.add(row(task=task, outcome=Outcome.SUCCESS if at < passed else Outcome.FAILURE))
    return metric


def ks(metric: Metric) -> list[str]:
    """The k that are emitted."""
    return [attributes[0][1] for attributes, _ in metric.series()]


def over_passes(*tasks: str | None, passed: int = 10**6) -> PassHatK:
    """pass^k over such runs."""
    metric = PassHatK()
    over(metric, *tasks, passed=passed)
    return metric


def test_k_goes_as_far_as_every_task_can_bear() -> None:
    """The task with the fewest attempts sets the end, and eight is the most."""
    assert list(over_passes("a", "a", "a", "b", "b").by_k()) == [1, 2]
    assert list(over_passes(*["a"] * 20).by_k()) == list(range(1, LARGEST_K + 1))
    assert over_passes().by_k() == {}


def test_powers_of_two_are_emitted() -> None:
    """Reports show every k; series are k = 1, 2, 4, 8."""
    assert ks(over(PassAtK(), *["a"] * 9)) == ["1", "2", "4", "8"]
    assert ks(over(PassAtK(), *["a"] * 5)) == ["1", "2", "4"]
    assert ks(over(DecayCurve(), *["a"] * 9, "b", "b", "b")) == ["1", "2"]
    assert ks(over(DecayCurve())) == []


def test_the_plain_reading_is_that_at_the_greatest_k() -> None:
    """And says so."""
    reading = over_passes("a", "a", "a", passed=2).value()

    assert (reading.value, reading.runs, reading.note) == (0.0, 3, "k = 3")


def test_without_task_ids_the_window_is_one_task() -> None:
    """As soon as one run names a task, those that name none are left out."""
    assert over_passes(None, None, None, passed=2).by_k()[2].value == 1 / 3
    assert list(over_passes(None, None, None, "a").by_k()) == [1]


@given(outcomes=st.lists(st.tuples(st.sampled_from("ab"), st.booleans()), min_size=1, max_size=20))
def test_optimism_grows_and_pessimism_grows_with_k(outcomes: list[tuple[str, bool]]) -> None:
    """pass@k never falls, pass^k never rises, and both begin at the mean pass rate."""
    optimistic, pessimistic = PassAtK(), PassHatK()
    for task, passed in outcomes:
        for metric in (optimistic, pessimistic):
            metric.add(row(task=task, outcome=Outcome.SUCCESS if passed else Outcome.FAILURE))
    rising = [reading.value or 0.0 for reading in optimistic.by_k().values()]
    falling = [reading.value or 0.0 for reading in pessimistic.by_k().values()]

    assert rising == sorted(rising)
    assert falling == sorted(falling, reverse=True)
    assert abs(rising[0] - falling[0]) < 1e-12
