"""OTLP requests → agent spans, beside protobuf's own parsing of the same bytes by the full schema, which keeps nothing.

Both ways that a service has: the compiled reader where it is installed (`pip install ./native`), and the decoders in Python.

Requests are taken in turn from many: a service never receives one twice, so neither work finds its bytes in the cache.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import cycle
from typing import Final

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from benchmarks import payloads
from benchmarks.measure import Row, ratio, ratios, row, seconds
from otel_reliability import conventions
from otel_reliability.config import Settings
from otel_reliability.conventions.reader import Reader
from otel_reliability.native import load
from otel_reliability.service.answers import Encoding, Signal
from otel_reliability.service.decoded import Decoder
from otel_reliability.service.memory import look_seldom
from tests.sources import full_schema

REQUESTS: Final = 32
BARE: Final = "bare ParseFromString by the full schema"
NAIVE: Final = "decode + extract"


def by(against: str) -> str:
    """Against what, and by which reader."""
    return (
        f"{against}; by the compiled reader"
        if load("otel_reliability_native")
        else f"{against}; in Python, the compiled reader is not installed"
    )


def bare(bodies: Sequence[bytes]) -> Callable[[], object]:
    """Protobuf's own parsing; each message is freed."""
    turn, parse = cycle(bodies), ExportTraceServiceRequest.FromString

    def work() -> None:
        parse(next(turn))

    return work


def decoding(bodies: Sequence[bytes], *, compiled: bool = True) -> Callable[[], object]:
    """Decoding and extracting as the service does, by the compiled reader or in Python."""
    settings = Settings()
    turn, decode = cycle(bodies), Decoder(Reader(settings, conventions.TABLE), native=compiled)

    def work() -> None:
        decode(Signal.TRACES, Encoding.PROTOBUF, next(turn))

    return work


def plainly(bodies: Sequence[bytes]) -> Callable[[], object]:
    """The naive twin: the full schema, every attribute made a value, then the same reader."""
    turn, read = cycle(bodies), Reader(Settings(), conventions.TABLE).read

    def work() -> None:
        for span in full_schema.decode(next(turn)).spans:
            read(span)

    return work


def rows() -> list[Row]:
    """The costs of requests of each kind, with the garbage collector set as the service sets it."""
    look_seldom()
    genai = payloads.genai(REQUESTS)
    ours, python, theirs, naive = seconds(decoding(genai), decoding(genai, compiled=False), bare(genai), plainly(genai))
    http, content = payloads.http(REQUESTS), payloads.genai_content(REQUESTS)
    return [
        row("decode + extract of a 512-span request", ratios(ours, theirs), at_most=2.75, against=by(BARE)),
        row("the same, every attribute read by the full schema", ratios(naive, ours), against=NAIVE),
        row("decode + extract, a span", ours, unit="µs", scale=1e6 / payloads.SPANS, against=by("512 spans of agents")),
        row("decode + extract, in Python", ratios(python, theirs), against=BARE),
        row(
            "decode + extract, in Python, a span",
            python,
            unit="µs",
            scale=1e6 / payloads.SPANS,
            against="the same spans",
        ),
        _ratio("decode + extract with arguments and results, which are hashed", content),
        _ratio("the same with 4 KB of messages a model call", payloads.genai4k(REQUESTS)),
        _ratio("a request of ordinary spans only", http, 0.9),
        _ratio("a request of ordinary spans only, in Python", http, compiled=False),
    ]


def _ratio(name: str, bodies: Sequence[bytes], at_most: float | None = None, *, compiled: bool = True) -> Row:
    against = by(BARE) if compiled else BARE
    return ratio(name, decoding(bodies, compiled=compiled), bare(bodies), at_most=at_most, against=against)
