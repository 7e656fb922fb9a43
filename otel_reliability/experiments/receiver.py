"""The OTLP endpoints of an experiment: those of the service, over HTTP and gRPC on free ports.

Each job has endpoints of its own, so whatever arrives there belongs to the attempt of that job,
whether the agent honours the other variables or not.
"""

from __future__ import annotations

import threading
from base64 import b64decode
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Final, cast

from google.protobuf.json_format import MessageToDict
from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from otel_reliability.errors import UndecodableBody
from otel_reliability.service.addresses import HostPort
from otel_reliability.service.answers import Encoding, OtlpSignal, Problem, Refused
from otel_reliability.service.auth import AccessTokens
from otel_reliability.service.grpc import OtlpGrpc
from otel_reliability.service.health import Readiness
from otel_reliability.service.hosts import Hosts
from otel_reliability.service.http import OtlpHttp
from otel_reliability.service.intake import RequestBudget, RequestIntake
from otel_reliability.service.settings import TLSSettings
from otel_reliability.service.web import Web
from otel_reliability.service.writer import Ack
from otel_reliability.sources import otlp_json, otlp_protobuf

HOST: Final = "127.0.0.1"
ANY_PORT: Final = 0
ANY_ADDRESS: Final = f"{HOST}:{ANY_PORT}"
BUDGET: Final = 256 * 1024 * 1024
"""Bytes of requests that are being received."""
MAX_REQUEST: Final = 64 * 1024 * 1024
"""Bytes of one request, compressed or not."""
TIMEOUT_S: Final = 4.0
MAX_CONNECTION_AGE_S: Final = 86_400.0
GRACE_S: Final = 1.0
PROTOCOLS: Final = ("http/protobuf", "grpc")

_MESSAGES: Final = {
    OtlpSignal.TRACES: ExportTraceServiceRequest,
    OtlpSignal.LOGS: ExportLogsServiceRequest,
}
_IDS: Final = ("traceId", "spanId", "parentSpanId")


class Inbox:
    """The requests that have arrived and no one has taken yet, in OTLP-JSON. Any thread may add."""

    def __init__(self) -> None:
        self._requests: list[dict[str, Any]] = []
        self._lock = threading.Lock()

    def commit(self, request: dict[str, Any]) -> Future[Ack]:
        """Keep a request."""
        with self._lock:
            self._requests.append(request)
        answer: Future[Ack] = Future()
        answer.set_result(Ack(0, ""))
        return answer

    def seen(self) -> list[dict[str, Any]]:
        """Return the requests, and go on to keep them."""
        with self._lock:
            return list(self._requests)

    def take(self) -> list[dict[str, Any]]:
        """Return the requests, and keep them no more."""
        with self._lock:
            found, self._requests = self._requests, []
        return found


class Receiver:
    """The endpoints of one job, over HTTP at `listen`. `addresses` holds one by protocol, once
    `open` has returned.
    """

    def __init__(self, listen: str = ANY_ADDRESS) -> None:
        self._listen = listen
        self.inbox = Inbox()
        self.addresses: dict[str, str] = {}
        self._threads = ThreadPoolExecutor(1, "reader")
        readiness = Readiness()
        budget = RequestBudget(BUDGET)
        intake = RequestIntake(
            request_of, self.inbox, readiness, budget, limit=MAX_REQUEST, patience=TIMEOUT_S
        )
        tokens = AccessTokens()
        self._http = OtlpHttp(intake, self._threads)
        self._web = Web(tokens, Hosts(()), None, lambda _, __: None)
        self._grpc = OtlpGrpc(
            intake, readiness, tokens, self._threads, max_connection_age=MAX_CONNECTION_AGE_S
        )

    async def open(self) -> None:
        """Listen on free ports."""
        opened = await self._web.open((("http", self._listen, self._http.routes()),))
        grpc = await self._grpc.open(HostPort(HOST, ANY_PORT), TLSSettings())
        addresses = (opened["http"], grpc)
        self.addresses = {
            protocol: f"http://{address}"
            for protocol, address in zip(PROTOCOLS, addresses, strict=True)
        }

    async def close(self) -> None:
        """Listen no more."""
        await self._web.close()
        await self._grpc.close(GRACE_S)
        self._threads.shutdown()


def request_of(signal: OtlpSignal, encoding: Encoding, body: bytes) -> dict[str, Any]:
    """Return a request in OTLP-JSON, with all that it holds. Raises `Refused` for a body that
    cannot be decoded.
    """
    try:
        if encoding is Encoding.JSON:
            found = otlp_json.parse(body)
            return cast("dict[str, Any]", found) if isinstance(found, dict) else {}
        otlp_protobuf.check(body)
        message = _MESSAGES[signal].FromString(body)
    except (UndecodableBody, DecodeError) as error:
        raise Refused(Problem.UNDECODABLE, "undecodable", str(error)) from None
    plain = MessageToDict(message, use_integers_for_enums=True)
    _write_ids(plain)
    return plain


def _write_ids(value: Any) -> None:
    """Write ids in hexadecimal, as OTLP-JSON has them; protobuf's JSON has base64."""
    if isinstance(value, list):
        for item in cast("list[Any]", value):
            _write_ids(item)
    elif isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        for key, inner in fields.items():
            if key in _IDS and isinstance(inner, str):
                fields[key] = b64decode(inner).hex()
            elif key not in {"attributes", "body"}:
                _write_ids(inner)
