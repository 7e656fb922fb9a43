from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from otel_reliability.model.row import Retries
from otel_reliability.model.run import ModelCall, ToolCall
from otel_reliability.model.span import Evaluation
from otel_reliability.windows.rows import PathTable, retries_of, row_of, signals_of, violations_of
from tests.windows.runs import call, model_call, run


def evaluation(name: str, score: float | None = None, label: str | None = None) -> Evaluation:
    return Evaluation(name, score, label, 0)


def test_a_row_says_what_the_run_says() -> None:
    one = run(
        "a",
        9,
        "x y",
        task_id="t",
        tool_calls=(call("x", ok=False), call("y"), replace(call("z"), has_effect=False)),
        model_calls=(model_call(start=0, end=10), model_call(start=0, end=21)),
        input_tokens=5,
        token_pressure=0.5,
        confidence=0.9,
        weight=3,
    )
    row = row_of(one, PathTable())
    assert row.path is not None
    assert row.path.names == ("x", "y")
    assert (row.task, row.end_ns, row.run_id, row.weight) == ("t", 9, "a", 3)
    assert (row.tool_calls, row.failed_calls, row.model_calls) == (3, 1, 2)
    assert (row.tokens, row.latency_ns, row.pressure, row.confidence) == (5, 15, 0.5, 0.9)
    assert row.effects == {("y", b"e")}


def test_effects_are_kept_where_they_can_be_compared() -> None:
    row = row_of(run("a", task_id=None, tool_calls=(call("x"),)), PathTable())
    assert row.effects is None


def test_unobservable_tools_are_no_evidence() -> None:
    row = row_of(run("a", path=None), PathTable())
    assert (row.path, row.retries, row.tool_calls, row.failed_calls, row.effects) == (None,) * 5
    assert (row.tokens, row.latency_ns) == (None, None)


def test_incomplete_runs_stay_out_of_path_metrics_only() -> None:
    row = row_of(run("a", 0, "x", incomplete=True, tool_calls=(call("x", retry=1),)), PathTable())
    assert (row.path, row.effects) == (None, None)
    assert row.retries is not None
    assert row.retries.number == 1


def test_retries_tell_their_longest_chain_and_what_they_cost() -> None:
    calls = (
        call("a", ok=False, start=10, end=20),
        call("a", ok=False, retry=1, start=30, end=35),
        call("b", retry=1, start=31, end=33),
        call("a", retry=2, start=50, end=54),
    )
    models = (
        model_call((1000, 1), start=0, end=9),
        model_call((100, 10), start=21, end=30),
        model_call((7, None), start=40, end=49),
    )
    assert retries_of(calls, models) == Retries(3, 2, "a", 117, 11, 0)


@pytest.mark.parametrize(
    ("calls", "models", "expected"),
    [
        ((), (), Retries(0, 0, None, 0, 0, 0)),
        ((call("a", repeat=True), call("a", repeat=True)), (), Retries(0, 0, None, 0, 0, 2, 0, 2)),
        (
            (call("a", retry=1, start=0, end=2),),
            (model_call((5, 5), start=1, end=9),),
            Retries(1, 1, "a", 0, 2, 0),
        ),
    ],
)
def test_retries_at_the_edges(
    calls: tuple[ToolCall, ...], models: tuple[ModelCall, ...], expected: Retries
) -> None:
    assert retries_of(calls, models) == expected


def test_signals_are_the_evaluations_with_a_score() -> None:
    told = (
        evaluation("beauty", 1.0),
        evaluation("coherence", 0.3),
        evaluation("tone", None, "good"),
    )
    assert signals_of(told) == (("beauty", 1.0), ("coherence", 0.3))


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, None),
        ({"violations": ()}, ()),
        ({"violations": (("pii", "low"),)}, (("pii", "low"),)),
        ({"evaluations": (evaluation("constraint.pii", label="None"),)}, ()),
        ({"evaluations": (evaluation("constraint.pii", label="High"),)}, (("pii", "high"),)),
        ({"evaluations": (evaluation("constraint.pii", label="perhaps"),)}, None),
        ({"evaluations": (evaluation("constraint.pii", 1.0),)}, None),
        ({"evaluations": (evaluation("coherence", 1.0),), "violations": None}, None),
        (
            {
                "violations": (("law", "high"),),
                "evaluations": (evaluation("constraint.pii", label="low"),),
            },
            (("law", "high"), ("pii", "low")),
        ),
    ],
)
def test_evaluations_of_constraints_judge_too(
    fields: dict[str, Any], expected: tuple[tuple[str, str], ...] | None
) -> None:
    assert violations_of(run("a", **fields)) == expected
