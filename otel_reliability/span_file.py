"""Recordings without a Collector: ended spans, appended to a file of OTLP-JSON lines."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

from otel_reliability.errors import MalformedSpan
from otel_reliability.model.span import RawSpan
from otel_reliability.sources import sdk
from otel_reliability.sources.otlp_write import traces_json


def record(path: str | os.PathLike[str], tracer_provider: TracerProvider | None = None) -> None:
    """Append every ended span to a file that `otel-reliability report` reads, from now on.

    `tracer_provider` is the global one by default; where none is set, one is set. Spans are written
    by the SDK's batch processor, so those of the last seconds follow when the provider is flushed
    or the process ends. A Collector's file exporter writes the same lines. Raises `OSError` if the
    file cannot be opened.
    """
    exporter = SpanFileExporter(path)
    provider: Any = tracer_provider or trace.get_tracer_provider()
    if not hasattr(provider, "add_span_processor"):
        provider = TracerProvider()
        trace.set_tracer_provider(provider)
    provider.add_span_processor(BatchSpanProcessor(exporter))


class SpanFileExporter(SpanExporter):
    """Appends each batch of spans to a file, as one line. Raises `OSError` if the file cannot be
    opened.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path)
        append(self._path, ())

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Append a line; FAILURE where the file cannot be written."""
        try:
            append(self._path, _readable(spans))
        except OSError:
            return SpanExportResult.FAILURE
        return SpanExportResult.SUCCESS


def append(path: Path, spans: Iterable[RawSpan]) -> None:
    """Append a line of these spans with one write, so that processes may share the file; without
    any, only create the file.
    """
    every = list(spans)
    with path.open("ab") as file:
        if every:
            line = json.dumps(traces_json(every), ensure_ascii=False) + "\n"
            file.write(line.encode("utf-8", "replace"))  # half a surrogate pair is no text


def _readable(spans: Iterable[ReadableSpan]) -> Iterator[RawSpan]:
    for span in spans:
        try:
            yield sdk.read(span)
        except MalformedSpan:
            continue
