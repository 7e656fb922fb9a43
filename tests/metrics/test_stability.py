"""The stability metrics where the sources say nothing, and what explains them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_reliability.config import LimitSettings, MetricSettings, Settings
from otel_reliability.metrics import TABLE
from otel_reliability.metrics.base import DEFAULTS, Derived, Metric
from otel_reliability.metrics.examples import path_of, row, rows_of
from otel_reliability.metrics.stability.branch_instability import BranchInstability
from otel_reliability.metrics.stability.notable_runs import explosions, fullest, oddest
from otel_reliability.metrics.stability.path_entropy import PathEntropy
from otel_reliability.metrics.stability.path_similarity import PathSimilarity
from otel_reliability.metrics.stability.repeated_calls import RetryExplosion
from otel_reliability.metrics.stability.score import PENALTIES, Score
from otel_reliability.metrics.stability.tables import divergences, first_divergence, task_table, tool_use
from otel_reliability.model.reading import Reading
from otel_reliability.model.row import OTHER_TASK, Row
from tests.metrics import laws
from tests.metrics.reference import NAIVE
from tests.metrics.strategies import rows


def readings_of(given_rows: Sequence[Row], settings: Settings = DEFAULTS) -> dict[str, Reading]:
    """What every metric of the table reads from these rows."""
    found: dict[str, Reading] = {}
    for cls in TABLE:
        if issubclass(cls, Metric):
            metric = laws.fed(lambda cls=cls: cls(settings), given_rows)
            told = zip((cls.spec, *cls.companions), (metric.value(), *metric.companion_values()), strict=True)
            found |= {spec.name: reading for spec, reading in told}
    for cls in TABLE:
        if issubclass(cls, Derived) and cls.spec.family == "stability":
            found[cls.spec.name] = cls(settings).derive(found)
    return found


@given(rows())
def test_every_number_beside_agrees_with_its_formula(given_rows: list[Row]) -> None:
    """Companions and derived numbers, too, are what their plain formulas give."""
    settings = Settings(metrics=MetricSettings(min_runs=2))
    found = readings_of(given_rows, settings)
    for name, formula in NAIVE.items():
        assert laws.close(formula(given_rows, settings), found[name].value), name


@pytest.mark.parametrize(
    ("given_rows", "missing"),
    [
        ([], "0 of the 5 runs"),
        (rows_of("a", "a", "a", "a"), "4 of the 5 runs"),
        (rows_of(*["a"] * 4, "b", condition="fault"), "0 of the 5 runs"),
        (rows_of(*[None] * 9, pressure=0.5), "no evidence for path_entropy, tool_variance, retry_explosion, branch"),
        ([row("a", task=str(task), pressure=0.1) for task in range(9)], "no evidence for path_entropy, tool_variance"),
        (rows_of(*["a"] * 9, retries=None), ""),
    ],
    ids=["no runs", "too few", "perturbed", "unobservable tools", "every run its own task", "enough"],
)
def test_without_evidence_there_is_no_score_and_it_is_said_why(given_rows: list[Row], missing: str) -> None:
    """No score, no tier, and a note that names what is missing."""
    if not missing:
        given_rows = [each._replace(retries=row().retries) for each in given_rows]
    found = readings_of(given_rows)
    assert (found["score"].value is None) is bool(missing)
    assert (found["tier"].value is None) is bool(missing)
    assert missing in found["score"].note


@given(rows(), st.sampled_from(["left_out", "as_zero"]))
def test_penalties_sum_to_what_the_score_lacks(given_rows: list[Row], missing: Literal["left_out", "as_zero"]) -> None:
    """With any parts absent, and however the score counts them."""
    settings = Settings(metrics=MetricSettings(min_runs=2, missing=missing))
    found = readings_of(given_rows, settings)
    costs = Score(settings).penalties(found)
    assert set(costs) == set(found["score"].parts)
    assert all(0 <= cost.points <= cost.most for cost in costs.values())
    if found["score"].value is not None:
        assert sum(cost.points for cost in costs.values()) == pytest.approx(100 - found["score"].value)


def test_with_all_parts_the_score_is_bit_equal_to_100_less_the_points_lost() -> None:
    """The scale is 1 exactly."""
    values = {"path_entropy": 0.1, "tool_variance": 0.7, "retry_explosion": 0.0, "branch_instability": 1 / 3}
    readings = {name: Reading(value, 9) for name, value in (values | {"token_budget_pressure": 0.9}).items()}
    lost = math.fsum(PENALTIES[name] * reading.value for name, reading in readings.items() if reading.value is not None)
    assert Score().derive({**readings, "window.runs": Reading(9.0, 9)}).value == 100.0 - lost


def test_coverage_is_told_beside_the_score() -> None:
    """60 points rest on evidence where tools are seen but neither tasks nor tokens."""
    found = readings_of(rows_of(*["a b"] * 5))
    assert found["score"].value == 100.0
    assert found["score_coverage"].value == 60.0
    assert found["score"].parts == ("path_entropy", "tool_variance", "retry_explosion")
    assert found["flag"].value is None


def test_tasks_are_averaged_by_their_runs() -> None:
    """A task of 4 runs weighs twice one of 2; a lone run and an unknown task of one run weigh nothing."""
    metric = laws.fed(
        PathEntropy,
        [
            *rows_of("a", "b", task="x"),
            *rows_of("a", "a", "a", "a", task="y"),
            *rows_of("z", task="lone"),
            *rows_of("q"),
        ],
    )
    assert metric.value() == Reading(2 / 6, 6)
    bits, modal = metric.companion_values()
    assert bits.value == pytest.approx(1 / 3)
    assert modal.value == pytest.approx((1 + 4) / 6)


def test_runs_without_a_task_form_one_group() -> None:
    """Where some runs have tasks, those without are compared among themselves."""
    metric = laws.fed(PathEntropy, [*rows_of("a", "b"), *rows_of("a", "a", task="x")])
    assert metric.value() == Reading(0.5, 4)


def test_tasks_beyond_the_limit_are_left_out_of_groups() -> None:
    """A mixture of tasks is no task; without grouping it does not matter."""
    mixture = rows_of("a", "b", task=OTHER_TASK)
    assert laws.fed(PathEntropy, mixture).value().value is None
    ungrouped = Settings(metrics=MetricSettings(group_by="none"))
    assert laws.fed(lambda: PathEntropy(ungrouped), mixture).value().value == 1.0
    assert laws.fed(BranchInstability, mixture).value().value is None


def test_branches_pool_over_decisions_and_count_runs_once() -> None:
    """Two decisions of one run are two of the sum, and one run behind it; a decision that one run took is left out."""
    metric = laws.fed(
        BranchInstability,
        [
            row(input_class="k", branches={"d1": "x", "d2": "x"}),
            row(input_class="k", branches={"d1": "x", "d2": "y"}),
            row(input_class="k", branches={"d3": "x"}),
        ],
    )
    assert metric.value() == Reading(1 / 4, 2)


def test_a_class_is_not_a_task_of_the_same_name() -> None:
    """Input classes and tasks are told apart; without either only named branches count."""
    assert laws.fed(BranchInstability, [row("a", task="k"), row("b", input_class="k")]).value().value is None
    assert laws.fed(BranchInstability, rows_of("a", "b")).value().value is None
    assert laws.fed(BranchInstability, [row(branches={"d": "x"}), row(branches={"d": "y"})]).value().value == 0.5


def test_an_empty_path_is_a_path() -> None:
    """A run that called no tool took the empty path; two of them are alike."""
    assert laws.fed(PathEntropy, rows_of("", "")).value().value == 0.0
    assert laws.fed(PathSimilarity, rows_of("", "")).value().value == 1.0
    assert laws.fed(PathSimilarity, rows_of("", "a b")).value().value == 0.0


def test_similarity_says_what_the_limit_left_out() -> None:
    """With more distinct paths than are compared, the note tells how many runs that left out."""
    metric = PathSimilarity(Settings(limits=LimitSettings(paths=2)))
    for each in rows_of("a", "b", "c", "c"):
        metric.add(each)
    value, runs, _, note = metric.value()
    assert (value, runs) == (pytest.approx(1 / 3), 3)
    assert note == "1 earlier runs are left out: only the latest distinct paths of a task are compared"


def test_distance_needs_evidence() -> None:
    """A run of unobservable tools, or of a task nobody else has, is not unlike the others."""
    metric = PathSimilarity()
    metric.add(row("a", task="x"))
    assert metric.distance(row(None)).value is None
    assert metric.distance(row("a", task="y")).value is None
    assert metric.distance(row("b", task="x"), inside=False) == Reading(1.0, 1)


def test_unknown_arguments_are_told() -> None:
    """Where arguments were not in the telemetry, retries are told by tool alone, and the reading says so."""
    metric = laws.fed(RetryExplosion, [row(arguments_known=False), row(retries=3)])
    assert metric.value().note == "arguments unknown in 1 of 2 runs: their calls are matched by tool alone"


# --- What explains the numbers --------------------------------------------------------------------------------------------


def test_paths_diverge_where_their_common_beginning_ends() -> None:
    """The shares of the next steps, the end of a run among them."""
    paths = [path_of(path).names for path in ("a b c", "a b d", "a b", "a b c")]
    found = first_divergence(paths, "t")
    assert found is not None
    assert (found.task_id, found.shared, found.deviating) == ("t", ("a", "b"), 2)
    assert [(turn.step, turn.runs, turn.share) for turn in found.turns] == [
        ("c", 2, 0.5),
        ("d", 1, 0.25),
        (None, 1, 0.25),
    ]
    assert first_divergence([]) is None
    assert first_divergence(paths[:1] * 3) is None


@given(rows())
def test_divergences_account_for_every_run(given_rows: list[Row]) -> None:
    """The turns of a task are those of all its runs, and not all the same."""
    for by_task in (True, False):
        for found in divergences(given_rows, by_task=by_task):
            mine = [
                each.path.names
                for each in given_rows
                if each.path is not None and each.baseline and (not by_task or each.task == found.task_id)
            ]
            assert sum(turn.runs for turn in found.turns) == len(mine)
            assert all(names[: len(found.shared)] == found.shared for names in mine)
            assert 1 <= found.deviating < len(mine)


def test_tools_are_told_with_the_runs_that_used_them() -> None:
    """The most used first; perturbed and unobservable runs are no evidence."""
    found = tool_use([*rows_of("a b a", "a", *["a"] * 8), row("z", condition="fault"), row(None)])
    assert [(use.tool, use.runs, use.share, use.calls, use.rare) for use in found] == [
        ("a", 10, 1.0, 11, False),
        ("b", 1, 0.1, 1, True),
    ]
    assert tool_use([]) == []


def test_each_task_has_its_line() -> None:
    """Tasks in order, the runs without one last, no line without evidence of a path left out; no tasks, no table."""
    table = task_table([*rows_of("a", "a b", task="y"), row(None, task="x"), row("a"), row("q", task=OTHER_TASK)])
    assert [(line.task_id, line.runs, line.path_entropy, line.distinct_paths) for line in table] == [
        ("x", 1, None, None),
        ("y", 2, 1.0, 2),
        (None, 1, None, 1),
    ]
    assert (table[1].path_similarity, table[1].path_entropy_bits, table[1].tool_variance) == (0.5, 1.0, 1.0)
    assert (table[1].modal_path_share, table[1].tool_call_variation) == (0.5, 0.25)
    assert task_table(rows_of("a", "b")) == []


def test_the_runs_behind_a_number_are_named() -> None:
    """Exploding runs by their chains, full ones by their pressure, odd ones by their distance."""
    mild, wild, fault = row(retries=3), row(retries=9), row(retries=9, condition="fault")
    assert [(found.run_id, found.retries) for found in explosions([mild, wild, fault])] == [
        (wild.run_id, 9),
        (mild.run_id, 3),
    ]
    half, full = row(pressure=0.5), row(pressure=0.9)
    assert [found.run_id for found in fullest([half, full, row()], 1)] == [full.run_id]
    usual, odd = rows_of("a b", "a b", "a b", "c", task="t"), row("c", task="lone")
    metric = PathSimilarity()
    for each in (*usual, odd):
        metric.add(each)
    found = oddest([*usual, odd, row(None)], metric.distance)
    assert [(each.run_id, each.value) for each in found][:1] == [(usual[3].run_id, 1.0)]
    assert len(found) == 3
