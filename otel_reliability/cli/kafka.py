"""`otel-reliability kafka assemble` and `otel-reliability kafka aggregate`."""

from __future__ import annotations

from collections.abc import Callable

import click

from otel_reliability.cli.options import METRICS, of_service
from otel_reliability.service.logs import log_to_stderr
from otel_reliability.service.settings import Config


@click.group("kafka")
def command() -> None:
    """Run the stages of `serve` as workers of a Kafka consumer group, as many of each as needed
    (docs/guides/scale.md).

    \b
      otel-reliability kafka assemble --brokers kafka:9092     spans, keyed by trace → runs, keyed by agent
      otel-reliability kafka aggregate --brokers kafka:9092    runs → reliability metrics

    All workers must have one hash_key, as a secret: OTEL_RELIABILITY_HASH_KEY.
    """


def _of_worker(topic: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return the options of both stages; `topic` is the setting of `--topic`."""
    flags = {
        "brokers": "kafka.brokers",
        "topic": topic,
        "group": "kafka.group",
        "state": "kafka.state",
    }
    return of_service(
        {**flags, "metrics": "service.metrics", "ui": "service.ui"},
        click.option("--brokers", metavar="HOST:PORT,…", help="Addresses of the brokers."),
        click.option(
            "--topic",
            metavar="NAME",
            help="The topic it reads: spans (assemble) or run records (aggregate).",
        ),
        click.option("--group", metavar="NAME", help="Prefix of the consumer groups."),
        click.option(
            "--state",
            metavar="DIR",
            help="Directory of this worker's copy of its state, for a quicker start.",
        ),
        METRICS,
        click.option("--ui", metavar="HOST:PORT", help="Address of the probes."),
    )


@command.command("assemble")
@_of_worker("kafka.spans")
def assemble(config: Config, log_level: str) -> None:
    """Rebuild runs from the topic that the Collector's kafka exporter writes (otlp_proto
    or otlp_json, partition_traces_by_id).
    """
    _run("assemble", config, log_level)


@command.command("aggregate")
@_of_worker("kafka.runs")
def aggregate(config: Config, log_level: str) -> None:
    """Keep the windows of agents, and export their metrics: at /metrics, and with kafka.readings to
    a topic as OTLP.
    """
    _run("aggregate", config, log_level)


def _run(stage: str, config: Config, log_level: str) -> None:
    from otel_reliability.kafka.runner import run  # noqa: PLC0415  the extra `kafka` brings what it needs

    log_to_stderr(log_level)
    run(stage, config)
