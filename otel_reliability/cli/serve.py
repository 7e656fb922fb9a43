"""`otel-reliability serve`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Final

import click

from otel_reliability.change.detector import BLIND
from otel_reliability.cli.options import METRICS, of_service
from otel_reliability.reference import pinned_by
from otel_reliability.report.text import count
from otel_reliability.service.addresses import parse_address
from otel_reliability.service.checks import check_workers
from otel_reliability.service.logs import log_to_stderr
from otel_reliability.service.service import serve
from otel_reliability.service.settings import ENDPOINTS, Config

FLAGS: Final[Mapping[str, str]] = {
    name: f"service.{name}"
    for name in ("grpc", "http", "metrics", "ui", "state", "state_sync", "token_file", "push")
}


@click.command("serve")
@of_service(
    FLAGS,
    click.option("--grpc", metavar="HOST:PORT", help="Address of OTLP over gRPC; off disables it."),
    click.option("--http", metavar="HOST:PORT", help="Address of OTLP over HTTP; off disables it."),
    METRICS,
    click.option(
        "--ui", metavar="HOST:PORT", help="Address of the UI, probes and API; off disables it."
    ),
    click.option(
        "--state",
        metavar="DIR",
        help="Directory of the state: nothing acknowledged is lost when the process dies.",
    ),
    click.option(
        "--state-sync",
        type=click.Choice(("normal", "full")),
        help="full: acknowledge only what survives a loss of power.",
    ),
    click.option(
        "--token-file",
        metavar="FILE",
        help="File of bearer tokens, one a line; clients must send one of them.",
    ),
    click.option("--push", metavar="URL", help="Endpoint that receives the metrics by OTLP."),
)
@click.option(
    "--check",
    is_flag=True,
    help="Check the settings, of Kafka workers too, print what they come to, and exit.",
)
def command(config: Config, check: bool, log_level: str) -> None:
    """Receive OTLP from agents or a Collector, and export reliability metrics to Prometheus or any
    OTLP receiver.

    \b
      otel-reliability serve                                    on this machine only: OTLP on 4317 and 4318, /metrics on 9464
      otel-reliability serve --config service.yaml
      otel-reliability serve --config service.yaml --check      exits 2 where a setting is wrong
      otel-reliability serve --push http://collector:4317       export metrics by OTLP too
      otel-reliability serve --http 0.0.0.0:4318 --token-file /run/secrets/token
      otel-reliability serve --state /var/lib/otel-reliability  nothing acknowledged is lost when the process dies

    Settings come from the file, then the environment (OTEL_RELIABILITY_…), then these flags; the
    last one wins. On SIGTERM the service drains its queue and exports metrics once more. Without a
    state directory, open runs are lost when the process dies.
    """
    if check:
        for line in summary(config):
            click.echo(line)
        return
    log_to_stderr(log_level)
    serve(config, os.environ)


def summary(config: Config) -> Iterator[str]:
    """Yield what the settings come to."""
    service = config.service
    for door in ENDPOINTS:
        address: str = getattr(service, door)
        place = parse_address(address)
        reach = (
            ""
            if place is None
            else ", other machines too"
            if place.public
            else ", this machine only"
        )
        yield f"{door:8}{address}{reach}"
    yield f"{'tokens':8}{'required' if service.token or service.token_file else 'not required'}"
    yield f"{'TLS':8}{_tls(config)}"
    yield f"{'push':8}{service.push or 'off, unless OTEL_EXPORTER_OTLP_ENDPOINT is set'}"
    windows = ", ".join(
        f"{window.name} ({_window(window.last, window.period)})" for window in config.windows
    )
    yield f"{'windows':8}{windows}"
    yield f"{'agents':8}{config.limits.agents} at most"
    if config.kafka.brokers is not None:
        yield from _workers(config)
    if config.change.enabled:
        yield from _change(config)


def _workers(config: Config) -> Iterator[str]:
    """Yield what workers on Kafka would do. Raises where none would start."""
    kafka = config.kafka
    check_workers(config)
    inputs = kafka.spans if kafka.logs is None else f"{kafka.spans} and {kafka.logs}"
    yield f"{'kafka':8}{kafka.brokers}, {kafka.guarantee}"
    yield f"{'':8}{kafka.group}-assemble reads {inputs}, writes {kafka.runs}"
    yield f"{'':8}{kafka.group}-aggregate reads {kafka.runs}, writes {kafka.readings or 'no topic'}"


def _tls(config: Config) -> str:
    tls = config.service.tls
    if tls.certificate is None:
        return "off"
    return "on" if tls.client_ca is None else "on, and clients need a certificate"


def _window(last: int | None, period: float | None) -> str:
    parts = ([f"the last {last} runs"] if last is not None else []) + (
        [f"{period:g} s"] if period is not None else []
    )
    return " within ".join(parts)


def _change(config: Config) -> Iterator[str]:
    """Yield the rate of false alarms, and the reference recording. Raises where that cannot be
    read.
    """
    runs = config.change.runs_per_false_alarm
    yield f"{'change':8}about one false alarm in {runs:g} runs (or sessions) of an agent:"
    yield (
        f"{'':8}at 100 a day, one in {runs / 100:g} days; over 1000 such agents, "
        f"{1000 * 100 / runs:g} a day"
    )
    pinned = pinned_by(config)
    short = sum(len(observations) < BLIND for observations in pinned.values())
    if pinned:
        yield f"{'':8}measured against {config.change.reference}: {count(len(pinned), 'agent')}"
    if short:
        yield (
            f"{'':8}{short} of them have fewer than {BLIND} observations there, so no change "
            "can be detected"
        )
