"""The recording of the demo: `python -m tests.demo.recording` writes the spans of the fleet into the package."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from typing import Any

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult

from otel_reliability.demo.replay import RECORDING
from otel_reliability.model.span import Evaluation
from otel_reliability.sources import sdk
from otel_reliability.sources.otlp_write import logs_json, traces_json
from otel_reliability.testing import SECOND
from tests.demo.bookshop import ROUND, Bookshop
from tests.demo.fleet import ROUNDS

SEED = 7
BEGAN_NS = 1_700_000_000 * SECOND


class Kept(SpanExporter):
    """Keeps spans and evaluations until they are taken."""

    def __init__(self) -> None:
        self.spans: list[ReadableSpan] = []
        self.evaluations: list[Evaluation] = []

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self.spans.extend(spans)
        return SpanExportResult.SUCCESS

    def judge(self, judgements: Sequence[Evaluation]) -> None:
        """Keep these evaluations."""
        self.evaluations.extend(judgements)


def recorded() -> bytes:
    """The recording: a line for each round, with the spans that come late apart."""
    kept, lines = Kept(), list[str]()
    wall = BEGAN_NS + ROUNDS * ROUND * SECOND
    shop = Bookshop(SEED, [SimpleSpanProcessor(kept)], [kept], wall=lambda: wall, clock=lambda: 0.0)
    for number in range(1, ROUNDS + 1):
        shop.round()
        found: dict[str, Any] = {"end_ns": BEGAN_NS + number * ROUND * SECOND, "traces": _traces(kept.spans)}
        kept.spans = []
        if kept.evaluations:
            found["logs"] = logs_json(kept.evaluations)
        kept.evaluations = []
        shop.end_late()
        if kept.spans:
            found["late"] = _traces(kept.spans)
        kept.spans = []
        lines.append(f"{json.dumps(found)}\n")
    shop.close()
    return gzip.compress("".join(lines).encode(), mtime=0)


def _traces(spans: Sequence[ReadableSpan]) -> dict[str, Any]:
    """The request of these spans, with short trace ids: a replay puts its own first half in front."""
    return traces_json([sdk.read(span) for span in spans])


if __name__ == "__main__":
    RECORDING.write_bytes(recorded())
