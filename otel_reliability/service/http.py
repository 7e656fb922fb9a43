"""OTLP over HTTP: `POST /v1/traces`, `/v1/logs` and `/v1/metrics`, in protobuf and in JSON,
compressed with gzip, deflate or zstd, or not.

Source: OTLP specification 1.11, "OTLP/HTTP".
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor
from functools import partial
from typing import Any, Final, TypeAlias

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from otel_reliability.service.answers import (
    Encoding,
    OtlpSignal,
    Problem,
    Refused,
    accepted,
    refused,
)
from otel_reliability.service.auth import AccessTokens
from otel_reliability.service.compression import CODINGS, ContentCoding
from otel_reliability.service.connections import waiting, working
from otel_reliability.service.hosts import Hosts
from otel_reliability.service.intake import BODY_TIMEOUT, RequestIntake, Reservation
from otel_reliability.service.writer import Ack
from otel_reliability.telemetry.guard import Guard

TRANSPORT: Final = "http"
CountRefusal: TypeAlias = Callable[[str, str | None], None]
"""Counts a refused request by its reason, with the address of the client where that is known."""
ERROR: Final = 400
"""The first status that is no success."""

_CHALLENGE: Final = (
    'Basic realm="otel-reliability: any user, the token as password", charset="UTF-8"'
)
"""Header that makes a browser ask for the token."""
_HANDLE: Final = Guard("answering a request over HTTP")


class OtlpHttp:
    """The receiver. `threads` is where bodies are unpacked and read."""

    def __init__(self, intake: RequestIntake[Any], threads: Executor) -> None:
        self._intake = intake
        self._threads = threads

    def routes(self) -> list[web.RouteDef]:
        """Return the routes; the rest of /v1 is an unknown signal."""
        return [
            web.post(f"/v1/{signal.value}", partial(self._export, signal)) for signal in OtlpSignal
        ]

    async def _export(self, signal: OtlpSignal, request: web.Request) -> web.Response:
        try:
            encoding, compression = _form_of(request)
            ack = Ack(0, "")
            outcome = "discarded"
            if signal is OtlpSignal.METRICS:
                await self._discard(request)
            else:
                ack = await self._accept(signal, encoding, request, compression)
                outcome = "partial" if ack.rejected else "accepted"
        except Refused as refusal:
            self._intake.count(signal, TRANSPORT, refusal.reason, request.remote)
            return answer(request, refusal)
        self._intake.count(signal, TRANSPORT, outcome)
        return web.Response(
            body=accepted(signal, encoding, ack.rejected, ack.message), content_type=encoding.value
        )

    async def _accept(
        self,
        signal: OtlpSignal,
        encoding: Encoding,
        request: web.Request,
        compression: ContentCoding | None,
    ) -> Ack:
        """Read a request, have it decoded, and wait for the writer."""
        self._intake.admit(request.content_length)
        with self._intake.budget.reserve() as reservation:
            body = await self._body(request, reservation)
            return await self._intake.commit(
                self._threads, signal, encoding, body, reservation, compression=compression
            )

    async def _discard(self, request: web.Request) -> None:
        """Receive metrics and throw them away: an agent that exports all signals to one endpoint
        must not log errors. Size and time are limited as for any body.
        """
        await self._receive(request, lambda part: None)

    async def _body(self, request: web.Request, reservation: Reservation) -> bytes:
        parts: list[bytes] = []

        def keep(part: bytes) -> None:
            reservation.grow(len(part))
            parts.append(part)

        await self._receive(request, keep)
        return b"".join(parts)

    async def _receive(self, request: web.Request, take: Callable[[bytes], None]) -> None:
        """Call `take` with each part of a body as it arrives; raise `Refused` for one that is too
        large, late or cut off.
        """
        size = 0
        try:
            async with asyncio.timeout(BODY_TIMEOUT):
                with waiting(request):
                    async for part in request.content.iter_any():
                        size += len(part)
                        if size > self._intake.limit:
                            raise self._intake.too_large()
                        take(part)
        except TimeoutError:
            raise self._intake.slow() from None
        except (web.RequestPayloadError, ConnectionError):
            raise Refused(
                Problem.UNDECODABLE, "cut_off", "the body did not arrive as its headers say"
            ) from None


_ENCODINGS: Final = {one.value: one for one in Encoding}


def _form_of(request: web.Request) -> tuple[Encoding, ContentCoding | None]:
    """Return the encoding of a body, and its compression. Raise `Refused` for anything else."""
    encoding = _ENCODINGS.get(request.content_type)
    if encoding is None:
        raise Refused(Problem.TYPE, "content_type", f"send {' or '.join(_ENCODINGS)}")
    coding = request.headers.get("Content-Encoding", "").strip().lower()
    if coding not in CODINGS:
        raise Refused(
            Problem.TYPE,
            "content_encoding",
            "compress the body with gzip, deflate or zstd, or not at all",
        )
    return encoding, CODINGS[coding]


def answer(request: web.Request, refusal: Refused) -> web.Response:
    """Return a refusal as a `google.rpc.Status` in the encoding of the request; in JSON if that is
    unknown.
    """
    encoding = _ENCODINGS.get(request.content_type, Encoding.JSON)
    headers: dict[str, str] = {}
    if refusal.retry_after is not None:
        headers["Retry-After"] = str(max(1, round(refusal.retry_after)))
    if refusal.problem is Problem.UNAUTHENTICATED:
        headers["WWW-Authenticate"] = (
            _CHALLENGE if "text/html" in request.headers.get("Accept", "") else "Bearer"
        )
    return web.Response(
        status=refusal.problem.value.http,
        body=refused(refusal, encoding),
        content_type=encoding.value,
        headers=headers,
    )


def guarding(
    tokens: AccessTokens,
    hosts: Hosts,
    open_paths: frozenset[str],
    count: CountRefusal,
) -> Middleware:
    """Return the middleware of every endpoint: it checks the token or else the host, and gives all
    errors the same form.

    `count` is called for each refusal that no handler made.
    """

    @web.middleware
    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            with working(request):
                if request.path not in open_paths:
                    tokens.check(request.headers.get("Authorization"))
                    if not tokens.asked:
                        hosts.check(request)
                return await handler(request)
        except Refused as refusal:
            count(refusal.reason, request.remote)
            return answer(request, refusal)
        except web.HTTPException as error:
            error.__traceback__ = None  # the request refers to it, and its frames to the request
            return _translated(request, error, count)
        except Exception as error:
            if not _HANDLE.stops(error):
                raise
            count("fault", request.remote)
            return answer(
                request, Refused(Problem.FAULT, "fault", "the service failed on this request")
            )

    return guard


CORS_AGE_S: Final = 3_600
"""Seconds for which a browser may remember that an origin may send."""
_CORS: Final = {
    "Access-Control-Allow-Methods": "POST",
    "Access-Control-Allow-Headers": "Authorization, Content-Type, Content-Encoding",
    "Access-Control-Max-Age": str(CORS_AGE_S),
}


def sharing(hosts: Hosts) -> Middleware:
    """Return the middleware that lets pages of allowed origins send OTLP (CORS). It comes before
    the check of tokens: a browser asks without one.
    """

    @web.middleware
    async def share(request: web.Request, handler: Handler) -> web.StreamResponse:
        if not hosts.may_send(request):
            return await handler(request)
        is_asking = request.method == "OPTIONS"
        response = web.Response(status=204, headers=_CORS) if is_asking else await handler(request)
        response.headers["Access-Control-Allow-Origin"] = request.headers["Origin"]
        response.headers["Vary"] = "Origin"
        return response

    return share


_PATHS: Final = "OTLP is received at /v1/traces and /v1/logs, by POST"


def _receives(app: web.Application) -> bool:
    """Return whether an endpoint has the OTLP receiver."""
    return any(resource.canonical == "/v1/traces" for resource in app.router.resources())


_STATUSES: Final = {problem.value.http: problem for problem in Problem}


def _translated(
    request: web.Request, error: web.HTTPException, count: CountRefusal
) -> web.StreamResponse:
    """The library's own answers, with the body that clients of OTLP expect."""
    if error.status < ERROR:
        return error
    problem = _STATUSES.get(error.status, Problem.UNDECODABLE)
    count(problem.name.lower(), request.remote)
    detail = error.reason
    if isinstance(error, web.HTTPNotFound) and _receives(request.app):
        detail = f"{detail}: {_PATHS}"
    response = answer(request, Refused(problem, "http", detail))
    response.set_status(error.status)
    if isinstance(error, web.HTTPMethodNotAllowed):
        response.headers["Allow"] = ", ".join(sorted(error.allowed_methods))
    return response
