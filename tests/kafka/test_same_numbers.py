"""Recordings through a real Collector, a real broker and workers of both stages: the runs and
numbers of the single process.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from otel_reliability import conventions
from otel_reliability.config import Settings
from otel_reliability.conventions.reader import Reader as Conventions
from otel_reliability.model.span import AgentSpan, Evaluation
from otel_reliability.report.run_fields import record_of
from otel_reliability.sources.otlp_json import read_file
from otel_reliability.sources.otlp_protobuf import decode_logs, read_traces
from tests.kafka.expected import Expected, become, differing
from tests.kafka.recordings import (
    COPIES,
    CROSSING,
    Copy,
    Recorded,
    files,
    recorded,
    sent,
    traces_of,
)
from tests.kafka.streams import final, joined, plain
from tests.kafka.workers import KEY, LOGS, READINGS, RUNS, SPANS, Reader, Worker, Workers, topics_of
from tests.real import otlp
from tests.real.collector.handle import Collector, Collectors
from tests.real.kafka.handle import Kafka, Kafkas
from tests.real.pipelines import pipeline, to_file
from tests.real.waiting import NeverHappened
from tests.service.reported import Labels, Numbers, gauges_of, own, report
from tests.shared import shared
from tests.telemetry.numbers import prometheus_numbers

pytestmark = pytest.mark.real

SETTINGS: Final[Mapping[str, Any]] = {
    "assembly": {"linger": 2.0, "idle_timeout": 15.0, "reopen": 30.0},
    "sessions": {"idle": 30.0},
}
"""Times in which a machine that is busy with other things has sent a whole recording."""
PATIENCE: Final = 420.0


def to_kafka(
    broker: Kafka, batch: int = 64, times: int = 1, out: Path | None = None
) -> Mapping[str, Any]:
    """A Collector that writes to the topics, a message a trace and batch, each message that often;
    and all to a file.
    """
    names = [f"kafka/{number}" for number in range(times)] + ["file"] * (out is not None)
    exporter = {
        "brokers": [broker.address],
        "partition_traces_by_id": True,
        "partition_logs_by_trace_id": True,
        "traces": {"topic": SPANS, "encoding": "otlp_proto"},
        "logs": {"topic": LOGS, "encoding": "otlp_proto"},
    }
    both = pipeline(["otlp"], names, ["batch"] * (batch > 0))
    return {
        "receivers": {"otlp": {}},
        "processors": {
            "batch": {"timeout": "50ms", "send_batch_size": batch, "send_batch_max_size": batch}
        },
        "exporters": {
            name: exporter if name != "file" else to_file(out or Path()) for name in names
        },
        "service": {"pipelines": {"traces": both, "logs": both}},
    }


def test_two_workers_a_stage_tell_what_one_process_tells(
    kafka: Kafkas, collector: Collectors, workers: Workers
) -> None:
    files = [
        shared("corpora/captured/langgraph-openinference.jsonl.gz"),
        shared("corpora/taubench/gpt-4o_airline_4trials.otlp.jsonl.gz"),
    ]
    expected = Expected(span for file in files for batch in read_file(file) for span in batch.spans)
    broker = kafka()
    topics_of(broker, names=(SPANS, RUNS, READINGS, "dead"))
    first = [workers("assemble", broker) for _ in range(2)]
    second = [workers("aggregate", broker) for _ in range(2)]
    gate = collector(to_kafka(broker))
    for file in (*files, *files):
        otlp.replay(file, gate.http)

    with Reader(broker, RUNS) as reader:
        records = reader.until_final(len(expected.runs))
        assert {run_id: plain(run) for run_id, run in final(records).items()} == expected.runs
    become(second, expected)
    assert [worker.stop() for worker in (*first, *second)] == [0] * 4


class Everything(NamedTuple):
    """All that was sent, and what one process makes of it where traces are not joined."""

    recordings: Sequence[Recorded]
    spans: int
    expected: Expected


def send_all(gates: Sequence[tuple[Copy, Collector]]) -> Everything:
    """Send every copy of every recording through its Collector."""
    recordings = [recorded(file) for file in files()]
    read = Conventions(Settings(hash_key=KEY), conventions.TABLE).read
    spans: list[AgentSpan] = []
    judged: list[Evaluation] = []
    for number, (copy, gate) in enumerate(gates):
        for path, body in sent(copy, number, recordings):
            otlp.deliver(f"{gate.http}/v1/{path}", body, "x-protobuf")
            if path == "logs":
                judged += decode_logs(body).evaluations
            else:
                spans += [
                    one
                    for one in map(joined, read_traces(body, read)[0])
                    if isinstance(one, AgentSpan)
                ]
    return Everything(recordings, len(spans), Expected(spans, judged, SETTINGS))


@pytest.mark.soak
@pytest.mark.parametrize("number", [1, 2, 4])
def test_every_recording_tells_the_same_however_it_comes(
    number: int, kafka: Kafkas, collector: Collectors, workers: Workers, tmp_path: Path
) -> None:
    """Every capture and every benchmark, with its judgements, every message twice, three times
    over: as recorded, with children after their root, and shuffled, each in batches of another
    size. Runs are those of `runs`, counters those of one process, gauges those of `report`; but for
    the one recording whose runs cross traces.
    """
    shared("corpora")
    broker = kafka()
    topics_of(broker, names=(SPANS, LOGS, RUNS, READINGS, "dead"))
    settings = {**SETTINGS, "kafka": {"logs": LOGS}}
    first = [workers("assemble", broker, settings=settings) for _ in range(number)]
    second = [workers("aggregate", broker, settings=settings) for _ in range(number)]
    outs = [tmp_path / f"sent-{place}.jsonl" for place in range(len(COPIES))]
    gates = [
        collector(to_kafka(broker, copy.batch, 2, out))
        for copy, out in zip(COPIES, outs, strict=True)
    ]
    everything = send_all(list(zip(COPIES, gates, strict=True)))

    expected = everything.expected.runs
    of = traces_of(everything.recordings)
    with Reader(broker, RUNS) as reader:
        with suppress(NeverHappened):
            reader.until_final(len(expected), patience=PATIENCE)
        records = reader.records()
    found = {run_id: plain(run) for run_id, run in final(records).items()}
    wrong = [
        run_id
        for run_id in found.keys() | expected.keys()
        if found.get(run_id) != expected.get(run_id)
    ]
    assert not wrong, Counter(
        of[(found.get(run_id) or expected[run_id]).trace_id.hex()] for run_id in wrong
    )
    ids = [one.run.run_id for one in records if one.change.value == "final"]
    assert len(ids) == len(set(ids)), "a run becomes final once"
    become(second, everything.expected, patience=PATIENCE)

    mine = {run_id: comparable(record_of(run)) for run_id, run in found.items()}
    told = {run["run_id"]: comparable(run) for run in runs(outs)}
    apart = {run_id for run_id in mine.keys() | told.keys() if mine.get(run_id) != told.get(run_id)}
    assert {of[(mine.get(run_id) or told[run_id])["trace_id"]] for run_id in apart} == CROSSING
    theirs = {
        (run["service"], run["agent"])
        for run in (mine.get(run_id) or told[run_id] for run_id in apart)
    }
    gauges = {
        key: value
        for key, value in gauges_of(report(*outs)).items()
        if agent_of(key[1]) not in theirs
    }
    assert len(gauges) > 2_000
    assert not differing(
        {key: value for key, value in shown(second).items() if key in gauges}, gauges
    )
    print(
        f"found: {len(everything.recordings)} files, {everything.spans:,} spans twice, "
        f"{len(found):,} runs, "
        f"{len(everything.expected.numbers):,} series, {len(gauges):,} gauges, "
        f"{len(apart)} runs that cross traces"
    )
    assert [worker.stop() for worker in (*first, *second)] == [0] * 2 * number


def runs(recordings: Sequence[Path]) -> list[dict[str, Any]]:
    command = [sys.executable, "-m", "otel_reliability.cli", "runs", "-q", *map(str, recordings)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, timeout=300, env={**os.environ}
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def comparable(run: dict[str, Any]) -> dict[str, Any]:
    """A run but for why it was closed: that depends on when its spans came, and on the door."""
    return {name: value for name, value in run.items() if name != "closed_by"}


def agent_of(labels: Labels) -> tuple[str | None, str | None]:
    named = dict(labels)
    return named.get("service_name"), named.get("gen_ai_agent_name")


def shown(aggregates: Sequence[Worker]) -> Numbers:
    texts = [prometheus_numbers(worker.numbers()) for worker in aggregates]
    return {
        (name, own(dict(labels))): value
        for numbers in texts
        for (name, labels), value in numbers.items()
        if name.startswith("agent_")
    }
