"""Requests that have arrived while no agent has run yet, and why none of them became a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from otel_reliability.report.text import clean, count

ANSWERED: Final = frozenset({"accepted", "partial", "discarded"})
"""Outcomes of requests that were not refused."""
MAX_SCOPES: Final = 5
"""Scopes that are named."""
_WAYS_OUT: Final[Mapping[str, str]] = {
    "not_http": "it is gRPC or TLS: use the port for gRPC, or the scheme of the port",
    "unauthenticated": "set OTEL_EXPORTER_OTLP_HEADERS to Authorization=Bearer%20<token>",
    "host": "add the name to ui.hosts",
    "content_type": "set OTEL_EXPORTER_OTLP_PROTOCOL to http/protobuf, http/json or grpc",
    "content_encoding": "compress with gzip, deflate or zstd, or not at all",
    "undecodable": "send OTLP in the encoding that Content-Type names",
    "unknown_signal": "traces go to /v1/traces, log events to /v1/logs",
    "method": "OTLP is sent by POST",
}
"""The way out of a refusal, by its reason."""


class Refusal(NamedTuple):
    """The last request that was refused: the client's address, the protocol, and why."""

    peer: str
    transport: str
    reason: str


class Arrived(NamedTuple):
    """Everything that has arrived. `requests` by (signal, transport, outcome), `spans` by
    (disposition, reason), `logs` by (disposition, reason); `scopes` are those that no convention
    recognizes.
    """

    requests: Mapping[tuple[str, str, str], int]
    spans: Mapping[tuple[str, str], int]
    logs: Mapping[tuple[str, str], int]
    open_runs: int
    scopes: Iterable[str]
    refusal: Refusal | None


def lines_of(arrived: Arrived) -> Iterator[str]:
    """Yield what has arrived and why none of it is a run; nothing where nothing has."""
    answered = Counter[str]()
    for (signal, _, outcome), number in arrived.requests.items():
        if outcome in ANSWERED:
            answered[signal] += number
    received = arrived.spans.get(("received", ""), 0)
    if answered:
        kinds = [f"{count(number, 'request')} of {name}" for name, number in answered.items()]
        yield f"Arrived so far: {', '.join(kinds)}; {count(received, 'span')}."
    if arrived.open_runs:
        yield (
            f"{count(arrived.open_runs, 'run')} not ended yet: a run is shown some seconds after "
            "its last span."
        )
    yield from _unused_spans(arrived)
    yield from _missing_signals(answered, arrived)
    refused = sum(arrived.requests.values()) - sum(answered.values())
    if refused:
        yield f"{count(refused, 'request')} refused.{_last(arrived.refusal)}"


def _unused_spans(arrived: Arrived) -> Iterator[str]:
    malformed = Counter(
        {reason: number for (what, reason), number in arrived.spans.items() if what == "malformed"}
    )
    if malformed:
        yield f"{count(malformed.total(), 'span')} malformed: {', '.join(sorted(malformed))}."
    other = sum(number for (what, _), number in arrived.spans.items() if what == "other")
    if other:
        scopes = [clean(scope) for scope in arrived.scopes][:MAX_SCOPES]
        named = f" Scopes: {', '.join(scopes)}." if scopes else ""
        yield (
            f"{count(other, 'span')} of no agent that a convention recognizes.{named} Instrument "
            "the agent itself: see the list of conventions."
        )
    unknown = arrived.logs.get(("other", ""), 0)
    if unknown:
        yield f"{count(unknown, 'log record')} that no coding agent writes as an event of a run."


def _missing_signals(answered: Mapping[str, int], arrived: Arrived) -> Iterator[str]:
    has_logs = answered.get("logs", 0) > 0
    if answered.get("metrics", 0) and not has_logs and not arrived.spans.get(("received", ""), 0):
        yield (
            "Only metrics arrive, and they are discarded. Claude Code reports runs as log events: "
            "set OTEL_LOGS_EXPORTER=otlp."
        )


def _last(refusal: Refusal | None) -> str:
    if refusal is None:
        return ""
    way_out = _WAYS_OUT.get(refusal.reason)
    more = "" if way_out is None else f": {way_out}"
    kind = "gRPC" if refusal.transport == "grpc" else "HTTP"
    return f" The last one, of {clean(refusal.peer)} over {kind}: {refusal.reason}{more}."
