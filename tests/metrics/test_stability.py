"""The stability metrics where the sources say nothing, and what explains them."""

from __future__ import annotations

import math
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from otel_reliability.config import LimitSettings, MetricSettings, Settings
from otel_reliability.metrics.stability.branch_instability import BranchInstability
from otel_reliability.metrics.stability.path_entropy import PathEntropy
from otel_reliability.metrics.stability.path_similarity import PathSimilarity
from otel_reliability.metrics.stability.score import PENALTIES, Score
from otel_reliability.metrics.stability.tables import divergences, task_table, tool_use
from otel_reliability.model.reading import Reading
from otel_reliability.model.row import OTHER_TASK, Row
from otel_reliability.report.findings import exploding_runs
from otel_reliability.testing import row, rows_of
from tests.metrics import laws
from tests.metrics.reference import NAIVE
from tests.metrics.strategies import rows
from tests.windows.runs import window_over


@given(rows())
def test_every_number_beside_agrees_with_its_formula(given_rows: list[Row]) -> None:
    settings = Settings(metrics=MetricSettings(min_runs=2))
    found = window_over(given_rows, settings).readings()
    for name, formula in NAIVE.items():
        assert laws.close(formula(given_rows, settings), found[name].value), name


@pytest.mark.parametrize(
    ("given_rows", "missing"),
    [
        ([], "0 of the 5 runs"),
        (rows_of("a", "a", "a", "a"), "4 of the 5 runs"),
        (rows_of(*["a"] * 4, "b", condition="fault"), "0 of the 5 runs"),
        (
            rows_of(*[None] * 9, pressure=0.5),
            "no data for path_entropy, tool_variance, retry_explosion, branch",
        ),
        (
            [row("a", task=str(task), pressure=0.1) for task in range(9)],
            "no data for path_entropy, tool_variance",
        ),
        (rows_of(*["a"] * 9, retries=None), ""),
    ],
    ids=[
        "no runs",
        "too few",
        "perturbed",
        "unobservable tools",
        "every run its own task",
        "enough",
    ],
)
def test_without_evidence_there_is_no_score_and_it_is_said_why(
    given_rows: list[Row], missing: str
) -> None:
    if not missing:
        given_rows = [replace(each, retries=row().retries) for each in given_rows]
    found = window_over(given_rows).readings()
    assert (found["score"].value is None) is bool(missing)
    assert (found["tier"].value is None) is bool(missing)
    assert missing in found["score"].note


@given(rows(), st.sampled_from(["left_out", "as_zero"]))
def test_penalties_sum_to_what_the_score_lacks(
    given_rows: list[Row], missing: Literal["left_out", "as_zero"]
) -> None:
    settings = Settings(metrics=MetricSettings(min_runs=2, missing=missing))
    found = window_over(given_rows, settings).readings()
    costs = Score(settings).penalties(found)
    assert set(costs) == set(found["score"].parts)
    assert all(0 <= cost.points <= cost.most for cost in costs.values())
    if found["score"].value is not None:
        assert sum(cost.points for cost in costs.values()) == pytest.approx(
            100 - found["score"].value
        )


def test_with_all_parts_the_score_is_bit_equal_to_100_less_the_points_lost() -> None:
    values = {
        "path_entropy": 0.1,
        "tool_variance": 0.7,
        "retry_explosion": 0.0,
        "branch_instability": 1 / 3,
    }
    readings = {
        name: Reading(value, 9) for name, value in (values | {"token_budget_pressure": 0.9}).items()
    }
    lost = math.fsum(
        PENALTIES[name] * reading.value
        for name, reading in readings.items()
        if reading.value is not None
    )
    assert Score().derive({**readings, "window.runs": Reading(9.0, 9)}).value == 100.0 - lost


def test_tasks_beyond_the_limit_are_left_out_of_groups() -> None:
    mixture = rows_of("a", "b", task=OTHER_TASK)
    assert laws.fed(PathEntropy, mixture).value().value is None
    ungrouped = Settings(metrics=MetricSettings(group_by="none"))
    assert laws.fed(lambda: PathEntropy(ungrouped), mixture).value().value == 1.0
    assert laws.fed(BranchInstability, mixture).value().value is None


def test_a_class_is_not_a_task_of_the_same_name() -> None:
    assert (
        laws.fed(BranchInstability, [row("a", task="k"), row("b", input_class="k")]).value().value
        is None
    )
    assert laws.fed(BranchInstability, rows_of("a", "b")).value().value is None
    assert (
        laws.fed(BranchInstability, [row(branches={"d": "x"}), row(branches={"d": "y"})])
        .value()
        .value
        == 0.5
    )


def test_similarity_says_what_the_limit_left_out() -> None:
    metric = PathSimilarity(Settings(limits=LimitSettings(paths=2)))
    for each in rows_of("a", "b", "c", "c", task="refund"):
        metric.add(each)
    value, runs, _, note = metric.value()
    assert (value, runs) == (pytest.approx(1 / 3), 3)
    assert (
        note == "1 earlier runs are left out: only the latest distinct paths of a task are compared"
    )


def test_distance_needs_evidence() -> None:
    metric = PathSimilarity()
    metric.add(row("a", task="x"))
    assert metric.distance(row(None)).value is None
    assert metric.distance(row("a", task="y")).value is None
    assert metric.distance(row("b", task="x"), inside=False) == Reading(1.0, 1)


# --- What explains the numbers --------------------------------------------------------------------


@given(rows())
def test_divergences_account_for_every_run(given_rows: list[Row]) -> None:
    for by_task in (True, False):
        for found in divergences(given_rows, by_task=by_task):
            mine = [
                each.path.names
                for each in given_rows
                if each.path is not None
                and each.undisturbed
                and (not by_task or each.task == found.task_id)
            ]
            assert sum(turn.runs for turn in found.turns) == len(mine)
            assert all(names[: len(found.shared)] == found.shared for names in mine)
            assert 1 <= found.deviating < len(mine)


def test_tools_are_told_with_the_runs_that_used_them() -> None:
    found = tool_use([*rows_of("a b a", "a", *["a"] * 8), row("z", condition="fault"), row(None)])
    assert [(use.tool, use.runs, use.share, use.calls, use.rare) for use in found] == [
        ("a", 10, 1.0, 11, False),
        ("b", 1, 0.1, 1, True),
    ]
    assert tool_use([]) == []


def test_each_task_has_its_line() -> None:
    table = task_table(
        [*rows_of("a", "a b", task="y"), row(None, task="x"), row("a"), row("q", task=OTHER_TASK)]
    )
    assert [
        (line.task_id, line.runs, line.path_entropy, line.distinct_paths) for line in table
    ] == [
        ("x", 1, None, None),
        ("y", 2, 1.0, 2),
        (None, 1, None, 1),
    ]
    assert (table[1].path_similarity, table[1].path_entropy_bits, table[1].tool_variance) == (
        0.5,
        1.0,
        1.0,
    )
    assert (table[1].modal_path_share, table[1].tool_call_variation) == (0.5, 0.25)
    assert task_table(rows_of("a", "b")) == []


def test_exploding_runs_are_named_by_their_chains() -> None:
    mild = row(retries=3)
    wild = row(retries=9)
    fault = row(retries=9, condition="fault")
    found = [(one.run_id, one.retries) for one in exploding_runs([mild, wild, fault], 3)]
    assert found == [(wild.run_id, 9), (mild.run_id, 3)]
