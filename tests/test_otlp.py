from __future__ import annotations

import base64
import json
import re

from google.protobuf.json_format import Parse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from otel_reliability.sources.otlp_write import traces_json
from otel_reliability.testing import span
from tests.real.otlp import from_json
from tests.service.running import run_of


def test_a_message_of_otlp_json_is_what_protobuf_makes_of_it() -> None:
    kinds = {
        "text": "é\x00",
        "number": -(2**63),
        "share": 0.5,
        "infinite": float("inf"),
        "is": False,
        "raw": b"\xff",
        "none": None,
        "list": ["a", 1, [True]],
        "map": {"a": {"b": 2.5}},
    }
    events = [("exception", {"exception.type": "E"})]
    spans = [*run_of(), span(9, 1, attributes=kinds, events=events, links=[(2, 2)], status=2)]
    request = traces_json(spans)
    text = re.sub(
        r'("(?:trace|span|parentSpan)Id": ?)"(\w+)"',
        lambda found: f'{found[1]}"{base64.b64encode(bytes.fromhex(found[2])).decode()}"',
        json.dumps(request),
    )

    assert from_json({**request, "unknown": 1}, ExportTraceServiceRequest) == Parse(
        text, ExportTraceServiceRequest()
    )
