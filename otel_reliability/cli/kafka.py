"""`otel-reliability kafka assemble` and `otel-reliability kafka aggregate`."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import click

from otel_reliability.cli.service_options import ALLOW_PUBLIC, CONFIG, LOG_LEVEL, METRICS, Option, given_by, one_setting
from otel_reliability.errors import ConfigurationError
from otel_reliability.service.config_file import Config, load_config
from otel_reliability.service.log import log_to_stderr

FLAGS: Final[Mapping[str, str]] = {
    "brokers": "kafka.brokers",
    "group": "kafka.group",
    "state": "kafka.state",
    "metrics": "service.metrics",
    "ui": "service.ui",
}
"""The settings that have a flag of their own; every other has `--set`."""

_OPTIONS: Final[Sequence[Option]] = (
    CONFIG,
    click.option("--brokers", metavar="HOST:PORT,…", help="Addresses of the brokers."),
    click.option("--topic", metavar="NAME", help="The topic it reads: spans (assemble) or run records (aggregate)."),
    click.option("--group", metavar="NAME", help="Prefix of the consumer groups."),
    click.option("--state", metavar="DIR", help="Directory of this worker's copy of its state, for a quicker start."),
    METRICS,
    click.option("--ui", metavar="HOST:PORT", help="Address of the probes."),
    ALLOW_PUBLIC,
    one_setting("kafka.tick=1s"),
    LOG_LEVEL,
)


@click.group("kafka")
def command() -> None:
    """Run the stages of `serve` as workers of a Kafka consumer group, as many of each as needed (docs/scale.md).

    \b
      otel-reliability kafka assemble --brokers kafka:9092     spans, keyed by trace → runs, keyed by agent
      otel-reliability kafka aggregate --brokers kafka:9092    runs → reliability metrics

    All workers must have one hash_key, as a secret: OTEL_RELIABILITY_HASH_KEY.
    """


def _of_worker(topic: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return the options of both stages, passed on as `config`; `topic` is the setting of `--topic`."""

    def wrap(run: Callable[[Config], None]) -> Callable[..., None]:
        def chosen(config: Path | None, assignments: tuple[str, ...], log_level: str, **flags: Any) -> None:
            log_to_stderr(log_level)
            given = given_by(assignments, {**FLAGS, "topic": topic, "allow_public": "service.allow_public"}, flags)
            run(load_config(config, os.environ, given))

        chosen.__doc__ = run.__doc__
        wrapped: Callable[..., None] = chosen
        for option in reversed(_OPTIONS):
            wrapped = option(wrapped)
        return wrapped

    return wrap


@command.command("assemble")
@_of_worker("kafka.spans")
def assemble(config: Config) -> None:
    """Rebuild runs from the topic that the Collector's kafka exporter writes (otlp_proto, partition_traces_by_id)."""
    _run("assemble", config)


@command.command("aggregate")
@_of_worker("kafka.runs")
def aggregate(config: Config) -> None:
    """Keep the windows of agents, and export their metrics: at /metrics, and with kafka.readings to a topic as OTLP."""
    _run("aggregate", config)


def _run(stage: str, config: Config) -> None:
    try:
        from otel_reliability.kafka.run import run  # noqa: PLC0415 (an extra brings what it needs)
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            "kafka", error.name, "installed", "install the extra: pip install 'otel-reliability[kafka]'"
        ) from None
    run(stage, config)
