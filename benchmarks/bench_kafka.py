"""What the two stages on Kafka cost: `python -m benchmarks.bench_kafka [--broker] [--two] [--spans N] [--agents N]`.

Without a flag, what needs no broker and takes under a minute: where the CPU time of a span goes, part by part, and how long a
take-over of 10 000 agents with 100 runs each takes. `--broker` starts a real one (`python tests/real/install.py kafka`) and
compares the worker processes, exactly once and with everything on, with `serve` over HTTP and with its journal, on the same
spans in the same run. `--two` works off one backlog with one worker and with two, and says who had the processors.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from benchmarks.measure import Row, row
from otel_reliability import conventions
from otel_reliability.config import Settings
from otel_reliability.conventions.reader import Reader
from otel_reliability.kafka.agents import LEAST, Agents
from otel_reliability.kafka.messages import Outgoing, key_of, write
from otel_reliability.kafka.shelf import MemoryShelf
from otel_reliability.kafka.traces import Traces
from otel_reliability.model.event import RunChange
from otel_reliability.model.record import RunRecord
from otel_reliability.model.run import AgentKey
from otel_reliability.model.span import RawSpan
from otel_reliability.service.answers import Encoding, Signal
from otel_reliability.service.decoded import Decoded, Decoder
from otel_reliability.testing import run, span, traces_protobuf

SETTINGS = Settings(hash_key="00" * 16)
TOOLS = ("search", "read", "book", "pay")
PER_RUN = 9
"""Spans of a run, and of a message: a root, four tool calls, four model calls."""
BEGIN = 1_800_000_000.0
FLEET = 100
"""Agents that the runs are spread over."""
TICK_HZ = os.sysconf("SC_CLK_TCK")


class Message(NamedTuple):
    """A message as the Collector's exporter writes it."""

    key: bytes
    value: bytes


def spans_of(number: int) -> list[RawSpan]:
    """A run of nine spans."""
    start = float(number % 1_000)
    place = {"trace": number + 1, "start": start}
    name = f"agent {number % FLEET}"
    root = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": name}
    found = [span(1, attributes=root, end=start + 9, **place)]  # type: ignore[arg-type]
    for step, tool in enumerate(TOOLS):
        call = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": tool,
            "gen_ai.tool.call.arguments": '{"id": 7}',
        }
        chat = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "gpt-4o", "gen_ai.usage.input_tokens": 900}
        found.append(span(2 + step, 1, attributes=call, trace=number + 1, start=start + step))
        found.append(span(6 + step, 1, attributes=chat, trace=number + 1, start=start + step))
    return found


def messages(number: int) -> list[Message]:
    """A message a run."""
    made = (spans_of(at) for at in range(number))
    return [Message(spans[0].trace_id.hex().encode(), traces_protobuf(spans)) for spans in made]


def timed(work: Callable[[], object]) -> float:
    """CPU seconds of a work."""
    began = time.process_time()
    work()
    return time.process_time() - began


# --- Without a broker -------------------------------------------------------------------------------------------------


def per_span(runs: int) -> list[Row]:
    """Where the CPU time of a span goes, stage by stage. What remains of a worker's is the engine underneath."""
    decode = Decoder(SETTINGS, Reader(SETTINGS, conventions.TABLE))
    came = messages(runs)
    decoded: list[Decoded] = []
    first = timed(lambda: decoded.extend(decode(Signal.TRACES, Encoding.PROTOBUF, one.value) for one in came))
    traces, told = Traces(SETTINGS, MemoryShelf()), list[Outgoing]()

    def assemble() -> None:
        for at, one in enumerate(decoded):
            told.extend(traces.take(one.spans, one.evaluations, BEGIN + at / 1_000))
        for second in range(120):
            told.extend(traces.tick(BEGIN + runs / 1_000 + second))

    second = timed(assemble)
    agents = Agents(SETTINGS, MemoryShelf(), {})

    def aggregate() -> None:
        for at, one in enumerate(told):
            agents.take(one.key, one.value, BEGIN + at / 1_000)
            if not at % 1_000:
                agents.tick(BEGIN + at / 1_000)
        agents.tick(BEGIN + 1_000)

    third = timed(aggregate)
    spans, against = runs * PER_RUN, f"{runs:,} runs of {PER_RUN} spans, a message each"
    shares = {"decode and read": first, "parts, assembly and records": second, "records, windows and snapshots": third}
    return [
        row(f"Kafka: {name}", [took / spans], unit="µs/span", scale=1e6, against=against)
        for name, took in shares.items()
    ]


