"""What the two stages on Kafka cost: `python -m benchmarks.bench_kafka [--broker] [--two] [--spans N] [--agents N]`.

Without a flag, what needs no broker: the own work of both stages beside that of one process on the same spans, where it goes,
the state of a trace and of an agent, and what a take-over of 10 000 agents with 100 runs each takes. `--broker` starts a real
one (`python tests/real/install.py kafka`) and compares the worker processes, exactly once and with everything on, with `serve`
over HTTP and with its journal, on the same spans in the same run. `--two` works off one backlog with one worker and with two.
"""

from __future__ import annotations

import argparse
import math
import shutil
import sys
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from benchmarks import kafka_broker
from benchmarks.kafka_payloads import PER_RUN, TOOLS, messages, requests
from benchmarks.measure import Row, ratios, row, seconds
from otel_reliability import conventions
from otel_reliability.config import Settings
from otel_reliability.conventions.reader import Reader
from otel_reliability.engine import Engine
from otel_reliability.kafka.agents import LEAST, Agents, owner_of
from otel_reliability.kafka.log import Log
from otel_reliability.kafka.messages import Outgoing, key_of, write
from otel_reliability.kafka.shelf import MemoryShelf
from otel_reliability.kafka.traces import Traces
from otel_reliability.model.event import RunChange
from otel_reliability.model.record import RunRecord
from otel_reliability.model.run import AgentKey
from otel_reliability.service.answers import Encoding, Signal
from otel_reliability.service.decoded import Decoded, Decoder
from otel_reliability.service.memory import look_seldom
from otel_reliability.service.recording import Recording
from otel_reliability.telemetry.registry import Registry
from otel_reliability.testing import run
from tests.real.install import components

SETTINGS: Final = Settings(hash_key="00" * 16)
BEGIN: Final = 1_800_000_000.0
ROUNDS: Final = 5
RUNS: Final = 2_000
"""Runs of one round."""
AGENTS: Final = 1_000
"""Agents of a take-over, where nobody asks for more."""
BROKER_SPANS: Final = 36_000

BOTH, TRACE, AGENT, WORK, READ_BACK = 5.5, 1_500, 46, 0.3, 8.0
"""What is held: both stages' own work against one process; bytes of a trace and kilobytes of an agent on the shelf; and
milliseconds an agent until a stage that was taken over is at work, and until all are read back.

Against one process 3.7 was held while that took 14 µs a span and the stages 55; it takes 9 now, and they 43.
"""
decode: Final = Decoder(Reader(SETTINGS, conventions.TABLE))


class Works(NamedTuple):
    """The parts of one round, each with what the one before it left."""

    alone: Callable[[], None]
    decoding: Callable[[], None]
    assembling: Callable[[], None]
    aggregating: Callable[[], None]


