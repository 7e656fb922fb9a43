"""A body → what the writer takes: spans in our vocabulary, evaluations, and what of it cannot be
used.

Spans are read here, on the receiver's thread. So no text of a request is kept once this returns,
however long the writer takes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, cast

from otel_reliability.conventions.reader import Reader
from otel_reliability.errors import UndecodableBody
from otel_reliability.model.run import AgentKey
from otel_reliability.model.span import AgentSpan, Evaluation
from otel_reliability.service.answers import Encoding, OtlpSignal, Problem, Refused
from otel_reliability.service.native_decoder import native_decoder
from otel_reliability.sources import otlp_json, otlp_protobuf
from otel_reliability.sources.batch import Batch, Malformed, in_another_unit

_MAX_REASONS: Final = 5
"""Reasons for malformed spans that one answer names."""
_KEYS: Final = {OtlpSignal.TRACES: "resourceSpans", OtlpSignal.LOGS: "resourceLogs"}


class Decoded(NamedTuple):
    """The content of one request. It is committed as a whole, or not at all."""

    spans: Sequence[AgentSpan] = ()
    evaluations: tuple[Evaluation, ...] = ()
    malformed: Mapping[str, int] = {}
    """Number of spans or log records that cannot be used, by reason."""
    message: str = ""
    """Text of the same; it holds nothing the client sent but ids."""
    other_logs: int = 0
    removed: tuple[AgentKey, ...] = ()
    """Agents to remove."""

    @property
    def rejected(self) -> int:
        return sum(self.malformed.values())


class Decoder:
    """Reads decompressed bodies by the conventions of a reader, with the native extension where it
    is installed.
    """

    def __init__(self, reader: Reader, *, native: bool = True) -> None:
        self._read = reader.read
        self._read_logs = reader.read_logs
        self._without_key = reader.without_key
        self._native = native_decoder(reader) if native else None

    def __call__(self, signal: OtlpSignal, encoding: Encoding, body: bytes) -> Decoded:
        """Return what a body holds. Raises `Refused` where it cannot be read at all."""
        try:
            if signal is OtlpSignal.TRACES and encoding is Encoding.PROTOBUF:
                found = None if self._native is None else self._native(body)
                spans, malformed = found or otlp_protobuf.read_traces(body, self._read)
                return _decoded(spans, Batch(malformed=malformed))
            batch = (
                _json(signal, body)
                if encoding is Encoding.JSON
                else otlp_protobuf.decode_logs(body)
            )
        except UndecodableBody as error:
            raise Refused(Problem.UNDECODABLE, "undecodable", str(error)) from None
        if batch.logs:
            events = self._read_logs(batch.logs)
            other_logs = batch.other_logs + max(len(batch.logs) - len(events), 0)
            found = _decoded([*map(self._read, batch.spans), *events], batch)
            found = found._replace(other_logs=other_logs)
        else:
            found = _decoded(map(self._read, batch.spans), batch)
        return found._replace(evaluations=tuple(map(self._without_key, found.evaluations)))


def _decoded(spans: Iterable[AgentSpan], batch: Batch) -> Decoded:
    found: list[AgentSpan] = []
    malformed = list(batch.malformed)
    for span in spans:
        problem = in_another_unit(span.span_id, span.start_ns)
        if problem is None:
            found.append(span)
        else:
            malformed.append(problem)
    counts = Counter(str(problem.reason) for problem in malformed)
    message = _message(malformed, counts) if counts else ""
    return Decoded(tuple(found), tuple(batch.evaluations), counts, message, batch.other_logs)


def _json(signal: OtlpSignal, body: bytes) -> Batch:
    """A request of one signal in OTLP-JSON. What else stands in the object is unknown, and ignored;
    an object that has only that is refused.
    """
    otlp_json.check_text(body)
    parsed = otlp_json.parse(body)
    if not isinstance(parsed, dict):
        raise UndecodableBody("a request in OTLP-JSON is an object")
    request = cast("dict[str, Any]", parsed)
    key = _KEYS[signal]
    if request and key not in request:
        raise UndecodableBody(_without(key, request))
    found: object = request.get(key)
    wanted = {} if found is None else {key: found}
    otlp_json.check(wanted, len(body))
    return otlp_json.decode_request(wanted)


def _without(key: str, request: Mapping[str, Any]) -> str:
    """Return what an object without the key of its signal is instead."""
    other = next((other for other in otlp_json.SIGNALS if other in request), None)
    if other is not None:
        return f"{other} does not belong here; send it to /v1/{otlp_json.SIGNALS[other]}"
    misspelled = otlp_json.other_spelling(request, key)
    return misspelled or f"the object has no {key}, so it is no request of this signal"


def _message(malformed: list[Malformed], counts: Mapping[str, int]) -> str:
    """Return what is wrong, one example a reason."""
    examples = {str(problem.reason): problem.detail for problem in reversed(malformed)}
    named = [f"{counts[reason]} for {reason} ({examples[reason]})" for reason in sorted(counts)]
    more = "" if len(named) <= _MAX_REASONS else f"; and {len(named) - _MAX_REASONS} more reasons"
    return "refused: " + "; ".join(named[:_MAX_REASONS]) + more
