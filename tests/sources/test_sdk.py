from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.resources import Resource as SdkResource
from opentelemetry.sdk.trace import Event, ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import (
    Link,
    NonRecordingSpan,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    TraceState,
    set_span_in_context,
)

from otel_reliability.errors import MalformedSpan
from otel_reliability.model.remembered import Remembered
from otel_reliability.model.span import (
    KIND_CLIENT,
    KIND_CONSUMER,
    KIND_INTERNAL,
    KIND_PRODUCER,
    KIND_SERVER,
    RawEvent,
)
from otel_reliability.sources import sdk
from otel_reliability.sources.batch import LATEST_NS
from otel_reliability.sources.sdk import read
from otel_reliability.testing import at, span_id, trace_id
from tests.otlp import decode_traces
from tests.sources.strategies import plain

CONTEXT = SpanContext(
    1, 2, is_remote=False, trace_flags=TraceFlags(1), trace_state=TraceState([("ot", "th:8")])
)
RESOURCE = SdkResource(
    {"service.name": "shop", "service.namespace": "eu", "deployment.environment.name": "prod"}
)


def ended(**fields: Any) -> ReadableSpan:
    usual: dict[str, Any] = {
        "name": "chat",
        "context": CONTEXT,
        "resource": RESOURCE,
        "attributes": {"gen_ai.operation.name": "chat"},
        "start_time": at(0),
        "end_time": at(1),
    }
    return ReadableSpan(**{**usual, **fields})


def recorded() -> Sequence[ReadableSpan]:
    """Spans that a real tracer made: a child of a remote parent, with everything a span can have,
    and a bare root.
    """
    exporter = InMemorySpanExporter()
    provider = TracerProvider(resource=RESOURCE)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracer = provider.get_tracer("scope", "1.2")
    above = SpanContext(
        7, 8, is_remote=True, trace_flags=TraceFlags(1), trace_state=TraceState([("ot", "th:c")])
    )
    facts = {"s": "ü", "i": -3, "f": 0.5, "b": True, "strings": ["a", "b"], "ints": [1, 2]}
    with tracer.start_as_current_span(
        "all", set_span_in_context(NonRecordingSpan(above)), SpanKind.CLIENT
    ) as span:
        span.set_attributes(facts)
        span.add_event("happened", {"detail": ["x"]}, timestamp=at(3))
        span.add_link(SpanContext(9, 10, is_remote=False))
        span.set_status(StatusCode.ERROR, "it broke")
        with tracer.start_as_current_span("child"):
            pass
    with tracer.start_as_current_span("root"):
        pass
    return exporter.get_finished_spans()


def test_a_real_span() -> None:
    child, whole, root = (read(span) for span in recorded())

    assert (whole.trace_id, whole.parent_id, whole.parent_remote) == (trace_id(7), span_id(8), True)
    assert (whole.name, whole.span_kind, whole.status) == ("all", KIND_CLIENT, 2)
    assert whole.attributes == {
        "s": "ü",
        "i": -3,
        "f": 0.5,
        "b": True,
        "strings": ("a", "b"),
        "ints": (1, 2),
    }
    assert whole.events == (
        RawEvent("happened", at(3), {"detail": ("x",)}),
        RawEvent("exception", whole.end_ns, {"exception.message": "it broke"}),
    )
    assert whole.links == ((trace_id(9), span_id(10)),)
    assert (whole.scope, whole.scope_version, whole.trace_state) == ("scope", "1.2", "ot=th:c")
    assert whole.resource.service == ("eu", "shop")
    assert whole.resource.environment == "prod"
    assert 0 < whole.start_ns <= child.start_ns <= child.end_ns <= whole.end_ns
    assert (child.parent_id, child.parent_remote, child.trace_id) == (
        whole.span_id,
        False,
        whole.trace_id,
    )
    assert (root.parent_id, root.parent_remote, root.events, root.links, root.trace_state) == (
        None,
        False,
        (),
        (),
        "",
    )


def test_same_as_through_an_exporter() -> None:
    spans = recorded()
    sent = decode_traces(encode_spans(spans).SerializeToString()).spans

    assert sorted(map(plain, sent)) == sorted(plain(read(span)) for span in spans)


