"""OTLP over gRPC: the services of traces, logs and metrics, and gRPC's own health service. Others
are unimplemented.

Messages stay raw bytes up to the decoder. A request that can be refused without its message (no
token, no budget) is refused before that is received. The library is kept from unpacking messages,
which it would do without a bound: they are unpacked here.

Source: OTLP specification 1.11, "OTLP/gRPC"; gRPC health checking protocol.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, Final, NoReturn

import grpc

from otel_reliability.errors import ConfigurationError
from otel_reliability.service.addresses import HostPort
from otel_reliability.service.answers import (
    Encoding,
    OtlpSignal,
    Problem,
    Refused,
    accepted,
    retry_info,
    status_of,
)
from otel_reliability.service.auth import AccessTokens
from otel_reliability.service.health import Readiness
from otel_reliability.service.intake import MAGIC, Intake
from otel_reliability.service.settings import TLSSettings
from otel_reliability.telemetry.guard import Guard

TRANSPORT: Final = "grpc"
THREADS: Final = 16
"""Requests that are read or wait for the writer at a time."""
GRACE: Final = 5.0
"""Seconds that requests under way have when a connection has reached its age."""

EXPORTS: Final = {
    "/opentelemetry.proto.collector.trace.v1.TraceService/Export": OtlpSignal.TRACES,
    "/opentelemetry.proto.collector.logs.v1.LogsService/Export": OtlpSignal.LOGS,
    "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export": OtlpSignal.METRICS,
}
CHECK: Final = "/grpc.health.v1.Health/Check"

DETAILS: Final = "grpc-status-details-bin"
RETRY_INFO: Final = "google.rpc.retryinfo-bin"
"""Metadata in which clients look for the time to retry: those in Go read the first, those in Python
the second.
"""

_untyped: Final[Any] = grpc
"""The library, where its stubs would have raw bytes be messages."""
_IDENTITY_AND_GZIP: Final = 0b101
_CODES: Final = {code.value[0]: code for code in grpc.StatusCode}
_EXPORT: Final = Guard("answering a request over gRPC")


class OtlpGrpc(grpc.GenericRpcHandler):
    """The OTLP/gRPC receiver and the gRPC health service."""

    def __init__(
        self,
        intake: Intake,
        readiness: Readiness,
        tokens: AccessTokens,
        *,
        max_connection_age: float,
    ) -> None:
        self._intake = intake
        self._readiness = readiness
        self._tokens = tokens
        self._pool = ThreadPoolExecutor(THREADS, "grpc")
        self._server: Any = _untyped.server(
            self._pool,
            handlers=(self,),
            options=(
                ("grpc.max_receive_message_length", intake.limit),
                ("grpc.per_message_decompression", 0),
                ("grpc.compression_enabled_algorithms_bitset", _IDENTITY_AND_GZIP),
                ("grpc.max_connection_age_ms", round(max_connection_age * 1e3)),
                ("grpc.max_connection_age_grace_ms", round(GRACE * 1e3)),
                ("grpc.so_reuseport", 0),
            ),
        )

    def open(self, place: HostPort, tls: TLSSettings) -> HostPort:
        """Listen, and return the address. Raise `ConfigurationError` if it cannot be bound."""
        server = self._server
        credentials = _credentials(tls)
        try:
            port: int = (
                server.add_insecure_port(str(place))
                if credentials is None
                else server.add_secure_port(str(place), credentials)
            )
        except RuntimeError:
            remedy = "take another, or end what has it"
            raise ConfigurationError(
                "service.grpc", str(place), "an address to be had here", remedy
            ) from None
        server.start()
        return HostPort(place.host, port)

    def close(self, patience: float) -> None:
        """Listen no more; requests under way have so many seconds."""
        self._server.stop(patience).wait()
        self._pool.shutdown(wait=True)

    # --- Calls ------------------------------------------------------------------------------------

    def service(self, handler_call_details: Any) -> Any:
        """Return the handler of a call, before its message is received; None:
        it is unimplemented.
        """
        method: str = handler_call_details.method
        if method == CHECK:
            return _untyped.unary_unary_rpc_method_handler(self._check)
        signal = EXPORTS.get(method)
        if signal is None:
            self._intake.count(None, TRANSPORT, "unknown_signal")
            return None
        metadata = {key.lower(): value for key, value in handler_call_details.invocation_metadata}
        try:
            self._tokens.check(metadata.get("authorization"))
            if signal is OtlpSignal.METRICS:
                return _untyped.unary_unary_rpc_method_handler(self._discard)
            self._intake.admit()
        except Refused as refusal:
            self._intake.count(signal, TRANSPORT, refusal.reason)
            return _untyped.stream_unary_rpc_method_handler(partial(_refuse_unread, refusal))
        return _untyped.unary_unary_rpc_method_handler(partial(self._export, signal))

    def _discard(self, body: bytes, context: Any) -> bytes:
        """Accept a request without reading it."""
        self._intake.count(OtlpSignal.METRICS, TRANSPORT, "discarded")
        return b""

    def _export(self, signal: OtlpSignal, body: bytes, context: Any) -> bytes:
        try:
            return self._take(signal, body)
        except Refused as refusal:
            self._intake.count(signal, TRANSPORT, refusal.reason)
            _refuse(refusal, context)
        except Exception as error:
            if not _EXPORT.stops(error):
                raise
            _refuse(Refused(Problem.FAULT, "fault", "the service failed on this request"), context)

    def _take(self, signal: OtlpSignal, body: bytes) -> bytes:
        with self._intake.budget.reserve(len(body)) as reservation:
            gzip = body.startswith(MAGIC)
            committed = self._intake.submit(signal, Encoding.PROTOBUF, body, reservation, gzip=gzip)
            try:
                ack = committed.result(self._intake.patience)
            except TimeoutError:
                raise self._intake.late(committed) from None
            finally:
                del committed  # an error holds this frame, and it holds the error and the body
        self._intake.count(signal, TRANSPORT, "partial" if ack.rejected else "accepted")
        return accepted(signal, Encoding.PROTOBUF, ack.rejected, ack.message)

    def _check(self, request: bytes, context: Any) -> bytes:
        """Answer whether requests are accepted now. The request names the server as a whole, or one
        service.
        """
        name = _asked_service(request)
        if name and not any(method.startswith(f"/{name}/") for method in EXPORTS):
            context.abort(grpc.StatusCode.NOT_FOUND, "no such service")
        return _NOT_SERVING if self._readiness.reasons else _SERVING


def _credentials(tls: TLSSettings) -> Any:
    if tls.certificate is None or tls.key is None:
        return None
    pair = (Path(tls.key).read_bytes(), Path(tls.certificate).read_bytes())
    ca = None if tls.client_ca is None else Path(tls.client_ca).read_bytes()
    return _untyped.ssl_server_credentials((pair,), ca, ca is not None)


_SERVING: Final = b"\x08\x01"
_NOT_SERVING: Final = b"\x08\x02"


def _asked_service(request: bytes) -> str:
    """The one field of a HealthCheckRequest: a text of less than 128 bytes."""
    if len(request) < 2 or request[0] != 0x0A or request[1] != len(request) - 2:
        return "" if not request else "?"
    return request[2:].decode(errors="replace")


def _refuse_unread(refusal: Refused, messages: Iterator[bytes], context: Any) -> NoReturn:
    _refuse(refusal, context)


def _refuse(refusal: Refused, context: Any) -> NoReturn:
    """End a call with a status, its details, and when to come again."""
    metadata: list[tuple[str, bytes]] = [(DETAILS, status_of(refusal).SerializeToString())]
    if refusal.retry_after is not None:
        metadata.append((RETRY_INFO, retry_info(refusal.retry_after).SerializeToString()))
    context.set_trailing_metadata(tuple(metadata))
    context.abort(_CODES[refusal.problem.value.rpc], refusal.detail)
    raise AssertionError(refusal)  # abort never returns
