"""No byte of a client reaches the log, whatever it sends instead of HTTP/1.1."""

from __future__ import annotations

import logging
import re
import socket

import pytest
from aiohttp.http_exceptions import BadStatusLine

from otel_reliability.service.logs import INTERVAL_S, MAX_LINES, NOT_HTTP, LineRate, ServerLogger
from tests.real.waiting import until
from tests.service.served import Services

CANARY = b"sk-live-canary-token"
HTTP2 = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
OPENINGS = {
    "http2": HTTP2 + CANARY,
    "tls": b"\x16\x03\x01\x02\x00\x01\x00" + CANARY + b"\r\n\r\n",
    "bad method": CANARY + b"? / HTTP/1.1\r\n\r\n",
    "bad status line": b"GET / " + CANARY + b" HTTP/1.1\r\n\r\n",
    "bad header": b"GET / HTTP/1.1\r\nHost: a\r\nAuthorization Bearer " + CANARY + b"\r\n\r\n",
    "bad length": b"POST /v1/traces HTTP/1.1\r\nHost: a\r\nContent-Length: " + CANARY + b"\r\n\r\n",
    "bad chunk": b"POST /v1/traces HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n" + CANARY + b"\r\n",
    "long header": b"GET / HTTP/1.1\r\nX: " + CANARY * 1_000 + b"\r\n\r\n",
}


def send(address: str, opening: bytes) -> None:
    host, _, port = address.removeprefix("http://").rpartition(":")
    with socket.create_connection((host, int(port)), timeout=5) as connection:
        connection.sendall(opening)
        connection.shutdown(socket.SHUT_WR)
        connection.settimeout(5)
        while connection.recv(4096):
            pass


def test_no_byte_of_a_client_is_logged(serve: Services) -> None:
    served = serve("--log-level", "debug")
    for address in (served.http, served.pages, served.metrics_address):
        for opening in OPENINGS.values():
            send(address, opening)

    found = "otel_reliability_requests_total"
    until(lambda: served.sum(found, outcome=NOT_HTTP) >= len(OPENINGS), "requests are counted")
    log = served.log.read_text()
    assert CANARY.decode() not in log
    assert "Traceback" not in log
    assert len(re.findall("is HTTP/2, not HTTP/1.1", log)) == 1
    assert "port 4317" in log


def test_requests_that_are_no_http_are_counted_and_logged_once_a_minute(
    caplog: pytest.LogCaptureFixture,
) -> None:
    counted: list[tuple[str, str]] = []

    def count(reason: str, peer: str) -> None:
        counted.append((reason, peer))

    now = [0.0]
    logger = ServerLogger(count, lambda: now[0])

    for second in (0.0, 1.0, INTERVAL_S + 1.0):
        now[0] = second
        error = BadStatusLine(HTTP2.decode() + CANARY.decode())
        logger.error("Error handling request from %s", "10.0.0.7", exc_info=error)

    assert counted == [(NOT_HTTP, "10.0.0.7")] * 3
    sentence = (
        "A request of 10.0.0.7 is HTTP/2, not HTTP/1.1: if this is gRPC, send it to the gRPC "
        "endpoint (port 4317)."
    )
    assert [record.getMessage() for record in caplog.records] == [sentence, sentence]


def test_lines_of_one_kind_have_a_rate() -> None:
    now = [0.0]
    rate = LineRate(lambda: now[0])

    def passed(number: int, line: int) -> list[str]:
        records = [
            logging.LogRecord("lib", logging.ERROR, "lib.py", line, "no file for %s", ("x",), None)
            for _ in range(number)
        ]
        return [record.getMessage() for record in records if rate.filter(record)]

    flood = passed(100_000, line=1)
    assert len(flood) == MAX_LINES
    assert flood[0] == "no file for x"
    assert flood[-1] == "no file for x (Further ones are left out for a minute.)"
    assert passed(1, line=2) == ["no file for x"]
    now[0] = INTERVAL_S
    assert passed(1, line=1) == ["no file for x"]
