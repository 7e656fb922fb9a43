"""OTLP over gRPC: the services of traces, logs and metrics, and gRPC's own health service. Others
are unimplemented.

No thread waits for a client: calls are coroutines of the service's loop, and a message that does
not arrive in time ends its call. Messages stay raw bytes up to the decoder. A request that can be
refused without its message (no token, no budget) is refused before that is received. The library is
kept from unpacking messages, which it would do without a bound: they are unpacked here.

Source: OTLP specification 1.11, "OTLP/gRPC"; gRPC health checking protocol.
"""

from __future__ import annotations

import asyncio
import logging
import os
import types
from collections import Counter
from collections.abc import Generator
from concurrent.futures import Executor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

# The library writes a line to stderr for each header that it cannot read, without a limit.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")

import grpc

from otel_reliability.errors import ConfigurationError
from otel_reliability.service.addresses import HostPort
from otel_reliability.service.answers import (
    Encoding,
    OtlpSignal,
    Problem,
    Refused,
    accepted,
    overload,
    retry_info,
    status_of,
)
from otel_reliability.service.auth import AccessTokens
from otel_reliability.service.compression import compression_of
from otel_reliability.service.connections import (
    HEADER_TIMEOUT,
    KEEP_ALIVE,
    limit_of_connections,
)
from otel_reliability.service.health import Readiness
from otel_reliability.service.heap import Garbage
from otel_reliability.service.intake import BODY_TIMEOUT, RequestIntake
from otel_reliability.service.settings import TLSSettings
from otel_reliability.telemetry.guard import Guard

TRANSPORT: Final = "grpc"
MAX_CALLS: Final = 1_000
"""Exports under way, over all connections. Each client may have as many as there is room for
more.
"""
MAX_CHECKS: Final = 1_000
"""Health checks that wait for their message; further ones are answered without it."""
MAX_STREAMS: Final = 100
"""Calls under way on one connection; clients hold further ones back."""
REOPEN_INTERVAL_S: Final = 0.02
"""Seconds between two attempts to listen again."""
CALL_BYTES: Final = 1_000
"""Bytes that a call leaves to the collector of cycles, beside its method and its headers."""
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
_ALL_ALGORITHMS: Final = 0b111
_CODES: Final = {code.value[0]: code for code in grpc.StatusCode}
_logger: Final = logging.getLogger("otel_reliability.service")
_EXPORT: Final = Guard("answering a request over gRPC")


class Calls:
    """Calls under way by client. One has at most as many as others could still have: half of the
    room if it is alone, so that no number of them takes all.

    Source: Choudhury and Hahne, "Dynamic Queue Length Thresholds for Shared-Memory Packet
    Switches", IEEE/ACM Transactions on Networking 6 (1998), with α = 1.
    """

    def __init__(self, room: int) -> None:
        self._free = room
        self._held: Counter[str] = Counter()

    @contextmanager
    def of(self, client: str) -> Generator[None]:
        """Count a call as long as a `with` lasts. Raise `Refused` if the client has its share."""
        if self._held[client] >= self._free:
            raise overload("too_many_calls", "this client has too many calls under way")
        self._free -= 1
        self._held[client] += 1
        try:
            yield
        finally:
            self._free += 1
            self._held[client] -= 1
            if not self._held[client]:
                del self._held[client]


