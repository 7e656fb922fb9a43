"""Workers are killed, added and taken away under load, and the broker too: nothing is lost, nothing
counts twice.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise

import pytest

from otel_reliability.model.span import RawSpan
from otel_reliability.testing import trace_id
from tests.kafka.expected import Expected, become
from tests.kafka.streams import final, plain
from tests.kafka.workers import RUNS, Reader, Sender, Worker, Workers, by_trace, topics_of
from tests.otlp import traces_protobuf
from tests.real.kafka.handle import Kafka, Kafkas
from tests.real.waiting import until
from tests.service.running import run_of, sum_of

pytestmark = pytest.mark.real

TOOLS = ("search", "book", "pay")
PAUSE = 0.05
"""Seconds between two sendings."""


class Load(threading.Thread):
    """Runs of several agents, each in two messages, the root in the later one; every fifth message
    is sent twice.
    """

    def __init__(self, broker: Kafka) -> None:
        super().__init__(daemon=True)
        self.spans: list[RawSpan] = []
        self.ending = threading.Event()
        self._sender = Sender(broker)

    def run(self) -> None:
        trace = 0
        while not self.ending.wait(PAUSE):
            trace += 1
            begun = time.time() - 1_700_000_000
            spans = run_of(trace, TOOLS[: 1 + trace % 3], f"agent {trace % 7}", begun)
            self.spans += spans
            for part in (spans[1:], spans[:1]):
                for _ in range(1 + (trace % 5 == 0)):
                    self._sender.send(by_trace(part))

    def end(self) -> Expected:
        """Send no more. Gives what one process makes of all that was sent."""
        self.ending.set()
        self.join(60)
        assert not self.is_alive()
        self._sender.flush()
        return Expected(self.spans)


def disturbed(
    moments: Iterable[Callable[[list[Worker]], None]], broker: Kafka, workers: Workers, number: int
) -> None:
    """Disturb workers under load; hold runs and numbers to those of one process."""
    running = [workers(stage, broker) for stage in ("assemble", "aggregate") for _ in range(number)]
    load = Load(broker)
    load.start()
    for disturb in moments:
        disturb(running)
    time.sleep(2.0)
    expected = load.end()

    with Reader(broker, RUNS) as reader:
        records = reader.until_final(len(expected.runs), patience=180.0)
        assert {run_id: plain(run) for run_id, run in final(records).items()} == expected.runs
        ids = [one.run.run_id for one in records if one.change.value == "final"]
        assert len(ids) == len(set(ids)), "a run becomes final once"
    become([worker for worker in running if worker.stage == "aggregate"], expected, patience=120.0)
    print(
        f"found: {len(expected.runs):,} runs, {len(load.spans):,} spans, "
        f"{len(expected.numbers)} series, "
        f"{len(running)} workers at the end"
    )


def kill_one(when: random.Random, running: list[Worker]) -> None:
    """`kill -9` of any, which is started again at once."""
    victim = when.choice(running)
    victim.kill()
    victim.start()


def test_workers_that_are_killed_lose_nothing(kafka: Kafkas, workers: Workers) -> None:
    """Any worker of any stage, at any moment: the final runs and numbers are those of an
    undisturbed single process.
    """
    broker = kafka()
    when = random.Random(3)
    topics_of(broker)

    def disturb(running: list[Worker]) -> None:
        time.sleep(when.uniform(0.5, 4.0))
        kill_one(when, running)

    disturbed([disturb] * 2, broker, workers, 2)


@pytest.mark.soak
def test_thirty_kills_while_workers_come_and_go_and_the_broker_is_restarted(
    kafka: Kafkas, workers: Workers
) -> None:
    """Three workers a stage; after every third kill a worker is added or one ends in order; the
    broker is killed twice.
    """
    broker = kafka()
    when = random.Random()
    topics_of(broker)

    def restart_broker(running: list[Worker]) -> None:
        broker.kill()
        time.sleep(3.0)
        broker.start()

    def add(running: list[Worker]) -> None:
        running.append(workers(when.choice(("assemble", "aggregate")), broker))

    def take_away(running: list[Worker]) -> None:
        gone = when.choice(running)
        if sum(one.stage == gone.stage for one in running) > 1:
            assert gone.stop(patience=60.0) == 0
            running.remove(gone)

    def moments() -> Iterator[Callable[[list[Worker]], None]]:
        for number in range(30):
            # A third of the kills meet what the one before has set going: a take-over, a worker
            # that starts.
            time.sleep(when.uniform(0.0, 1.0) if number % 3 == 2 else when.uniform(2.0, 20.0))
            yield lambda running: kill_one(when, running)
            if number in {9, 19}:
                yield restart_broker
            elif number % 3 == 0:
                yield add if number % 2 else take_away

    disturbed(moments(), broker, workers, 3)


@pytest.mark.soak
def test_a_worker_that_is_a_million_spans_behind_catches_up_and_says_how_far_it_is(
    kafka: Kafkas, workers: Workers
) -> None:
    broker = kafka()
    topics_of(broker)
    body = traces_protobuf(run_of(1, TOOLS * 3))
    runs = 100_000
    sender = Sender(broker)
    made = (trace_id(number) for number in range(1, runs + 1))
    sender.send((one.hex().encode(), body.replace(trace_id(1), one)) for one in made)
    sender.flush()
    worker = workers("assemble", broker)
    lags = list[float]()

    def caught_up() -> bool:
        told = worker.numbers()
        if "otel_reliability_kafka_lag" in told:
            lags.append(sum_of(told, "otel_reliability_kafka_lag"))
        return bool(lags) and lags[-1] < 100

    until(caught_up, "the backlog to be worked off", patience=1_200.0, pause=2.5)
    told = "otel_reliability_kafka_records_total"
    until(
        lambda: sum_of(worker.numbers(), told, change="final") == runs,
        "all runs",
        patience=300.0,
        pause=1.0,
    )
    # Partitions are told of from their first message on, so the lag rises before it falls; and a
    # worker's own ticks count too.
    falling = lags[lags.index(max(lags)) :]
    assert all(after < before + 100 for before, after in pairwise(falling))
    assert max(lags) > runs / 4
    assert len(falling) > 3
    looked = ", ".join(f"{lag:,.0f}" for lag in lags[:: max(1, len(lags) // 12)])
    print(f"found: {10 * runs:,} spans; messages behind, over time: {looked}")
