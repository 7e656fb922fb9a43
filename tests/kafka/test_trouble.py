"""What cannot be used, and what is not there: each is told once, counted, and costs nothing else."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from otel_reliability.kafka.messages import read
from otel_reliability.model.event import RunChange
from otel_reliability.model.record import RunRecord
from otel_reliability.testing import traces_protobuf
from tests.kafka.streams import final
from tests.kafka.workers import DEAD, LOGS, RUNS, SPANS, Reader, Worker, Workers, by_trace, send, topics_of
from tests.real.kafka.handle import Kafka, Kafkas
from tests.real.ports import HOST, free_port
from tests.real.waiting import until
from tests.service.running import run_of

pytestmark = pytest.mark.real


def reasons(worker: Worker) -> dict[str, str]:
    """Why a worker is not ready."""
    found: Any = json.loads(worker.get("/readyz").body)
    return found["reasons"]


def test_what_cannot_be_used_is_laid_aside(kafka: Kafkas, workers: Workers) -> None:
    """Garbage in either topic goes to the dead letters with its reason; what is behind it is read; wrong keys are counted."""
    broker = kafka()
    topics_of(broker, partitions=1)
    first, second = workers("assemble", broker), workers("aggregate", broker)
    halves = run_of(4, ("search", "book"))
    send(broker, [(b"x" * 32, b"\xff garbage"), (b"\xff", b"\x0a\x01")])
    send(broker, [(None, traces_protobuf(run_of(1))), (b"00" * 16, traces_protobuf(run_of(2)))])
    send(broker, [*by_trace(run_of(3)), *by_trace(halves[1:]), *by_trace(halves[:1])])
    send(broker, [(b"a", b"no record"), (b"a", b'{"version": 99}'), (b"a", b"\xff")], RUNS)

    with Reader(broker, RUNS) as reader, Reader(broker, DEAD) as dead:
        until(lambda: len(dead.read()) >= 5, "the dead letters")
        until(lambda: len(_settled(reader)) == 4, "the runs")
        headers = [dict(message.headers()) for message in dead.messages]
    numbers = until(lambda: first.numbers() if "kafka_apart" in first.numbers() else "", "the numbers")

    assert sorted(one["reason"].decode() for one in headers) == ["run_record"] * 3 + ["undecodable"] * 2
    assert {one["stage"] for one in headers} == {b"assemble", b"aggregate"}
    assert {one["topic"] for one in headers} == {b"spans", b"runs"}
    assert 'otel_reliability_kafka_apart_total{what="no_key"} 1' in numbers
    assert 'otel_reliability_kafka_apart_total{what="other_key"} 1' in numbers
    assert 'otel_reliability_kafka_dead_letters_total{reason="undecodable"} 2' in numbers
    assert 'otel_reliability_kafka_dead_letters_total{reason="run_record"} 3' in second.numbers()


def _settled(reader: Reader) -> list[RunRecord]:
    """The runs that have settled, in a topic that holds more than run records."""
    found = [read(message.value()) for message in reader.read() if message.value().startswith(b'{"version":1')]
    return [one for one in found if one.change is RunChange.SETTLED]


def test_what_is_not_there_yet_is_told_and_waited_for(kafka: Kafkas, workers: Workers) -> None:
    """Brokers that are away, then topics that are missing: one message each, no end of the process; then it works. Brokers that
    go away in mid-stream: what was sent before and after is there, once.
    """
    broker = kafka()
    broker.stop()
    worker = workers("assemble", broker)
    until(lambda: "kafka.brokers" in worker.said(), "the brokers to be missed")
    assert "brokers" in reasons(worker)
    assert worker.get("/healthz").status == 200
    broker.start()
    until(lambda: "is not a topic of these brokers" in worker.said(), "the topics to be missed")
    assert "topic" in reasons(worker)
    topics_of(broker, partitions=2)
    until(lambda: worker.get("/readyz").status == 200, "the worker to be ready")
    send(broker, by_trace(run_of(1)))
    with Reader(broker, RUNS) as reader:
        reader.until_settled(1)
    broker.kill()
    time.sleep(2.0)
    broker.start()
    send(broker, by_trace(run_of(2)))
    with Reader(broker, RUNS) as reader:
        records = reader.until_settled(2, patience=90.0)

    assert len(final(records)) == 2
    assert sum(one.change.value == "settled" for one in records) == 2
    assert worker.said().count("is not answering") == 1
    assert worker.stop() == 0


def test_what_does_not_heal_ends_the_process(kafka: Kafkas, workers: Workers) -> None:
    """Topics of different numbers of partitions, and options that the client library does not know: exit code 2, and why."""
    broker = kafka()
    topics_of(broker, partitions=2)
    topics_of(broker, partitions=3, names=[LOGS])

    apart = ended(workers, broker, "--set", f"kafka.logs={LOGS}")
    unknown = ended(workers, broker, "--set", 'kafka.client={"no.such.option": "1"}')

    assert (apart.returncode, unknown.returncode) == (2, 2)
    assert "kafka.logs: 'spans: 2, logs: 3' is not topics of as many partitions each" in apart.stderr
    assert "no.such.option" in unknown.stderr


@pytest.mark.soak
def test_a_worker_too_many_says_so_and_stands_by(kafka: Kafkas, workers: Workers) -> None:
    """One partition, two workers: one of them has nothing to do, says why, and takes over when the other ends."""
    broker = kafka()
    topics_of(broker, partitions=1)
    pair = [workers("assemble", broker) for _ in range(2)]
    idle = until(
        lambda: next((one for one in pair if "there are more workers than partitions" in one.said()), None),
        "one to say so",
    )
    (other,) = (one for one in pair if one is not idle)
    assert idle.get("/readyz").status == 200
    assert other.stop() == 0
    send(broker, by_trace(run_of(1)))

    with Reader(broker, RUNS) as reader:
        assert len(reader.until_settled(1)) >= 2


def test_without_a_shared_key_no_worker_starts(workers: Workers) -> None:
    """Nor without brokers: exit code 2, before anybody is asked."""
    nowhere = f"{HOST}:{free_port()}"
    keyless = workers.unstarted("aggregate", nowhere, settings={"hash_key": None})
    lost = workers.unstarted("assemble", "")

    for worker, field in ((keyless, "hash_key"), (lost, "kafka.brokers")):
        done = subprocess.run(worker.command, capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == 2
        assert f"otel-reliability: {field}: " in done.stderr


def ended(workers: Workers, broker: Kafka, *options: str) -> subprocess.CompletedProcess[str]:
    """What became of a worker that cannot work."""
    worker = workers.unstarted("assemble", broker.address, *options)
    return subprocess.run(worker.command, capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.soak
def test_a_topic_that_is_not_permitted_is_told(kafka: Kafkas, workers: Workers, tmp_path: Path) -> None:
    """By its name, and waited for: somebody may permit it."""
    broker = kafka()
    broker.stop()
    properties = Path(broker.command[-1])
    authorizer = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
    with properties.open("a") as file:
        file.write(f"authorizer.class.name={authorizer}\nallow.everyone.if.no.acl.found=true\n")
    broker.start()
    topics_of(broker, partitions=1)
    acl = "org.apache.kafka.tools.AclCommand"
    rule = ("--add", "--allow-principal", "User:somebody", "--operation", "All", "--topic", SPANS)
    broker.tool(acl, "--bootstrap-server", broker.address, *rule)

    worker = workers("assemble", broker)

    until(lambda: "permit" in worker.said(), "the worker to say so")
    assert "denied" in reasons(worker)
    assert worker.stop() == 0
