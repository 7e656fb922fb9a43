"""`docker/compose.kafka.yaml`: as its schema wants it, pinned, bounded, and made of topics and
settings that there are.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from otel_reliability.kafka.aggregate_stage import AggregateStage
from otel_reliability.kafka.assemble_stage import AssembleStage
from otel_reliability.service.checks import check_workers
from otel_reliability.service.config_file import load_config
from otel_reliability.service.settings import Config
from tests.collector_config.shipped import parsed

DOCKER = Path(__file__).parents[2] / "docker"
FILE = DOCKER / "compose.kafka.yaml"
SERVICES: dict[str, Any] = yaml.safe_load(FILE.read_text())["services"]
OURS = "otel-reliability:kafka"


def config_of(worker: str) -> Config:
    """The settings that a worker's container starts with."""
    image = dict(re.findall(r"(OTEL_RELIABILITY_\w+)=(\S+)", (DOCKER / "Dockerfile").read_text()))
    image = {name: value for name, value in image.items() if ":" in value}
    own = {
        name: re.sub(r"\$\{\w+:-(\w+)\}", r"\1", value)
        for name, value in SERVICES[worker]["environment"].items()
    }
    return load_config(env={**image, **own})


def topics() -> dict[str, int]:
    (script,) = SERVICES["topics"]["command"]
    return {
        name: int(number)
        for name, number in re.findall(r"^\s*make (\w+) (\d+) \d+$", script, re.MULTILINE)
    }


def test_workers_find_their_settings_and_their_topics() -> None:
    made = topics()
    for worker, kind in (("assemble", AssembleStage), ("aggregate", AggregateStage)):
        config = config_of(worker)
        check_workers(config)
        stage = kind(config, config.kafka)
        assert {
            *stage.inputs,
            stage.output,
            *stage.others,
            config.kafka.dead_letters,
        } <= made.keys()
        assert len({made[topic] for topic in stage.inputs}) == 1
    gate = parsed("kafka-gateway.yaml")
    back = parsed("kafka-metrics.yaml")
    exporter = gate["exporters"]["kafka/reliability"]
    assert (
        {exporter["traces"]["topic"], exporter["logs"]["topic"]}
        == {"otlp_spans", "otlp_logs"}
        < made.keys()
    )
    assert back["receivers"]["kafka"]["metrics"]["topics"] == [
        config_of("aggregate").kafka.readings
    ]


def test_prometheus_scrapes_what_there_is() -> None:
    config: Any = yaml.safe_load((DOCKER / "prometheus" / "kafka.yml").read_text())
    agents, workers = config["scrape_configs"]
    ((target,),) = [one["targets"] for one in agents["static_configs"]]

    assert target == "readings:8889"
    assert parsed("kafka-metrics.yaml")["exporters"]["prometheus"]["endpoint"].endswith(":8889")
    assert (
        set(workers["dns_sd_configs"][0]["names"]) == {"assemble", "aggregate"} <= SERVICES.keys()
    )
    assert "--config.file=/etc/prometheus/kafka.yml" in SERVICES["prometheus"]["command"]
