"""Export: what one data point of many agents' gauges costs to write, beside the SDK's own instruments and exporters."""

from __future__ import annotations

import importlib
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

from opentelemetry.exporter.otlp.proto.common.metrics_encoder import encode_metrics
from opentelemetry.metrics import CallbackOptions, Observation
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from benchmarks.measure import Row, ratios, row, seconds
from otel_reliability.config import LimitSettings, Settings
from otel_reliability.engine import Engine
from otel_reliability.model.event import RunChange, RunEvent
from otel_reliability.model.run import AgentKey
from otel_reliability.telemetry.exposition import Exposition, agent_points
from otel_reliability.telemetry.otlp import AgentMetrics, requests
from otel_reliability.telemetry.prometheus import Prometheus
from otel_reliability.telemetry.registry import Registry
from otel_reliability.testing import run

AGENTS: Final = 10_000
PEERS_AGENTS: Final = 1_500
"""Agents of the SDK's instruments, which fold all attribute sets beyond 2 000 into one. What counts is the cost of a point."""
RUNS: Final = 5
PATHS: Final = (("search", "book"), ("search", "search", "book"), ("look up", "refund"), ("search",))
PROMETHEUS: Final = "opentelemetry-exporter-prometheus"

Values = dict[str, list[Observation]]


def rows() -> list[Row]:
    """OTLP, then Prometheus."""
    engine = fleet_of(AGENTS)
    exposition = Exposition(engine, Registry(time.time_ns), tuple)
    points = sum(1 for _ in agent_points(engine, engine.fleet))
    values = observations(engine, PEERS_AGENTS)
    peers_points = sum(map(len, values.values()))
    metrics, page = AgentMetrics(exposition), Prometheus(exposition, {"service.name": "bench"})
    found = [
        beside_peer(
            "OTLP export, a data point",
            lambda: sum(map(len, requests(metrics.collect(time.time_ns()), {"service.name": "bench"}))),
            points,
            _sdk(values),
            peers_points,
            SDK,
        ),
    ]
    peer = _prometheus(values)
    if peer is not None:
        text = lambda: sum(map(len, page.text()))  # noqa: E731  one work among others
        found.append(beside_peer("Prometheus endpoint, a data point", text, points, peer, peers_points, PROMETHEUS))
    return found


SDK: Final = "the SDK's observable gauges and its OTLP encoder"


def beside_peer(
    name: str, ours: Callable[[], object], points: int, theirs: Callable[[], object], their_points: int, against: str
) -> Row:
    """The cost of one of our points as a share of one of theirs."""
    mine, peers = seconds(ours, theirs, rounds=7, calls=1)
    return row(
        name,
        ratios([took / points for took in mine], [took / their_points for took in peers]),
        against=f"{against}; {AGENTS:,} agents, {points:,} points",
        at_most=1 / 8,
    )


def fleet_of(agents: int) -> Engine:
    """An engine with so many agents of a few runs each, every reading made."""
    engine = Engine(Settings(limits=LimitSettings(agents=agents)))
    for agent in range(agents):
        key = AgentKey("", "bench", "", f"agent-{agent}")
        told = (run(PATHS[(agent + n) % len(PATHS)], n, run_id=f"{agent}-{n}", key=key) for n in range(RUNS))
        engine.receive_events([RunEvent(RunChange.CLOSED, one._replace(token_pressure=0.5)) for one in told])
    return engine


def observations(engine: Engine, agents: int) -> Values:
    """The same numbers as the SDK's instruments take them, made beforehand."""
    names = {f"agent-{agent}" for agent in range(agents)}
    found: Values = {}
    for name, value, attributes in agent_points(engine, engine.fleet):
        if attributes["gen_ai.agent.name"] in names:
            found.setdefault(name, []).append(Observation(value, attributes))
    return found


def _observed(values: Values, provider: MeterProvider) -> None:
    meter = provider.get_meter("bench")

    def callback(name: str) -> Callable[[CallbackOptions], Iterable[Observation]]:
        return lambda _: values[name]

    for name in values:
        meter.create_observable_gauge(name, [callback(name)])


def _sdk(values: Values) -> Callable[[], object]:
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader], shutdown_on_exit=False)
    _observed(values, provider)
    return lambda: encode_metrics(reader.get_metrics_data()).SerializeToString()  # pyright: ignore[reportArgumentType]


def _prometheus(values: Values) -> Callable[[], object] | None:
    """The SDK's Prometheus exporter, installed beside this file's cache; None, with the reason told, where it cannot be had."""
    folder = Path.home() / ".cache" / "otel-reliability" / "bench-prometheus"
    if not (folder / "opentelemetry").is_dir():
        uv = Path(sys.executable).with_name("uv")
        command = [
            uv,
            "pip",
            "install",
            "--quiet",
            "--no-deps",
            "--target",
            folder,
            PROMETHEUS,
            "--prerelease",
            "allow",
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603  its words stand above
        if done.returncode:
            print(f"{PROMETHEUS} cannot be had here: {done.stderr.strip()}", file=sys.stderr)
            return None
    exporter, client = _imported(folder)
    reader = exporter.PrometheusMetricReader()
    _observed(values, MeterProvider([reader], shutdown_on_exit=False))
    return lambda: len(client.generate_latest())


def _imported(folder: Path) -> tuple[Any, Any]:
    """The exporter, of a namespace package that another folder holds too."""
    import opentelemetry.exporter  # noqa: PLC0415  it is given one more place to look

    opentelemetry.exporter.__path__.append(str(folder / "opentelemetry" / "exporter"))
    return importlib.import_module("opentelemetry.exporter.prometheus"), importlib.import_module("prometheus_client")


if __name__ == "__main__":
    print(*rows(), sep="\n")
