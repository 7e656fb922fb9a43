"""The log of the process: events of ours, and what libraries report, without a byte of a client.

A library's message may quote what a client sent: aiohttp's server logs the request that it cannot
parse, with its body and its `Authorization`. So records of libraries keep the text that the library
wrote, the name of the logger and the type of the error; arguments, texts of errors and tracebacks
are left out.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from aiohttp.http_exceptions import HttpProcessingError

from otel_reliability.model.remembered import Remembered

OURS: Final = "otel_reliability"
NOT_HTTP: Final = "not_http"
"""The reason by which requests that are no HTTP/1.1 are counted."""
INTERVAL_S: Final = 60.0
"""Seconds in which one peer's requests of one kind are logged once."""
MAX_LINES: Final = 60
"""Records of one kind that are logged in this time."""
MAX_PEERS: Final = 1_000
"""Peers that are distinguished; of more, the log begins to repeat itself."""

_HTTP2: Final = ("HTTP/2", "if this is gRPC, send it to the gRPC endpoint (port 4317)")
_TLS: Final = ("TLS", "this endpoint has no certificate; send http://, or set service.tls")
KINDS: Final[Mapping[str, tuple[str, str]]] = {
    "Pause on PRI/Upgrade": _HTTP2,
    "PRI * HTTP/2": _HTTP2,  # so the parser in Python quotes it
    "Received HTTPS traffic": _TLS,
    "\\x16\\x03": _TLS,
}
"""Words of the server's parser about a request → what it is, and the way out."""
OTHER_KIND: Final = ("unreadable", "check what sends to this address")

_logger: Final = logging.getLogger(f"{OURS}.service")


def log_to_stderr(level: str) -> None:
    """Log to stderr: events of the process, never content of spans or requests."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    handler.addFilter(LineRate())
    logger = logging.getLogger(OURS)
    logger.addHandler(handler)
    logger.setLevel(level.upper())
    logger.propagate = False
    libraries = logging.StreamHandler(sys.stderr)
    libraries.setFormatter(WithoutContent("%(asctime)s %(levelname)s %(message)s"))
    libraries.addFilter(LineRate())
    logging.getLogger().addHandler(libraries)


class LineRate(logging.Filter):
    """Passes at most `MAX_LINES` records a minute of each line of code that logs; the last of them
    says so.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._passed: dict[tuple[str, int], tuple[float, int]] = {}
        """When the current minute of a line of code began, and how many of its records came."""

    def filter(self, record: logging.LogRecord) -> bool:
        place = (record.pathname, record.lineno)
        now = self._clock()
        begun, number = self._passed.get(place, (now, 0))
        if now - begun >= INTERVAL_S:
            begun = now
            number = 0
        number += 1
        self._passed[place] = (begun, number)
        if number == MAX_LINES:
            record.msg = f"{record.msg} (Further ones are left out for a minute.)"
        return number <= MAX_LINES


class WithoutContent(logging.Formatter):
    """Writes a library's record without its arguments, the text of its error and the traceback.

    >>> record = logging.makeLogRecord({"name": "lib", "msg": "bad %s", "args": ("secret",)})
    >>> WithoutContent("%(message)s").format(record)
    'lib: bad %s'
    """

    def format(self, record: logging.LogRecord) -> str:
        error = record.exc_info[1] if record.exc_info else None
        kind = "" if error is None else f" ({type(error).__name__})"
        plain = {"levelno": record.levelno, "levelname": record.levelname}
        text = f"{record.name}: {record.msg if isinstance(record.msg, str) else 'an error'}{kind}"
        return super().format(logging.makeLogRecord({**plain, "msg": text.partition("\n")[0]}))


class ServerLogger(logging.Logger):
    """The logger of aiohttp's server: counts requests that are no HTTP/1.1, and logs each kind of a
    peer once a minute, with the way out.

    Its level is DEBUG, as the server reports what it cannot parse at that level too.
    """

    def __init__(
        self, count: Callable[[str, str], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__(f"{OURS}.service.http", logging.DEBUG)
        self._count = count
        self._clock = clock
        self._logged = Remembered[tuple[str, str], float](MAX_PEERS)

    def handle(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        if isinstance(error, HttpProcessingError):
            peer = str(record.args[0]) if isinstance(record.args, tuple) and record.args else "?"
            self._count(NOT_HTTP, peer)
            self._refused(peer, *kind_of(str(error)))
        elif record.levelno >= logging.ERROR:
            _logger.error("A request could not be answered (%s).", type(error).__name__)

    def _refused(self, peer: str, kind: str, way_out: str) -> None:
        now = self._clock()
        if self._logged.get((peer, kind), -INTERVAL_S) + INTERVAL_S > now:
            return
        self._logged[peer, kind] = now
        _logger.warning("A request of %s is %s, not HTTP/1.1: %s.", peer, kind, way_out)


def kind_of(error: str) -> tuple[str, str]:
    """Return what a request is that the server could not parse, and the way out.

    >>> kind_of("Bad status line: PRI * HTTP/2.0")[0], kind_of("")[0]
    ('HTTP/2', 'unreadable')
    """
    return next((known for mark, known in KINDS.items() if mark in error), OTHER_KIND)


def log_loop_error(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log an error that no task has handled by its type: the text of one may quote a client."""
    error = context.get("exception")
    kind = "no exception" if error is None else type(error).__name__
    _logger.error("An error was not handled (%s).", kind)
