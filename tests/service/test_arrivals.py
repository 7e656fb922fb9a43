"""The page of a service without agents: what has arrived, and why none of it became a run."""

from __future__ import annotations

import html

import pytest
from msgspec.structs import replace

from otel_reliability.testing import span
from tests.real.web import ask
from tests.service.running import JSON, Running, body_of, run_of, serving

METRICS = "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export"


def page_of(running: Running) -> str:
    return html.unescape(running.get("ui", "/").text)


def test_a_service_that_nothing_reached_says_nothing_of_it() -> None:
    with serving() as running:
        page = page_of(running)

    assert "Arrived so far" not in page
    assert "refused" not in page
    assert "OTEL_LOGS_EXPORTER=otlp" in page


def test_spans_of_no_agent_are_told_with_their_scopes() -> None:
    with serving() as running:
        running.send([span(1, name="GET /orders", scope="web.framework")])
        page = page_of(running)

    assert "Arrived so far: 1 request of traces; 1 span." in page
    assert "1 span of no agent that a convention recognizes. Scopes: web.framework." in page


def test_metrics_alone_are_told_to_miss_the_logs_of_claude_code() -> None:
    with serving() as running:
        assert running.post("metrics", b"").status == 200
        running.call(b"", METRICS)
        page = page_of(running)

    assert "Arrived so far: 2 requests of metrics; 0 spans." in page
    assert "Only metrics arrive, and they are discarded." in page


def test_malformed_spans_and_open_runs_are_told() -> None:
    with serving() as running:
        broken = replace(span(9, 1, trace=1), span_id=b"\1\2")
        running.post("traces", body_of([*run_of(1)[1:], broken]))
        page = page_of(running)

    assert "1 span malformed: span_id." in page
    assert "1 run not ended yet" in page


@pytest.mark.parametrize(
    ("path", "kind", "reason", "way_out"),
    [
        ("/v1/traces", "text/plain", "content_type", "OTEL_EXPORTER_OTLP_PROTOCOL"),
        ("/v1/trace", JSON, "unknown_signal", "/v1/traces"),
        ("/v1/traces", JSON, "undecodable", "Content-Type"),
    ],
)
def test_the_last_refusal_is_told_with_its_peer_and_the_way_out(
    path: str, kind: str, reason: str, way_out: str
) -> None:
    with serving() as running:
        ask(running.url("http", path), body=b"{", headers={"Content-Type": kind})
        page = page_of(running)

    line = next(line for line in page.splitlines() if "1 request refused" in line)
    assert f"of 127.0.0.1 over HTTP: {reason}" in line
    assert way_out in line
