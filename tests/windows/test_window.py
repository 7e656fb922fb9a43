from __future__ import annotations

import pytest

from otel_reliability import testing
from otel_reliability.config import LimitSettings, Settings
from otel_reliability.errors import UnknownMetric
from otel_reliability.metrics import SPECS
from otel_reliability.metrics.stability.path_entropy import PathEntropy
from otel_reliability.model.run import Outcome, Run
from otel_reliability.windows.agents import AgentRegistry
from otel_reliability.windows.window import AgentWindow, measure
from tests.windows.runs import closed, final, run, state_of


def window_of(*runs: Run, settings: Settings | None = None) -> AgentWindow:
    agents = AgentRegistry(settings or Settings())
    for one in runs:
        agents.apply(closed(one), 0.0)
    return state_of(agents).windows["recent"]


def test_readings_are_of_all_metrics_in_order() -> None:
    window = window_of(run("a", path="x"))
    assert list(window.readings()) == [spec.name for spec in SPECS]


def test_readings_are_kept_until_the_window_changes() -> None:
    agents = AgentRegistry()
    agents.apply(closed(run("a", 1, "x")), 0.0)
    window = state_of(agents).windows["recent"]
    first = window.reading("window.runs")
    series = window.series()
    assert window.reading("window.runs") is first
    assert window.series() is series
    agents.apply(final(run("a", 1, "x")), 0.0)
    assert window.reading("window.runs") is first
    agents.apply(closed(run("b", 2, "x")), 0.0)
    assert window.reading("window.runs").value == 2
    assert window.series() is not series


def test_series_are_what_has_a_value() -> None:
    lone = {spec.name for spec, _, _ in window_of(run("a", path="x")).series()}
    assert "window.runs" in lone
    assert lone.isdisjoint({"path_entropy", "score", "tier", "flag", "branch_instability"})
    many = window_of(*(run(f"run-{at}", at, "x", token_pressure=0.9) for at in range(5)))
    tiers = {
        attributes: reading.value
        for spec, attributes, reading in many.series()
        if spec.name == "tier"
    }
    assert tiers == {
        (("tier", "STABLE"),): 0.0,
        (("tier", "VARIABLE"),): 1.0,
        (("tier", "UNSTABLE"),): 0.0,
        (("tier", "CRITICAL"),): 0.0,
    }
    flags = [
        (attributes, reading.value)
        for spec, attributes, reading in many.series()
        if spec.name == "flag"
    ]
    assert flags == [((("flag", "token_pressure_high"),), 1.0)]
    assert many.reading("score").value == pytest.approx(77.5)


def test_metrics_are_found_by_any_of_their_names() -> None:
    window = window_of(run("a", path="x"))
    assert isinstance(window.metric("path_entropy"), PathEntropy)
    assert window.metric("modal_path_share") is window.metric("path_entropy")
    with pytest.raises(UnknownMetric, match="Did you mean path_entropy"):
        window.reading("path_entropi")


def test_path_distance_tells_the_odd_run() -> None:
    runs = [run(f"run-{at}", at, path, task_id="t") for at, path in enumerate(["x y", "x y", "z"])]
    window = window_of(*runs, run("lone", 9, "x", task_id="u"))
    found = window.path_distances(window.rows())
    distances = [one.value for one in found]
    assert distances == [0.5, 0.5, 1.0, None]
    assert found[0].runs == 2


def test_perturbed_runs_are_in_the_window_and_no_baseline() -> None:
    window = window_of(run("a", 1, "x"), run("b", 2, "y", condition="fault"))
    assert window.runs == 2
    assert window.reading("window.runs").value == 1
    assert window.newest_ns == 2


def test_failures_alone_make_no_pass_rate() -> None:
    """An error tells a failure by itself and nothing tells a success so: until one is known there
    is no number of outcomes.
    """
    failed = run("a", 1, "x", outcome=Outcome.FAILURE, confidence=0.9)
    ended = run("b", 2, "x", outcome=Outcome.COMPLETED, confidence=0.9)
    window = window_of(failed, ended)

    assert window.one_sided
    assert window.reading("pass_hat_k").value is None
    assert window.reading("brier_score").value is None
    assert not {spec.name for spec, _, _ in window.series()} & {
        "pass_hat_k",
        "pass_at_k",
        "brier_score",
    }

    window = window_of(failed, ended, run("c", 3, "x", outcome=Outcome.SUCCESS, confidence=0.9))

    assert window.reading("pass_hat_k").value == 0.0
    assert {spec.name for spec, _, _ in window.series()} >= {
        "pass_hat_k",
        "pass_at_k",
        "brier_score",
    }


def test_failures_of_which_none_is_unknown_make_a_pass_rate() -> None:
    window = window_of(*(run(f"run-{at}", at, "x", outcome=Outcome.FAILURE) for at in range(3)))

    assert window.reading("pass_at_k").value == 0.0


def test_plain_runs_are_measured_in_any_order() -> None:
    runs = [
        testing.run(
            ["search", "book"],
            number,
            task_id="refund",
            outcome=Outcome.SUCCESS,
            confidence=number / 10,
        )
        for number in range(1, 6)
    ]
    window = measure(runs)
    reverse = measure(reversed(runs))

    assert window.runs == 5
    assert window.reading("trajectory_sequence").value == 1.0
    assert window.reading("path_entropy").value == 0.0
    assert window.readings() == reverse.readings()


def test_the_newest_runs_are_measured() -> None:
    window = measure(
        (testing.run((), number) for number in range(5)), Settings(limits=LimitSettings(rows=2))
    )

    assert [row.run_id for row in window.rows()] == ["run-3", "run-4"]
