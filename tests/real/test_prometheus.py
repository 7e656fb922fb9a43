"""Debian's Prometheus and promtool: what the tests of the service will lean on."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.real import otlp
from tests.real.collector.handle import Collectors, Config
from tests.real.pipelines import pipeline
from tests.real.ports import HOST, free_port
from tests.real.prometheus.handle import Prometheuses, Promtool
from tests.real.prometheus.promql import QueryFailed
from tests.real.web import answers

pytestmark = pytest.mark.real

TRACE = bytes(range(16))


def test_scrapes_the_collectors_span_metrics(collector: Collectors, prometheus: Prometheuses) -> None:
    """Spans become counts in the span_metrics connector, text in the Prometheus exporter, and a PromQL answer."""
    address = f"{HOST}:{free_port()}"
    config: Config = {
        "receivers": {"otlp": {}},
        "connectors": {"span_metrics": {"metrics_flush_interval": "100ms", "namespace": "anchor"}},
        "exporters": {"prometheus": {"endpoint": address}},
        "service": {
            "pipelines": {
                "traces": pipeline(["otlp"], ["span_metrics"]),
                "metrics": pipeline(["span_metrics"], ["prometheus"]),
            }
        },
    }
    running = collector(config)
    server = prometheus({"collector": address})

    otlp.send(running.http, otlp.of_service("shop", [otlp.span(TRACE, bytes([n]) * 8, "chat") for n in (1, 2, 3)]))

    found = server.ask.wait('anchor_calls_total{service_name="shop"}')
    assert [sample.value for sample in found] == [3.0]
    assert found[0].labels["span_name"] == "chat"
    assert server.ask.value("sum(up)") == 1


def test_takes_what_the_collector_writes_to_it(collector: Collectors, prometheus: Prometheuses) -> None:
    """The Collector's remote-write exporter delivers the same counts without any scrape."""
    server = prometheus()
    config: Config = {
        "receivers": {"otlp": {}},
        "connectors": {"span_metrics": {"metrics_flush_interval": "100ms", "namespace": "anchor"}},
        "exporters": {"prometheusremotewrite": {"endpoint": server.write_url}},
        "service": {
            "pipelines": {
                "traces": pipeline(["otlp"], ["span_metrics"]),
                "metrics": pipeline(["span_metrics"], ["prometheusremotewrite"]),
            }
        },
    }

    otlp.send(collector(config).http, otlp.of_service("shop", [otlp.span(TRACE, b"\x01" * 8, "chat")]))

    found = server.ask.wait('{__name__=~"anchor_calls.*"} > 0')  # a new count begins with a zero
    assert [sample.value for sample in found] == [1.0]


def test_keeps_rules(prometheus: Prometheuses, tmp_path: Path) -> None:
    """A recording rule and an alert of a rule file are evaluated and can be asked for."""
    rules = tmp_path / "rules.yaml"
    rules.write_text(
        "groups: [{name: g, rules: [{record: answer, expr: vector(42)}, {alert: Always, expr: answer > 41}]}]"
    )
    server = prometheus(rules=[rules])

    assert server.ask.wait("answer")[0].value == 42
    firing = server.ask.wait('ALERTS{alertstate="firing"}')
    assert [sample.labels["alertname"] for sample in firing] == ["Always"]
    spans = server.ask.span("answer", firing[0].at - 0.1, firing[0].at, 0.1)
    assert {sample.value for samples in spans for sample in samples} == {42.0}


def test_keeps_its_store_over_a_restart(prometheus: Prometheuses) -> None:
    """A server restarted on the same folder answers on the same address and still knows the past."""
    server = prometheus()
    server.ask.api("status/config")
    at = server.ask.query("time()")[0].value

    server.restart()

    assert answers(f"{server.url}/-/ready")
    assert server.ask.value("time()") >= at


def test_says_why_a_question_was_wrong(prometheus: Prometheuses) -> None:
    """A malformed expression raises with Prometheus' own words, and `value` insists on one series."""
    server = prometheus()

    with pytest.raises(QueryFailed, match="parse error"):
        server.ask.query("sum(")
    with pytest.raises(QueryFailed, match="gives 0 series, wanted one"):
        server.ask.value("no_such_series")


def test_promtool_tells_good_rules_from_bad(promtool: Promtool, tmp_path: Path) -> None:
    """Promtool accepts a rule file that parses and refuses one with a broken expression, naming it."""
    good, bad = tmp_path / "good.yaml", tmp_path / "bad.yaml"
    text = "groups: [{name: g, rules: [{record: answer, expr: 'EXPRESSION'}]}]"
    good.write_text(text.replace("EXPRESSION", "sum(up)"))
    bad.write_text(text.replace("EXPRESSION", "sum(up"))

    assert promtool("check", "rules", good).returncode == 0
    refused = promtool("check", "rules", bad)
    assert refused.returncode != 0
    assert "unclosed left parenthesis" in refused.stderr
