from __future__ import annotations

from typing import Any, cast

import pytest
from opentelemetry.trace import NonRecordingSpan, SpanContext

from otel_reliability import annotate
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
