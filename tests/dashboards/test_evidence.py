"""Every question of the dashboards and of the alerts is answered by a Prometheus that scraped a
service with the demo's fleet.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import pytest

from dashboards.alerts import ALERTS
from dashboards.promql import ALL, sample_of
from otel_reliability.telemetry.names import KAFKA, Instrument
from tests.dashboards.asking import Asked, filled, questions
from tests.dashboards.stage import HOUR, SETTINGS, Shop, live, past
from tests.real.collector.handle import Collectors, Config
from tests.real.pipelines import pipeline
from tests.real.ports import HOST, free_port
from tests.real.prometheus.handle import Prometheus, Prometheuses, Promtool
from tests.real.waiting import until
from tests.real.web import ask
from tests.service.running import serving

LACKING = frozenset(
    {
        "AgentRunExceedsBound",
        "ReliabilityInstanceDown",
        "agent: Alert [annotation]",
        "agent: Open runs against their bounds [A]",
        "fleet: Alert [annotation]",
        "fleet: Alerts that fire [A]",
        "fleet: Items beyond a limit, per minute [A]",
        "fleet: Runs that end in an error [B]",
    }
)
"""Questions without data, by name: no run of the fleet is open at a scrape, ends in an error or
exceeds a limit, and no rule is loaded. tests/watch holds open runs,
promtool the alerts.
"""
ONE_LATE_SCRAPE = frozenset({"ReliabilityInstanceDown"})
"""Answered where a busy machine lets one of the two services miss a scrape."""
LOOKS_BACK = frozenset(
    {
        "fleet: Agents, the worst first [I]",
        "fleet: Behaviour changed [annotation]",
        "fleet: New version [annotation]",
        "agent: Behaviour changed [annotation]",
        "agent: New version [annotation]",
        "agent: Changed [A]",
        # it stands for some runs only, until it is told as a change
        "agent: Evidence for a change, by signal [A]",
        "AgentBehaviourChanged",
        "AgentTierFell",
        "AgentWithoutRuns",
    }
)
"""What compares with a minute, an hour, a day or a version ago: asked of two days instead of the
last minutes.
"""
ENDING = ("otel_reliability_export", "agent_reliability_open_run_usage")
WHILE = 600.0
"""Seconds in which the fleet, and what goes wrong beside it, was at work: many times what they
need, as machines are shared.
"""


OF_WORKERS = "otel_reliability_kafka_"
"""What only workers on Kafka tell: `tests/kafka/test_dashboard.py` holds those questions to what a
worker tells.
"""


def unanswered(
    server: Prometheus, asked: Iterable[Asked], interval: str, at: float | None = None
) -> set[str]:
    """The names of those that get no answer, not even at some time of the last hour."""
    now = server.ask.query("time()", at=at)[0].value
    return {
        str(one) if one.board else one.panel
        for one in asked
        if not server.ask.span(
            filled(one.expr, interval, "1h"), now - (HOUR if at else WHILE), now, 60 if at else 5
        )
    }


def without_exemplars(server: Prometheus, asked: Iterable[Asked]) -> set[str]:
    now = server.ask.query("time()")[0].value
    return {
        f"{one}, exemplars"
        for one in asked
        if one.exemplar
        and not any(
            len(found["labels"]["trace_id"]) == 32
            for found in server.ask.exemplars(filled(one.expr, "1m"), now - HOUR, now + HOUR)
        )
    }


def alerts() -> list[Asked]:
    return [Asked("", alert.name, "", alert.value) for alert in ALERTS]


GONE = "ReliabilityServiceDown"
"""What only the end of the service answers."""


@pytest.mark.real
def test_every_question_is_answered(
    prometheus: Prometheuses, promtool: Promtool, tmp_path: Path
) -> None:
    """Panels, annotations and alerts: what a Prometheus that scrapes cannot know of the past is
    asked of two days.
    """
    everything = [one for one in (*questions(), *alerts()) if OF_WORKERS not in one.expr]
    named = {str(one) if one.board else one.panel: one for one in everything}
    now = [one for name, one in named.items() if name not in LOOKS_BACK]
    with live(prometheus, tmp_path) as server:
        found = unanswered(server, [one for one in now if one.panel != GONE], "1m")
        found |= without_exemplars(server, now)
    server.ask.wait("absent(otel_reliability_ready)")
    found |= unanswered(server, [named[GONE]], "1m")
    with past(prometheus, promtool, tmp_path) as (old, at):
        found |= unanswered(old, [named[name] for name in LOOKS_BACK], "5m", at)

    assert found | ONE_LATE_SCRAPE == LACKING


def test_only_names_that_are_emitted_are_asked_for() -> None:
    known = {name for spec in (*ALL.values(), *KAFKA) for name in _samples(spec)}

    for one in [*questions(), *alerts()]:
        asked = set(re.findall(r"\b((?:agent|otel)_reliability_\w+)", one.expr))
        assert asked or "ALERTS{" in one.expr, one
        assert asked <= known, f"{one}: {asked - known}"


@pytest.mark.real
def test_a_collector_tells_the_same_names(
    collector: Collectors, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = free_port()
    config: Config = {
        "receivers": {"otlp": {}},
        "exporters": {"prometheus": {"endpoint": f"{HOST}:{port}"}},
        "service": {"pipelines": {"metrics": pipeline(["otlp"], ["prometheus"])}},
    }
    monkeypatch.setenv("OTEL_METRIC_EXPORT_INTERVAL", "200")
    with serving(SETTINGS, push=f"http://{collector(config).grpc}") as running:
        shop = Shop(running)
        for _ in range(12):
            shop.round()
        running.finalize()
        ours = emitted(running.metrics())
        until(
            lambda: emitted(ask(f"http://{HOST}:{port}/metrics").text) == ours,
            "the Collector to tell the same names",
        )

    assert len(ours) > 180


def emitted(text: str) -> set[str]:
    """The names of samples, with the bound of a bucket. Series that end are left out: a Collector
    keeps them.
    """
    found = re.findall(
        r"^((?:agent|otel)_reliability_\w+)(?:\{.*?(le=\"[^\"]+\")?\})? ", text, re.MULTILINE
    )
    return {f"{name} {bound}" for name, bound in found if not name.startswith(ENDING)}


def _samples(spec: Instrument) -> set[str]:
    name = sample_of(spec)
    return (
        {f"{name}_bucket", f"{name}_count", f"{name}_sum"} if spec.kind == "histogram" else {name}
    )
