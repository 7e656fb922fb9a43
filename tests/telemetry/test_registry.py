from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_reliability.telemetry import names
from otel_reliability.telemetry.exposition import (
    SERIES_PER_SLICE,
    CounterSeries,
    Exemplar,
    HistogramSeries,
    Labels,
    Registry,
    Series,
)
from otel_reliability.testing import FakeClock, run

SUPPORT = {"service.name": "shop", "gen_ai.agent.name": "support"}
OWNER = tuple(SUPPORT.items())
FIRST, SECOND = run(number=1), run(number=2)


def series_of(registry: Registry) -> dict[tuple[str, Labels], Series]:
    """Every series by instrument and labels."""
    slices = registry.slices(lambda spec, labels, series: ((spec.name, labels), series))
    return {key: series for _, some in slices for key, series in some}


def exemplar(value: float, of: int, time_ns: int) -> Exemplar:
    """The exemplar of one of the runs."""
    one = (FIRST, SECOND)[of - 1]
    return Exemplar(value, time_ns, one.trace_id, one.root_span_id or b"")


def test_counter_adds_up_and_keeps_its_start_and_last_exemplar() -> None:
    """A series starts with its first measurement."""
    clock = FakeClock()
    registry = Registry(clock.wall)
    registry.add(names.RUNS, 2, SUPPORT, FIRST)
    clock.advance(5)
    registry.add(names.RUNS, 3, SUPPORT, SECOND)
    registry.add(names.RUNS, 1, SUPPORT)
    registry.add(names.RUNS, 0, SUPPORT)
    (series,) = series_of(registry).values()

    assert isinstance(series, CounterSeries)
    assert (series.value, series.start_ns) == (6, clock.wall() - 5 * 10**9)
    assert series.exemplar == exemplar(3, 2, clock.wall())


@given(st.lists(st.floats(-5, 120), min_size=1))
def test_histogram_counts_each_measurement_in_its_bucket(values: list[float]) -> None:
    """A bucket holds what is above the boundary before and not above its own."""
    registry = Registry(lambda: 1)
    for value in values:
        registry.record(names.RUN_SCORE, value, SUPPORT)
    (series,) = series_of(registry).values()
    assert isinstance(series, HistogramSeries)
    bounds = names.RUN_SCORE.boundaries
    below = [sum(value <= bound for value in values) for bound in bounds]

    assert [sum(series.counts[: at + 1]) for at in range(len(bounds))] == below
    assert (series.count, series.lowest, series.highest) == (len(values), min(values), max(values))
    assert series.total == pytest.approx(sum(values))


def test_bucket_keeps_its_last_exemplar() -> None:
    """A run without a root is none."""
    registry = Registry(lambda: 7)
    for value, one in ((3, FIRST), (4, SECOND), (5, run(root_span_id=None)), (50, FIRST)):
        registry.record(names.RUN_SCORE, value, SUPPORT, one)
    (series,) = series_of(registry).values()

    assert isinstance(series, HistogramSeries)
    assert [one for one in series.exemplars if one] == [exemplar(4, 2, 7), exemplar(50, 1, 7)]


def test_slices_hold_every_series_once() -> None:
    """Up to `SERIES_PER_SLICE` at a time."""
    registry, number = Registry(lambda: 1), 2 * SERIES_PER_SLICE + 10
    for at in range(number):
        registry.add(names.RUNS, 1, {**SUPPORT, "gen_ai.agent.name": f"agent-{at}"})
    slices = [len(some) for _, some in registry.slices(lambda spec, labels, series: None)]

    assert (sum(slices), len(slices)) == (number, 3)


def filled(registry: Registry) -> None:
    """Series of two agents and three instruments."""
    for agent in ("support", "refunds"):
        labels = {**SUPPORT, "gen_ai.agent.name": agent}
        registry.add(names.RUNS, 1, {**labels, names.OUTCOME: "success"}, FIRST)
        registry.add(names.TOOL_CALLS, 1, {**labels, names.TOOL: "search", names.OK: True})
        registry.record(names.RUN_SCORE, 50, labels, SECOND)


def test_series_end_with_their_agent_and_start_again() -> None:
    """A series that returns has a later start, so that no reader sees a negative rate."""
    clock = FakeClock()
    registry = Registry(clock.wall)
    filled(registry)
    registry.keep({OWNER})
    assert len(series_of(registry)) == 3
    assert all(("gen_ai.agent.name", "support") in labels for _, labels in series_of(registry))

    registry.keep(set())
    assert not series_of(registry)
    clock.advance(60)
    filled(registry)
    assert {series.start_ns for series in series_of(registry).values()} == {clock.wall()}


def test_restored_registry_is_equal_and_changes_are_reported_once() -> None:
    """`take_touched` has what changed since it was last asked, an ended series as None."""
    first, second = Registry(lambda: 7), Registry(lambda: 8)
    filled(first)
    second.restore(first.take_touched())
    assert series_of(second).keys() == series_of(first).keys()
    assert list(first.take_touched()) == list(second.take_touched()) == []
