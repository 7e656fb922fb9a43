"""A scrape is written piece by piece, and one that cannot be read holds up no other for ever."""

from __future__ import annotations

import gzip
import socket
from collections.abc import Iterator
from http.client import IncompleteRead

import pytest

from otel_reliability import dashboards
from otel_reliability.service import web as web_module
from tests.service.running import Running, run_of, serving


@pytest.fixture
def running(monkeypatch: pytest.MonkeyPatch) -> Iterator[Running]:
    monkeypatch.setattr(web_module, "SCRAPE_CHUNK", 1_024)
    with serving() as found:
        found.send(span for trace in range(1, 60) for span in run_of(trace, agent=f"a{trace}"))
        yield found


def test_chunks_are_the_whole_text(running: Running) -> None:
    whole = running.get("metrics", "/metrics")
    packed = running.get("metrics", "/metrics", accept_encoding="gzip")

    assert whole.headers["Transfer-Encoding"] == "chunked"
    names = [line for line in whole.text.splitlines() if line.startswith("agent_reliability_runs")]
    assert len(names) >= 59
    text = gzip.decompress(packed.body).decode()
    assert [line.split(" ")[0] for line in text.splitlines()] == [
        line.split(" ")[0] for line in whole.text.splitlines()
    ]


def test_a_client_that_does_not_read_ends_its_scrape_only(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    def endless(pieces: Iterator[bytes]) -> Iterator[bytes]:
        yield from (bytes(10**6) for _ in pieces)

    monkeypatch.setattr(web_module, "SCRAPE_TIMEOUT_S", 1.0)
    monkeypatch.setattr(web_module, "_compressed", endless)
    host, _, port = running.url("metrics", "").removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), timeout=10) as silent:
        silent.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        silent.sendall(b"GET /metrics HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n")
        assert silent.recv(16).startswith(b"HTTP/1.1 200")
        assert running.get("metrics", "/metrics").status == 200


def test_a_failure_in_the_middle_is_no_whole_scrape(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(pieces: Iterator[bytes]) -> Iterator[bytes]:
        yield next(pieces)
        raise RuntimeError("the test")

    monkeypatch.setattr(web_module, "_compressed", failing)
    monkeypatch.setattr(web_module, "SCRAPE_CHUNK", 1)
    monkeypatch.setattr("otel_reliability.telemetry.guard.Guard.loud", False)
    with pytest.raises(IncompleteRead):
        running.get("metrics", "/metrics", accept_encoding="gzip")
    assert running.get("metrics", "/metrics").status == 200


def test_a_large_fleet_is_scraped_for_its_dashboards_only() -> None:
    runs = [span for trace in range(1, 40) for span in run_of(trace, ["search", "search"])]
    families = list[set[str]]()
    for series in ("all", "dashboards"):
        with serving(series=series) as found:
            found.send(runs)
            names = {
                line.split()[2] for line in found.metrics().splitlines() if line[:6] == "# TYPE"
            }
            families.append({name.removesuffix("_total") for name in names})

    every, shown = families
    own = {name for name in every if name.startswith("otel_reliability_") or name == "target_info"}
    assert shown == (every & dashboards.families()) | own
    assert "agent_reliability_run_score" in every - shown
    assert {"agent_reliability_score", "agent_reliability_runs"} <= shown
