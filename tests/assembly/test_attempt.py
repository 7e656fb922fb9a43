"""Attributes of an attempt that stand on the resource: `OTEL_RESOURCE_ATTRIBUTES`."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from otel_reliability.model.record import pack_spans, unpack_spans
from otel_reliability.model.run import Outcome, Run
from otel_reliability.model.span import RawSpan, Resource
from otel_reliability.recording import Recording
from otel_reliability.testing import agent, span

ATTEMPT = {
    "service.name": "shop",
    "reliability.task.id": "refund-7",
    "reliability.trial": "3",
    "reliability.condition": "fault",
    "reliability.run.success": "true",
}


def runs_of(*spans: RawSpan) -> list[Run]:
    found: list[Run] = []
    recording = Recording(final=found.extend)
    recording.engine.receive(spans)
    recording.close()
    return found


def invocation(number: int, parent: int | None = None, **given: Any) -> RawSpan:
    attributes = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": f"a{number}"}
    return span(
        number,
        parent,
        attributes=attributes | given.pop("attributes", {}),
        resource=Resource.of(ATTEMPT | given),
    )


def test_resource_gives_task_trial_condition_and_success() -> None:
    (run,) = runs_of(invocation(1))

    assert (run.task_id, run.trial, run.condition) == ("refund-7", 3, "fault")
    assert (run.outcome, run.outcome_source) == (Outcome.SUCCESS, "reliability.run.success")


def test_attributes_of_spans_come_before_the_resource() -> None:
    own = {"reliability.task.id": "own", "reliability.run.success": False}
    (run,) = runs_of(invocation(1, attributes=own))

    assert (run.task_id, run.outcome, run.condition) == ("own", Outcome.FAILURE, "fault")


def test_success_of_the_attempt_is_that_of_its_top_level_runs() -> None:
    call = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search"}
    sender = Resource.of(ATTEMPT)
    found = runs_of(invocation(1), invocation(2, 1), span(3, 2, attributes=call, resource=sender))
    outer, inner = sorted(found, key=lambda run: run.nested)

    assert outer.outcome is Outcome.SUCCESS
    assert (inner.outcome, inner.condition) == (Outcome.COMPLETED, "fault")


def test_values_out_of_range_count_as_absent() -> None:
    wrong: dict[str, Any] = {
        "reliability.trial": "many",
        "reliability.condition": "storm",
        "reliability.run.success": "perhaps",
    }
    (run,) = runs_of(invocation(1, **wrong))

    assert (run.trial, run.condition, run.outcome) == (None, "baseline", Outcome.COMPLETED)


def test_stored_spans_keep_the_attempt() -> None:
    sender = Resource.of(ATTEMPT).sender("1")
    made = replace(agent(1), resource=sender)

    (again,) = unpack_spans(pack_spans([made]))

    assert again.resource.attempt == ("refund-7", "3", "fault", "true")
