"""The message of a status in the place of an exception, in every source."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Status

from otel_reliability import conventions
from otel_reliability.config import Settings
from otel_reliability.conventions.reader import Reader
from otel_reliability.engine import Engine
from otel_reliability.model.run import CloseReason, Outcome
from otel_reliability.model.span import STATUS_ERROR, RawSpan
from otel_reliability.service.native_decoder import MODULE, NativeDecoder, load
from otel_reliability.sources.kinds import read_lines
from otel_reliability.sources.otlp_json import decode_request
from otel_reliability.sources.otlp_protobuf import read_traces
from otel_reliability.stores import langfuse, langsmith, phoenix
from otel_reliability.testing import at

MEANINGS = {
    "GraphInterrupt((Interrupt(value='may I?'),))": Outcome.PAUSED,
    "langgraph.errors.GraphInterrupt: (Interrupt(value='may I?'),)": Outcome.PAUSED,
    "CancelledError: ": Outcome.CANCELLED,
    "asyncio.exceptions.CancelledError()": Outcome.CANCELLED,
    "The operation was aborted.": Outcome.CANCELLED,
    "AbortError: This operation was aborted": Outcome.CANCELLED,
    "rpc error: code = Canceled desc = context canceled": Outcome.CANCELLED,
    "cancelled": Outcome.CANCELLED,
    "ValueError: no such order": Outcome.FAILURE,
    "TimeoutError: the operation was aborted": Outcome.FAILURE,
    "Suspended: this account has no credit left": Outcome.FAILURE,
    "the order was cancelled": Outcome.FAILURE,
    "it broke": Outcome.FAILURE,
    "": Outcome.FAILURE,
}
every_meaning = pytest.mark.parametrize(("message", "outcome"), MEANINGS.items())
AGENT = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "desk"}
TRACE = "0" * 31 + "1"
SPAN = "0" * 15 + "2"
START = at(0)
END = at(1)


def otlp(message: str, *events: str) -> dict[str, Any]:
    """A request with one agent that ended in an error with this message."""
    span = {
        "traceId": TRACE,
        "spanId": SPAN,
        "name": "desk",
        "startTimeUnixNano": str(START),
        "endTimeUnixNano": str(END),
        "attributes": [{"key": key, "value": {"stringValue": AGENT[key]}} for key in AGENT],
        "events": [{"name": name, "timeUnixNano": str(START)} for name in events],
        "status": {"code": 2, "message": message},
    }
    return {"resourceSpans": [{"scopeSpans": [{"scope": {"name": "s"}, "spans": [span]}]}]}


def protobuf(message: str, *events: str) -> bytes:
    request = ExportTraceServiceRequest()
    found = (
        request.resource_spans.add()
        .scope_spans.add()
        .spans.add(
            trace_id=bytes.fromhex(TRACE),
            span_id=bytes.fromhex(SPAN),
            name="desk",
            start_time_unix_nano=START,
            end_time_unix_nano=END,
        )
    )
    for key, value in AGENT.items():
        found.attributes.add(key=key).value.string_value = value
    for name in events:
        found.events.add(name=name, time_unix_nano=START)
    found.status.code = Status.StatusCode.STATUS_CODE_ERROR
    found.status.message = message
    return request.SerializeToString()


def outcome_of(received: Any) -> Outcome:
    engine = Engine(Settings(), clock=lambda: 0.0, wall=None)
    engine.receive(received)
    engine.flush(CloseReason.END_OF_INPUT)
    (run,) = engine.take_final()
    return run.outcome


def of_file(path: Path, document: object) -> list[RawSpan]:
    path.write_text(json.dumps(document) + "\n")
    return [span for _, batch in read_lines(path) for span in batch.spans]


@every_meaning
def test_otlp_in_json(message: str, outcome: Outcome) -> None:
    assert outcome_of(decode_request(otlp(message)).spans) is outcome


@every_meaning
def test_otlp_in_protobuf_by_both_decoders(message: str, outcome: Outcome) -> None:
    own = Reader(Settings(), conventions.TABLE)
    body = protobuf(message)
    found = read_traces(body, own.read)
    assert outcome_of(found[0]) is outcome
    module = load(MODULE)
    if module is not None:
        decoder = NativeDecoder(own, module)
        other = protobuf("it broke")
        assert [decoder(one) for one in (other, body, other)] == [
            read_traces(one, own.read) for one in (other, body, other)
        ]


@every_meaning
def test_protobuf_as_json(message: str, outcome: Outcome, tmp_path: Path) -> None:
    request = ExportTraceServiceRequest.FromString(protobuf(message))
    assert outcome_of(of_file(tmp_path / "a", MessageToDict(request))) is outcome


@every_meaning
@pytest.mark.parametrize("form", ["python", "javascript", "jaeger", "zipkin"])
def test_files_of_other_forms(form: str, message: str, outcome: Outcome, tmp_path: Path) -> None:
    tags = {**AGENT, "otel.status_code": "ERROR", "otel.status_description": message}
    micro = {"start": START // 1_000, "duration": (END - START) // 1_000}
    documents: dict[str, object] = {
        "python": {
            "name": "desk",
            "context": {"trace_id": f"0x{TRACE}", "span_id": f"0x{SPAN}", "trace_state": "[]"},
            "kind": "SpanKind.INTERNAL",
            "parent_id": None,
            "start_time": "2026-11-27T23:00:58.326231Z",
            "end_time": "2026-11-27T23:00:59.326231Z",
            "status": {"status_code": "ERROR", "description": message},
            "attributes": AGENT,
            "events": [],
            "links": [],
            "resource": {"attributes": {}, "schema_url": ""},
        },
        "javascript": {
            "instrumentationScope": {"name": "s"},
            "traceId": TRACE,
            "spanContext": {"spanId": SPAN},
            "spanId": SPAN,
            "name": "desk",
            "startTime": [START // 10**9, 0],
            "endTime": [END // 10**9, 0],
            "attributes": AGENT,
            "status": {"code": 2, "message": message},
        },
        "jaeger": {
            "data": [
                {
                    "traceID": TRACE,
                    "spans": [
                        {
                            "traceID": TRACE,
                            "spanID": SPAN,
                            "operationName": "desk",
                            "startTime": micro["start"],
                            "duration": micro["duration"],
                            "tags": [{"key": key, "value": tags[key]} for key in tags],
                            "processID": "p1",
                        }
                    ],
                    "processes": {"p1": {"serviceName": "shop"}},
                }
            ]
        },
        "zipkin": [
            {
                "traceId": TRACE,
                "id": SPAN,
                "name": "desk",
                "timestamp": micro["start"],
                "duration": micro["duration"],
                "localEndpoint": {"serviceName": "shop"},
                "tags": {**AGENT, "error": message},
            }
        ],
    }
    assert outcome_of(of_file(tmp_path / "a", documents[form])) is outcome


@every_meaning
def test_answers_of_stores(message: str, outcome: Outcome) -> None:
    times = {"start_time": "2026-11-27T23:00:58Z", "end_time": "2026-11-27T23:00:59Z"}
    of_phoenix = {
        "name": "desk",
        "context": {"trace_id": TRACE, "span_id": SPAN},
        "span_kind": "AGENT",
        "status_code": "ERROR",
        "status_message": message,
        "attributes": AGENT,
        **times,
    }
    of_langfuse = {
        "id": SPAN,
        "traceId": TRACE,
        "name": "desk",
        "type": "AGENT",
        "level": "ERROR",
        "statusMessage": message,
        "startTime": times["start_time"],
        "endTime": times["end_time"],
    }
    assert outcome_of(phoenix.batch_of([of_phoenix], "shop").spans) is outcome
    assert outcome_of(langfuse.batch_of([of_langfuse]).spans) is outcome


def test_a_run_of_langsmith_has_its_error_as_text() -> None:
    run = {"id": SPAN, "trace_id": TRACE, "name": "desk", "run_type": "chain"}
    times = {"start_time": "2026-11-27T23:00:58Z", "end_time": "2026-11-27T23:00:59Z"}
    text = "GraphInterrupt((Interrupt(value='may I?'),))Traceback (most recent call last): …"
    model = {**run, **times, "id": SPAN[:-1] + "3", "run_type": "llm", "parent_run_id": SPAN}
    found = langsmith.batch_of([{**run, **times, "error": text}, model], "shop").spans
    assert outcome_of(found) is Outcome.PAUSED


def test_an_exception_comes_before_the_message_of_the_status() -> None:
    both = decode_request(otlp("CancelledError: ", "exception")).spans
    assert outcome_of(both) is Outcome.FAILURE
    assert len(both[0].events) == 1
    assert outcome_of(decode_request(otlp("CancelledError: ", "retry")).spans) is Outcome.CANCELLED
    body = protobuf("CancelledError: ", "retry")
    assert len(read_traces(body, lambda span: span)[0][0].events) == 2


def test_a_message_of_no_error_is_nothing() -> None:
    request = otlp("The operation was aborted.")
    request["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["status"]["code"] = 1
    (span,) = decode_request(request).spans
    assert (span.status, span.events) == (STATUS_ERROR - 1, ())