def restored(agents: int, runs: int) -> list[Row]:
    """A take-over of agents with full windows: reading them back, and the first time that all of them are asked."""
    shelf, settings = MemoryShelf(), Settings(hash_key="00" * 16, limits=SETTINGS.limits)
    one = Agents(settings, shelf, {})
    name = key_of(AgentKey("", "shop", "test", "support"))
    for number in range(max(runs, LEAST)):
        for told_ns, change in enumerate((RunChange.CLOSED, RunChange.SETTLED)):
            made = run(TOOLS[: 1 + number % 4], number)
            one.take(name, write(RunRecord(change, made, 2 * number + told_ns)).value, BEGIN + number)
    kept = {place[len(name) :]: value for place, value in shelf.items() if place.startswith(name)}
    size = sum(map(len, kept.values()))
    for number in range(agents - 1):
        other = key_of(AgentKey("", "shop", "test", f"support {number}"))
        for rest, value in kept.items():
            shelf.put(other + rest, value)
    found: list[Agents] = []
    took = timed(lambda: found.append(Agents(settings, shelf, {})))
    asked = timed(lambda: [agent.rows for agent in found[0].all()])
    against = f"{agents:,} agents × {runs} runs, one worker"
    return [
        row("Kafka: take-over, shelf to work", [took], unit="s", against=against),
        row("Kafka: and all windows asked once", [asked], unit="s", against=against),
        row("Kafka: state an agent", [size / 1e3], unit="kB", against=f"{runs} runs, on the shelf"),
    ]


def open_trace() -> list[Row]:
    """What a trace weighs on the shelf while it can change."""
    shelf, decode = MemoryShelf(), Decoder(SETTINGS, Reader(SETTINGS, conventions.TABLE))
    traces = Traces(SETTINGS, shelf)
    one = decode(Signal.TRACES, Encoding.PROTOBUF, messages(1)[0].value)
    traces.take(one.spans, (), BEGIN)
    traces.tick(BEGIN + 10)
    size = sum(len(place) + len(value) for place, value in shelf.items())
    return [row("Kafka: state a trace", [size], unit="B", against=f"{PER_RUN} spans, on the shelf")]


# --- With a broker ----------------------------------------------------------------------------------------------------