class OtlpGrpc(grpc.GenericRpcHandler):
    """The OTLP/gRPC receiver and the gRPC health service. `threads` is where messages are
    decompressed and decoded.
    """

    def __init__(
        self,
        intake: RequestIntake[Any],
        readiness: Readiness,
        tokens: AccessTokens,
        threads: Executor,
        *,
        max_connection_age: float,
    ) -> None:
        self._intake = intake
        self._readiness = readiness
        self._tokens = tokens
        self._threads = threads
        self._max_connection_age = max_connection_age
        self._server: Any = None
        self._credentials: Any = None
        self._is_closing = False
        self._reopening: set[asyncio.Task[None]] = set()
        self._calls = Calls(MAX_CALLS)
        self._checks = 0
        """Health checks that wait for their message."""
        self._garbage = Garbage()

    async def open(self, place: HostPort, tls: TLSSettings) -> HostPort:
        """Listen, and return the address. Raise `ConfigurationError` if it cannot be bound."""
        self._credentials = _credentials(tls)
        return await self._listen(place)

    async def _listen(self, place: HostPort) -> HostPort:
        credentials = self._credentials
        server = _untyped.aio.server(
            handlers=(self,),
            options=(
                ("grpc.max_receive_message_length", self._intake.limit),
                ("grpc.max_concurrent_streams", MAX_STREAMS),
                ("grpc.max_allowed_incoming_connections", limit_of_connections()),
                ("grpc.server_handshake_timeout_ms", round(HEADER_TIMEOUT * 1e3)),
                ("grpc.max_connection_idle_ms", round(KEEP_ALIVE * 1e3)),
                ("grpc.per_message_decompression", 0),
                ("grpc.compression_enabled_algorithms_bitset", _ALL_ALGORITHMS),
                ("grpc.max_connection_age_ms", round(self._max_connection_age * 1e3)),
                ("grpc.max_connection_age_grace_ms", round(GRACE * 1e3)),
                ("grpc.so_reuseport", 0),
            ),
        )
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
        before = asyncio.all_tasks()
        await server.start()
        self._server = server
        found = HostPort(place.host, port)
        for task in asyncio.all_tasks() - before:
            if not isinstance(task.get_coro(), types.CoroutineType):  # compiled, so the library's
                task.add_done_callback(partial(self._ended, server, found))
        return found

    def _ended(self, server: Any, place: HostPort, task: asyncio.Task[Any]) -> None:
        """Listen again where a task of the library ended at a method that is no UTF-8: it decodes
        the method of a call where it accepts all of them, and ends with the error.
        """
        if task.cancelled() or self._is_closing or not isinstance(task.exception(), UnicodeError):
            return
        self._intake.count(None, TRANSPORT, "not_grpc")
        _logger.error("The gRPC endpoint is opened again: a call had a method that is no UTF-8.")
        reopening = asyncio.create_task(self._replace(server, place))
        self._reopening.add(reopening)
        reopening.add_done_callback(self._reopening.discard)

    async def _replace(self, ended: Any, place: HostPort) -> None:
        """Listen again, and free what the ended server holds once its calls are done."""
        while not self._is_closing:
            try:
                await self._listen(place)
            except ConfigurationError:  # the old server has not let it go yet
                await asyncio.sleep(REOPEN_INTERVAL_S)
            else:
                break
        await ended.stop(GRACE)

    async def close(self, patience: float) -> None:
        """Listen no more; requests under way have so many seconds."""
        self._is_closing = True
        if self._server is not None:
            await self._server.stop(patience)

    # --- Calls ------------------------------------------------------------------------------------

    def service(self, handler_call_details: Any) -> Any:
        """Return the handler of a call, before its message is received; None:
        it is unimplemented.
        """
        method: str = handler_call_details.method
        metadata = {key.lower(): value for key, value in handler_call_details.invocation_metadata}
        self._garbage.left(CALL_BYTES + len(method) + sum(map(_size, metadata.items())))
        if method == CHECK:
            return _handler(self._check)
        signal = EXPORTS.get(method)
        if signal is None:
            self._intake.count(None, TRANSPORT, "unknown_signal")
            return None
        try:
            self._tokens.check(metadata.get("authorization"))
            if signal is OtlpSignal.METRICS:
                return _handler(self._discard)
            self._intake.admit()
        except Refused as refusal:
            return _handler(partial(self._refuse_unread, signal, refusal))
        return _handler(partial(self._export, signal))

    async def _refuse_unread(
        self, signal: OtlpSignal, refusal: Refused, _: Any, context: Any
    ) -> bytes:
        self._intake.count(signal, TRANSPORT, refusal.reason, _client(context))
        return _refuse(refusal, context)

    async def _received(self, context: Any) -> bytes:
        """Return the one message of a call. Raise `Refused` where none arrives in time."""
        try:
            async with asyncio.timeout(BODY_TIMEOUT):
                message = await context.read()
        except TimeoutError:
            raise self._intake.slow() from None
        if message is _untyped.aio.EOF:
            raise Refused(Problem.UNDECODABLE, "cut_off", "the call has no message")
        return message

    async def _discard(self, _: Any, context: Any) -> bytes:
        """Accept metrics and throw them away."""
        signal = OtlpSignal.METRICS
        try:
            with self._calls.of(_client(context)):
                await self._received(context)
        except Refused as refusal:
            self._intake.count(signal, TRANSPORT, refusal.reason, _client(context))
            return _refuse(refusal, context)
        self._intake.count(signal, TRANSPORT, "discarded")
        return b""

    async def _export(self, signal: OtlpSignal, _: Any, context: Any) -> bytes:
        try:
            with self._calls.of(_client(context)):
                return await self._accept(signal, await self._received(context))
        except Refused as refusal:
            self._intake.count(signal, TRANSPORT, refusal.reason, _client(context))
            return _refuse(refusal, context)
        except Exception as error:
            if not _EXPORT.stops(error):
                raise
            fault = Refused(Problem.FAULT, "fault", "the service failed on this request")
            return _refuse(fault, context)

    async def _accept(self, signal: OtlpSignal, body: bytes) -> bytes:
        with self._intake.budget.reserve(len(body)) as reservation:
            compression = compression_of(body)
            ack = await self._intake.commit(
                self._threads,
                signal,
                Encoding.PROTOBUF,
                body,
                reservation,
                compression=compression,
            )
        self._intake.count(signal, TRANSPORT, "partial" if ack.rejected else "accepted")
        return accepted(signal, Encoding.PROTOBUF, ack.rejected, ack.message)

    async def _check(self, _: Any, context: Any) -> bytes:
        """Answer whether requests are accepted now. The request names the server as a whole, or one
        service.
        """
        name = ""
        try:
            if self._checks < MAX_CHECKS:
                name = await self._asked_service(context)
        except Refused as refusal:
            self._intake.count(None, TRANSPORT, refusal.reason)
            return _refuse(refusal, context)
        if name and not any(method.startswith(f"/{name}/") for method in EXPORTS):
            context.set_code(grpc.StatusCode.NOT_FOUND)
            context.set_details("no such service")
            return b""
        return _NOT_SERVING if self._readiness.reasons else _SERVING

    async def _asked_service(self, context: Any) -> str:
        self._checks += 1
        try:
            return _service_name(await self._received(context))
        finally:
            self._checks -= 1


