"""Real programs that go away and come back: the service under a Collector, and under the service
whoever takes its numbers.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.trace import Tracer

from tests.collector_config.shipped import at_port, shipped
from tests.real.collector.handle import Collector, Collectors, Config
from tests.real.pipelines import pipeline
from tests.real.ports import HOST, free_port
from tests.real.prometheus.handle import Prometheuses
from tests.real.waiting import until
from tests.real.web import ask
from tests.service.fleet import AGENTS, perform, sending
from tests.service.running import Controlled, Running, serving, sum_of
from tests.service.served import Served, Services

pytestmark = pytest.mark.real

MEGABYTE = 1024 * 1024
SOON = {"initial_interval": "100ms", "max_interval": "1s", "max_elapsed_time": "0s"}
SMALL: Mapping[str, Any] = {"windows": [{"last": 5}], "limits": {"memory": "64MiB"}}
"""All that is remembered is full after a moment: then nothing has a reason to grow."""


class Load(threading.Thread):
    """Agents that go on until they are told to stop."""

    def __init__(self, tracer: Tracer) -> None:
        super().__init__(daemon=True)
        self._tracer, self._ending = tracer, threading.Event()
        self.runs = 0

    def run(self) -> None:
        for number in count():
            perform(self._tracer, 1, number)
            self.runs += len(AGENTS)
            if self._ending.wait(0.1):
                return

    def end(self) -> int:
        """Stop. Gives how many runs there were."""
        self._ending.set()
        self.join(60)
        return self.runs


@contextmanager
def load(url: str) -> Generator[Load]:
    """Agents at work; at the end all their spans have been handed over."""
    with sending(url, "bookshop") as tracer:
        working = Load(tracer)
        working.start()
        yield working
        working.end()


def to_service(grpc: str, http: str, exporter: str) -> Config:
    """A Collector that sends spans on by one of the protocols."""
    exporters = {
        "otlp_grpc": {"endpoint": grpc, "tls": {"insecure": True}, "retry_on_failure": SOON},
        "otlp_http": {"endpoint": http, "retry_on_failure": SOON},
    }
    return {
        "receivers": {"otlp": {}},
        "exporters": {exporter: exporters[exporter]},
        "service": {"pipelines": {"traces": pipeline(["otlp"], [exporter])}},
    }


def runs_of(service: Served) -> float:
    """Runs that will not change any more."""
    return service.sum("agent_reliability_runs_total")


def pushed(address: str) -> float:
    """The same, as a Collector shows them."""
    return sum_of(ask(f"http://{address}/metrics").text, "agent_reliability_runs_total")


def test_a_killed_service_has_everything_in_the_end(
    collector: Collectors, serve: Services, tmp_path: Path
) -> None:
    service = serve(state=tmp_path / "state")
    doors = [
        collector(to_service(service.grpc, service.http, exporter)).http
        for exporter in ("otlp_grpc", "otlp_http")
    ]
    with load(doors[0]) as first, load(doors[1]) as second:
        for _ in range(2):
            time.sleep(1)
            service.kill()
            time.sleep(0.5)
            service.start()
    runs = first.runs + second.runs
    until(lambda: runs_of(service) >= runs, "all runs to become final")

    assert runs_of(service) == runs
    assert service.sum(
        "agent_reliability_tool_calls_total", gen_ai_agent_name="clerk"
    ) == 3 * runs / len(AGENTS)
    assert service.sum("otel_reliability_spans_total", disposition="late") == 0


def refusals(running: Running, transport: str) -> float:
    """The requests that found the queue full."""
    return running.sum("otel_reliability_requests_total", transport=transport, outcome="queue_full")


def test_a_flooded_service_has_everything_in_the_end(collector: Collectors) -> None:
    many = {"sizer": "items", "queue_size": 100_000, "num_consumers": 20}
    at_once = {
        "sending_queue": {
            **many,
            "batch": {"flush_timeout": "200ms", "min_size": 30, "max_size": 40},
        }
    }
    held = Controlled()
    with serving(
        {"windows": [{"last": 1_000}]},
        persistence_of=held,
        queue=24 << 10,
        max_request=24 << 10,
    ) as running:
        before = list[Collector]()
        for exporter in ("otlp_grpc", "otlp_http"):
            config = to_service(running.target, running.url("http"), exporter)
            before.append(collector(config, overlay={"exporters": {exporter: at_once}}))
            with sending(before[-1].http, f"by {exporter}") as tracer:
                perform(tracer, 40)
        for transport in ("grpc", "http"):
            until(partial(refusals, running, transport), f"refusals over {transport}")
        held.may_commit.set()
        sent = until(
            lambda: sum(one.count("otelcol_receiver_accepted_spans") for one in before), "spans"
        )
        until(
            lambda: running.sum("otel_reliability_spans_total", disposition="received") >= sent,
            "all spans",
        )
        running.finalize()

        assert running.sum("otel_reliability_spans_total", disposition="received") == sent
        assert running.sum("agent_reliability_runs_total") == 2 * 40 * len(AGENTS)
        assert {one.count("otelcol_exporter_send_failed_spans") for one in before} == {0}


@pytest.mark.parametrize(
    ("seconds", "growth"),
    [(3.0, 20), pytest.param(600.0, 40, marks=pytest.mark.soak)],
    ids=["short", "ten minutes"],
)
def test_whoever_takes_our_numbers_may_be_away(
    collector: Collectors,
    prometheus: Prometheuses,
    serve: Services,
    monkeypatch: pytest.MonkeyPatch,
    seconds: float,
    growth: int,
) -> None:
    port = f"{HOST}:{free_port()}"
    sink = shipped(collector, "metrics-prometheus-exporter.yaml", overlay=at_port(port))
    monkeypatch.setenv("OTEL_METRIC_EXPORT_INTERVAL", "500")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_METRICS_TIMEOUT", "1")
    service = serve("--push", f"http://{sink.grpc}", **SMALL)
    server = prometheus({"reliability": service.metrics_address})
    with load(service.http) as sent:
        until(lambda: runs_of(service) >= 10 * len(AGENTS), "windows to be full")
        for one in (sink, server):
            one.kill()
        before = service.resident()
        time.sleep(seconds)
        until(
            lambda: service.sum("otel_reliability_exports_total", outcome="failed") > 0,
            "an export to fail",
        )
        grown = service.resident() - before
        print(f"grown by {grown / MEGABYTE:.1f} MB in {seconds:g} s")
        for one in (sink, server):
            one.start()
    until(lambda: pushed(port) >= sent.runs, "all runs pushed")
    server.ask.wait(
        "sum(agent_reliability_runs_total)",
        lambda found: bool(found) and found[0].value >= sent.runs,
    )

    assert {
        runs_of(service),
        pushed(port),
        server.ask.value("sum(agent_reliability_runs_total)"),
    } == {sent.runs}
    assert grown < growth * MEGABYTE
