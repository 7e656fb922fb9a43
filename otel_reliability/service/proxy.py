"""Behind a reverse proxy: the path below which people open the UI and the API.

A proxy passes this path on, or it removes it. Where it passes it on, the routes are there below
`ui.base_path` too. Where it removes it, the service must know it for the addresses in its pages:
from `ui.base_path`, or from `X-Forwarded-Prefix` of a proxy in `ui.proxies`.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Iterator
from typing import Final, TypeAlias

from aiohttp import web

from otel_reliability.config import BASE_PATH, UISettings
from otel_reliability.errors import ConfigurationError

FORWARDED_PREFIX: Final = "X-Forwarded-Prefix"
_PREFIX: Final = re.compile(BASE_PATH)
_ADDRESSES: Final = re.compile(r'(?<= )(href|src|action)="/(?!/)')
"""Attributes of our pages that hold an address of this service. Names in pages have no quotes."""

_Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network


class BasePath:
    """The path below which the UI and the API are reached. Raise `ConfigurationError` for a proxy
    that is no address.
    """

    def __init__(self, settings: UISettings) -> None:
        self._path = settings.base_path or ""
        self._proxies = list(map(_network, settings.proxies))

    def below(self, paths: Iterable[str]) -> frozenset[str]:
        """Return paths with those below the base path."""
        return frozenset(one for path in paths for one in (path, self._path + path))

    def routes(self, routes: Iterable[web.RouteDef]) -> Iterator[web.RouteDef]:
        """Yield routes, and each once more below the base path."""
        for route in routes:
            yield route
            if self._path:
                yield web.RouteDef(
                    route.method, self._path + route.path, route.handler, route.kwargs
                )

    def of(self, request: web.Request) -> str:
        """Return the prefix of addresses in an answer; empty, or without a slash at its end."""
        given = request.headers.get(FORWARDED_PREFIX, "").rstrip("/")
        if _PREFIX.match(given) and self._is_trusted(request.remote or ""):
            return given
        return self._path

    def _is_trusted(self, peer: str) -> bool:
        try:
            address = ipaddress.ip_address(peer)
        except ValueError:
            return False
        mapped = getattr(address, "ipv4_mapped", None)
        return any((mapped or address) in network for network in self._proxies)


def prefixed(page: str, prefix: str) -> str:
    """Return a page whose addresses begin with a prefix.

    >>> prefixed('<a href="/alerts">', "/agents"), prefixed('<a href="https://a/b">', "/agents")
    ('<a href="/agents/alerts">', '<a href="https://a/b">')
    """
    return _ADDRESSES.sub(rf'\1="{prefix}/', page) if prefix else page


def _network(text: str) -> _Network:
    try:
        return ipaddress.ip_network(text, strict=False)
    except ValueError:
        raise ConfigurationError(
            "ui.proxies", text, "an IP address or network", "write it like 10.0.0.0/8"
        ) from None
