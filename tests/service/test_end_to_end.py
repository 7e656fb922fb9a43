"""From agents under a real SDK to a question in PromQL, through real Collectors as they are
shipped, on every way there is.
"""

from __future__ import annotations

import time
from contextlib import suppress
from itertools import count
from pathlib import Path

import pytest

from tests.collector_config.shipped import at_port, shipped, spans_too
from tests.real import otlp
from tests.real.collector.handle import Collectors, Config
from tests.real.pipelines import pipeline, to_file
from tests.real.ports import HOST, free_port
from tests.real.prometheus.handle import Prometheuses
from tests.real.prometheus.promql import PromQL
from tests.real.waiting import NeverHappened, until
from tests.service.fleet import AGENTS, perform, sending
from tests.service.reported import Numbers, gauges_of, own, report
from tests.service.served import ENGINE, Served, Services
from tests.shared import shared
from tests.telemetry.numbers import prometheus_numbers

pytestmark = pytest.mark.real

RUNS = 12
SPLIT = Path(__file__).parents[1] / "collector_config" / "static-split.yaml"
OURS = '{__name__=~"agent_reliability_.*"'


def fan_out(*targets: str) -> Config:
    """A Collector that sends the metrics it gets to several others."""
    names = {f"otlp_grpc/{number}": target for number, target in enumerate(targets)}
    return {
        "receivers": {"otlp": {}},
        "exporters": {
            name: {"endpoint": target, "tls": {"insecure": True}} for name, target in names.items()
        },
        "service": {"pipelines": {"metrics": pipeline(["otlp"], [*names])}},
    }


def prometheus_with_otlp(address: str) -> Config:
    """What stands in for the OTLP receiver of newer servers of Prometheus: its path, and names by
    the same translation.
    """
    return {
        "receivers": {
            "otlp": {"protocols": {"http": {"metrics_url_path": "/api/v1/otlp/v1/metrics"}}}
        },
        "exporters": {"prometheus": {"endpoint": address, "without_scope_info": True}},
        "service": {"pipelines": {"metrics": pipeline(["otlp"], ["prometheus"])}},
    }


def shown(service: Served) -> Numbers:
    """What the service itself shows of agents."""
    found = prometheus_numbers(service.metrics()).items()
    return {
        (name, own(dict(labels))): value
        for (name, labels), value in found
        if name.startswith("agent_")
    }


def asked(ask: PromQL, job: str) -> Numbers:
    """What Prometheus knows of agents from one job; a series comes once."""
    samples = ask.query(f'{OURS},job="{job}"}}')
    found = {(sample.labels["__name__"], own(sample.labels)): sample.value for sample in samples}
    assert len(found) == len(samples)
    return found


def exemplar_traces(ask: PromQL, job: str) -> set[str]:
    """The traces to which the exemplars of run scores lead."""
    now = time.time()
    found = ask.exemplars(
        f'agent_reliability_run_score_bucket{{job="{job}"}}', now - 600, now + 600
    )
    return {one["labels"]["trace_id"] for one in found}


