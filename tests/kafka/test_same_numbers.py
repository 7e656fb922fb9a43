"""Recordings through a real Collector, a real broker and workers of both stages: the runs and numbers of the single process."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from otel_reliability.config import LimitSettings, Settings
from otel_reliability.engine import Engine
from otel_reliability.model.run import CloseReason, Run
from otel_reliability.service.recording import Recording
from otel_reliability.sources.otlp_json import read_file
from otel_reliability.telemetry.exposition import Exposition
from otel_reliability.telemetry.prometheus import Prometheus
from otel_reliability.telemetry.series import Book
from tests.kafka.streams import final, plain
from tests.kafka.workers import READINGS, RUNS, SETTINGS, SPANS, Reader, Worker, Workers, topics_of
from tests.real import otlp
from tests.real.collector.handle import Collectors
from tests.real.kafka.handle import Kafka, Kafkas
from tests.real.pipelines import pipeline
from tests.real.waiting import until
from tests.shared import shared

pytestmark = pytest.mark.real

OF_AGENTS = re.compile(r"agent_reliability_\w+\{")
BY_TIME = re.compile(r"agent_reliability_run_(score|path_distance)_")
"""Histograms of what the window said when a run was recorded: that depends on which runs were there by then."""


class Expected:
    """What the single process makes of recordings: its runs, and the lines of its `/metrics` about agents."""

    def __init__(self, files: Sequence[Path]) -> None:
        own = {name: value for name, value in SETTINGS.items() if name != "kafka"}
        settings = Settings.from_mapping(own, base=Settings(limits=LimitSettings(agents=20_000)))
        engine = Engine(settings, clock=lambda: 0.0, wall=None, places_return=True)
        book = Book(lambda: 0)
        runs: list[Run] = []
        record = Recording(engine, book)
        engine.observers.append(lambda event, _: runs.append(event.run) if event.change.value == "settled" else None)
        for file in files:
            for batch in read_file(file):
                engine.receive(batch.spans)
                engine.receive_evaluations(batch.evaluations)
        engine.flush(CloseReason.FLUSH)
        record()
        self.runs = {run.run_id: plain(run) for run in runs}
        self.lines = lines_of("".join(Prometheus(Exposition(engine, book, tuple), {}).text()))


def lines_of(text: str) -> list[str]:
    """What is told of agents."""
    return sorted(line for line in text.splitlines() if OF_AGENTS.match(line) and not BY_TIME.match(line))


def to_kafka(broker: Kafka) -> Mapping[str, Any]:
    """A Collector that writes spans to the topic, a message a trace and batch."""
    exporter = {
        "brokers": [broker.address],
        "partition_traces_by_id": True,
        "traces": {"topic": SPANS, "encoding": "otlp_proto"},
    }
    return {
        "receivers": {"otlp": {}},
        "processors": {"batch": {"timeout": "50ms", "send_batch_size": 64, "send_batch_max_size": 64}},
        "exporters": {"kafka": exporter},
        "service": {"pipelines": {"traces": pipeline(["otlp"], ["kafka"], ["batch"])}},
    }


def told_together(aggregates: Sequence[Worker]) -> list[str]:
    """What all workers of the second stage tell of agents; each series by one of them."""
    found = [lines_of(worker.numbers()) for worker in aggregates]
    together = sorted(line for lines in found for line in lines)
    assert len({line.rpartition(" ")[0] for line in together}) == len(together), "one writer a series"
    return together


@pytest.mark.parametrize("number", [1, 2, pytest.param(4, marks=pytest.mark.soak)])
def test_as_many_workers_as_you_like_tell_what_one_process_tells(
    number: int, kafka: Kafkas, collector: Collectors, workers: Workers
) -> None:
    """A capture and a benchmark, sent twice: each run once, as it is; every gauge and counter with its value."""
    files = [
        shared("corpora/captured/langgraph-openinference.jsonl.gz"),
        shared("corpora/taubench/gpt-4o_airline_4trials.otlp.jsonl.gz"),
    ]
    expected = Expected(files)
    broker = kafka()
    topics_of(broker, names=(SPANS, RUNS, READINGS, "dead"))
    first = [workers("assemble", broker) for _ in range(number)]
    second = [workers("aggregate", broker) for _ in range(number)]
    gate = collector(to_kafka(broker))
    for file in (*files, *files):
        otlp.replay(file, gate.http)

    with Reader(broker, RUNS) as reader:
        records = reader.until_settled(len(expected.runs))
        assert {run_id: plain(run) for run_id, run in final(records).items()} == expected.runs
        until(lambda: told_together(second) == expected.lines or None, "the numbers")
    assert [worker.stop() for worker in (*first, *second)] == [0] * 2 * number
