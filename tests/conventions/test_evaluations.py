"""Judgements that ride on spans."""

from __future__ import annotations

from typing import Any

import pytest

from otel_reliability.model.run import Outcome
from otel_reliability.model.span import Evaluation, Kind
from otel_reliability.testing import at, span, span_id, trace_id
from tests.conventions.reading import read, run

EVENT = "gen_ai.evaluation.result"
NAME = "gen_ai.evaluation.name"
SCORE = "gen_ai.evaluation.score.value"
LABEL = "gen_ai.evaluation.score.label"
AGENT = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "support"}


def test_an_event_is_a_judgement_of_its_span() -> None:
    event = (EVENT, {NAME: "correctness", SCORE: 0.9, LABEL: "pass", "gen_ai.response.id": "r1"})
    (found,) = read(span(2, start=3, events=[event, ("exception", {})])).evaluations

    assert found == Evaluation("correctness", 0.9, "pass", at(3), trace_id(1), span_id(2), "r1")


def test_attributes_can_judge_their_span() -> None:
    attributes = {
        NAME: "correctness",
        SCORE: 1,
        "evaluations.1.evaluation.name": "tone",
        "evaluations.1.evaluation.score": "0.5",
        "evaluations.0.evaluation.name": "safety",
        "evaluations.0.evaluation.label": "fail",
        "annotations.0.annotation.name": "helpful",
        "annotations.0.annotation.score": True,
        "annotations.0.annotation.annotator_kind": "HUMAN",
    }
    found = read(span(attributes=attributes)).evaluations

    assert [(one.name, one.score, one.label) for one in found] == [
        ("correctness", 1.0, None),
        ("helpful", 1.0, None),
        ("safety", None, "fail"),
        ("tone", 0.5, None),
    ]
    assert {one.time_ns for one in found} == {at(1)}


@pytest.mark.parametrize(
    "facts",
    [
        {},
        {NAME: "tone"},
        {SCORE: 1.0},
        {NAME: 3, SCORE: 1.0},
        {NAME: "tone", SCORE: "much"},
        {NAME: "tone", SCORE: float("nan")},
    ],
)
def test_what_judges_nothing_is_no_judgement(facts: dict[str, Any]) -> None:
    assert read(span(events=[(EVENT, facts)])).evaluations == ()
    assert read(span(attributes=facts)).evaluations == ()


def test_an_evaluator_span_tells_its_judgement() -> None:
    """A span of OpenInference's kind EVALUATOR inside a run judges the run, and is no
    step of it.
    """
    judge = {
        "openinference.span.kind": "EVALUATOR",
        "evaluations.0.evaluation.name": "task_success",
        "evaluations.0.evaluation.label": "fail",
    }
    evaluator = span(2, 1, attributes=judge)
    found = run(span(1, attributes=AGENT), evaluator)

    assert read(evaluator).kind is Kind.EVALUATION
    assert (found.outcome, found.outcome_source) == (Outcome.FAILURE, "evaluation:task_success")
    assert found.path == ()


def test_a_list_of_judgements_has_a_limit() -> None:
    many = {
        f"evaluations.{n}.evaluation.{key}": value
        for n in range(1_000)
        for key, value in (("name", f"e{n}"), ("score", 1))
    }

    assert len(read(span(attributes=many)).evaluations) == 64