def test_every_way_gives_what_a_report_computes(
    collector: Collectors,
    prometheus: Prometheuses,
    serve: Services,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """Scraped from us; pushed, and scraped from a Collector; by remote write; by OTLP: each gauge
    of each agent is the report's.

    Names, counters and histograms are equal on all ways too, and exemplars lead to traces that were
    sent.
    """
    out = tmp_path / "spans.jsonl"
    port = f"{HOST}:{free_port()}"
    last = f"{HOST}:{free_port()}"
    written = prometheus()
    taking = collector(prometheus_with_otlp(last))
    hub = collector(
        fan_out(
            shipped(collector, "metrics-prometheus-exporter.yaml", overlay=at_port(port)).grpc,
            shipped(
                collector, "metrics-remote-write.yaml", REMOTE_WRITE_ENDPOINT=written.write_url
            ).grpc,
            shipped(
                collector, "metrics-otlp.yaml", METRICS_ENDPOINT=f"{taking.http}/api/v1/otlp"
            ).grpc,
        )
    )
    monkeypatch.setenv("OTEL_METRIC_EXPORT_INTERVAL", "1000")
    service = serve("--push", f"http://{hub.grpc}")
    before = shipped(
        collector,
        "gateway-tail-sampling.yaml",
        overlay=spans_too("traces/reliability", "otlp_grpc/reliability", out),
        OTEL_RELIABILITY_ENDPOINT=service.grpc,
        QUEUE_DIRECTORY=str(tmp_path / "queue"),
    )
    with sending(
        before.http, "bookshop", service__namespace="demo", deployment__environment__name="test"
    ) as tracer:
        perform(tracer, RUNS)
    scraping = prometheus(
        {
            "ours": service.metrics_address,
            "collector": {"honor_labels": True, "static_configs": [{"targets": [port]}]},
            "otlp": last,
        }
    )
    until(
        lambda: service.sum("agent_reliability_runs_total") == RUNS * len(AGENTS),
        "all runs to become final",
    )
    sessions = RUNS // 3 * len(AGENTS)
    until(
        lambda: service.sum("agent_reliability_session_reliability_count") == sessions,
        "all sessions to close",
    )
    expected = gauges_of(report(out))
    ours = shown(service)
    ways = {
        "ours": (scraping.ask, "ours"),
        "collector": (scraping.ask, "otel-reliability"),
        "otlp": (scraping.ask, "otlp"),
        "remote write": (written.ask, "otel-reliability"),
    }

    assert {
        key: value for key, value in ours.items() if key[0] in {name for name, _ in expected}
    } == expected
    assert {labels for name, labels in expected if name == "agent_reliability_score"} == {
        labels for name, labels in ours if name == "agent_reliability_score"
    }
    assert len(expected) > 40 * len(AGENTS)
    for way, (ask, job) in ways.items():
        with suppress(NeverHappened):
            until(lambda ask=ask, job=job: asked(ask, job) == ours, f"{way} to tell the same")
        assert asked(ask, job) == ours, way  # what differs says more than that something does
    # A Collector shows an exemplar until the next sending, so a slow machine may miss one: agents
    # go on until it is seen.
    with sending(before.http, "library") as tracer:
        numbers = count()
        for way in ("ours", "collector", "remote write"):

            def heard(way: str = way) -> set[str]:
                perform(tracer, 1, next(numbers))
                return exemplar_traces(*ways[way])

            found = until(heard, f"exemplars from {way}", pause=0.5)
            sent = {span.trace_id.hex() for _, span in otlp.written(out)}
            assert found <= sent


def test_two_replicas_behind_a_split_by_service(
    collector: Collectors, prometheus: Prometheuses, serve: Services, tmp_path: Path
) -> None:
    """Whole services, so whole runs and whole windows: together they tell what one report tells,
    each agent once.
    """
    out = tmp_path / "spans.jsonl"
    services = [f"shop-{number}" for number in range(6)]
    even = serve()
    odd = serve()
    before = collector(
        SPLIT,
        overlay={
            "exporters": {"file": to_file(out)},
            "service": {"pipelines": {"traces": pipeline(["otlp"], ["file"])}},
        },
        env={"EVEN_ENDPOINT": even.grpc, "ODD_ENDPOINT": odd.grpc},
    )
    for name in services:
        with sending(before.http, name) as tracer:
            perform(tracer, 4)
    runs = 4 * len(AGENTS) * len(services)
    until(
        lambda: sum(one.sum("agent_reliability_runs_total") for one in (even, odd)) == runs,
        "all runs to become final",
    )
    until(
        lambda: sum(one.sum("otel_reliability_sessions", state="open") for one in (even, odd)) == 0,
        "no open session",
    )
    expected = gauges_of(report(out))
    server = prometheus({"even": even.metrics_address, "odd": odd.metrics_address})
    everywhere = [len(AGENTS) * len(services)] * 2

    def counted() -> list[float]:
        by = "count(count by (service_name, gen_ai_agent_name) (agent_reliability_score))"
        return [server.ask.value(by), server.ask.value("count(agent_reliability_score)")]

    server.ask.wait(
        "sum(agent_reliability_runs_total)", lambda found: bool(found) and found[0].value == runs
    )
    told = [shown(one) for one in (even, odd)]

    assert counted() == everywhere
    assert not told[0].keys() & told[1].keys()
    assert all(told)
    both = told[0] | told[1]
    assert {
        key: value for key, value in both.items() if key[0] in {name for name, _ in expected}
    } == expected


def test_recorded_agents_of_real_frameworks(
    collector: Collectors, serve: Services, tmp_path: Path
) -> None:
    out = tmp_path / "spans.jsonl"
    service = serve(assembly={**ENGINE["assembly"], "idle_timeout": "6s"})
    before = shipped(
        collector,
        "sidecar.yaml",
        overlay=spans_too("traces", "otlp_grpc/reliability", out),
        OTEL_RELIABILITY_ENDPOINT=service.grpc,
    )
    for recording in sorted(shared("corpora/captured").glob("*.jsonl.gz")):
        if "logs" not in recording.name:
            otlp.replay(recording, before.http)
    sent = until(lambda: before.count("otelcol_receiver_accepted_spans"), "spans")
    until(
        lambda: service.sum("otel_reliability_spans_total", disposition="received") >= sent,
        "all spans",
    )
    until(lambda: service.sum("otel_reliability_runs_open") == 0, "no open run")
    until(lambda: service.sum("otel_reliability_sessions", state="open") == 0, "no open session")
    expected = gauges_of(report(out))
    ours = shown(service)

    assert {
        key: value for key, value in ours.items() if key[0] in {name for name, _ in expected}
    } == expected
    assert (
        len({labels for name, labels in expected if name == "agent_reliability_window_runs"}) > 20
    )