def rows() -> list[Row]:
    """What is held, and what is told beside it."""
    look_seldom()
    found = [*own_work(RUNS), *open_trace(), *taken_over(AGENTS, 100)]
    if not components()["kafka"].ready() or shutil.which("java") is None:
        print("left out: no Kafka here; `python tests/real/install.py kafka` makes one", file=sys.stderr)
        return found
    return [*found, *kafka_broker.against_serve(BROKER_SPANS // PER_RUN)]


def own_work(runs: int) -> list[Row]:
    """Both stages without an engine underneath, against one process; and where it goes."""
    alone, decoding, assembling, aggregating = seconds(*_works(runs), rounds=ROUNDS, calls=1)
    both = [sum(some) for some in zip(decoding, assembling, aggregating, strict=True)]
    against = f"decoding, assembly, windows and counters in one process, {runs:,} runs of {PER_RUN} spans"
    scale, told = 1e6 / runs / PER_RUN, "a span, without the engine underneath"
    return [
        row("Kafka: own work of both stages", ratios(both, alone), at_most=BOTH, against=against),
        row("Kafka: decoding messages of 9 spans", decoding, unit="µs", scale=scale, against=told),
        row("Kafka: keeping, assembling, telling", assembling, unit="µs", scale=scale, against=told),
        row("Kafka: records, windows, snapshots", aggregating, unit="µs", scale=scale, against=told),
        row("the same work in one process", alone, unit="µs", scale=scale, against="a span"),
    ]


def _works(runs: int) -> Works:
    came, bodies = messages(0, runs), list(requests(0, runs))
    decoded: list[Decoded] = []
    told: list[Outgoing] = []

    def decoding() -> None:
        decoded[:] = [decode(Signal.TRACES, Encoding.PROTOBUF, one.value) for one in came]

    def assembling() -> None:
        traces = Traces(SETTINGS, MemoryShelf())
        told.clear()
        for at, one in enumerate(decoded):
            told.extend(traces.take(one.spans, one.evaluations, BEGIN + at / 100))
            if not at % 500:
                told.extend(traces.tick(BEGIN + at / 100))
        for second in range(0, 120, 5):
            told.extend(traces.tick(BEGIN + runs / 100 + second))

    def aggregating() -> None:
        agents = Agents(SETTINGS, MemoryShelf(), {})
        for at, one in enumerate(told):
            agents.take(one.key, one.value, BEGIN + at / 200)
            if not at % 1_000:
                agents.tick(BEGIN + at / 200)
        agents.tick(BEGIN + 1_000)

    decoding()
    assembling()
    return Works(lambda: _alone(bodies), decoding, assembling, aggregating)


def _alone(bodies: list[bytes]) -> None:
    now = BEGIN
    engine = Engine(SETTINGS, clock=lambda: now, wall=lambda: round(now * 1e9), places_return=True)
    record = Recording(engine, Registry(lambda: 0))
    for body in bodies:
        now += 0.5
        engine.receive(decode(Signal.TRACES, Encoding.PROTOBUF, body).spans)
        engine.tick()
        record()
    for _ in range(120):
        now += 1.0
        engine.tick()
        record()


def open_trace() -> list[Row]:
    """What a trace weighs on the shelf while it can change."""
    shelf = MemoryShelf()
    traces = Traces(SETTINGS, shelf)
    for at, message in enumerate(messages(0, 100)):
        traces.take(decode(Signal.TRACES, Encoding.PROTOBUF, message.value).spans, (), BEGIN + at / 100)
    traces.tick(BEGIN + 10)
    size = sum(len(place) + len(value) for place, value in shelf.items()) / 100
    return [row("Kafka: state of a trace", [size], unit="B", at_most=TRACE, against=f"{PER_RUN} spans, on the shelf")]


def taken_over(agents: int, runs: int) -> list[Row]:
    """A take-over of agents with full windows: until its stage is at work, and until all are read back."""
    shelf, size = _shelf_of(agents, runs)
    found: list[Agents] = []
    ((first,),) = seconds(lambda: found.append(Agents(SETTINGS, shelf, {})), rounds=1, calls=1)
    ((second,),) = seconds(lambda: found[0].wake(math.inf), rounds=1, calls=1)
    against = f"CPU, {agents:,} agents × {runs} runs: {first:.2f} s and {second:.1f} s together"
    return [
        row("Kafka: take-over, until at work", [first / agents], unit="ms", scale=1e3, at_most=WORK, against=against),
        row(
            "Kafka: and until all is read back",
            [second / agents],
            unit="ms",
            scale=1e3,
            at_most=READ_BACK,
            against=against,
        ),
        row("Kafka: state of an agent", [size / 1e3], unit="kB", at_most=AGENT, against=f"{runs} runs, on the shelf"),
    ]


def _shelf_of(agents: int, runs: int) -> tuple[MemoryShelf, float]:
    """The state of so many agents, and the bytes of one: a snapshot, and half as many records since as come between two.

    All are one agent in other names. Each has a record a second, so that those of one stand on as many pages.
    """
    first, key = MemoryShelf(), key_of(AgentKey("", "shop", "test", "support"))
    some = Agents(SETTINGS, first, {})
    for number in range((2 * runs - 2 * runs % LEAST + LEAST // 2) // 2):
        made = run(TOOLS[: 1 + number % 4], number)._replace(key=AgentKey("", "shop", "test", "support"))
        for turn, change in enumerate((RunChange.CLOSED, RunChange.SETTLED)):
            some.take(key, write(RunRecord(change, made, 2 * number + turn)).value, BEGIN + number)
    records = [entry for place, kept in first.items() for entry in Log(first).restore(place, kept) or ()][-LEAST // 2 :]
    shelf = MemoryShelf()
    log, names = Log(shelf), [b'["","shop","test","%07d",[]]' % number for number in range(agents)]
    for place, kept in first.items():
        for name in names if key in place else [key]:
            if not place.startswith(b"log"):
                shelf.put(place.replace(key, name), kept)
    for entry in records:
        for name in names:
            log.add(entry._replace(owner=owner_of(name), body=entry.body.replace(key, name)))
            log.write()
    size = sum(map(len, shelf.kept.values())) / agents
    return shelf, size


def rows_for(arguments: argparse.Namespace) -> Iterator[Row]:
    """What was asked for."""
    if arguments.broker:
        yield from kafka_broker.against_serve(arguments.spans // PER_RUN)
    elif arguments.two:
        yield from kafka_broker.two_against_one(arguments.spans // PER_RUN)
    else:
        yield from own_work(arguments.spans // PER_RUN)
        yield from open_trace()
        yield from taken_over(arguments.agents, 100)


def main() -> None:
    """Measure, and print a line each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--broker", action="store_true", help="against `serve`, with a real broker")
    parser.add_argument("--two", action="store_true", help="two workers against one, with a real broker")
    parser.add_argument("--spans", type=int, default=45_000)
    parser.add_argument("--agents", type=int, default=10_000)
    look_seldom()
    for found in rows_for(parser.parse_args()):
        limit = "" if found.at_most is None else f"(at most {found.at_most:g})"
        print(f"{found.name:42}{found.value:12.2f} {found.unit:8}{limit:16}{found.against}", flush=True)


if __name__ == "__main__":
    main()
