"""Telemetry of any form → `RawSpan`: SDK spans, OTLP requests, OTLP-JSON lines.

Every source hands over a `Batch`: the spans and evaluations that could be read, and what could not
be, by reason. The sources interpret nothing: attribute values pass through with whatever type they
have. Each module is imported where it is needed, so that a service does not load the SDK, nor an
agent the file reader.
"""
