from __future__ import annotations

import json

import pytest

from otel_reliability.model.run import Outcome, Run
from tests.corpora.recordings import CAPTURED, captured, rebuilt, recording
from tests.shared import shared

EVALS = "pydantic_ai-evals"


def judged(run: Run) -> dict[str, tuple[float | None, str | None]]:
    return {evaluation.name: (evaluation.score, evaluation.label) for evaluation in run.evaluations}


@pytest.mark.parametrize("settings", [{}, {"outcome": {"evaluations": ["RefundIssued"]}}])
def test_log_events_join_the_run_below_the_span_they_name(
    settings: dict[str, dict[str, list[str]]],
) -> None:
    """pydantic-evals writes logs that name the span above the agent: each run has its two, as the
    program knew them.

    They tell the outcome only where the settings say so.
    """
    logs = recording(f"captured/{EVALS}.logs.jsonl.gz")
    runs = rebuilt(captured(EVALS), logs.evaluations, **settings).runs
    told = json.loads(shared(f"{CAPTURED}/{EVALS}.truth.json").read_text(encoding="utf-8"))["runs"]
    passed = {true["trace_ids"][0]: true["passed"] for true in told}

    assert (len(logs.evaluations), len(runs)) == (12, 6)
    for run in runs:
        issued = passed[run.trace_id.hex()]
        score, label = judged(run)["RefundIssued"]
        assert (score, label) == (float(issued), "pass" if issued else "fail")
        assert set(judged(run)) == {"RefundIssued", "Brevity"}
        if settings:
            assert run.outcome is (Outcome.SUCCESS if issued else Outcome.FAILURE)
            assert run.outcome_source == "evaluation:RefundIssued"
        else:
            assert run.outcome is Outcome.COMPLETED


def test_log_events_may_come_before_their_spans() -> None:
    logs = recording(f"captured/{EVALS}.logs.jsonl.gz").evaluations
    after = rebuilt(captured(EVALS), logs)
    spans = captured(EVALS)

    assert rebuilt(reversed(spans), tuple(reversed(logs))).runs == after.runs


def test_span_events_judge_the_run_of_their_span() -> None:
    """Evaluations as events, on the agent's span or on the request above it, as
    opentelemetry-util-genai writes them.
    """
    runs = rebuilt(captured("manual-utilgenai")).tops
    told = json.loads(
        shared(f"{CAPTURED}/manual-utilgenai.truth.json").read_text(encoding="utf-8")
    )["runs"]
    scores = {
        true["trace_ids"][0]: (true["passed"], true["score"]) for true in told if "score" in true
    }

    assert scores
    for run in runs:
        if run.trace_id.hex() in scores:
            passed, score = scores[run.trace_id.hex()]
            (evaluation,) = run.evaluations
            assert (evaluation.label, evaluation.score) == ("pass" if passed else "fail", score)
