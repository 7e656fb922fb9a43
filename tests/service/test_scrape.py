"""A scrape is written piece by piece, and one that cannot be read holds up no other for ever."""

from __future__ import annotations

import gzip
import re
import socket
from collections.abc import Iterator
from http.client import IncompleteRead
from typing import Final

import pytest

from otel_reliability import dashboards
from otel_reliability.service import web as web_module
from otel_reliability.service.settings import ServiceSettings
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


def samples_of(text: str) -> set[str]:
    return {line.partition("{")[0] for line in text.splitlines() if 'agent_name="' in line}


def test_a_scrape_has_the_series_that_are_asked_for() -> None:
    runs = [span for trace in range(1, 40) for span in run_of(trace, ["search", "search"])]
    texts = dict[str, str]()
    for series in ("all", "dashboards", "fleet"):
        with serving(series=series) as running:
            running.send(runs)
            texts[series] = running.metrics()

    found = {series: samples_of(text) for series, text in texts.items()}
    assert found["fleet"] < found["dashboards"] < found["all"]
    assert "agent_reliability_run_score_bucket" in found["all"] - found["dashboards"]
    assert {"agent_reliability_score", "agent_reliability_runs_total"} <= found["fleet"]
    for series, names in (("dashboards", dashboards.FILES), ("fleet", dashboards.OF_FLEET)):
        asked = dashboards.samples(names)
        assert found["all"] & asked <= found[series]
        assert {_family(name) for name in found[series]} <= set(map(_family, asked))
        buckets = re.findall(r'run_retries_bucket.*le="(.*)"', texts[series])
        assert set(buckets) <= {"+Inf"}, "a histogram that nobody asks for the buckets of"
    assert ServiceSettings().series == "dashboards"


def _family(sample: str) -> str:
    return re.sub("_(?:total|bucket|count|sum)$", "", sample)


def test_metrics_that_a_setting_asks_for_are_in_every_scrape() -> None:
    settings = {"telemetry": {"standard_metrics": True}}
    with serving(settings, series="fleet") as running:
        running.send(run_of())
        assert "gen_ai_invoke_agent_duration_seconds_bucket" in running.metrics()


LARGEST: Final = {"all": 140, "dashboards": 95, "fleet": 40}
"""Megabytes of a scrape of 10,000 agents, at most: `docs/explanation/decisions.md`."""


@pytest.mark.parametrize("series", LARGEST)
def test_ten_thousand_agents_are_scraped_within_their_bytes(series: str) -> None:
    agents = 20
    runs = [
        span
        for number in range(5 * agents)
        for span in run_of(number + 1, agent=f"agent {9_000 + number % agents}", start=9.0 * number)
    ]
    with serving(series=series) as running:
        running.send(runs)
        lines = [line for line in running.metrics().splitlines() if 'agent_name="' in line]
    assert sum(len(line) + 1 for line in lines) / agents * 10_000 / 1e6 <= LARGEST[series]
