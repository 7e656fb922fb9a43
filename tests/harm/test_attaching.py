from __future__ import annotations

from importlib.metadata import entry_points

import pytest

from otel_reliability.exporter import ReliabilitySpanExporter
from tests.harm.hosts import run_host
from tests.telemetry.meters import Meters

AGENT = 'agent(trace.get_tracer("test"))'


def test_the_environment_alone_attaches_it() -> None:
    host = run_host(
        f"{AGENT}\n{AGENT}",
        instrument=True,
        env={
            "OTEL_TRACES_EXPORTER": "console,reliability",
            "OTEL_METRICS_EXPORTER": "console",
            "OTEL_LOGS_EXPORTER": "none",
            "OTEL_SERVICE_NAME": "shop",
            "OTEL_RELIABILITY_METRICS_MIN_RUNS": "2",
        },
    )

    assert (host.code, host.err) == (0, "")
    assert (
        host.value("agent.reliability.runs", service__name="shop", gen_ai__agent__name="agent") == 2
    )
    assert host.value("agent.reliability.score") == 100.0
    assert host.value("otel_reliability.runs.closed", reason="shutdown") == 2
    assert '"name": "invoke_agent agent"' in host.out


def test_a_wrong_variable_is_told_and_keeps_nothing_from_starting() -> None:
    host = run_host(
        AGENT,
        instrument=True,
        env={
            "OTEL_TRACES_EXPORTER": "console,reliability",
            "OTEL_METRICS_EXPORTER": "console",
            "OTEL_LOGS_EXPORTER": "none",
            "OTEL_RELIABILITY_ASSEMBLY_LINGER": "soon",
        },
    )

    assert host.code == 0
    assert "OTEL_RELIABILITY_ASSEMBLY_LINGER: 'soon' is not a duration" in host.err
    assert host.value("agent.reliability.runs") == 1


def test_declarative_configuration_finds_the_exporter() -> None:
    (entry,) = (
        found
        for found in entry_points(group="opentelemetry_traces_exporter")
        if found.name == "reliability"
    )
    exporter = entry.load()(meter_provider=Meters().provider, window=50)

    assert isinstance(exporter, ReliabilitySpanExporter)
    assert exporter._live.settings.windows[0].last == 50
    exporter.shutdown()


SET = {
    "tracing": "trace.set_tracer_provider(TracerProvider(resource=RESOURCE))",
    "processor": "trace.get_tracer_provider().add_span_processor(ReliabilitySpanProcessor())",
    "exporter": "trace.get_tracer_provider().add_span_processor(BatchSpanProcessor(ReliabilitySpanExporter()))",
    "metrics": "metrics.set_meter_provider(meters())",
    "agent": AGENT,
}


@pytest.mark.parametrize("door", ["processor", "exporter"])
@pytest.mark.parametrize(
    "order",
    [
        "metrics tracing door agent",
        "tracing metrics door agent",
        "tracing door metrics agent",
        "tracing door agent metrics",
    ],
)
def test_metrics_may_be_set_up_before_or_after(door: str, order: str) -> None:
    host = run_host(
        "\n".join(SET[door if step == "door" else step] for step in order.split())
        + "\ntrace.get_tracer_provider().shutdown()"
    )

    assert (host.code, host.err) == (0, "")
    assert host.value("agent.reliability.window.runs") == 1
    if order.endswith("agent"):
        assert host.value("agent.reliability.runs") == 1


def test_without_any_meter_provider_it_says_once_how_to_see_the_numbers() -> None:
    host = run_host(f"{SET['tracing']}\n{SET['processor']}\n{AGENT}\n{AGENT}")

    assert (host.code, host.out) == (0, "")
    assert host.err.count("OTEL_METRICS_EXPORTER") == 1
    assert len(host.err.strip().splitlines()) == 1


LARGE = (
    "_hashlib",  # OpenSSL
    "google.protobuf",
    "grpc",
    "Levenshtein",
    "aiohttp",
    "click",
    "jinja2",
    "numpy",
    "prometheus_client",
    "pydantic",
    "quixstreams",
    "rapidfuzz",
    "requests",
    "rich",
    "yaml",
    "zstandard",
    "otel_reliability.service",
    "otel_reliability.report",
    "otel_reliability.sources.otlp",
)
"""Modules that an agent's process must not load before it needs them."""


def test_attaching_loads_nothing_large() -> None:
    """Neither OpenSSL, messages of protobuf, gRPC, numpy and edit distances, nor anything of
    reports and the service.

    Nor does it read sources: a program may be shipped without.
    """
    host = run_host(
        "import inspect, otel_reliability\n"
        "inspect.getsource = None\n"
        "otel_reliability.ReliabilitySpanProcessor()\n"
        f"print([name for name in {LARGE!r} if name in sys.modules])",
        measured=True,  # coverage loads OpenSSL too
    )

    assert (host.code, host.out.strip()) == (0, "[]")
