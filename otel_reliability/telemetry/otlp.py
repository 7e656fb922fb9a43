"""Send OTLP requests, over gRPC or HTTP: the metrics of the service, and the runs it hands on."""

from __future__ import annotations

import gzip
import http.client
import ssl
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple
from urllib.parse import urlsplit

import grpc
from google.protobuf.message import DecodeError
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status

Signal = Literal["metrics", "logs"]

METHODS: Final[Mapping[Signal, str]] = {
    "metrics": "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export",
    "logs": "/opentelemetry.proto.collector.logs.v1.LogsService/Export",
}
RETRY_INFO: Final = "google.rpc.retryinfo-bin"
DETAILS: Final = "grpc-status-details-bin"
RECONNECT: Final = 10_000
"""Milliseconds between two attempts to connect, at most: after a long absence gRPC would let two minutes pass."""
LARGEST_ANSWER: Final = 4 * 1024 * 1024

_LATER: Final = frozenset({429, 502, 503, 504})
_LATER_CODES: Final = frozenset(
    {
        grpc.StatusCode.CANCELLED,
        grpc.StatusCode.DEADLINE_EXCEEDED,
        grpc.StatusCode.ABORTED,
        grpc.StatusCode.OUT_OF_RANGE,
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.DATA_LOSS,
    }
)
_LEVEL: Final = 1


class Answer(NamedTuple):
    """What became of a request. `retry_after`: None where sending it again does not help, else seconds (0: nobody says)."""

    taken: bool
    outcome: str
    retry_after: float | None = None


ACCEPTED: Final = Answer(True, "accepted")


@dataclass(frozen=True, slots=True)
class Target:
    """Where requests go and how. `headers` are not shown: they may hold a token."""

    endpoint: str
    protocol: Literal["grpc", "http/protobuf"] = "grpc"
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    compression: Literal["gzip", "none"] = "gzip"
    timeout: float = 10.0
    ca: str | None = None
    certificate: str | None = None
    key: str | None = None


class Sender(ABC):
    """Sends bytes of one signal to one target. One thread at a time."""

    @abstractmethod
    def send(self, body: bytes, timeout: float | None = None) -> Answer:
        """Send one request. Never raises: what goes wrong is an answer."""

    @abstractmethod
    def close(self) -> None:
        """Nothing more will be sent."""


def sender_of(target: Target, signal: Signal) -> Sender:
    """The sender that a target asks for."""
    return _Grpc(target, signal) if target.protocol == "grpc" else _Http(target, signal)


class _Grpc(Sender):
    def __init__(self, target: Target, signal: Signal) -> None:
        self._timeout = target.timeout
        self._metadata = tuple((key.lower(), value) for key, value in target.headers.items())
        packing = grpc.Compression.Gzip if target.compression == "gzip" else grpc.Compression.NoCompression
        self._channel: Any = _channel(target, packing)
        self._export: Any = self._channel.unary_unary(METHODS[signal])

    def send(self, body: bytes, timeout: float | None = None) -> Answer:
        try:
            self._export(body, timeout=self._timeout if timeout is None else timeout, metadata=self._metadata)
        except grpc.RpcError as error:
            return _grpc_answer(error)
        return ACCEPTED

    def close(self) -> None:
        self._channel.close()


def _channel(target: Target, packing: Any) -> Any:
    parts = urlsplit(target.endpoint if "://" in target.endpoint else f"//{target.endpoint}")
    options = [("grpc.max_reconnect_backoff_ms", RECONNECT)]
    if parts.scheme != "https":
        return grpc.insecure_channel(parts.netloc, options, packing)
    credentials = grpc.ssl_channel_credentials(_bytes(target.ca), _bytes(target.key), _bytes(target.certificate))
    return grpc.secure_channel(parts.netloc, credentials, options, packing)


def _bytes(path: str | None) -> bytes | None:
    return None if path is None else Path(path).read_bytes()


