"""Real Prometheus on both ways: it scrapes the workers, and a Collector that reads what they tell
in a topic.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Final

import pytest
from msgspec.structs import replace

from otel_reliability.kafka.stage import write
from otel_reliability.model.record import RunRecord
from otel_reliability.model.run import AgentKey, RunChange
from otel_reliability.testing import run
from tests.collector_config.shipped import at_port, shipped
from tests.kafka.workers import DEAD, RUNS, Workers, send, topics_of
from tests.real.collector.handle import Collectors
from tests.real.kafka.handle import Kafkas
from tests.real.ports import HOST, free_port
from tests.real.prometheus.handle import Prometheuses
from tests.real.waiting import until

pytestmark = pytest.mark.real

READINGS: Final = "otel_reliability_metrics"
AGENTS: Final = 12
WORKERS = 'job="workers"'
COLLECTOR = 'job="collector"'
EACH: Final = "service_name, gen_ai_agent_name"


def final(round_: int) -> Iterator[tuple[bytes, bytes]]:
    """A run of every agent, closed and final."""
    for agent in range(AGENTS):
        number = 1 + agent + AGENTS * round_
        made = replace(run(["search"], number), key=AgentKey("", "shop", "", f"agent {agent}"))
        for place, change in enumerate((RunChange.CLOSED, RunChange.FINAL)):
            yield write(RunRecord(change, made, time.time_ns() + place))


def test_whoever_has_an_agent_tells_its_series_and_nobody_else(
    kafka: Kafkas, collector: Collectors, workers: Workers, prometheus: Prometheuses
) -> None:
    """A worker comes, takes half of the agents over, and the other goes: each series is told by one
    of them, goes on where it was, and ends with him who told it before. Read from the topic, a
    series is one from the first to the last.
    """
    broker = kafka()
    topics_of(broker, names=(RUNS, DEAD, READINGS))
    settings = {"kafka": {"readings": READINGS}}
    first, second = (
        workers.unstarted("aggregate", broker.address, settings=settings) for _ in range(2)
    )
    first.start()
    address = f"{HOST}:{free_port()}"
    environment = {"KAFKA_BROKERS": broker.address, "COLLECTOR_HOST": HOST}
    shipped(collector, "kafka-metrics.yaml", overlay=at_port(address), **environment)
    scraped = {"static_configs": [{"targets": [first.metrics, second.metrics]}]}
    ask = prometheus({"workers": scraped, "collector": address}).ask

    def told(job: str) -> list[tuple[float, float]]:
        """How many series of runs rose of each agent, and what they come to."""
        series = ask.query(f"count by ({EACH}) (agent_reliability_runs_total{{{job}}} > 0)")
        sums = ask.query(f"sum by ({EACH}) (agent_reliability_runs_total{{{job}}})")
        return [(one.value, other.value) for one, other in zip(series, sums, strict=False)]

    def tellers() -> dict[str, float]:
        """How many agents each worker tells of."""
        found = ask.query(f"count by (instance) (agent_reliability_score{{{WORKERS}}})")
        return {one.labels["instance"]: one.value for one in found}

    def each_once(runs: int) -> None:
        for job in (WORKERS, COLLECTOR):
            until(
                lambda job=job: told(job) == [(1, runs)] * AGENTS,
                f"{runs} runs an agent, once, by {job}",
            )

    send(broker, final(0), RUNS)
    send(broker, final(1), RUNS)
    each_once(2)
    assert tellers() == {first.metrics: AGENTS}

    second.start()
    until(
        lambda: len(tellers()) == 2 and sum(tellers().values()) == AGENTS,
        "both to tell of agents, each of its own",
    )
    each_once(2)
    send(broker, final(2), RUNS)
    each_once(3)

    assert first.stop() == 0
    until(lambda: tellers() == {second.metrics: AGENTS}, "the other to tell of all of them")
    send(broker, final(3), RUNS)
    each_once(4)
    resets = ask.query(f"max(resets(agent_reliability_runs_total{{{COLLECTOR}}}[10m]))")
    assert [one.value for one in resets] == [0]
    assert second.stop() == 0
