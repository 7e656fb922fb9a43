"""`otel-reliability check-config`."""

from __future__ import annotations

import json
from collections.abc import Iterator

import click

from otel_reliability.change.detector import BLIND
from otel_reliability.cli.service_options import of_service
from otel_reliability.reference import pinned_by
from otel_reliability.report.text import count
from otel_reliability.service.addresses import place_of
from otel_reliability.service.checks import check_workers
from otel_reliability.service.config_file import Config
from otel_reliability.service.schema import schema
from otel_reliability.service.settings import DOORS


@click.command("check-config")
@of_service
@click.option("--schema", "as_schema", is_flag=True, help="Print the JSON schema of a settings file instead.")
def command(config: Config, *, as_schema: bool) -> None:
    """Check the settings of a service, as it or a worker would, without starting it. Exits 2 where something is wrong.

    \b
      otel-reliability check-config --config service.yaml
      otel-reliability check-config --schema > settings.schema.json    for editors
    """
    if as_schema:
        print(json.dumps(schema(), indent=2))
        return
    for line in summary(config):
        print(line)


def summary(config: Config) -> Iterator[str]:
    """What the settings come to, for people."""
    service = config.service
    for door in DOORS:
        address: str = getattr(service, door)
        place = place_of(address)
        who = "" if place is None else ", to other machines too" if place.public else ", to this machine only"
        yield f"{door:8}{address}{who}"
    yield f"{'tokens':8}{'asked for' if service.token or service.token_file else 'none asked for'}"
    yield f"{'TLS':8}{_tls(config)}"
    yield f"{'push':8}{service.push.endpoint or 'nowhere, unless OTEL_EXPORTER_OTLP_ENDPOINT is set'}"
    windows = ", ".join(f"{window.name} ({_window(window.last, window.period)})" for window in config.engine.windows)
    yield f"{'windows':8}{windows}"
    yield f"{'agents':8}{config.engine.limits.agents} at most"
    if config.kafka.brokers is not None:
        yield from _workers(config)
    if config.engine.change.enabled:
        yield from _false_alarms(config.engine.change.runs_per_false_alarm)
        yield from _reference(config)


def _workers(config: Config) -> Iterator[str]:
    """What workers on Kafka would do. Raises where none would start."""
    kafka = config.kafka
    check_workers(config.engine, kafka)
    inputs = kafka.spans if kafka.logs is None else f"{kafka.spans} and {kafka.logs}"
    yield f"{'kafka':8}{kafka.brokers}, {kafka.guarantee}"
    yield f"{'':8}{kafka.group}-assemble reads {inputs}, writes {kafka.runs}"
    yield f"{'':8}{kafka.group}-aggregate reads {kafka.runs}, writes {kafka.readings or 'no topic'}"


def _tls(config: Config) -> str:
    tls = config.service.tls
    if tls.certificate is None:
        return "none"
    return "yes" if tls.client_ca is None else "yes, and clients need a certificate"


def _window(last: int | None, period: float | None) -> str:
    parts = ([f"the last {last} runs"] if last is not None else []) + ([f"{period:g} s"] if period is not None else [])
    return " within ".join(parts)


def _false_alarms(runs: float) -> Iterator[str]:
    """What the promise of change detection comes to."""
    yield f"{'change':8}about one false alarm in {runs:g} runs (or sessions) of an agent:"
    yield f"{'':8}at 100 a day, one in {runs / 100:g} days; over 1000 such agents, {1000 * 100 / runs:g} a day"


def _reference(config: Config) -> Iterator[str]:
    """What agents are measured against, and which of them too little is known of. Raises where it cannot be read."""
    pinned = pinned_by(config.engine)
    short = sum(len(units) < BLIND for units in pinned.values())
    if pinned:
        yield f"{'':8}measured against {config.engine.change.reference}: {count(len(pinned), 'agent')}"
    if short:
        yield f"{'':8}of {short} of them it has fewer than {BLIND} units, so no change can be told"
