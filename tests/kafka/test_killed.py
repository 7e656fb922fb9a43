"""Workers are killed, added and taken away under load, and the broker too: nothing is lost, nothing counts twice."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable

import pytest

from otel_reliability.model.span import RawSpan
from otel_reliability.testing import trace_id, traces_protobuf
from tests.kafka.expected import Expected, become
from tests.kafka.streams import final, plain
from tests.kafka.workers import RUNS, Reader, Worker, Workers, by_trace, send, topics_of
from tests.real.kafka.handle import Kafka, Kafkas
from tests.real.waiting import until
from tests.service.running import run_of, sum_of

pytestmark = pytest.mark.real

TOOLS = ("search", "book", "pay")
PAUSE = 0.05
"""Seconds between two sendings."""


class Load(threading.Thread):
    """Runs of several agents, each in two messages, the root in the later one; every fifth message is sent twice."""

    def __init__(self, broker: Kafka) -> None:
        super().__init__(daemon=True)
        self.spans: list[RawSpan] = []
        self.ending = threading.Event()
        self._broker = broker

    def run(self) -> None:
        trace = 0
        while not self.ending.wait(PAUSE):
            trace += 1
            begun = time.time() - 1_700_000_000
            spans = run_of(trace, TOOLS[: 1 + trace % 3], f"agent {trace % 7}", begun)
            self.spans += spans
            for part in (spans[1:], spans[:1]):
                for _ in range(1 + (trace % 5 == 0)):
                    send(self._broker, by_trace(part))

    def end(self) -> Expected:
        """Send no more. Gives what one process makes of all that was sent."""
        self.ending.set()
        self.join(60)
        assert not self.is_alive()
        return Expected(self.spans)


def disturbed(
    disturb: Callable[[random.Random, list[Worker]], None], broker: Kafka, workers: Workers, number: int, times: int
) -> None:
    """Disturb workers under load, that often, at random moments; hold runs and numbers to those of one process."""
    when = random.Random(3)
    running = [workers(stage, broker) for stage in ("assemble", "aggregate") for _ in range(number)]
    load = Load(broker)
    load.start()
    for _ in range(times):
        time.sleep(when.uniform(0.5, 4.0))
        disturb(when, running)
    time.sleep(2.0)
    expected = load.end()

    with Reader(broker, RUNS) as reader:
        records = reader.until_settled(len(expected.runs), patience=120.0)
        assert {run_id: plain(run) for run_id, run in final(records).items()} == expected.runs
        settled = [one.run.run_id for one in records if one.change.value == "settled"]
        assert len(settled) == len(set(settled)), "a run settles once"
    second = [worker for worker in running if worker.stage == "aggregate"]
    become(second, expected, patience=60.0)


def kill_one(when: random.Random, running: list[Worker]) -> None:
    """`kill -9` of any, which is started again at once."""
    victim = when.choice(running)
    victim.kill()
    victim.start()


@pytest.mark.parametrize(("number", "times"), [(2, 2), pytest.param(3, 30, marks=pytest.mark.soak)])
def test_workers_that_are_killed_lose_nothing(number: int, times: int, kafka: Kafkas, workers: Workers) -> None:
    """Any worker of any stage, at any moment: the final runs and numbers are those of an undisturbed single process."""
    broker = kafka()
    topics_of(broker)
    disturbed(kill_one, broker, workers, number, times)


@pytest.mark.soak
def test_workers_come_and_go_and_the_broker_is_restarted(kafka: Kafkas, workers: Workers) -> None:
    """Workers are added and end in order, the broker is killed twice: the same."""
    broker = kafka()
    topics_of(broker)
    moments = iter(range(12))

    def disturb(when: random.Random, running: list[Worker]) -> None:
        moment = next(moments)
        if moment in {4, 8}:
            broker.kill()
            time.sleep(3.0)
            broker.start()
        elif moment % 3 == 0:
            running.append(workers(when.choice(("assemble", "aggregate")), broker))
        else:
            kill_one(when, running)
            gone = when.choice(running)
            if sum(one.stage == gone.stage for one in running) > 1:
                assert gone.stop() == 0
                running.remove(gone)

    disturbed(disturb, broker, workers, 2, 12)


@pytest.mark.soak
def test_a_worker_that_is_a_million_spans_behind_catches_up_and_says_how_far_it_is(
    kafka: Kafkas, workers: Workers
) -> None:
    """The lag falls from what waits to nothing, and every run is told."""
    broker = kafka()
    topics_of(broker)
    body, runs = traces_protobuf(run_of(1, TOOLS * 3)), 100_000
    made = (trace_id(number) for number in range(1, runs + 1))
    send(broker, ((one.hex().encode(), body.replace(trace_id(1), one)) for one in made))
    worker = workers("assemble", broker)

    def lag() -> float:
        return sum_of(worker.numbers(), "otel_reliability_kafka_lag")

    behind = until(lag, "the lag to be told")
    until(lambda: lag() < 100, "the backlog to be worked off", patience=900.0, pause=1.0)
    told = "otel_reliability_kafka_records_total"
    until(lambda: sum_of(worker.numbers(), told, change="settled") == runs, "all runs", patience=120.0, pause=1.0)
    assert behind > runs / 4
