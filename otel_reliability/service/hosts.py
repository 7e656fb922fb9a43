"""The names by which browsers may reach the service.

A web page of an attacker can have its own name point to this machine, and then read pages and the
API as if it were of the same origin (DNS rebinding). So, where no token is asked for, the `Host` of
a request must be an address, a name that public DNS cannot have, or a name from the settings.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterable
from contextlib import suppress
from typing import Final
from urllib.parse import urlsplit

from aiohttp import web

from otel_reliability.service.addresses import parse_address
from otel_reliability.service.answers import Problem, Refused
from otel_reliability.service.settings import ENDPOINTS, Config

PRIVATE: Final = frozenset({"localhost", "local", "internal", "svc", "test"})
"""Last labels of names that public DNS does not have. Sources: RFC 6761, RFC 6762, ICANN resolution
2024.07.29.06; `svc` is Kubernetes'.
"""
OTLP: Final = "/v1/"
METRICS: Final = "/metrics"


class Hosts:
    """Checks the `Host` of requests. `names` are allowed beside those that need no check, and so
    are pages of `origins` that send OTLP.
    """

    def __init__(self, names: Iterable[str], origins: Iterable[str] = ()) -> None:
        self._names = frozenset(name.lower() for name in names)
        self._origins = frozenset(origins)

    def check(self, request: web.Request) -> None:
        """Raise `Refused` for a request that a page of another origin may have sent.

        Programs reach `/metrics` and the OTLP receivers by any name; a browser names the origin of
        what it posts there.
        """
        origin = request.headers.get("Origin")
        by_programs = request.path.startswith(OTLP) or request.path == METRICS
        if by_programs and (origin is None or self.may_send(request)):
            return
        if not self.allows(request.headers.get("Host", "")):
            raise Refused(
                Problem.HOST,
                "host",
                "the Host header is no name of this service; add its name to ui.hosts",
            )

    def may_send(self, request: web.Request) -> bool:
        """Return whether a page of an allowed origin sends OTLP."""
        return request.path.startswith(OTLP) and request.headers.get("Origin") in self._origins

    def allows(self, host: str) -> bool:
        """Return whether a `Host` header names this service; programs may send none.

        >>> hosts = Hosts(["obs.example.com"])
        >>> [hosts.allows(host) for host in ("127.0.0.1:80", "[::1]:80", "web", "a.svc:80", "")]
        [True, True, True, True, True]
        >>> hosts.allows("OBS.example.com:8080"), hosts.allows("evil.example.com")
        (True, False)
        """
        name = ""
        with suppress(ValueError):
            name = urlsplit(f"//{host}").hostname or ""
        with suppress(ValueError):
            ipaddress.ip_address(name)
            return True
        labels = name.removesuffix(".").split(".")
        return not host or name in self._names or len(labels) == 1 or labels[-1] in PRIVATE


def hosts_of(config: Config) -> Hosts:
    """Return the names of this machine, of its endpoints and from the settings of the UI."""
    places = (parse_address(getattr(config.service, endpoint)) for endpoint in ENDPOINTS)
    url = config.ui.url
    return Hosts(
        [
            socket.gethostname(),
            *(place.host for place in places if place is not None),
            *(() if url is None else (urlsplit(url).hostname or "",)),
            *config.ui.hosts,
        ],
        config.service.cors,
    )
