from __future__ import annotations

import importlib
import json
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import pytest

from otel_reliability.model.record import BadRecord, RunRecord, pack, read
from otel_reliability.model.run import Run, RunChange
from otel_reliability.testing import span, trace_id
from tests.kafka.expected import Expected
from tests.kafka.streams import final, plain
from tests.kafka.workers import (
    DEAD,
    LOGS,
    RUNS,
    SPANS,
    Reader,
    Worker,
    Workers,
    by_trace,
    send,
    topics_of,
)
from tests.otlp import traces_protobuf
from tests.real.kafka.handle import Kafka, Kafkas
from tests.real.ports import HOST, free_port
from tests.real.waiting import until
from tests.service.running import run_of, sum_of

pytestmark = pytest.mark.real

CALL = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search"}


def reasons(worker: Worker) -> dict[str, str]:
    found: Any = json.loads(worker.get("/readyz").body)
    return found["reasons"]


def test_what_cannot_be_used_is_laid_aside(kafka: Kafkas, workers: Workers) -> None:
    broker = kafka()
    topics_of(broker, partitions=1)
    first = workers("assemble", broker)
    second = workers("aggregate", broker)
    halves = run_of(4, ("search", "book"))
    send(broker, [(b"x" * 32, b"\xff garbage"), (b"\xff", b"\x0a\x01")])
    send(broker, [(None, traces_protobuf(run_of(1))), (b"00" * 16, traces_protobuf(run_of(2)))])
    send(broker, [*by_trace(run_of(3)), *by_trace(halves[1:]), *by_trace(halves[:1])])
    send(broker, [(b"a", b"no record"), (b"a", pack((99, None))), (b"a", b"\xff")], RUNS)

    with Reader(broker, RUNS) as reader, Reader(broker, DEAD) as dead:
        until(lambda: len(dead.read()) >= 5, "the dead letters")
        until(lambda: len(_final(reader)) == 4, "the runs")
        headers = [dict(message.headers()) for message in dead.messages]
    numbers = until(
        lambda: first.numbers() if "kafka_apart" in first.numbers() else "", "the numbers"
    )

    assert (
        sorted(one["reason"].decode() for one in headers)
        == ["run_record"] * 3 + ["undecodable"] * 2
    )
    assert sum(b"version 99; this service reads version" in one["detail"] for one in headers) == 1
    assert {one["stage"] for one in headers} == {b"assemble", b"aggregate"}
    assert {one["topic"] for one in headers} == {b"spans", b"runs"}
    assert 'otel_reliability_kafka_apart_total{what="no_key"} 1' in numbers
    assert 'otel_reliability_kafka_apart_total{what="other_key"} 1' in numbers
    assert 'otel_reliability_kafka_dead_letters_total{reason="undecodable"} 2' in numbers
    assert 'otel_reliability_kafka_dead_letters_total{reason="run_record"} 3' in second.numbers()


def _final(reader: Reader) -> list[RunRecord]:
    """The runs that are final, in a topic that holds more than run records."""
    found: list[RunRecord] = []
    for message in reader.read():
        with suppress(BadRecord):
            found.append(read(message.value()))
    return [one for one in found if one.change is RunChange.FINAL]