def _grpc_answer(error: Any) -> Answer:
    """RESOURCE_EXHAUSTED may be tried again only where the receiver says when."""
    code, told = error.code(), _told_delay(error.trailing_metadata() or ())
    outcome = str(code.name).lower()
    if code in _LATER_CODES:
        return Answer(False, outcome, told or 0.0)
    return Answer(False, outcome, told if code is grpc.StatusCode.RESOURCE_EXHAUSTED else None)


def _told_delay(metadata: Any) -> float | None:
    """When to come again: servers in Go say it within the status, others beside it."""
    told: dict[str, bytes] = dict(metadata)
    try:
        info = _within(told[DETAILS]) if DETAILS in told else None
        if info is None and RETRY_INFO in told:
            info = RetryInfo.FromString(told[RETRY_INFO])
    except DecodeError:
        return None
    return None if info is None else info.retry_delay.seconds + info.retry_delay.nanos / 1e9


def _within(status: bytes) -> RetryInfo | None:
    info = RetryInfo()
    return next((info for detail in Status.FromString(status).details if detail.Unpack(info)), None)


class _Http(Sender):
    def __init__(self, target: Target, signal: Signal) -> None:
        parts = urlsplit(target.endpoint)
        self._target = target
        self._host, self._secure = parts.netloc.rpartition("@")[2], parts.scheme == "https"
        self._path = parts.path if parts.path.strip("/") else f"/v1/{signal}"
        self._context = _tls(target) if self._secure else None
        self._connection: http.client.HTTPConnection | None = None
        self._headers = {**target.headers, "Content-Type": "application/x-protobuf", "User-Agent": "otel-reliability"}
        if target.compression == "gzip":
            self._headers["Content-Encoding"] = "gzip"

    def send(self, body: bytes, timeout: float | None = None) -> Answer:
        packed = gzip.compress(body, _LEVEL) if self._target.compression == "gzip" else body
        patience = self._target.timeout if timeout is None else timeout
        fresh = self._connection is None
        try:
            return self._post(packed, patience)
        except (OSError, http.client.HTTPException) as error:
            self.close()
            if fresh:
                return Answer(False, _word(error), 0.0)
        try:  # the connection had been kept open, and the receiver had closed it
            return self._post(packed, patience)
        except (OSError, http.client.HTTPException) as error:
            self.close()
            return Answer(False, _word(error), 0.0)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _post(self, body: bytes, patience: float) -> Answer:
        connection = self._connected(patience)
        connection.request("POST", self._path, body, self._headers)
        response = connection.getresponse()
        response.read(LARGEST_ANSWER)
        if not response.isclosed():
            self.close()
        if 200 <= response.status < 300:
            return ACCEPTED
        again = _seconds(response.headers.get("Retry-After")) if response.status in _LATER else None
        return Answer(False, f"http_{response.status}", again)

    def _connected(self, patience: float) -> http.client.HTTPConnection:
        if self._connection is None:
            if self._context is not None:
                self._connection = http.client.HTTPSConnection(self._host, timeout=patience, context=self._context)
            else:
                self._connection = http.client.HTTPConnection(self._host, timeout=patience)
        elif self._connection.sock is not None:
            self._connection.sock.settimeout(patience)
        return self._connection


def _tls(target: Target) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=target.ca)
    if target.certificate is not None:
        context.load_cert_chain(target.certificate, target.key)
    return context


def _word(error: Exception) -> str:
    """A word to count by. The error's own text may name hosts and paths."""
    return "timeout" if isinstance(error, TimeoutError) else "unreachable" if isinstance(error, OSError) else "broken"


def _seconds(text: str | None) -> float:
    """`Retry-After` in seconds; 0 where it is absent or a date.

    >>> _seconds("7"), _seconds(None), _seconds("Wed, 21 Oct 2026 07:28:00 GMT")
    (7.0, 0.0, 0.0)
    """
    return float(text) if text is not None and text.isascii() and text.isdigit() and len(text) < 6 else 0.0
