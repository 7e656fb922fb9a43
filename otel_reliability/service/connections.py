"""Connections of the HTTP endpoints: how many there may be, and how long one may take to send the
headers of a request.

A connection *waits* while its client has to send something: until the headers and the body of a
request are complete, and between requests. At the limit the connection that has waited longest is
closed, so that neither silent nor slow clients keep others out.
"""

from __future__ import annotations

import asyncio
import sys
from collections import OrderedDict
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Final, cast

from aiohttp import web

from otel_reliability.service.heap import Garbage

MAX_CONNECTIONS: Final = 1_000
"""Connections to all HTTP endpoints together, and to the gRPC endpoint."""
SHARE_OF_FILES: Final = 4
"""At most one in so many file descriptors is such a connection."""
KEEP_ALIVE: Final = 75.0
"""Seconds that an idle connection stays open."""
HEADER_TIMEOUT: Final = 15.0
"""Seconds from the first byte of a request to the end of its headers."""

CLOSED_BYTES: Final = 5_000
"""Bytes that a closed connection leaves to the collector of cycles, beside what the client sent."""

_TIMEOUT_RESPONSE: Final = (
    b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
)


def limit_of_connections() -> int:
    """Return the limit, which is lower where the process may open few files."""
    return min(MAX_CONNECTIONS, max(1, _max_files() // SHARE_OF_FILES))


def raise_file_limit() -> None:
    """Let the process open as many files as the system allows it."""
    if sys.platform == "win32":
        return
    import resource  # noqa: PLC0415 (Windows has none)

    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (ValueError, OSError):  # macOS allows less than it says
        return


def _max_files() -> int:
    if sys.platform == "win32":
        return MAX_CONNECTIONS * SHARE_OF_FILES
    import resource  # noqa: PLC0415 (Windows has none)

    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MAX_CONNECTIONS * SHARE_OF_FILES if soft == resource.RLIM_INFINITY else soft


class Connections:
    """The open connections. `count` is called with the reason for which one is closed."""

    def __init__(self, limit: int, count: Callable[[str, str | None], None]) -> None:
        self._limit = limit
        self._count = count
        self._waiting: OrderedDict[Connection, None] = OrderedDict()
        """The one that has waited longest is first."""
        self._busy: set[Connection] = set()
        self._garbage = Garbage()

    def accept(self, server: Callable[[], asyncio.Protocol]) -> Connection:
        """Return the protocol of a new connection, which passes all on to that of the server."""
        return Connection(self, server())

    def opened(self, connection: Connection) -> None:
        if len(self._waiting) + len(self._busy) >= self._limit:
            self._count("connections", None)
            longest = next(iter(self._waiting), connection)
            self._waiting.pop(longest, None)
            longest.abort()
        if not connection.is_closing:
            self._waiting[connection] = None

    def closed(self, connection: Connection, unhandled: int) -> None:
        """Forget a connection that has sent so many bytes which became no request."""
        self._waiting.pop(connection, None)
        self._busy.discard(connection)
        self._garbage.left(CLOSED_BYTES + unhandled)

    def wait(self, connection: Connection) -> None:
        """Note that the client has to send something now."""
        if connection in self._busy:
            self._busy.discard(connection)
            self._waiting[connection] = None

    def work(self, connection: Connection) -> None:
        """Note that the client has sent what is needed."""
        if connection in self._waiting:
            del self._waiting[connection]
            self._busy.add(connection)

    def is_late(self, connection: Connection) -> None:
        """Close a connection whose headers did not arrive in time."""
        self._count("slow", None)
        connection.end(_TIMEOUT_RESPONSE)


class Connection(asyncio.Protocol):
    """One connection, in front of the server's own protocol."""

    def __init__(self, connections: Connections, inner: asyncio.Protocol) -> None:
        self._connections = connections
        self._inner = inner
        self._transport: asyncio.Transport | None = None
        self._deadline: asyncio.TimerHandle | None = None
        self._is_handling = False
        """True from the end of the headers of a request to its answer."""
        self._unhandled = 0
        """Bytes since the last request."""

    @property
    def is_closing(self) -> bool:
        return self._transport is None or self._transport.is_closing()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._inner.connection_made(transport)
        self._connections.opened(self)

    def data_received(self, data: bytes) -> None:
        if self._deadline is None and not self._is_handling:
            loop = asyncio.get_running_loop()
            self._deadline = loop.call_later(HEADER_TIMEOUT, self._connections.is_late, self)
        if not self._is_handling:
            self._unhandled += len(data)
        self._inner.data_received(data)

    def eof_received(self) -> bool | None:
        return self._inner.eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_clock()
        self._connections.closed(self, self._unhandled)
        self._inner.connection_lost(exc)
        self._transport = None

    def pause_writing(self) -> None:
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        self._inner.resume_writing()

    def begin(self) -> None:
        """Note that the headers of a request are complete."""
        self._is_handling = True
        self._unhandled = 0
        self._stop_clock()
        self.work()

    def finish(self) -> None:
        """Note that the request is answered."""
        self._is_handling = False
        self.wait()

    def work(self) -> None:
        self._connections.work(self)

    def wait(self) -> None:
        self._connections.wait(self)

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def end(self, response: bytes) -> None:
        """Send a last response, and close."""
        if self._transport is not None:
            self._transport.write(response)
            self._transport.close()

    def _stop_clock(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


@contextmanager
def working(request: web.Request) -> Generator[None]:
    """Mark the connection of a request as busy while that is handled."""
    connection = _of(request)
    if connection is None:
        yield
        return
    connection.begin()
    try:
        yield
    finally:
        connection.finish()


@contextmanager
def waiting(request: web.Request) -> Generator[None]:
    """Mark the connection of a request as waiting while its body arrives."""
    connection = _of(request)
    if connection is None:
        yield
        return
    connection.wait()
    try:
        yield
    finally:
        connection.work()


def _of(request: web.Request) -> Connection | None:
    transport = request.transport
    protocol = None if transport is None else transport.get_protocol()
    return protocol if isinstance(protocol, Connection) else None
