"""HTTP endpoints: the server, `/metrics`, and the health checks."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import ssl
import unicodedata
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from functools import partial
from typing import Any, Final, TypeAlias, cast

from aiohttp import web

from otel_reliability.errors import ConfigurationError, ReliabilityError
from otel_reliability.service.addresses import HostPort, parse_address
from otel_reliability.service.answers import RETRY_LATER, overload
from otel_reliability.service.api import Agents, UnknownAgent
from otel_reliability.service.auth import AccessTokens
from otel_reliability.service.connections import (
    HEADER_TIMEOUT,
    KEEP_ALIVE,
    Connections,
    limit_of_connections,
)
from otel_reliability.service.health import RECOVERING, Readiness
from otel_reliability.service.hosts import Hosts
from otel_reliability.service.http import CountRefusal, guarding, sharing
from otel_reliability.service.logs import ServerLogger
from otel_reliability.telemetry.prometheus import OPENMETRICS, TEXT, Prometheus

LINGER: Final = 2.0
"""Seconds that the rest of a body is read and thrown away, so that a client which still sends it
gets its answer.
"""
SCRAPE_CHUNK: Final = 256 * 1024
"""Bytes of a scrape that are written at a time."""
SCRAPE_TIMEOUT_S: Final = 60.0
"""Seconds that a scrape may take; others wait for it."""
BACKLOG: Final = 1_024
"""Connections that the system holds until they are accepted."""

Endpoint: TypeAlias = tuple[str, str, Iterable[web.RouteDef]]
"""Name, address as the settings have it, and routes."""

HEALTH: Final = "/healthz"
READY: Final = "/readyz"
PROBES: Final = frozenset({HEALTH, READY})
"""Paths that need no token."""


class Web:
    """Opens and closes endpoints. Endpoints at one address share it. `count` is called with the
    reason of each refusal.
    """

    def __init__(
        self,
        tokens: AccessTokens,
        hosts: Hosts,
        tls: ssl.SSLContext | None,
        count: CountRefusal,
        open_paths: frozenset[str] = PROBES,
    ) -> None:
        self._tls = tls
        self._middlewares = [
            sharing(hosts),
            guarding(tokens, hosts, open_paths, count),
        ]
        self._logger = ServerLogger(count)
        self._connections = Connections(limit_of_connections(), count)
        self._runners: list[web.AppRunner] = []
        self._listening: list[asyncio.Server] = []

    async def open(self, endpoints: Iterable[Endpoint]) -> dict[str, HostPort]:
        """Listen, and return the addresses of those that are not off. Raise `ConfigurationError` if
        one cannot be bound.
        """
        groups: dict[HostPort | str, tuple[HostPort, list[str], list[web.RouteDef]]] = {}
        for name, address, routes in endpoints:
            place = parse_address(address)
            if place is not None:
                _, names, shared = groups.setdefault(place if place.port else name, (place, [], []))
                names.append(name)
                shared.extend(routes)
        found: dict[str, HostPort] = {}
        for place, names, routes in groups.values():
            found.update(dict.fromkeys(names, await self._listen(names[0], place, routes)))
        return found

    async def _listen(self, name: str, place: HostPort, routes: Iterable[web.RouteDef]) -> HostPort:
        app = web.Application(middlewares=self._middlewares)
        app.add_routes(routes)
        runner = web.AppRunner(
            app,
            handle_signals=False,
            access_log=None,
            logger=self._logger,
            auto_decompress=False,
            keepalive_timeout=KEEP_ALIVE,
            lingering_time=LINGER,
            shutdown_timeout=LINGER,
        )
        await runner.setup()
        self._runners.append(runner)
        server = cast("Callable[[], asyncio.Protocol]", runner.server)
        try:
            listening = await asyncio.get_running_loop().create_server(
                partial(self._connections.accept, server),
                place.host,
                place.port,
                ssl=self._tls,
                ssl_handshake_timeout=None if self._tls is None else HEADER_TIMEOUT,
                backlog=BACKLOG,
            )
        except OSError as error:
            allowed = f"an address to be had here ({error.strerror})"
            raise ConfigurationError(
                f"service.{name}", str(place), allowed, "take another, or end what has it"
            ) from error
        self._listening.append(listening)
        port: int = listening.sockets[0].getsockname()[1]
        return HostPort(place.host, port)

    async def close(self) -> None:
        for listening in self._listening:
            listening.close()
        for runner in self._runners:
            await runner.cleanup()
        self._runners.clear()
        self._listening.clear()


FORMULA: Final = frozenset("=+-@")
"""Signs with which a cell begins that a spreadsheet runs."""
BREAKS: Final = ("\t", "\r", "\n")
"""Signs that may begin another cell."""


def metrics(prometheus: Prometheus, threads: Executor, readiness: Readiness) -> list[web.RouteDef]:
    """Return the route `/metrics`: Prometheus text, or OpenMetrics with exemplars if the client
    accepts it.
    """
    turn = asyncio.Lock()  # one scrape is written at a time

    async def answer(request: web.Request) -> web.StreamResponse:
        if RECOVERING in readiness.reasons:  # incomplete counters would look like a reset
            later = {"Retry-After": str(round(RETRY_LATER))}
            return web.Response(status=503, text="state is being loaded\n", headers=later)
        openmetrics = "application/openmetrics-text" in request.headers.get("Accept", "")
        packed = "gzip" in request.headers.get("Accept-Encoding", "").lower()
        response = web.StreamResponse(
            headers={"Content-Type": OPENMETRICS if openmetrics else TEXT}
        )
        if packed:
            response.headers["Content-Encoding"] = "gzip"
        pieces = (piece.encode() for piece in prometheus.text(openmetrics=openmetrics))
        chunks = _chunks(_compressed(pieces) if packed else pieces)
        loop = asyncio.get_running_loop()
        try:
            async with turn, asyncio.timeout(SCRAPE_TIMEOUT_S):
                await response.prepare(request)
                while chunk := await loop.run_in_executor(threads, next, chunks, b""):
                    await response.write(chunk)
                await response.write_eof()
        except Exception as error:
            if request.transport is not None:
                request.transport.abort()  # without its end the client knows that it is not whole
            if not isinstance(error, TimeoutError | ConnectionError):
                raise
        return response

    return [web.get("/metrics", answer)]


def _compressed(pieces: Iterable[bytes]) -> Iterator[bytes]:
    packer = zlib.compressobj(level=1, wbits=16 + zlib.MAX_WBITS)
    yield from map(packer.compress, pieces)
    yield packer.flush()


def _chunks(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the same bytes, `SCRAPE_CHUNK` at a time or a few more."""
    parts: list[bytes] = []
    size = 0
    for piece in pieces:
        parts.append(piece)
        size += len(piece)
        if size >= SCRAPE_CHUNK:
            yield b"".join(parts)
            parts.clear()
            size = 0
    if size:
        yield b"".join(parts)