def _size(header: tuple[str, str | bytes]) -> int:
    return len(header[0]) + len(header[1])


def _client(context: Any) -> str:
    """Return the address of a client without its port.

    >>> from types import SimpleNamespace
    >>> _client(SimpleNamespace(peer=lambda: "ipv4:10.0.0.7:4711"))
    'ipv4:10.0.0.7'
    """
    peer: str = context.peer()
    return peer.rpartition(":")[0]


def _handler(call: Any) -> Any:
    """Return the handler of a call that reads its message itself, so that the wait has a limit."""
    return _untyped.stream_unary_rpc_method_handler(call)


def _credentials(tls: TLSSettings) -> Any:
    if tls.certificate is None or tls.key is None:
        return None
    pair = (Path(tls.key).read_bytes(), Path(tls.certificate).read_bytes())
    ca = None if tls.client_ca is None else Path(tls.client_ca).read_bytes()
    return _untyped.ssl_server_credentials((pair,), ca, ca is not None)


_SERVING: Final = b"\x08\x01"
_NOT_SERVING: Final = b"\x08\x02"


def _service_name(request: bytes) -> str:
    """The one field of a HealthCheckRequest: a text of less than 128 bytes."""
    if len(request) < 2 or request[0] != 0x0A or request[1] != len(request) - 2:
        return "" if not request else "?"
    return request[2:].decode(errors="replace")


def _refuse(refusal: Refused, context: Any) -> bytes:
    """End a call with a status, its details, and when to come again; return the empty answer.

    The library's `abort` would raise an error that the call's context keeps, and with it all frames
    and the body, until the garbage collector runs.
    """
    metadata: list[tuple[str, bytes]] = [(DETAILS, status_of(refusal).SerializeToString())]
    if refusal.retry_after is not None:
        metadata.append((RETRY_INFO, retry_info(refusal.retry_after).SerializeToString()))
    context.set_trailing_metadata(tuple(metadata))
    context.set_code(_CODES[refusal.problem.value.rpc])
    context.set_details(refusal.detail)
    return b""
