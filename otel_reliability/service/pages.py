"""What is read over HTTP: `/metrics`, the probes, and the agents as JSON."""

from __future__ import annotations

import asyncio
import json
import zlib
from collections.abc import Callable
from concurrent.futures import Executor
from functools import partial
from typing import Any, Final

from aiohttp import web

from otel_reliability.service.api import Agents, UnknownAgent
from otel_reliability.service.readiness import RECOVERING, Readiness
from otel_reliability.service.refusal import RETRY_LATER, overload
from otel_reliability.telemetry.prometheus import OPENMETRICS, TEXT, Prometheus

HEALTH: Final = "/healthz"
READY: Final = "/readyz"
PROBES: Final = frozenset({HEALTH, READY})
"""What answers without a token."""

_LEVEL: Final = 1


class Metrics:
    """`/metrics`: Prometheus text, or OpenMetrics with exemplars for who asks for it. One scrape is written at a time."""

    def __init__(self, prometheus: Prometheus, threads: Executor, readiness: Readiness) -> None:
        self._prometheus, self._threads, self._readiness = prometheus, threads, readiness
        self._turn = asyncio.Lock()

    def routes(self) -> list[web.RouteDef]:
        return [web.get("/metrics", self._metrics)]

    async def _metrics(self, request: web.Request) -> web.Response:
        if RECOVERING in self._readiness.reasons:  # a number that is half brought back would look like a reset
            later = {"Retry-After": str(round(RETRY_LATER))}
            return web.Response(status=503, text="state is being brought back\n", headers=later)
        openmetrics = "application/openmetrics-text" in request.headers.get("Accept", "")
        packed = "gzip" in request.headers.get("Accept-Encoding", "").lower()
        async with self._turn:
            write = partial(self._write, openmetrics=openmetrics, packed=packed)
            body = await asyncio.get_running_loop().run_in_executor(self._threads, write)
        headers = {"Content-Type": OPENMETRICS if openmetrics else TEXT}
        if packed:
            headers["Content-Encoding"] = "gzip"
        return web.Response(body=body, headers=headers)

    def _write(self, *, openmetrics: bool, packed: bool) -> bytes:
        pieces = (piece.encode() for piece in self._prometheus.text(openmetrics=openmetrics))
        if not packed:
            return b"".join(pieces)
        packer = zlib.compressobj(_LEVEL, wbits=16 + zlib.MAX_WBITS)
        return b"".join([*(packer.compress(piece) for piece in pieces), packer.flush()])


class Probes:
    """`/healthz`: the process works. `/readyz`: it takes requests now; if not, why."""

    def __init__(self, readiness: Readiness, healthy: Callable[[], bool]) -> None:
        self._readiness, self._healthy = readiness, healthy

    def routes(self) -> list[web.RouteDef]:
        return [web.get(HEALTH, self._health), web.get(READY, self._ready)]

    async def _health(self, request: web.Request) -> web.Response:
        healthy = self._healthy()
        return _json({"healthy": healthy}, 200 if healthy else 503)

    async def _ready(self, request: web.Request) -> web.Response:
        reasons = self._readiness.reasons
        return _json({"ready": not reasons, "reasons": reasons}, 503 if reasons else 200)


class Api:
    """`/api/v1/agents`: who is known and how reliable; below it one agent, with readings, recent runs and diverging paths."""

    def __init__(self, agents: Agents, threads: Executor, readiness: Readiness) -> None:
        self._agents, self._threads, self._readiness = agents, threads, readiness

    def routes(self) -> list[web.RouteDef]:
        return [web.get("/api/v1/agents", self._list), web.get("/api/v1/agents/{service}/{agent}", self._one)]

    async def _list(self, request: web.Request) -> web.Response:
        self._check()
        limit, offset = _whole(request, "limit", 1_000), _whole(request, "offset", 0)
        return _json(await self._ask(partial(self._agents.page, limit=min(limit, 1_000), offset=offset)))

    async def _one(self, request: web.Request) -> web.Response:
        self._check()
        named = {name: request.query[name] for name in ("namespace", "environment") if name in request.query}
        service, agent = request.match_info["service"], request.match_info["agent"]
        try:
            return _json(await self._ask(partial(self._agents.details, service, agent, **named)))
        except UnknownAgent as error:
            raise web.HTTPNotFound(reason=str(error)) from None

    def _check(self) -> None:
        """Who asks before state is back would be told of agents that are none, or half of them."""
        detail = self._readiness.reasons.get(RECOVERING)
        if detail is not None:
            raise overload(RECOVERING, detail, retry_after=RETRY_LATER)

    async def _ask(self, ask: Callable[[], Any]) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._threads, ask)


def _whole(request: web.Request, name: str, default: int) -> int:
    text = request.query.get(name, "")
    if not text:
        return default
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise web.HTTPBadRequest(reason=f"{name} is not a whole number from 0")
    return int(text)


def _json(found: Any, status: int = 200) -> web.Response:
    return web.Response(
        text=json.dumps(found, ensure_ascii=False, allow_nan=False), status=status, content_type="application/json"
    )
