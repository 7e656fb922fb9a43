"""The doors that speak HTTP: which routes stand at which address."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from aiohttp import web

from otel_reliability.errors import ConfigurationError
from otel_reliability.service.addresses import Place
from otel_reliability.service.auth import Tokens
from otel_reliability.service.http import guarding
from otel_reliability.service.pages import PROBES

KEEP_ALIVE: Final = 75.0
"""Seconds that an idle connection stays open."""
LINGER: Final = 2.0
"""Seconds that the rest of a body is read and thrown away, so that a client which still sends it gets its answer."""


class Web:
    """Opens doors, and closes them. Doors at one address share it. `count` is told why a request was refused at the door."""

    def __init__(self, tokens: Tokens, tls: ssl.SSLContext | None, count: Callable[[str], None]) -> None:
        self._tls, self._guard = tls, guarding(tokens, PROBES, count)
        self._runners: list[web.AppRunner] = []

    async def open(self, doors: Mapping[str, tuple[Place, Iterable[web.RouteDef]]]) -> dict[str, Place]:
        """Listen. Gives where each door really is. Raises `ConfigurationError` where an address cannot be had."""
        groups: dict[Place | str, list[str]] = {}
        for name, (place, _) in doors.items():
            groups.setdefault(place if place.port else name, []).append(name)
        found: dict[str, Place] = {}
        for names in groups.values():
            routes = [route for name in names for route in doors[name][1]]
            place = await self._listen(names[0], doors[names[0]][0], routes)
            found.update(dict.fromkeys(names, place))
        return found

    async def _listen(self, name: str, place: Place, routes: Iterable[web.RouteDef]) -> Place:
        app = web.Application(middlewares=[self._guard])
        app.add_routes(routes)
        runner = web.AppRunner(
            app,
            handle_signals=False,
            access_log=None,
            auto_decompress=False,
            keepalive_timeout=KEEP_ALIVE,
            lingering_time=LINGER,
            shutdown_timeout=LINGER,
        )
        await runner.setup()
        self._runners.append(runner)
        site = web.TCPSite(runner, place.host, place.port, ssl_context=self._tls, backlog=1024)
        try:
            await site.start()
        except OSError as error:
            raise ConfigurationError(
                f"service.{name}",
                str(place),
                f"an address to be had here ({error.strerror})",
                "take another, or end what has it",
            ) from error
        port: int = runner.addresses[0][1]
        return Place(place.host, port)

    async def close(self) -> None:
        """Listen no more; answers under way are finished."""
        for runner in self._runners:
            await runner.cleanup()
        self._runners.clear()