def test_kinds_and_status_codes_are_those_of_otlp() -> None:
    """OTLP's kinds begin with UNSPECIFIED, the SDK's with INTERNAL."""
    kinds = [read(ended(kind=kind)).span_kind for kind in SpanKind]

    assert kinds == [KIND_INTERNAL, KIND_SERVER, KIND_CLIENT, KIND_PRODUCER, KIND_CONSUMER]
    assert [read(ended(status=Status(code))).status for code in StatusCode] == [0, 1, 2]


def test_attributes_are_a_copy() -> None:
    facts = {"a": 1}
    whole = read(ended(attributes=facts))
    facts["a"] = 2

    assert whole.attributes == {"a": 1}


def test_attributes_of_any_mapping() -> None:
    class Other(Mapping[str, Any]):
        def __getitem__(self, key: str) -> Any:
            return {"a": 1}[key]

        def __iter__(self) -> Any:
            return iter(["a"])

        def __len__(self) -> int:
            return 1

    assert read(ended(attributes=None)).attributes == {}
    assert read(ended(attributes=Other())).attributes == {"a": 1}


NOWHERE = [
    Link(SpanContext(t, s, is_remote=False)) for t, s in ((0, 1), (1, 0), (2**128, 1), (3, 4))
]
NO_TIME = [Event("e", None, cast("int", "noon"))]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        (
            {"name": None, "instrumentation_scope": None},
            {"name": "", "scope": "", "scope_version": ""},
        ),
        (
            {"instrumentation_scope": InstrumentationScope("s", None)},
            {"scope": "s", "scope_version": ""},
        ),
        ({"events": NO_TIME}, {"events": (RawEvent("e", 0, {}),)}),
        ({"links": NOWHERE}, {"links": ((trace_id(3), span_id(4)),)}),
        ({"end_time": 1}, {"start_ns": at(0), "end_ns": 1}),
        ({"parent": SpanContext(0, 0, is_remote=True)}, {"parent_id": None}),
    ],
)
def test_what_is_absent_or_points_nowhere_is_left_out(
    fields: dict[str, Any], expected: dict[str, Any]
) -> None:
    whole = read(ended(**fields))

    assert {name: getattr(whole, name) for name in expected} == expected


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"context": None}, "trace_id"),
        ({"context": SpanContext(0, 2, is_remote=False)}, "trace_id"),
        ({"context": SpanContext(1, 0, is_remote=False)}, "span_id"),
        ({"context": SpanContext(2**128, 2, is_remote=False)}, "trace_id"),
        ({"context": SimpleNamespace(trace_id=1, span_id=2, is_valid=False)}, "shape"),
        ({"start_time": None}, "start_time"),
        ({"start_time": 0}, "start_time"),
        ({"start_time": 1.5}, "start_time"),
        ({"end_time": None}, "end_time"),
        ({"end_time": LATEST_NS + 1}, "end_time"),
        ({"parent": SpanContext(1, 2**64, is_remote=False)}, "shape"),
        ({"status": None}, "shape"),
        ({"kind": 3}, "shape"),
        ({"links": [None]}, "shape"),
        ({"events": [None]}, "shape"),
        ({"attributes": 7}, "shape"),
        ({"instrumentation_scope": 7}, "shape"),
    ],
)
def test_malformed_span(fields: dict[str, Any], reason: str) -> None:
    with pytest.raises(MalformedSpan) as caught:
        read(ended(**fields))

    assert caught.value.reason == reason
    assert str(caught.value).startswith(f"{reason}: ")


@given(st.sampled_from([None, 7, "text", object(), SimpleNamespace()]))
def test_what_is_no_span(span: object) -> None:
    with pytest.raises(MalformedSpan):
        read(cast("ReadableSpan", span))


def test_resources_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = Remembered[int, Any](64)
    monkeypatch.setattr(sdk, "_resources", kept)
    for number in range(200):
        name = read(
            ended(resource=SdkResource({"service.name": f"s{number}"}))
        ).resource.service_name

        assert name == f"s{number}"
        assert len(kept) <= 64