def probes(readiness: Readiness, healthy: Callable[[], bool]) -> list[web.RouteDef]:
    """Return the routes `/healthz`: the process works, and `/readyz`: it accepts requests now; if
    not, the reasons.
    """

    async def health(request: web.Request) -> web.Response:
        works = healthy()
        return _json({"healthy": works}, status=200 if works else 503)

    async def ready(request: web.Request) -> web.Response:
        reasons = readiness.reasons
        return _json({"ready": not reasons, "reasons": reasons}, status=503 if reasons else 200)

    return [web.get(HEALTH, health), web.get(READY, ready)]


def api(agents: Agents, threads: Executor, readiness: Readiness) -> list[web.RouteDef]:
    """Return the routes of `/api/v1/agents`: all agents with their scores; below it one agent, with
    readings, recent runs and diverging paths, and below that `gate?require=TARGET`,
    `compare?before=VERSION&after=VERSION` (or `group=A&other=B`), and `runs` for its last runs.
    Lists are CSV with `?format=csv`. `PUT groups/A?name=…` names a kind of request.
    """
    one = "/{service:[^/]+}/{agent:[^/]+}"
    questions = {
        "": (agents.page, "agents"),
        one: (agents.details, None),
        f"{one}/gate": (agents.gate, None),
        f"{one}/compare": (agents.compare, None),
        f"{one}/runs": (agents.runs, "runs"),
    }

    async def answer(
        ask: Callable[..., Any], rows: str | None, request: web.Request
    ) -> web.Response:
        detail = readiness.reasons.get(RECOVERING)
        if detail is not None:  # agents are missing or incomplete
            raise overload(RECOVERING, detail, retry_after=RETRY_LATER)
        try:
            found = await asyncio.get_running_loop().run_in_executor(threads, ask, request)
        except UnknownAgent as error:
            raise web.HTTPNotFound(reason=str(error)) from None
        except ReliabilityError as error:
            raise web.HTTPBadRequest(reason=" ".join(str(error).split())) from None
        if rows is not None and request.query.get("format") == "csv":
            return _csv(rows, found[rows])
        return _json(found)

    name = partial(answer, agents.name_group, None)
    return [
        *(
            web.get(f"/api/v1/agents{path}", partial(answer, *question))
            for path, question in questions.items()
        ),
        web.put(f"/api/v1/agents{one}/groups/{{group:[^/]+}}", name),
    ]


def _csv(name: str, rows: Sequence[Mapping[str, Any]]) -> web.Response:
    """Return rows as a CSV file, nested objects as columns of their own. Text that a spreadsheet
    would run is quoted.
    """
    flat = [dict(_columns(row)) for row in rows]
    text = io.StringIO()
    table = csv.DictWriter(text, list(dict.fromkeys(column for row in flat for column in row)))
    table.writeheader()
    table.writerows(flat)
    headers = {"Content-Disposition": f'attachment; filename="{name}.csv"'}
    return web.Response(
        text=text.getvalue(), content_type="text/csv", charset="utf-8", headers=headers
    )


def _columns(row: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in row.items():
        if isinstance(value, Mapping):
            yield from _columns(cast("Mapping[str, Any]", value), f"{prefix}{name}.")
            continue
        cell = (
            " → ".join(map(_part, cast("list[Any]", value))) if isinstance(value, list) else value
        )
        yield prefix + name, f"'{cell}" if isinstance(cell, str) and _is_formula(cell) else cell


def _is_formula(cell: str) -> bool:
    """Return whether a spreadsheet may run a cell. It passes over invisible signs, and knows
    wide forms.

    >>> _is_formula("\ufeff=1+1"), _is_formula("＝1+1"), _is_formula("a=1")
    (True, True, False)
    """
    seen = (sign for sign in cell if unicodedata.category(sign) not in {"Cf", "Cc", "Zs"})
    first = unicodedata.normalize("NFKC", next(seen, ""))
    return first in FORMULA or cell.startswith(BREAKS)


def _part(value: Any) -> str:
    return str(cast("dict[str, Any]", value)["name"] if isinstance(value, dict) else value)


_json: Final = partial(
    web.json_response, dumps=partial(json.dumps, ensure_ascii=False, allow_nan=False)
)
