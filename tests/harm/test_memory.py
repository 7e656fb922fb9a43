from __future__ import annotations

import sys

import pytest

from tests.harm.hosts import run_host

HOST = """
from otel_reliability import price_table, processor
from otel_reliability.engine import Engine
from otel_reliability.telemetry.live import live_of
from otel_reliability.testing import FakeClock

processor.MAX_HELP_S = 0.1  # however slow this machine is, hooks work their queue off

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096

from opentelemetry.sdk.metrics.export import InMemoryMetricReader
reader = InMemoryMetricReader()
provider = MeterProvider([reader], resource=RESOURCE)
clock = FakeClock()
live = live_of(provider, None, lambda settings: Engine(settings, clock=clock, wall=clock.wall))
tracing = TracerProvider(resource=RESOURCE, shutdown_on_exit=False)
tracing.add_span_processor({door})
tracer = tracing.get_tracer("test")

def work(spans):
    for number in range(spans // 10):
        agent(tracer, f"search-{{number % 7}} read search reply look", name=f"agent-{{number % 5}}")
        with tracer.start_as_current_span("GET", attributes={{"http.url": f"/{{number}}", f"key-{{number}}": number}}):
            for _ in range(3):
                tracer.start_span("SELECT", attributes={{"db.system": "sql"}}).end()
        clock.advance(1)
        if number % 60 == 0:
            {collect}

work(100)
price_table.wait_until_loaded(60)  # until then nothing becomes final
work({warm})
before = resident()
work({spans})
print("grew", resident() - before, flush=True)
reader.get_metrics_data()
accounts = live.engine.accounts
print("received", accounts["received", ""], flush=True)
import os
os._exit(0)
"""
DOORS = {
    "processor": "ReliabilitySpanProcessor(meter_provider=provider)",
    "exporter": (
        "BatchSpanProcessor(ReliabilitySpanExporter(meter_provider=provider), "
        "max_queue_size=100_000)"
    ),
}


def grown(door: str, collect: str, warm: int, spans: int) -> int:
    """Bytes by which a host's memory grew over so many spans, after so many to warm up."""
    host = run_host(
        HOST.format(door=DOORS[door], collect=collect, warm=warm, spans=spans), measured=True
    )
    told = dict(line.split() for line in host.out.splitlines())
    assert int(told["received"]) >= 0.9 * (warm + spans), host.err
    return int(told["grew"])


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
@pytest.mark.parametrize(
    ("door", "collect"),
    [
        ("processor", "reader.get_metrics_data()"),
        ("processor", "pass"),
        ("exporter", "tracing.force_flush()"),
    ],
    ids=["processor, collected", "processor, never collected", "exporter"],
)
def test_memory_is_steady(door: str, collect: str) -> None:
    assert grown(door, collect, 10_000, 7_500) < 3 * 1024 * 1024


@pytest.mark.soak
@pytest.mark.parametrize("door", DOORS)
def test_memory_is_steady_over_a_million_spans(door: str) -> None:
    assert grown(door, "tracing.force_flush()", 100_000, 1_000_000) < 16 * 1024 * 1024
