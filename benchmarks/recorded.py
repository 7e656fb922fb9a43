"""Recorded spans of real agents as endless traffic.

The captures of `../shared/corpora/captured` are repeated with fresh trace, span and session ids and
later times. Spans keep the order in which they were exported; frameworks alternate. No two requests
are alike, as a service never receives one twice.
"""

from __future__ import annotations

import base64
import gzip
import json
import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Final

from google.protobuf.json_format import MessageToDict, ParseDict
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, Span

from benchmarks.otlp import SPANS, Sent, request

CAPTURED: Final = Path(__file__).resolve().parents[2] / "shared" / "corpora" / "captured"
EPOCH_NS: Final = 1_700_000_000_000_000_000
MS: Final = 1_000_000
SESSION: Final = re.compile(
    r"(session|conversation|thread|group)[._]?id$|^session$|traceloop\.association\.properties\.(session|thread)_id",
    re.IGNORECASE,
)
"""Attributes whose value names a session."""


class Unavailable(Exception):
    """Something that a benchmark needs is not on this machine."""


def recorded(seed: int = 1) -> Iterator[Sent]:
    """Return the spans of all captures, again and again. Raises `Unavailable` where
    there are none.
    """
    captures = [found for path in sorted(CAPTURED.glob("*.jsonl.gz")) if (found := _load(path))]
    if not captures:
        raise Unavailable("../shared/corpora/captured is absent")
    return _repeated(captures, random.Random(seed))


def _repeated(captures: Sequence[Sequence[Sent]], dice: random.Random) -> Iterator[Sent]:
    now = EPOCH_NS
    while True:
        for capture in captures:
            first = min(sent.span.start_time_unix_nano for sent in capture)
            last = max(sent.span.end_time_unix_nano for sent in capture)
            yield from _again(capture, dice, now - first)
            now += min(last - first, 1_000 * MS) + MS


def _again(capture: Sequence[Sent], dice: random.Random, shift_ns: int) -> Iterator[Sent]:
    """Return the spans of a capture with fresh ids and later times."""
    ids: dict[bytes, bytes] = {}
    sessions: dict[str, str] = {}

    def fresh(old: bytes) -> bytes:
        return ids.setdefault(old, dice.randbytes(len(old))) if old else old

    for resource, scope, template in capture:
        span = Span()
        span.CopyFrom(template)
        span.trace_id, span.span_id = fresh(span.trace_id), fresh(span.span_id)
        span.parent_span_id = fresh(span.parent_span_id)
        span.start_time_unix_nano += shift_ns
        span.end_time_unix_nano += shift_ns
        for event in span.events:
            event.time_unix_nano += shift_ns
        for link in span.links:
            link.trace_id, link.span_id = fresh(link.trace_id), fresh(link.span_id)
        for attribute in span.attributes:
            if SESSION.search(attribute.key) and (value := attribute.value.string_value):
                attribute.value.string_value = sessions.setdefault(value, dice.randbytes(8).hex())
        yield Sent(resource, scope, span)


def _load(path: Path) -> list[Sent]:
    found: list[Sent] = []
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for line in file:
            read: dict[str, Any] = json.loads(line)
            for span in _spans(read):
                _recode(span, lambda text: base64.b64encode(bytes.fromhex(text)).decode())
            for part in read.get("resourceSpans", []):
                message = ParseDict(part, ResourceSpans(), ignore_unknown_fields=True)
                scopes = [(one.scope, span) for one in message.scope_spans for span in one.spans]
                found += [Sent(message.resource, scope, span) for scope, span in scopes]
    return found


def _spans(read: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for part in read.get("resourceSpans", []):
        for scope in part.get("scopeSpans", []):
            yield from scope.get("spans", [])


def _recode(span: dict[str, Any], of: Callable[[str], str]) -> None:
    """Rewrite the ids of a span: OTLP-JSON has them in hex, protobuf's own JSON in base64."""
    for holder in (span, *span.get("links", [])):
        for key in ("traceId", "spanId", "parentSpanId"):
            if holder.get(key):
                holder[key] = of(holder[key])


def lines(spans: Iterator[Sent]) -> Iterator[bytes]:
    """Return lines of OTLP-JSON as the Collector's file exporter writes them."""
    while chunk := list(islice(spans, SPANS)):
        found = MessageToDict(request(chunk), use_integers_for_enums=True)
        for span in _spans(found):
            _recode(span, lambda text: base64.b64decode(text).hex())
        yield json.dumps(found, separators=(",", ":")).encode() + b"\n"
