"""Workers on Kafka as processes, beside a real broker: what a span costs them, and what a second worker adds."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Generator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import Any, Final, NamedTuple

from benchmarks import serving
from benchmarks.kafka_payloads import PER_RUN, Message, messages, requests
from benchmarks.measure import Row, row
from otel_reliability import conventions
from otel_reliability.config import Settings
from otel_reliability.conventions.reader import Reader
from otel_reliability.engine import Engine
from otel_reliability.model.run import CloseReason
from otel_reliability.service.answers import Encoding, Signal
from otel_reliability.service.decoded import Decoder
from tests.kafka.workers import CLIENT, SPANS, Worker, Workers, send, topics_of
from tests.real.components import folder_of
from tests.real.kafka.handle import Kafka, Kafkas
from tests.real.process import Process
from tests.real.waiting import until
from tests.real.web import ask
from tests.service.running import sum_of

AGAINST_SERVE: Final = 6.0
"""Both stages, exactly once, may cost at most so many times what `serve` costs with HTTP and journal.

3.9 was held while `serve` took 22 µs a span and the stages 85; it takes 9 now, and they 48.
"""
WARM: Final = 300
"""Runs that go through before anything is measured: modules are loaded by then, and memory is there."""
PARTITIONS: Final = 4
PATIENCE: Final = 600.0
ASSEMBLED: Final = 12_000
"""Runs that are assembled without Kafka, alone and side by side."""
BACKLOG, IDLE = 60.0, 8.0
"""Seconds over which the messages of a backlog were told, and for which a worker with nothing to do is looked at."""
SETTINGS: Final[Mapping[str, Any]] = {"windows": [{"last": 100}], "kafka": {"commit": 1.0, "tick": 2.0}}
_TAKEN: Final = "otel_reliability_run_records_total"
_TOLD: Final = "otel_reliability_kafka_records_total"
_READ: Final = "otel_reliability_kafka_messages_total"


class Bench(NamedTuple):
    """A broker with its topics, and what starts workers on it."""

    broker: Kafka
    workers: Workers


@contextmanager
def bench() -> Generator[Bench]:
    """A real broker in a folder of its own."""
    folder = Path(tempfile.mkdtemp())
    try:
        with ExitStack() as running:
            java = Path(shutil.which("java") or "java")
            broker = Kafkas(java, folder_of("kafka") / "lib", folder, running)()
            topics_of(broker, partitions=PARTITIONS)
            yield Bench(broker, Workers(folder, running))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def against_serve(runs: int) -> list[Row]:
    """Worker processes, exactly once, against `serve` over HTTP with its journal: CPU seconds of each for the same spans."""
    with bench() as (broker, workers):
        pair = [workers(stage, broker, settings=SETTINGS) for stage in ("assemble", "aggregate")]
        until(lambda: all(one.get("/readyz").status == 200 for one in pair), "the workers")
        _through(broker, pair[1], 0, WARM)
        before = _costs(*pair, broker)
        began = time.monotonic()
        _through(broker, pair[1], WARM, WARM + runs)
        took = time.monotonic() - began
        costs = [late - early for late, early in zip(_costs(*pair, broker), before, strict=True)]
    alone = _served(runs)
    spans, against = runs * PER_RUN, f"{runs:,} runs of {PER_RUN} spans, exactly once, {took:.0f} s"
    return [
        row(
            "Kafka: both stages against `serve`",
            [(costs[0] + costs[1]) / alone],
            at_most=AGAINST_SERVE,
            against="serve over HTTP with its journal, on the same spans",
        ),
        *(
            row(f"Kafka: {name}, a span", [cost / spans], unit="µs", scale=1e6, against=against)
            for name, cost in zip(("assemble", "aggregate", "the broker"), costs, strict=True)
        ),
        row("serve, a span", [alone / spans], unit="µs", scale=1e6, against="513 spans a request, with its journal"),
    ]


class Backlog(NamedTuple):
    """What it cost so many workers to read it."""

    idle: float
    """CPU of a worker while nothing comes, of a second."""
    seconds: float
    workers: Sequence[float]
    broker: float


def two_against_one(runs: int) -> list[Row]:
    """One backlog, worked off by one worker of the first stage and by two: what a span costs each, and how fast it goes."""
    one, two = (_backlog(number, runs) for number in (1, 2))
    spans = runs * PER_RUN
    rates, costs = [spans / each.seconds for each in (one, two)], [sum(each.workers) / spans for each in (one, two)]
    told = [
        f"{each.seconds:.1f} s; CPU: {', '.join(f'{cpu:.1f} s' for cpu in each.workers)}, broker {each.broker:.1f} s"
        for each in (one, two)
    ]
    own = "where each has a processor of its own: twice what a span costs one, by what it costs two"
    share = two.broker / (two.broker + sum(two.workers))
    machine = side_by_side()
    return [
        row("Kafka: one worker", [rates[0]], unit="spans/s", against=told[0]),
        row("Kafka: two workers", [rates[1]], unit="spans/s", against=told[1]),
        row("Kafka: one worker, a span", [costs[0]], unit="µs", scale=1e6, against="CPU, assemble"),
        row("Kafka: two workers, a span", [costs[1]], unit="µs", scale=1e6, against="CPU, assemble, both together"),
        row("Kafka: a worker while nothing comes", [one.idle, two.idle], unit="%", scale=1e2, against="of a processor"),
        row("Kafka: the broker, two workers", [share], unit="%", scale=1e2, against="of the CPU of all three"),
        row("Kafka: two workers against one, by CPU", [2 * costs[0] / costs[1]], against=own),
        row(
            "the same work two at a time, without Kafka", machine, against="its CPU time alone: what this machine adds"
        ),
        row(
            "Kafka: the same without that",
            [2 * costs[0] / costs[1] * median(machine)],
            against=own,
        ),
        row(
            "Kafka: two workers against one, here",
            [rates[1] / rates[0]],
            against=f"{os.cpu_count()} processors for all",
        ),
    ]


def side_by_side(rounds: int = 5) -> list[float]:
    """What assembly costs a process while another does the same, over what it costs alone: processors share caches."""
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as processes:
        list(processes.map(_assembled, (1, 1)))
        alone_and_not = [
            (processes.submit(_assembled, ASSEMBLED).result(), list(processes.map(_assembled, (ASSEMBLED, ASSEMBLED))))
            for _ in range(rounds)
        ]
    return [sum(both) / 2 / alone for alone, both in alone_and_not]


def _assembled(runs: int) -> float:
    """CPU seconds that so many runs cost one process, without doors."""
    settings = Settings(hash_key="00" * 16)
    reader = Reader(settings, conventions.TABLE)
    engine, decode = Engine(settings, clock=time.monotonic, wall=None, reader=reader), Decoder(reader)
    came = messages(0, runs)
    began = time.process_time()
    for one in came:
        engine.receive(decode(Signal.TRACES, Encoding.PROTOBUF, one.value).spans)
    engine.flush(CloseReason.END_OF_INPUT)
    return time.process_time() - began


def _backlog(number: int, runs: int) -> Backlog:
    with bench() as (broker, workers):
        some = [workers("assemble", broker, settings=SETTINGS) for _ in range(number)]
        until(lambda: all(_shares(one, PARTITIONS // number) for one in some), "partitions for all")
        send(broker, messages(0, WARM))
        until(lambda: sum(sum_of(one.numbers(), _TOLD, change="settled") for one in some) >= WARM, "all runs")
        before = _costs(*some)
        time.sleep(IDLE)
        idle = (sum(_costs(*some)) - sum(before)) / IDLE / number
        came, before = messages(WARM, WARM + runs), _costs(*some, broker)
        began = time.monotonic()
        _send_as_of_old(broker, came)
        until(lambda: _read(some) >= WARM + runs, "the backlog", patience=PATIENCE, pause=0.5)
        took = time.monotonic() - began
        *used, by_broker = (late - early for late, early in zip(_costs(*some, broker), before, strict=True))
        return Backlog(idle, took, used, by_broker)


def _send_as_of_old(broker: Kafka, came: Sequence[Message]) -> None:
    """Messages of the last minute: so the runs of a backlog close and settle while it is read, as they do in a real one."""
    producer = CLIENT.Producer({"bootstrap.servers": broker.address, "linger.ms": 5})
    begin = time.time() - BACKLOG
    for at, one in enumerate(came):
        producer.produce(SPANS, one.value, one.key, timestamp=round((begin + BACKLOG * at / len(came)) * 1e3))
        producer.poll(0)
    producer.flush(30)


def _through(broker: Kafka, last: Worker, begin: int, end: int) -> None:
    """Send runs, and wait until the second stage has all of them settled."""
    send(broker, messages(begin, end))
    until(
        lambda: sum_of(last.numbers(), _TAKEN, disposition="taken") >= 2 * end, "all runs", patience=PATIENCE, pause=1.0
    )


def _read(some: Sequence[Worker]) -> float:
    return sum(sum_of(one.numbers(), _READ, topic=SPANS, kind="records") for one in some)


def _shares(worker: Worker, partitions: int) -> bool:
    """Whether a worker has its part of the partitions."""
    return f"otel_reliability_kafka_partitions {partitions}\n" in worker.numbers()


def _costs(*some: Process) -> list[float]:
    return [serving.cpu(one.pid) for one in some]


def _served(runs: int) -> float:
    """CPU seconds of `serve` for these spans, until all runs have settled."""
    with tempfile.TemporaryDirectory() as name:
        times = ("assembly.linger=1s", "assembly.reopen=5s", "hash_key=" + "ab" * 16, "change.enabled=false")
        options = [part for one in times for part in ("--set", one)]
        metrics = f"{serving.HOST}:{serving.free_port()}"
        service, place = serving.service(Path(name), *options, "--metrics", metrics, "--state", f"{name}/state")
        service.start()
        try:

            def until_settled(number: int) -> None:
                url = f"http://{metrics}/metrics"
                until(
                    lambda: sum_of(ask(url).text, "agent_reliability_runs_total") >= number,
                    "all runs",
                    patience=PATIENCE,
                    pause=1.0,
                )

            serving.send(place, list(requests(0, WARM)))
            until_settled(WARM)
            bodies, before = list(requests(WARM, WARM + runs)), serving.cpu(service.pid)
            serving.send(place, bodies)
            until_settled(WARM + runs)
            return serving.cpu(service.pid) - before
        finally:
            service.kill()
