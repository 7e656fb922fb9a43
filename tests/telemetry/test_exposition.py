from __future__ import annotations

from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from otel_reliability.config import MetricSettings, Settings, WindowSettings
from otel_reliability.engine import Engine
from otel_reliability.model.run import Run, RunChange, RunEvent
from otel_reliability.telemetry import names
from otel_reliability.telemetry.exposition import (
    SERIES_PER_SLICE,
    Exemplar,
    Exposition,
    HistogramSeries,
    Registry,
    Series,
    agent_points,
    agent_slices,
)
from otel_reliability.telemetry.instruments import Point
from otel_reliability.telemetry.prometheus import Prometheus
from otel_reliability.testing import KEY, run


def points_of(*runs: Run, settings: Settings | None = None) -> list[Point]:
    engine = Engine(
        settings or Settings(metrics=MetricSettings(min_runs=2)), clock=lambda: 0.0, wall=None
    )
    engine.receive_events(RunEvent(RunChange.CLOSED, one) for one in runs)
    return list(agent_points(engine.view))


def test_no_evidence_makes_no_point() -> None:
    names = {name for name, _, _ in points_of(run(None, 1), run(None, 2))}

    assert "agent.reliability.window.runs" in names
    assert not names & {
        "agent.reliability.path_entropy",
        "agent.reliability.score",
        "agent.reliability.tier",
    }


def test_windows_are_told_apart_where_there_are_several() -> None:
    runs = [run(["search"], number) for number in range(1, 4)]
    two = Settings(windows=(WindowSettings("few", last=2), WindowSettings("many", last=9)))
    sizes = {
        a.get("window"): v
        for name, v, a in points_of(*runs, settings=two)
        if name.endswith("window.runs")
    }

    assert sizes == {"few": 2.0, "many": 3.0}
    assert all("window" not in attributes for _, _, attributes in points_of(*runs))


def test_no_reader_waits_for_agents_that_are_not_loaded() -> None:
    second = Engine(clock=lambda: 0.0, wall=None)
    keys = [KEY._replace(agent=f"agent {number}") for number in range(1, 6)]
    runs = {key: (0.0, partial(list[Run], [replace(run(["search"]), key=key)])) for key in keys}
    second.agents.restore_runs(runs)

    shown: list[list[object]] = []
    while second.agents.unloaded:
        second.load_agents(0.0)
        shown.append([one.key for some in agent_slices(second) for one in some])
    assert shown == [keys[:number] for number in range(1, 6)]


# --- Registry -------------------------------------------------------------------------------------


SUPPORT = {"service.name": "shop", "gen_ai.agent.name": "support"}
FIRST = run(number=1)
SECOND = run(number=2)


def scores(registry: Registry) -> list[Series]:
    return [
        series
        for some in registry.slices(names.RUN_SCORE, lambda _, __, series: series)
        for series in some
    ]


def exemplar(value: float, of: int, time_ns: int) -> Exemplar:
    one = (FIRST, SECOND)[of - 1]
    return Exemplar(value, time_ns, one.trace_id, one.root_span_id or b"")


@given(st.lists(st.floats(-5, 120), min_size=1))
def test_histogram_counts_each_measurement_in_its_bucket(values: list[float]) -> None:
    registry = Registry(lambda: 1)
    for value in values:
        registry.record(names.RUN_SCORE, value, SUPPORT)
    (series,) = scores(registry)
    assert isinstance(series, HistogramSeries)
    bounds = names.RUN_SCORE.boundaries
    below = [sum(value <= bound for value in values) for bound in bounds]

    assert [sum(series.counts[: at + 1]) for at in range(len(bounds))] == below
    assert (series.count, series.lowest, series.highest) == (len(values), min(values), max(values))
    assert series.total == pytest.approx(sum(values))


def test_bucket_keeps_its_last_exemplar() -> None:
    registry = Registry(lambda: 7)
    for value, one in ((3, FIRST), (4, SECOND), (5, run(root_span_id=None)), (50, FIRST)):
        registry.record(names.RUN_SCORE, value, SUPPORT, one)
    (series,) = scores(registry)

    assert isinstance(series, HistogramSeries)
    assert [one for one in series.exemplars if one] == [exemplar(4, 2, 7), exemplar(50, 1, 7)]


def test_slices_hold_every_series_once() -> None:
    registry = Registry(lambda: 1)
    number = 2 * SERIES_PER_SLICE + 10
    for at in range(number):
        registry.add(names.RUNS, 1, {**SUPPORT, "gen_ai.agent.name": f"agent-{at}"})
    slices = [len(some) for some in registry.slices(names.RUNS, lambda spec, labels, series: None)]

    assert (sum(slices), len(slices)) == (number, 3)


def test_several_engines_are_shown_as_one() -> None:
    sources: list[tuple[Engine, Registry]] = []
    for number in (1, 2):
        engine = Engine(clock=lambda: 0.0, wall=None)
        registry = Registry(lambda: 1)
        one = replace(run(["search"], number), key=KEY._replace(agent=f"agent {number}"))
        engine.receive_events([RunEvent(RunChange.CLOSED, one)])
        registry.add(names.RUNS, number, {**SUPPORT, "gen_ai.agent.name": f"agent {number}"})
        sources.append((engine, registry))
    lines = "".join(Prometheus(Exposition(lambda: sources, tuple), {}).text()).splitlines()

    for family in ("agent_reliability_runs_total", "agent_reliability_window_runs"):
        values = [line for line in lines if line.startswith(family + "{")]
        assert [f'"agent {number}"' in line for number, line in enumerate(values, 1)] == [
            True,
            True,
        ]
        assert lines.index(values[1]) == lines.index(values[0]) + 1


def test_series_of_an_agent_that_expired_are_removed_from_stored_state() -> None:
    registry = Registry(lambda: 0)
    list(registry.take_touched())  # a store asks once before it notes changes
    for agent in ("gone", "here"):
        registry.add(names.RUNS, 1, {"gen_ai.agent.name": agent, "outcome": "success"})
        registry.record(names.RUN_DURATION, 1.0, {"gen_ai.agent.name": agent})
    stored = {(name, labels): data for name, labels, data in registry.take_touched()}
    registry.keep({(("gen_ai.agent.name", "here"),)})
    for name, labels, data in registry.take_touched():
        stored[name, labels] = data
    other = Registry(lambda: 0)
    other.restore(
        (name, labels, data) for (name, labels), data in stored.items() if data is not None
    )

    assert len(stored) == 4
    for spec in (names.RUNS, names.RUN_DURATION):
        assert [dict(labels)["gen_ai.agent.name"] for labels in other.labels(spec)] == ["here"]
