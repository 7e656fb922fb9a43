"""A body → what the writer takes: spans in our vocabulary, evaluations, run records, and what of it cannot be used.

Spans are read here, on the receiver's thread. So no text of a request is kept once this returns, whoever waits for the writer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple, cast

from otel_reliability.config import Settings
from otel_reliability.conventions.reader import Reader
from otel_reliability.errors import UndecodableBody
from otel_reliability.model.record import RunRecord
from otel_reliability.model.span import AgentSpan, Evaluation
from otel_reliability.service.answers import Encoding, Signal
from otel_reliability.service.ordinary import Ordinary
from otel_reliability.service.refusal import Problem, Refused
from otel_reliability.sources import otlp, otlp_json
from otel_reliability.sources.batch import Batch, Malformed
from otel_reliability.sources.json_request import decode_request

_TOLD: Final = 5
"""Kinds of malformed spans that one answer names."""


class Decoded(NamedTuple):
    """What one request holds. It is committed as a whole, or not at all."""

    spans: Sequence[AgentSpan] = ()
    evaluations: tuple[Evaluation, ...] = ()
    records: tuple[RunRecord, ...] = ()
    malformed: Mapping[str, int] = {}
    """How many spans or log records cannot be used, by reason."""
    message: str = ""
    """The same for people; it holds nothing the client sent but ids."""
    other_logs: int = 0

    @property
    def rejected(self) -> int:
        """How many spans or log records cannot be used."""
        return sum(self.malformed.values())


class Decoder:
    """Reads bodies that are unpacked already."""

    def __init__(self, settings: Settings, reader: Reader) -> None:
        self._read, self._ordinary = reader.read, Ordinary(settings, reader)

    def __call__(self, signal: Signal, encoding: Encoding, body: bytes) -> Decoded:
        """What a body holds. Raises `Refused` where it cannot be read at all."""
        try:
            return self._decoded(signal, encoding, body)
        except UndecodableBody as error:
            raise Refused(Problem.UNDECODABLE, "undecodable", str(error)) from None

    def _decoded(self, signal: Signal, encoding: Encoding, body: bytes) -> Decoded:
        if signal is Signal.TRACES and encoding is Encoding.PROTOBUF and (found := self._ordinary.read(body)) is not None:
            spans, malformed = found
            return _told(Decoded(tuple(spans)), malformed)
        batch = _batch(signal, encoding, body)
        spans = tuple(map(self._read, batch.spans))
        found = Decoded(spans, tuple(batch.evaluations), tuple(batch.records), other_logs=batch.other_logs)
        return _told(found, batch.malformed)


def _told(decoded: Decoded, malformed: list[Malformed]) -> Decoded:
    """With what is malformed."""
    if not malformed:
        return decoded
    counts = Counter(str(problem.reason) for problem in malformed)
    return decoded._replace(malformed=counts, message=_message(malformed, counts))


def _batch(signal: Signal, encoding: Encoding, body: bytes) -> Batch:
    if encoding is Encoding.JSON:
        return _json(signal, body)
    return otlp.decode_traces(body) if signal is Signal.TRACES else otlp.decode_logs(body)


_KEYS: Final = {Signal.TRACES: "resourceSpans", Signal.LOGS: "resourceLogs"}


def _json(signal: Signal, body: bytes) -> Batch:
    """A request of one signal in OTLP-JSON. Whatever else stands in the object is unknown, and ignored."""
    request = otlp_json.parse(body)
    if not isinstance(request, dict):
        raise UndecodableBody("a request in OTLP-JSON is an object")
    key = _KEYS[signal]
    found: object = cast("dict[str, Any]", request).get(key)
    return decode_request({} if found is None else {key: found})


def _message(malformed: list[Malformed], counts: Mapping[str, int]) -> str:
    """What is wrong, one example a reason."""
    examples = {str(problem.reason): problem.detail for problem in reversed(malformed)}
    told = [f"{counts[reason]} for {reason} ({examples[reason]})" for reason in sorted(counts)]
    more = "" if len(told) <= _TOLD else f"; and {len(told) - _TOLD} more reasons"
    return "refused: " + "; ".join(told[:_TOLD]) + more