@pytest.mark.parametrize("away", [2.0, pytest.param(60.0, id="a minute", marks=pytest.mark.soak)])
def test_what_is_not_there_yet_is_told_and_waited_for(
    away: float, kafka: Kafkas, workers: Workers
) -> None:
    """Brokers that are away, then topics that are missing: one message each, no end of the process;
    then it works. Brokers that go away in mid-stream: what was sent before and after is there,
    once.
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
        reader.until_final(1)
    broker.kill()
    time.sleep(away)
    broker.start()
    send(broker, by_trace(run_of(2)))
    with Reader(broker, RUNS) as reader:
        records = reader.until_final(2, patience=120.0)

    assert len(final(records)) == 2
    assert sum(one.change.value == "final" for one in records) == 2
    assert worker.said().count("is not answering") == 1
    assert worker.stop() == 0


def test_what_does_not_heal_ends_the_process(kafka: Kafkas, workers: Workers) -> None:
    broker = kafka()
    topics_of(broker, partitions=2)
    topics_of(broker, partitions=3, names=[LOGS])

    apart = ended(workers, broker, "--set", f"kafka.logs={LOGS}")
    unknown = ended(workers, broker, "--set", 'kafka.client={"no.such.option": "1"}')

    assert (apart.returncode, unknown.returncode) == (2, 2)
    assert (
        "kafka.logs: 'spans: 2, logs: 3' is not topics of as many partitions each" in apart.stderr
    )
    assert "no.such.option" in unknown.stderr


@pytest.mark.soak
def test_a_worker_too_many_says_so_and_stands_by(kafka: Kafkas, workers: Workers) -> None:
    broker = kafka()
    topics_of(broker, partitions=1)
    pair = [workers("assemble", broker) for _ in range(2)]
    idle = until(
        lambda: next(
            (one for one in pair if "there are more workers than partitions" in one.said()), None
        ),
        "one to say so",
    )
    (other,) = (one for one in pair if one is not idle)
    assert idle.get("/readyz").status == 200
    assert other.stop() == 0
    send(broker, by_trace(run_of(1)))

    with Reader(broker, RUNS) as reader:
        assert len(reader.until_final(1)) >= 2


def test_without_a_shared_key_no_worker_starts(workers: Workers) -> None:
    nowhere = f"{HOST}:{free_port()}"
    keyless = workers.unstarted("aggregate", nowhere, settings={"hash_key": None})
    lost = workers.unstarted("assemble", "")

    for worker, field in ((keyless, "hash_key"), (lost, "kafka.brokers")):
        done = subprocess.run(
            worker.command, capture_output=True, text=True, check=False, timeout=180
        )
        assert done.returncode == 2
        assert f"otel-reliability: {field}: " in done.stderr


def ended(workers: Workers, broker: Kafka, *options: str) -> subprocess.CompletedProcess[str]:
    worker = workers.unstarted("assemble", broker.address, *options)
    return subprocess.run(worker.command, capture_output=True, text=True, check=False, timeout=180)


@pytest.mark.soak
def test_traces_that_are_broken_harm_no_other(kafka: Kafkas, workers: Workers) -> None:
    """A trace under many keys falls apart, and is counted; one of a hundred thousand spans ends at
    its limit, and is counted; the runs before, between and behind are what they are.
    """
    broker = kafka()
    good = [run_of(number, ("search", "book")) for number in range(1, 61)]
    topics_of(broker, partitions=2)
    worker = workers("assemble", broker)
    second = workers("aggregate", broker)
    apart = run_of(100, ("search",) * 15)
    endless = trace_id(200)
    send(broker, [one for some in good[:20] for one in by_trace(some)])
    send(
        broker, ((bytes([number]) * 32, traces_protobuf([one])) for number, one in enumerate(apart))
    )
    bodies = [
        traces_protobuf(
            span(2 + number, 1, trace=200, attributes=CALL) for number in range(at, at + 500)
        )
        for at in range(0, 100_000, 500)
    ]
    for at, body in enumerate(bodies):
        send(
            broker,
            [
                (endless.hex().encode(), body),
                *(by_trace(good[20 + at // 10]) if at % 10 == 0 else ()),
            ],
        )
    send(broker, [one for some in good[40:] for one in by_trace(some)])

    expected = Expected(one for some in good for one in some).runs
    with Reader(broker, RUNS) as reader:

        def all_good() -> dict[str, Run]:
            found = {
                run_id: plain(run)
                for run_id, run in final(reader.records()).items()
                if run_id in expected
            }
            return found if found.keys() == expected.keys() else {}

        found = until(all_good, "the good runs", patience=180.0)
        broken = [one.run for one in reader.records() if one.run.run_id not in expected]

    def refused() -> str:
        told = worker.numbers()
        limited = sum_of(told, "otel_reliability_spans_total", reason="span_limit")
        late = sum_of(told, "otel_reliability_spans_total", disposition="late")
        return told if limited + late == 100_000 - 10_000 else ""

    numbers = until(refused, "what is beyond the limit to be counted")
    assert found == expected
    assert sum_of(numbers, "otel_reliability_kafka_apart_total", what="other_key") == len(apart)
    assert {run.trace_id for run in broken} == {trace_id(100), endless}
    assert max(len(run.path or ()) for run in broken if run.trace_id == endless) <= 10_000
    assert "otel_reliability_kafka_dead_letters_total{" not in numbers
    for one in (worker, second):
        assert sum_of(one.numbers(), "otel_reliability_kafka_starts_total") == 1
        assert one.stop() == 0


@pytest.mark.soak
def test_a_worker_ends_though_the_brokers_are_away(kafka: Kafkas, workers: Workers) -> None:
    broker = kafka()
    topics_of(broker, partitions=1)
    worker = workers("assemble", broker)
    until(lambda: worker.get("/readyz").status == 200, "the worker to be ready")
    send(broker, by_trace(run_of(1)))
    broker.kill()

    assert worker.stop(patience=90.0) in {0, 1}
    broker.start()
    again = workers("assemble", broker)
    with Reader(broker, RUNS) as reader:
        assert len(final(reader.until_final(1))) == 1
    assert again.stop() == 0


class Acl:
    """What is denied to everybody, on a broker that asks."""

    def __init__(self, broker: Kafka) -> None:
        broker.stop()
        with Path(broker.command[-1]).open("a") as file:
            authorizer = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
            file.write(f"authorizer.class.name={authorizer}\nallow.everyone.if.no.acl.found=true\n")
        broker.start()
        self._admin = cast("Any", importlib.import_module("confluent_kafka.admin"))
        self._client = self._admin.AdminClient({"bootstrap.servers": broker.address})

        # What any rule is about, is denied to those whom none permits it.
        literal = self._admin.ResourcePatternType.LITERAL
        everything = self._admin.AclOperation.ALL
        whats = [
            (self._admin.ResourceType[kind], "*", literal, *WHO, everything) for kind, *_ in RULES
        ]
        self._make(
            [
                self._admin.AclBinding(*what, self._admin.AclPermissionType.ALLOW)
                for what in dict.fromkeys(whats)
            ]
        )

    def _rule(self, kind: str, name: str, operation: str) -> tuple[Any, ...]:
        """It is denied. Whose names begin so, are meant too."""
        admin = self._admin
        what = (admin.ResourceType[kind], name, admin.ResourcePatternType.PREFIXED)
        return (*what, *WHO, admin.AclOperation[operation], admin.AclPermissionType.DENY)

    def _make(self, rules: Sequence[Any]) -> None:
        for made in self._client.create_acls(rules).values():
            made.result(20)

    def deny(self, *rule: str) -> None:
        """From now on."""
        self._make([self._admin.AclBinding(*self._rule(*rule))])

    def permit(self, *rule: str) -> None:
        """No more."""
        for gone in self._client.delete_acls(
            [self._admin.AclBindingFilter(*self._rule(*rule))]
        ).values():
            assert len(gone.result(20)) == 1


WHO = ("User:ANONYMOUS", "*")
RULES = {
    ("TOPIC", RUNS, "DESCRIBE"): "is not a topic that this user may use",
    ("TOPIC", SPANS, "READ"): "permit it",
    ("TOPIC", RUNS, "WRITE"): "is not a topic that this user may write",
    ("TOPIC", "changelog__", "WRITE"): "changelog__",
    ("GROUP", "otel-reliability", "READ"): "the brokers do not permit it",
    ("TRANSACTIONAL_ID", "otel-reliability", "WRITE"): "the brokers do not permit it",
}
"""Rights that are taken away, and what a worker says then."""


@pytest.mark.soak
def test_what_is_not_permitted_is_told_and_waited_for(kafka: Kafkas, workers: Workers) -> None:
    """Whatever right it is that lacks, at the start and in mid-stream: one message that says so, no
    end of the process, no loss; once it is granted, the worker goes on by itself.
    """
    broker = kafka()
    acl = Acl(broker)
    topics_of(broker, partitions=1)
    worker = workers("assemble", broker)
    for number, (rule, told) in enumerate(RULES.items(), 1):
        until(
            lambda: worker.get("/readyz").status == 200,
            f"the worker to be ready before {rule}",
            patience=120.0,
        )
        acl.deny(*rule)
        if (
            rule[0] in {"GROUP", "TRANSACTIONAL_ID"} or rule[2] == "DESCRIBE"
        ):  # asked for at the start only
            worker.kill()
            worker.start()
        send(broker, by_trace(run_of(number)))
        until(
            lambda told=told: told in worker.said(),
            f"the worker to say that {rule} is denied",
            patience=120.0,
        )
        until(
            lambda: reasons(worker).keys() & {"denied", "brokers"},
            "its probe to say so",
            patience=60.0,
        )
        assert worker.get("/healthz").status == 200
        acl.permit(*rule)
        with Reader(broker, RUNS) as reader:
            records = reader.until_final(number, patience=180.0)
        assert len(final(records)) == sum(one.change.value == "final" for one in records) == number
    assert worker.stop() == 0
