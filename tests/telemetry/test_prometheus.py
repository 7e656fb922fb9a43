from __future__ import annotations

import re
from typing import Any

import pytest

from otel_reliability.config import Settings, TelemetrySettings, WindowSettings
from otel_reliability.telemetry import names
from otel_reliability.telemetry.exposition import OWN
from otel_reliability.telemetry.instruments import Point
from otel_reliability.telemetry.names import Instrument
from otel_reliability.telemetry.otlp import AgentMetrics, requests
from otel_reliability.telemetry.prometheus import Prometheus, family_of, labels_of
from tests.telemetry.numbers import (
    RESOURCE,
    Recorded,
    families_of,
    otlp_numbers,
    prometheus_numbers,
    recorded,
    translated,
)

ALL: tuple[Instrument, ...] = (
    *names.gauges(),
    *names.COUNTERS,
    *names.HISTOGRAMS,
    *names.STANDARD,
    *OWN.values(),
)
OWN_POINTS: list[Point] = [
    (names.SPANS.name, 7, {"disposition": "refused", "reason": "queue_full"}),
    (names.SELF_RUNS.name, 2, {"nested": True}),
    (names.OPEN_RUNS.name, 3, {}),
    (names.EVENT_LAG.name, 0.25, {}),
]
TWO_WINDOWS = Settings(
    windows=(WindowSettings("recent", last=100), WindowSettings("short", last=5)),
    telemetry=TelemetrySettings(standard_metrics=True),
)


def text_of(of: Recorded, *, openmetrics: bool = False) -> str:
    return "".join(Prometheus(of.exposition, RESOURCE).text(openmetrics=openmetrics))


@pytest.mark.parametrize("openmetrics", [False, True], ids=["text", "openmetrics"])
@pytest.mark.parametrize("settings", [Settings(), TWO_WINDOWS], ids=["one window", "two windows"])
def test_scrape_and_push_have_the_same_numbers(settings: Settings, openmetrics: bool) -> None:
    of = recorded("support", "refunds", 'a "quoted" \\ name', settings=settings, own=OWN_POINTS)
    pushed = otlp_numbers(requests(AgentMetrics(of.exposition).collect(1), RESOURCE))
    pushed |= {(name, frozenset(labels.items())): value for name, value, labels in OWN_POINTS}
    units = {spec.name: spec.unit for spec in ALL}
    counters = frozenset(spec.name for spec in ALL if spec.kind == "counter")
    scraped = prometheus_numbers(text_of(of, openmetrics=openmetrics))
    target = (
        "target_info",
        frozenset({("service_name", "otel-reliability"), ("service_instance_id", "test")}),
    )

    assert scraped.pop(target) == 1
    assert scraped == translated(pushed, units, counters)


@pytest.mark.parametrize("openmetrics", [False, True], ids=["text", "openmetrics"])
def test_each_family_stands_once_with_its_type(openmetrics: bool) -> None:
    text = text_of(recorded("support", "refunds", own=OWN_POINTS), openmetrics=openmetrics)
    families = families_of(text)
    kinds = {family.name: family.type for family in families}

    assert len(re.findall(r"^# TYPE ", text, re.MULTILINE)) == len(families) == len(kinds)
    assert all(family.documentation for family in families)
    assert kinds["agent_reliability_score"] == "gauge"
    assert kinds["agent_reliability_runs"] == "counter"
    assert kinds["agent_reliability_run_score"] == "histogram"
    assert kinds["otel_reliability_runs_open"] == "gauge"


def test_openmetrics_has_the_trace_of_the_last_run_of_each_bucket() -> None:
    of = recorded("support")
    samples = [
        sample for family in families_of(text_of(of, openmetrics=True)) for sample in family.samples
    ]
    exemplars: list[Any] = [sample.exemplar for sample in samples if sample.exemplar]
    named = {sample.name for sample in samples if sample.exemplar}
    traces = {one.trace_id.hex() for one in of.runs}

    assert named >= {"agent_reliability_run_score_bucket", "agent_reliability_runs_total"}
    assert {exemplar.labels["trace_id"] for exemplar in exemplars} <= traces
    assert {exemplar.labels["span_id"] for exemplar in exemplars} == {"0000000000000001"}
    assert {float(exemplar.timestamp) for exemplar in exemplars} == {of.registry.wall() / 1e9}
    assert " # " not in text_of(of)


@pytest.mark.parametrize("spec", ALL, ids=lambda spec: spec.name)
def test_names_are_those_of_any_translator(spec: Instrument) -> None:
    """Dots become underscores, seconds are named, braces say nothing: what the Collector and
    Prometheus make of the same.
    """
    family = family_of(spec)

    assert re.fullmatch(r"[a-z][a-z0-9_]*", family)
    assert "__" not in family
    assert ("seconds" in family.split("_")) == (spec.unit == "s")
    assert family.removesuffix("_seconds") == spec.name.replace(".", "_").removesuffix("_seconds")


def test_no_two_families_share_a_name() -> None:
    found = [family_of(spec) for spec in ALL]
    parts = {
        f"{family_of(spec)}_{part}"
        for spec in ALL
        if spec.kind == "histogram"
        for part in ("sum", "count", "bucket")
    }

    assert len(set(found)) == len(found)
    assert not parts & set(found)


@pytest.mark.parametrize(
    ("attributes", "labels"),
    [
        ((("gen_ai.agent.name", "support"),), 'gen_ai_agent_name="support"'),
        ((("a", 'back\\slash "quote"\nline'),), 'a="back\\\\slash \\"quote\\"\\nline"'),
        ((("service.version", "1"), ("service_version", "2")), 'service_version="1;2"'),
        ((("1st", "x"),), '_1st="x"'),
        ((("ok", False),), 'ok="false"'),
        ((), ""),
    ],
    ids=["plain", "escaped", "two that become one", "begins with a digit", "a boolean", "none"],
)
def test_labels_are_written_as_prometheus_reads_them(attributes: Any, labels: str) -> None:
    assert labels_of(attributes) == labels
