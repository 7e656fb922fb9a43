"""What holds for every shipped configuration: it says when to choose it, is listed, and a real
Collector takes it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from otel_reliability.model.span import EVALUATION, OUTCOME
from tests.collector_config.shipped import BACKEND, FOLDER, NOT_RUN, at_port, files, parsed, shipped
from tests.real.collector.handle import Collectors
from tests.real.ports import HOST, free_port

NAMES = [path.name for path in files()]
OUT = [name for name in NAMES if "metrics" in name]
"""What carries numbers from the service, not spans to it."""
RUN = [name for name in NAMES if name != NOT_RUN]
SPANS = ("sidecar.yaml", "gateway-tail-sampling.yaml")
METRICS = ("metrics-prometheus-exporter.yaml", "metrics-remote-write.yaml", "metrics-otlp.yaml")

# Source: README of the load_balancing exporter, opentelemetry-collector-contrib 0.155, and of
# exporterhelper.
BALANCER = {
    "routing_key",
    "routing_attributes",
    "protocol",
    "resolver",
    "timeout",
    "retry_on_failure",
    "sending_queue",
}
ROUTING_KEYS = {"service", "traceID", "resource", "metric", "streamID", "attributes"}
RESOLVERS = {
    "static": {"hostnames"},
    "dns": {"hostname", "port", "interval", "timeout"},
    "k8s": {"service", "ports", "timeout", "return_hostnames"},
    "aws_cloud_map": {"namespace", "service_name", "health_status", "interval", "timeout", "port"},
}
QUEUE = {"enabled", "num_consumers", "queue_size"}
RETRY = {
    "enabled",
    "initial_interval",
    "max_interval",
    "max_elapsed_time",
    "multiplier",
    "randomization_factor",
}


def comment(name: str) -> str:
    lines = (FOLDER / name).read_text().splitlines()
    return "\n".join(
        line
        for line in lines[: next(at for at, line in enumerate(lines) if not line.startswith("#"))]
    )


def variables(text: str) -> set[str]:
    return set(re.findall(r"\$\{env:([A-Z_]+)", text))


def exporters(config: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    yield from config["exporters"].items()


@pytest.mark.parametrize("name", NAMES)
def test_it_says_when_to_choose_it(name: str) -> None:
    said = comment(name)

    assert said.startswith("# Choose this when ")
    assert "otel-reliability serve" in said


def test_every_file_is_listed() -> None:
    rows = [
        line for line in (FOLDER / "README.md").read_text().splitlines() if line.startswith("| [")
    ]
    listed = [re.findall(r"\[([\w.-]+)\]\(([\w.-]+)\)", row)[0] for row in rows]

    assert sorted(name for name, _ in listed) == NAMES
    assert all(name == target for name, target in listed)


def test_every_variable_is_listed() -> None:
    asked = set[str]().union(*(variables(path.read_text()) for path in files()))
    rows = [
        line for line in (FOLDER / "README.md").read_text().splitlines() if line.startswith("| `")
    ]
    told = {name for row in rows for name in re.findall(r"`([A-Z_]+)`", row.split("|")[1])}

    assert asked == told


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_put_over_the_name_of_the_agents_service(name: str) -> None:
    config = parsed(name)
    samplers = {"tail_sampling", "probabilistic_sampler"}
    to_us = {
        key
        for key, _ in exporters(config)
        if key.partition("/")[2] in {"reliability", "even", "odd", "windows"}
    }
    to_us |= {key for key, _ in exporters(config) if key.startswith("load_balancing")}

    for key, settings in exporters(config):
        assert not settings.get("resource_to_telemetry_conversion", {"enabled": False})["enabled"]
        if key in to_us:
            assert settings["retry_on_failure"]["max_elapsed_time"] == "0s"
    for pipeline in config["service"]["pipelines"].values():
        if to_us & {*pipeline["exporters"]}:
            assert not samplers & {name.partition("/")[0] for name in pipeline["processors"]}
    assert bool(to_us) is (name not in OUT)


@pytest.mark.parametrize("name", [name for name in NAMES if name not in OUT])
def test_evaluations_reach_the_service(name: str) -> None:
    processors = (FOLDER / name).read_text().partition("processors:")[2]
    assert {EVALUATION, OUTCOME} <= set(re.findall(r'"([\w.]+)"', processors))


@pytest.mark.real
@pytest.mark.parametrize("name", RUN)
def test_a_real_collector_starts_on_it(collector: Collectors, tmp_path: Path, name: str) -> None:
    said = shipped(collector, name, QUEUE_DIRECTORY=str(tmp_path / "queue")).said().lower()

    assert "deprecat" not in said
    assert "\terror\t" not in said


@pytest.mark.real
def test_files_add_up(collector: Collectors, tmp_path: Path) -> None:
    for spans in SPANS:
        for metrics in METRICS:
            env = {**BACKEND, "QUEUE_DIRECTORY": str(tmp_path / "queue")}
            env["REMOTE_WRITE_ENDPOINT"] = env["METRICS_ENDPOINT"] = "http://127.0.0.1:9"
            merged = merge(parsed(metrics), parsed(spans))
            running = collector(
                merged,
                overlay=at_port(f"{HOST}:{free_port()}") if "exporter" in metrics else {},
                env=env,
            )
            assert "\terror\t" not in running.said()
            running.stop()
            assert {pipeline.partition("/")[0] for pipeline in merged["service"]["pipelines"]} == {
                "traces",
                "logs",
                "metrics",
            }


def merge(one: Any, other: Any) -> Any:
    """As the Collector merges: maps key by key, of anything else the later stands."""
    if not (isinstance(one, dict) and isinstance(other, dict)):
        return other
    first = cast("dict[str, Any]", one)
    second = cast("dict[str, Any]", other)
    both = first.keys() & second.keys()
    return {**first, **second, **{key: merge(first[key], second[key]) for key in both}}


@pytest.mark.real
def test_the_balanced_one_is_sound_but_for_its_exporter(collector: Collectors) -> None:
    config = parsed(NOT_RUN)
    balancers = {
        key: settings for key, settings in exporters(config) if key.startswith("load_balancing/")
    }
    others = {
        key.replace("load_balancing", "otlp_grpc"): settings for key, settings in balancers.items()
    }
    config["exporters"] = {
        key: {
            "endpoint": "127.0.0.1:9",
            **settings["protocol"]["otlp"],
            "sending_queue": settings["sending_queue"],
            "retry_on_failure": settings["retry_on_failure"],
        }
        for key, settings in others.items()
    }
    for pipeline in config["service"]["pipelines"].values():
        pipeline["exporters"] = [
            key.replace("load_balancing", "otlp_grpc") for key in pipeline["exporters"]
        ]

    assert len(balancers) == 2
    assert collector.complaint(config) == ""


def test_the_balancer_knows_every_key() -> None:
    """Held against its documentation, since it cannot be run here; both signals
    are routed alike.
    """
    balancers = [
        settings
        for key, settings in exporters(parsed(NOT_RUN))
        if key.startswith("load_balancing/")
    ]

    for settings in balancers:
        assert settings.keys() <= BALANCER
        assert settings["routing_key"] in ROUTING_KEYS
        ((resolver, told),) = settings["resolver"].items()
        assert told.keys() <= RESOLVERS[resolver]
        assert settings["sending_queue"].keys() <= QUEUE
        assert settings["retry_on_failure"].keys() <= RETRY
        assert settings["protocol"].keys() == {"otlp"}
    assert balancers[0]["routing_key"] == balancers[1]["routing_key"] == "service"
    assert balancers[0]["resolver"] == balancers[1]["resolver"]
