"""The reliability layer: an independent script's numbers from its text, from spans to score, and
what its code computes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from otel_reliability import testing
from otel_reliability.config import MetricSettings, Settings
from otel_reliability.engine import Engine
from otel_reliability.metrics.stability.path_entropy import PathEntropy
from otel_reliability.metrics.stability.score import PENALTIES, Score
from otel_reliability.metrics.stability.tier import badge_text, rounded, tier_of
from otel_reliability.metrics.stability.tool_call_variation import ToolCallVariation
from otel_reliability.model.reading import Reading
from otel_reliability.model.run import CloseReason, Run
from otel_reliability.model.span import AgentSpan, Notes
from otel_reliability.testing import rows_of
from otel_reliability.windows.window import AgentWindow
from tests.oracles.reading import close, each

TEXT = "oracles/seed3-text.json"
CODE = "oracles/seed3-code.json"

METRICS = {
    "path_entropy": "path_entropy",
    "tool_variance": "tool_variance_set_entropy",
    "tool_call_variation": "tool_variance_cv",
    "retry_explosion": "retry_explosion",
    "token_budget_pressure": "token_pressure_avg",
    "score": "score",
}


def spans_of(number: int, recorded: dict[str, Any]) -> Iterator[AgentSpan]:
    """The spans of a recorded run: an agent, its tool calls one after the other, and the model call
    that took the tokens.
    """
    named: dict[str, str] = recorded["branches"] or {}
    branches = tuple(sorted(named.items()))
    notes = Notes(
        input_class=recorded["input_hash"],
        branches=branches,
        context_limit=recorded["context_limit"] or None,
    )
    start = recorded["ts"]
    yield testing.agent(1, trace=number, start=start, end=start + 0.9, notes=notes)
    if recorded["tokens"] is not None:
        yield testing.model(
            2, 1, (recorded["tokens"], 0), trace=number, start=start, end=start + 0.001
        )
    for at, call in enumerate(recorded["calls"], 1):
        begin = start + at / 100
        yield testing.tool(
            at + 2,
            1,
            call["name"],
            trace=number,
            start=begin,
            end=begin + 0.005,
            arguments=call["args"].encode(),
            failed=not call["ok"],
        )


def heard(case: dict[str, Any]) -> tuple[AgentWindow, list[Run]]:
    engine = Engine(
        Settings(metrics=MetricSettings(min_runs=2, missing="as_zero")),
        clock=lambda: 0.0,
        wall=None,
    )
    for number, recorded in enumerate(case["runs"], 1):
        engine.receive(spans_of(number, recorded))
    engine.flush(CloseReason.END_OF_INPUT)
    (key,) = engine.agents.keys()
    state = engine.agents.agent(key)
    assert state is not None
    return state.windows["recent"], sorted(engine.take_final(), key=lambda run: run.start_ns)


def alike(case: dict[str, Any]) -> bool:
    """Whether any decision was taken twice with the same input."""
    decisions = Counter(
        (run["input_hash"], decision)
        for run in case["runs"]
        for decision in (run["branches"] or {"": None})
    )
    return max(decisions.values()) >= 2


@pytest.mark.parametrize("case", [case for case in each(TEXT, "cases") if case.id != "empty"])
def test_spans_give_the_numbers_of_the_text(case: dict[str, Any]) -> None:
    """Retries in every case; every metric, the score and the flag in those of several runs; one run
    has no score.
    """
    expected = case["expected"]

    window, runs = heard(case)

    assert [run.retries for run in runs] == expected["retries"]
    assert [run.longest_retry_chain for run in runs] == expected["max_retry_streak"]
    assert window.reading("retry_explosion").value == expected["retry_explosion"]
    if len(runs) == 1:
        assert {
            window.reading(name).value
            for name in ("path_entropy", "branch_instability", "score", "tier")
        } == {None}
        return
    for name, theirs in METRICS.items():
        assert close(window.reading(name).value, expected[theirs]), name
    assert close(
        window.reading("branch_instability").value,
        expected["branch_instability"] if alike(case) else None,
    )
    assert ("token_pressure_high" in window.reading("flag").parts) is expected[
        "token_pressure_unstable_flag"
    ]
    score = window.reading("score").value
    assert score is not None
    assert rounded(score) == expected["score_int"]
    assert window.reading("tier").note == expected["tier"]


@pytest.mark.parametrize("case", each(TEXT, "composite_cases"))
def test_composites_and_tiers_are_those_of_the_text(case: dict[str, Any]) -> None:
    parts = {**case, "token_budget_pressure": case["token_budget_avg"]}
    readings = {name: Reading(parts[name], 20) for name in PENALTIES}

    score = Score().derive({**readings, "window.runs": Reading(20.0, 20)}).value

    assert score is not None
    assert close(score, case.get("score_float", case["score"]))
    assert rounded(score) == case["score"]
    assert tier_of(score).name == case["tier"]


@pytest.mark.parametrize("case", each(TEXT, "badge_cases"))
def test_badges_read_as_in_the_text(case: dict[str, Any]) -> None:
    assert badge_text(case["score"], case["trust"]) == case["text"]


@pytest.mark.parametrize("case", each(CODE, "scorer_cases"))
def test_tiers_are_cut_where_the_code_cuts_them(case: dict[str, Any]) -> None:
    assert tier_of(case["score"]).name == case["tier"]


@pytest.mark.parametrize("case", each(CODE, "cases"))
def test_path_entropy_and_call_variation_are_those_of_the_code(case: dict[str, Any]) -> None:
    """To 1e-9 with all runs in one group. Where the code says 0 for want of a second run, there is
    no value.
    """
    entropy = PathEntropy()
    variation = ToolCallVariation()
    for recorded in case["runs"]:
        names = [call["name"] for call in recorded["calls"]]
        taken, called = rows_of(names if recorded["path"] is None else recorded["path"], names)
        entropy.add(taken)
        variation.add(called)

    lone = len(case["runs"]) < 2
    assert close(entropy.value().value, None if lone else case["expected"]["path_entropy"])
    assert close(variation.value().value, None if lone else case["expected"]["tool_variance"])
