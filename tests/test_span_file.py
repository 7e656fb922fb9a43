"""`otel_reliability.record`: OTLP-JSON lines without a Collector."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from google.protobuf import json_format
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import TracerProvider

import otel_reliability
from otel_reliability.recording import Recording

SCRIPT = """
import otel_reliability
from opentelemetry import trace

otel_reliability.record("spans.jsonl")
with trace.get_tracer("mine").start_as_current_span("agent", attributes={"gen_ai.operation.name": "invoke_agent"}):
    with trace.get_tracer("mine").start_as_current_span("tool", attributes={"gen_ai.operation.name": "execute_tool"}):
        pass
"""


def recorded(path: Path) -> Recording:
    recording = Recording()
    recording.read(path)
    return recording.close()


def test_one_line_in_a_script_records_its_runs(tmp_path: Path) -> None:
    for _ in range(2):
        subprocess.run(
            [sys.executable, "-W", "error", "-c", SCRIPT], cwd=tmp_path, check=True, timeout=60
        )
    recording = recorded(tmp_path / "spans.jsonl")
    window = recording.window(recording.agents()[0])

    assert recording.spans["received"] == 4
    assert window is not None
    assert window.runs == 2


def test_a_provider_of_ones_own_is_recorded(tmp_path: Path) -> None:
    provider = TracerProvider()
    otel_reliability.record(tmp_path / "spans.jsonl", provider)
    provider.get_tracer("mine").start_span(
        "one", attributes={"half": "\ud800", "large": 2**70}
    ).end()
    provider.force_flush()

    assert recorded(tmp_path / "spans.jsonl").spans["received"] == 1
    request = json_format.Parse(
        (tmp_path / "spans.jsonl").read_text("utf-8"), ExportTraceServiceRequest()
    )
    half, large = request.resource_spans[0].scope_spans[0].spans[0].attributes
    assert (half.value.string_value, large.value.WhichOneof("value")) == ("?", None)
    provider.shutdown()


def test_a_file_that_cannot_be_opened_fails_at_once_and_later_harms_nobody(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="nowhere"):
        otel_reliability.record(tmp_path / "nowhere" / "spans.jsonl", TracerProvider())
    folder = tmp_path / "folder"
    provider = TracerProvider()
    folder.mkdir()
    otel_reliability.record(folder / "spans.jsonl", provider)
    (folder / "spans.jsonl").unlink()
    folder.rmdir()
    provider.get_tracer("mine").start_span("one").end()

    assert provider.force_flush()
    provider.shutdown()
