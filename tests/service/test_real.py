"""The service between real Collectors; all ways to Prometheus are compared in `test_end_to_end.py`."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import pytest

from otel_reliability.service.answers import RETRY
from otel_reliability.testing import traces_protobuf
from tests.real.collector.handle import Collectors, Config
from tests.real.pipelines import pipeline
from tests.real.prometheus.handle import Promtool
from tests.real.waiting import until
from tests.real.web import ask
from tests.service.running import Running, serving
from tests.telemetry.numbers import spans_of

pytestmark = pytest.mark.real

SOON = {"initial_interval": "100ms", "max_interval": "300ms", "multiplier": 1.5, "max_elapsed_time": "60s"}
"""Labels that say by which way a number came."""


def to_service(running: Running, protocol: str) -> Config:
    """A Collector that sends spans on to the service."""
    exporter: Mapping[str, Any] = {
        "otlp_grpc": {"endpoint": running.target, "tls": {"insecure": True}, "retry_on_failure": SOON},
        "otlp_http": {"endpoint": running.url("http"), "retry_on_failure": SOON},
    }
    return {
        "receivers": {"otlp": {}},
        "processors": {"batch": {"timeout": "50ms"}},
        "exporters": {protocol: exporter[protocol]},
        "service": {"pipelines": {"traces": pipeline(["otlp"], [protocol], ["batch"])}},
    }


@pytest.mark.parametrize("protocol", ["otlp_grpc", "otlp_http"])
def test_the_collector_waits_for_us_and_loses_nothing(collector: Collectors, protocol: str) -> None:
    """While the service has no budget the Collector is told when to come again, under the hint of its protocol, and does."""
    with serving() as running:
        before = collector(to_service(running, protocol))
        budget = running.service.intake.budget
        place = budget.reservation(budget.capacity)
        spans = spans_of("support", 40, 1)
        for at in range(0, len(spans), 10):
            body = traces_protobuf(spans[at : at + 10])
            assert (
                ask(f"{before.http}/v1/traces", body=body, headers={"Content-Type": "application/x-protobuf"}).status
                == 200
            )
        until(lambda: budget.refused >= 3, "the Collector to be refused")
        place.release()
        until(lambda: running.service.engine.accounts["received", ""] >= len(spans), "everything to arrive")
        running.finalize()

        assert running.sum("agent_reliability_runs_total", gen_ai_agent_name="support") == 40
        assert running.sum("otel_reliability_spans_total", disposition="received") == len(spans)
        assert before.count("otelcol_exporter_send_failed_spans") == 0


@pytest.mark.parametrize("protocol", ["otlp_grpc", "otlp_http"])
def test_the_collector_comes_again_when_it_is_told(collector: Collectors, protocol: str) -> None:
    """Not sooner: its own pause is 0.1 to 0.45 s, ours is 1 s, told by RetryInfo within the status or by Retry-After."""
    with serving() as running:
        before = collector(to_service(running, protocol))
        budget = running.service.intake.budget
        place = budget.reservation(budget.capacity)
        body = traces_protobuf(spans_of("support", 1, 1))
        ask(f"{before.http}/v1/traces", body=body, headers={"Content-Type": "application/x-protobuf"})
        moments = [
            until(lambda n=n: budget.refused >= n and time.monotonic(), f"refusal {n}", pause=0.005) for n in (1, 2)
        ]
        place.release()
        until(lambda: running.service.engine.accounts["received", ""], "the spans to arrive")

        assert moments[1] - moments[0] > 0.8 * RETRY


def test_promtool_finds_nothing_wrong(promtool: Promtool) -> None:
    """Names, types and text are as Prometheus wants them, but that it takes the bits of an entropy for a size."""
    with serving() as running:
        running.post("traces", traces_protobuf(spans_of("support", 12, 1)))
        running.finalize()
        done = promtool("check", "metrics", stdin=running.metrics())
    complaints = [
        line
        for line in done.stderr.splitlines()
        if not line.startswith("agent_reliability_path_entropy_bits use base unit")
    ]

    assert done.stdout == ""
    assert complaints == []
