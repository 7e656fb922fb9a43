from __future__ import annotations

import math
from typing import Final

import numpy as np
import pytest
from hypothesis import example, given
from msgspec.structs import replace

from otel_reliability.config import WindowSettings
from otel_reliability.metrics.base import DEFAULTS
from otel_reliability.metrics.uncertainty import (
    BLOCKS,
    MEANS_OF_RUNS,
    MEANS_OF_TASKS,
    SampleNumbers,
    bounds_of,
    intervals,
)
from otel_reliability.model.row import Row
from otel_reliability.model.run import Outcome
from otel_reliability.statistics.intervals import MIN_RUNS
from otel_reliability.testing import row, rows_of
from otel_reliability.windows.window import AgentWindow
from tests.metrics.strategies import rows as some_rows

FAILED: Final = Outcome.FAILURE
ENDS: Final = (
    *[row(None, outcome=FAILED)] * 5,
    row(None, outcome=Outcome.COMPLETED),
    *[row(None, condition="fault", outcome=Outcome.SUCCESS)] * 3,
    row(None, task="x", outcome=FAILED),
    row(None, task="x", outcome=FAILED, cost=1.0),
    row(None, task="x", outcome=FAILED, cost=6.0),
    row(None, task="y", outcome=FAILED, latency_ns=1),
    row(None, task="y", outcome=FAILED, latency_ns=4),
)
ONLY_FAILURES_ARE_KNOWN: Final = [
    replace(
        end,
        run_id=f"{at:04}",
        start_ns=0,
        end_ns=0,
        latency_ns=end.latency_ns if end.task == "y" else None,
        tool_calls=None,
        failed_calls=None,
        tokens=None,
        arguments_known=False,
    )
    for at, end in enumerate(ENDS)
]
"""One end is unknown and no run passed, so a window withholds every number of outcomes."""


def window_of(rows: list[Row]) -> AgentWindow:
    window = AgentWindow(WindowSettings("all", last=max(1, len(rows))), DEFAULTS)
    for one in rows:
        window.insert(one)
    return window


def read(rows: list[Row]) -> dict[str, tuple[float | None, int]]:
    """Read every number, those of outcomes too where only failures are known."""
    numbers = SampleNumbers(DEFAULTS, one_sided=False)
    numbers.add(rows)
    return {name: (reading.value, reading.runs) for name, reading in numbers.readings().items()}


@example(ONLY_FAILURES_ARE_KNOWN)
@given(some_rows(least=MIN_RUNS, most=14))
def test_every_interval_holds_its_own_value(rows: list[Row]) -> None:
    """Its own value is the one that is shown beside it: that of the window."""
    readings = window_of(rows).readings()
    for name, interval in intervals(rows).items():
        value = readings[name].value
        runs = readings[name].runs
        low, high = bounds_of(name, runs)
        assert value is not None
        assert runs >= MIN_RUNS
        assert interval.low <= value <= interval.high
        assert (low or 0) - 1e-9 <= interval.low
        assert interval.high <= (math.inf if high is None else high) + 1e-9


@example(ONLY_FAILURES_ARE_KNOWN)
@given(some_rows())
def test_a_sample_of_all_rows_reads_as_their_window_does(rows: list[Row]) -> None:
    numbers = SampleNumbers(DEFAULTS)
    numbers.add(rows)
    assert numbers.readings() == window_of(rows).readings()


@given(some_rows(least=1, most=12))
def test_means_over_runs_are_means_of_single_runs(rows: list[Row]) -> None:
    readings = read(rows)
    numbers = SampleNumbers(DEFAULTS, MEANS_OF_RUNS, one_sided=False)
    for name in MEANS_OF_RUNS:
        values: list[tuple[float, int]] = []
        for one in rows:
            numbers.add([one])
            value, runs = numbers.readings()[name][:2]
            values += [(value, runs)] if value is not None else []
            numbers.evict([one])
        expected = sum(v * r for v, r in values) / sum(r for _, r in values) if values else None
        assert readings[name][0] == (
            None if expected is None else pytest.approx(expected, rel=1e-9, abs=1e-9)
        )


@given(some_rows(least=1, most=12))
def test_means_over_tasks_are_means_of_single_tasks(rows: list[Row]) -> None:
    rows = [one for one in rows if one.task is not None]
    readings = read(rows)
    numbers = SampleNumbers(DEFAULTS, MEANS_OF_TASKS, one_sided=False)
    for name in MEANS_OF_TASKS - {"pass_at_k", "pass_hat_k"}:
        values: list[float] = []
        for task in {one.task for one in rows}:
            attempts = [one for one in rows if one.task == task]
            numbers.add(attempts)
            value = numbers.readings()[name].value
            values += [value] if value is not None else []
            numbers.evict(attempts)
        assert readings[name][0] == (
            pytest.approx(np.mean(values), rel=1e-9, abs=1e-9) if values else None
        )


def test_four_runs_have_no_interval() -> None:
    assert intervals(rows_of("a", "b", "a", "b", outcome=Outcome.SUCCESS, pressure=0.5)) == {}


def test_attempts_at_a_task_are_resampled_together() -> None:
    pressures = [0.1, 0.2, 0.4, 0.6, 0.9]
    tasked = [row("a", task=str(p), pressure=p) for p in pressures for _ in range(20)]
    plain = [replace(one, task=None) for one in tasked]
    together = intervals(tasked)["token_budget_pressure"]
    apart = intervals(plain)["token_budget_pressure"]
    assert (together.method, apart.method) == ("bootstrap over tasks", "bootstrap over runs")
    assert together.error > 3 * apart.error


def test_few_tasks_are_left_out_in_turn() -> None:
    outcomes = [Outcome.SUCCESS, Outcome.FAILURE, Outcome.SUCCESS]
    rows = [row("a", task=task, outcome=outcome) for task in "xy" for outcome in outcomes]
    assert intervals(rows)["outcome_agreement"].method == "jackknife"


def test_many_runs_cost_a_hundred_blocks() -> None:
    dice = np.random.default_rng(1)
    few = rows_of(*dice.choice(["a b", "b a", "c"], BLOCKS, p=[0.7, 0.2, 0.1]).tolist())
    many = rows_of(*dice.choice(["a b", "b a", "c"], 4 * BLOCKS, p=[0.7, 0.2, 0.1]).tolist())
    one = intervals(few)["path_similarity"].error
    other = intervals(many)["path_similarity"].error
    assert other == pytest.approx(one / 2, rel=0.4)


def test_the_same_rows_give_the_same_intervals() -> None:
    rows = rows_of("a", "b", "a b", "a", "a", "c", pressure=0.3)
    assert intervals(rows) == intervals(rows)


def test_path_entropy_covers() -> None:
    dice = np.random.default_rng(2)
    covered = 0
    draws = dice.choice(["search reply", "search read reply", "reply"], (60, 12), p=[0.7, 0.2, 0.1])
    samples = [rows_of(*draw.tolist()) for draw in draws]
    truth = np.mean([read(sample)["path_entropy"][0] or 0 for sample in samples])
    for sample in samples[:30]:
        interval = intervals(sample)["path_entropy"]
        covered += interval.low <= truth <= interval.high
    assert covered >= 27
