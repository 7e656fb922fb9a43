from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given

from otel_reliability.metrics.base import DEFAULTS
from otel_reliability.metrics.uncertainty import (
    BLOCKS,
    MEANS_OF_RUNS,
    MEANS_OF_TASKS,
    Sample,
    bounds_of,
    intervals,
)
from otel_reliability.model.row import Row
from otel_reliability.model.run import Outcome
from otel_reliability.statistics.intervals import MIN_RUNS
from otel_reliability.testing import row, rows_of
from tests.metrics.strategies import rows as some_rows


def read(rows: list[Row]) -> dict[str, tuple[float | None, int]]:
    numbers = Sample(DEFAULTS)
    numbers.add(rows)
    return {name: (reading.value, reading.runs) for name, reading in numbers.readings().items()}


@given(some_rows(least=MIN_RUNS, most=14))
def test_every_interval_holds_its_own_value(rows: list[Row]) -> None:
    readings = read(rows)
    for name, interval in intervals(rows).items():
        value, runs = readings[name]
        low, high = bounds_of(name, runs)
        assert value is not None
        assert runs >= MIN_RUNS
        assert interval.low <= value + 1e-9
        assert value - 1e-9 <= interval.high
        assert (low or 0) - 1e-9 <= interval.low
        assert interval.high <= (math.inf if high is None else high) + 1e-9


@given(some_rows(least=1, most=12))
def test_means_over_runs_are_means_of_single_runs(rows: list[Row]) -> None:
    readings = read(rows)
    numbers = Sample(DEFAULTS, MEANS_OF_RUNS)
    for name in MEANS_OF_RUNS:
        values: list[tuple[float, int]] = []
        for one in rows:
            numbers.add([one])
            value, runs = numbers.readings()[name][:2]
            values += [(value, runs)] if value is not None else []
            numbers.evict([one])
        expected = sum(v * r for v, r in values) / sum(r for _, r in values) if values else None
        assert readings[name][0] == (
            None if expected is None else pytest.approx(expected, abs=1e-9)
        )


@given(some_rows(least=1, most=12))
def test_means_over_tasks_are_means_of_single_tasks(rows: list[Row]) -> None:
    rows = [one for one in rows if one.task is not None]
    readings = read(rows)
    numbers = Sample(DEFAULTS, MEANS_OF_TASKS)
    for name in MEANS_OF_TASKS - {"pass_at_k", "pass_hat_k"}:
        values: list[float] = []
        for task in {one.task for one in rows}:
            attempts = [one for one in rows if one.task == task]
            numbers.add(attempts)
            value = numbers.readings()[name].value
            values += [value] if value is not None else []
            numbers.evict(attempts)
        assert readings[name][0] == (pytest.approx(np.mean(values), abs=1e-9) if values else None)


def test_four_runs_have_no_interval() -> None:
    assert intervals(rows_of("a", "b", "a", "b", outcome=Outcome.SUCCESS, pressure=0.5)) == {}


def test_attempts_at_a_task_are_resampled_together() -> None:
    pressures = [0.1, 0.2, 0.4, 0.6, 0.9]
    tasked = [row("a", task=str(p), pressure=p) for p in pressures for _ in range(20)]
    plain = [one._replace(task=None) for one in tasked]
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
