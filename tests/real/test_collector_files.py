"""What the Collector's file exporter writes, in each of its ways, is what our file reader reads."""

from __future__ import annotations

from pathlib import Path

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from otel_reliability.model.span import RawSpan
from otel_reliability.sources.otlp_json import read_file
from otel_reliability.testing import span
from tests.otlp import traces_protobuf
from tests.real import otlp
from tests.real.collector.handle import Collectors
from tests.real.pipelines import pipeline, to_file
from tests.real.waiting import until

pytestmark = pytest.mark.real

ATTRIBUTES = {
    "text": "ü",
    "list": (1, "two", 2.5, True),
    "map": {"none": None},
    "bytes": b"\0\1",
    "large": 2**63 - 1,
}


@pytest.mark.parametrize("packing", [{}, {"compression": "zstd"}], ids=["lines", "packed messages"])
def test_reads_what_the_file_exporter_writes(
    collector: Collectors, tmp_path: Path, packing: dict[str, str]
) -> None:
    out = tmp_path / "spans"
    running = collector(
        {
            "receivers": {"otlp": {}},
            "exporters": {"file": {**to_file(out), **packing}},
            "service": {"pipelines": {"traces": pipeline(["otlp"], ["file"])}},
        }
    )
    sent = [
        span(
            n,
            attributes=ATTRIBUTES,
            events=[("e", {"k": n})],
            links=[(4, 5)],
            remote=(None, True, False)[n % 3],
        )
        for n in range(1, 31)
    ]
    for at in range(0, len(sent), 10):
        request = ExportTraceServiceRequest.FromString(traces_protobuf(sent[at : at + 10]))
        otlp.send(running.http, *request.resource_spans)

    def arrived() -> list[RawSpan]:
        found = [s for batch in read_file(out) for s in batch.spans] if out.exists() else []
        return found if len(found) == len(sent) else []

    assert until(arrived, "all spans in the file") == sent