def cpu_of(pid: int) -> float:
    """CPU seconds of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICK_HZ


def against_serve(runs: int) -> list[Row]:
    """Worker processes, exactly once, against `serve` over HTTP with its journal: CPU seconds of each for the same spans."""
    from tests.kafka.workers import RUNS, Reader as Topic, Workers, send, topics_of  # noqa: PLC0415, I001 (only here)
    from tests.real.waiting import until  # noqa: PLC0415

    came, spans = messages(runs), runs * PER_RUN
    with broker_in() as (broker, folder, running):
        topics_of(broker)
        workers = Workers(folder, running)
        pair = [workers(stage, broker, settings={"windows": [{"last": 100}]}) for stage in ("assemble", "aggregate")]
        until(lambda: all(one.get("/readyz").status == 200 for one in pair), "the workers")
        before = [cpu_of(one.pid) for one in (*pair, broker)]
        began = time.monotonic()
        send(broker, came)
        with Topic(broker, RUNS) as topic:
            until(
                lambda: sum(b'"change":"settled"' in one.value() for one in topic.read(1.0)) >= runs,
                "all runs",
                patience=600,
            )
        until(lambda: f'taken"}} {2 * runs}' in pair[1].numbers(), "all records", patience=600)
        took = time.monotonic() - began
        costs = [cpu_of(one.pid) - was for one, was in zip((*pair, broker), before, strict=True)]
    alone = served(
        [
            traces_protobuf([one for at in range(begin, min(begin + 57, runs)) for one in spans_of(at)])
            for begin in range(0, runs, 57)
        ],
        runs,
    )
    both, against = costs[0] + costs[1], f"{runs:,} runs of {PER_RUN} spans, exactly once, {took:.0f} s"
    return [
        row(
            "Kafka: both stages against `serve`", [both / alone], against="serve over HTTP with its journal, same spans"
        ),
        row("Kafka: assemble", [costs[0] / spans], unit="µs/span", scale=1e6, against=against),
        row("Kafka: aggregate", [costs[1] / spans], unit="µs/span", scale=1e6, against=against),
        row("Kafka: the broker", [costs[2] / spans], unit="µs/span", scale=1e6, against=against),
        row("serve", [alone / spans], unit="µs/span", scale=1e6, against="HTTP, 513 spans a request, with its journal"),
    ]


def served(bodies: Sequence[bytes], runs: int) -> float:
    """CPU seconds of `serve` for these requests, until all runs have settled."""
    from tests.real.ports import HOST, free_port  # noqa: PLC0415
    from tests.real.process import Process  # noqa: PLC0415
    from tests.real.waiting import until  # noqa: PLC0415
    from tests.real.web import ask  # noqa: PLC0415

    folder = Path(tempfile.mkdtemp())
    http, metrics = (f"{HOST}:{free_port()}" for _ in range(2))
    doors = ["--http", http, "--grpc", "off", "--pages", "off", "--metrics", metrics, "--state", str(folder / "state")]
    times = ["--set", "assembly.linger=1s", "--set", "assembly.reopen=5s", "--set", "hash_key=" + "ab" * 16]
    command = [sys.executable, "-m", "otel_reliability.cli", "serve", *doors, *times, "--set", "change.enabled=false"]
    service = Process("serve", command, log=folder / "log", ready=lambda one: "Ready" in one.said())
    service.start()
    try:
        before = cpu_of(service.pid)
        for body in bodies:
            while (
                ask(f"http://{http}/v1/traces", body=body, headers={"Content-Type": "application/x-protobuf"}).status
                != 200
            ):
                time.sleep(0.2)
        until(lambda: _counted(ask(f"http://{metrics}/metrics").text) >= runs, "all runs", patience=600, pause=2.0)
        return cpu_of(service.pid) - before
    finally:
        service.kill()
        shutil.rmtree(folder, ignore_errors=True)


def two_against_one(runs: int) -> list[Row]:
    """One backlog, worked off by one worker of the first stage and by two: spans a second, and whose the processors were."""
    from tests.kafka.workers import Workers, send, topics_of  # noqa: PLC0415
    from tests.real.waiting import until  # noqa: PLC0415

    came, found = messages(runs), list[Row]()
    rates: list[float] = []
    for number in (1, 2):
        with broker_in() as (broker, folder, running):
            topics_of(broker)
            workers = Workers(folder, running)
            some = [workers("assemble", broker) for _ in range(number)]
            until(lambda some=some: all(_shares(one.numbers(), 4 // len(some)) for one in some), "partitions for all")
            begun, before = time.monotonic(), [cpu_of(one.pid) for one in (broker, *some)]
            send(broker, came)
            until(
                lambda some=some: sum(_read(one.numbers()) for one in some) >= runs,
                "the backlog",
                patience=900,
                pause=0.5,
            )
            took = time.monotonic() - begun
            used = [cpu_of(one.pid) - was for one, was in zip((broker, *some), before, strict=True)]
            rates.append(runs * PER_RUN / took)
            told = f"{took:.1f} s; CPU seconds: broker {used[0]:.1f}, workers {', '.join(f'{one:.1f}' for one in used[1:])}"
            found.append(row(f"Kafka: backlog with {number} worker(s)", [rates[-1]], unit="spans/s", against=told))
    found.append(row("Kafka: two workers against one", [rates[1] / rates[0]], against=f"{os.cpu_count()} processors"))
    return found


class broker_in:  # noqa: N801 (used as a function)
    """A real broker in a folder of its own, for as long as the block lasts."""

    def __enter__(self):  # noqa: ANN204 (three handles of the tests)
        from tests.real.components import folder_of  # noqa: PLC0415
        from tests.real.kafka.handle import Kafkas  # noqa: PLC0415

        self._folder, self._running = Path(tempfile.mkdtemp()), ExitStack()
        java = shutil.which("java") or "java"
        broker = Kafkas(Path(java), folder_of("kafka") / "lib", self._folder, self._running)()
        return broker, self._folder, self._running

    def __exit__(self, *_: object) -> None:
        self._running.close()
        shutil.rmtree(self._folder, ignore_errors=True)


def _counted(text: str) -> float:
    lines = (line for line in text.splitlines() if line.startswith("agent_reliability_runs_total{"))
    return sum(float(line.rpartition(" ")[2]) for line in lines)


def _shares(text: str, partitions: int) -> bool:
    """Whether a worker has its part of the partitions."""
    return f"otel_reliability_kafka_partitions {partitions}\n" in text


def _read(text: str) -> float:
    wanted = 'otel_reliability_kafka_messages_total{topic="spans",kind="records"} '
    return sum(float(line.removeprefix(wanted)) for line in text.splitlines() if line.startswith(wanted))


def rows_for(arguments: argparse.Namespace) -> Iterator[Row]:
    """What was asked for."""
    if arguments.broker:
        yield from against_serve(arguments.spans // PER_RUN)
    elif arguments.two:
        yield from two_against_one(arguments.spans // PER_RUN)
    else:
        yield from per_span(arguments.spans // PER_RUN)
        yield from open_trace()
        yield from restored(arguments.agents, 100)


def main() -> None:
    """Measure, and print a line each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--broker", action="store_true", help="against `serve`, with a real broker")
    parser.add_argument("--two", action="store_true", help="two workers against one, with a real broker")
    parser.add_argument("--spans", type=int, default=45_000)
    parser.add_argument("--agents", type=int, default=10_000)
    for found in rows_for(parser.parse_args()):
        print(f"{found.name:42}{found.value:12.2f} {found.unit:9}{found.against}")


if __name__ == "__main__":
    main()
