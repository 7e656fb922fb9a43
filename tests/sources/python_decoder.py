"""Spans of OTLP requests as the decoder in Python returns them, before any convention reads them."""

from __future__ import annotations

from otel_reliability.sources.batch import Batch
from otel_reliability.sources.otlp_protobuf import read_traces


def decode_traces(body: bytes) -> Batch:
    return Batch(*read_traces(body, lambda span: span))
