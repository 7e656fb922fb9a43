from __future__ import annotations

from collections import Counter
from typing import Any, cast

import pytest
from opentelemetry.trace import NonRecordingSpan, SpanContext

from otel_reliability import annotate, annotation, reliability_run
from otel_reliability.model.run import Outcome
from otel_reliability.sources import sdk
from otel_reliability.telemetry.guard import Guard
from tests.conventions.test_notes import GOOD
from tests.corpora.recordings import rebuilt
from tests.telemetry.spans import Keeping, agent_run, provider, tool_call


def said(**words: Any) -> dict[str, Any]:
    keeping = Keeping()
    with agent_run(provider(keeping).get_tracer("test")):
        annotate(**words)
    return {
        key: value
        for key, value in (keeping.ended[0].attributes or {}).items()
        if key.startswith("reliability.")
    }


def test_every_word_becomes_an_attribute_of_the_current_span() -> None:
    words = said(
        task_id="refund-7",
        trial=2,
        success=True,
        reward=0.5,
        confidence=0.9,
        cost=0.02,
        condition="fault",
        violations=["pii:high", "tone:low"],
        branches={"route": "billing", "escalate": True},
        input_class="vip",
        context_limit=8_000,
    )

    assert words == GOOD


def test_absent_words_set_no_attribute() -> None:
    assert said() == {}
    assert said(success=False) == {"reliability.run.success": False}
    assert said(violations=[]) == {"reliability.violations": ()}
    assert said(violations="no_pii:high") == {"reliability.violations": ("no_pii:high",)}


def test_annotation_of_a_step_reaches_its_run() -> None:
    keeping = Keeping()
    tracer = provider(keeping).get_tracer("test")
    with agent_run(tracer):
        tool_call(tracer, "search")
        with tracer.start_as_current_span(
            "execute_tool reply", attributes={"gen_ai.operation.name": "execute_tool"}
        ):
            annotate(
                task_id=7,
                success=True,
                violations=["no_pii:high"],
                branches={"refund": True},
                confidence=0.9,
            )
    (run,) = rebuilt(map(sdk.read, keeping.ended)).runs

    assert (run.task_id, run.outcome, run.confidence) == ("7", Outcome.SUCCESS, 0.9)
    assert (run.violations, run.branches) == ((("no_pii", "high"),), (("refund", "true"),))


def test_another_span_may_be_named() -> None:
    keeping = Keeping()
    tracer = provider(keeping).get_tracer("test")
    with agent_run(tracer) as root, tracer.start_as_current_span("below"):
        annotate(success=True, span=root)

    assert "reliability.run.success" not in (keeping.ended[0].attributes or {})
    assert (keeping.ended[1].attributes or {})["reliability.run.success"] is True


def test_where_nobody_records_nothing_happens() -> None:
    annotate(success=True)
    annotate(success=True, span=NonRecordingSpan(SpanContext(1, 1, is_remote=False)))


def test_a_wrong_word_never_stops_the_agent(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TypeError):
        annotate(violations=cast("Any", 5))

    monkeypatch.setattr(Guard, "loud", False)
    annotate(violations=cast("Any", 5))
    assert Guard.faults["annotate"] == 1


def test_a_run_has_a_span_of_its_own_for_annotations(monkeypatch: pytest.MonkeyPatch) -> None:
    """Known before the run, after it, and by a call between that knows of no span."""
    keeping = Keeping()
    made = provider(keeping)
    monkeypatch.setattr(annotation, "get_tracer", made.get_tracer)
    with reliability_run(task_id="refund-7", trial=2) as annotate_run:
        annotate(confidence=0.9)
        with agent_run(made.get_tracer("test")):
            tool_call(made.get_tracer("test"), "pay")
        annotate_run(success=True)
    (run,) = rebuilt(map(sdk.read, keeping.ended)).runs

    assert (run.task_id, run.trial, run.confidence) == ("refund-7", 2, 0.9)
    assert (run.outcome, run.path) == (Outcome.SUCCESS, ("pay",))


def test_an_error_of_the_agent_passes_and_leaves_no_text(monkeypatch: pytest.MonkeyPatch) -> None:
    keeping = Keeping()
    monkeypatch.setattr(annotation, "get_tracer", provider(keeping).get_tracer)
    with pytest.raises(ValueError, match="secret"), reliability_run(task_id=1):
        raise ValueError("secret")

    assert [len(span.events) for span in keeping.ended] == [0]


def test_an_annotation_without_a_span_is_counted_and_logged_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(annotation, "lost", Counter[str]())
    annotate(success=True)
    annotate(task_id=1)

    assert annotation.lost == {"no span": 2}
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "reliability_run" in caplog.text
