"""How long a service takes to be where it was: 10 000 agents with windows of 100 runs each, and then requests since.

It is ready when requests can be taken and nothing told is wrong; agents are read back from then on, when something happens to
them or bit by bit. Told are seconds of the process, since a machine has other things to do: where it has none, they are those
of the clock. Other numbers may be given: agents, runs, requests.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.measure import Row
from otel_reliability.config import Settings
from otel_reliability.engine import Engine
from otel_reliability.model.event import RunChange, RunEvent
from otel_reliability.model.run import AgentKey
from otel_reliability.service import journal_codec as codec
from otel_reliability.service.apart import Apart
from otel_reliability.service.checkpoint_store import AgentRow, Checkpoint, CheckpointStore, Point
from otel_reliability.service.checkpoints import bytes_of, core_of
from otel_reliability.service.clock import Clock, Moment
from otel_reliability.service.decoded import Decoded
from otel_reliability.service.journal_sqlite import Sqlite
from otel_reliability.service.journal_store import REQUEST, Entry, Store
from otel_reliability.service.memory import resident
from otel_reliability.service.recording import Recording
from otel_reliability.service.state import State
from otel_reliability.service.state_directory import StateDirectory
from otel_reliability.telemetry.attributes import of_agent
from otel_reliability.telemetry.exposition import Exposition
from otel_reliability.telemetry.prometheus import Prometheus
from otel_reliability.telemetry.registry import Registry
from otel_reliability.testing import FakeClock, agent, at, model, run, tool
from otel_reliability.windows.told import write_told

TOOLS = ("search", "read", "book", "pay")
MEGABYTE = 1e6


class Life:
    """A service's state, with what it counts, that has seen nothing."""

    def __init__(self, agents: int) -> None:
        fake, defaults = FakeClock(), Settings()
        settings = replace(defaults, hash_key="00" * 16, limits=replace(defaults.limits, agents=agents))
        self.fake = fake
        self.clock = Clock(fake, fake.wall)
        self.engine = Engine(settings, clock=self.clock, wall=self.clock.wall, places_return=True)
        self.state = State(settings, self.engine)
        self.book = Registry(self.clock.wall)
        self.recording = Recording(self.engine, self.book)
        self.state.watchers.append(self.recording)
        self.state.keepers |= {"book": self.book, "recording": self.recording}

    def scrape(self) -> int:
        """Write everything as Prometheus reads it. Gives the bytes."""
        told = Prometheus(Exposition(self.engine, self.book, lambda: ()), {})
        return sum(len(piece) for piece in told.text(openmetrics=False))


class Measured(NamedTuple):
    """Seconds until it is ready, of its first scrape and of another; bytes when it is ready, after the scrapes, on disk."""

    ready: float
    first_scrape: float
    next_scrape: float
    memory_ready: int
    memory: int
    disk: int


def one_agent(runs: int) -> Life:
    """A life of one agent with so many settled runs."""
    life = Life(1)
    for number in range(runs):
        one = run(TOOLS[: 1 + number % len(TOOLS)])
        one = one._replace(run_id=str(number), start_ns=at(number), end_ns=at(number + 1))
        life.engine.receive_events([RunEvent(RunChange.CLOSED, one), RunEvent(RunChange.SETTLED, one)])
        life.state.advance()
    return life


def fill(path: Path, agents: int, runs: int, requests: int) -> bytes:
    """Write a journal as a service would have left it: each agent as one that lived, with its series and its detector."""
    pattern, life = one_agent(runs), Life(agents)
    (first,) = pattern.engine.fleet.keys()
    keys = [AgentKey("", "service", "", f"agent {number}") for number in range(agents)]
    own = pattern.engine.fleet.agent(first)
    monitor, former = life.engine.monitor, pattern.engine.monitor
    assert own is not None
    assert monitor is not None
    assert former is not None
    fleet: dict[str, Any] = {"accounts": {}, "places": keys, "agents": keys, "seen": [(key, 0.0) for key in keys]}
    plain = own.to_state()
    life.engine.fleet.restore(fleet, {key: lambda: plain for key in keys})
    watched = former.to_state(0.0)
    monitor.restore({**watched, "agents": [[list(key), 0.0, watched["agents"][0][2]] for key in keys]}, 0.0)
    life.book.restore(_multiplied(pattern.book.to_state(), first, keys))
    body, told = codec.press(plain), codec.press(write_told(own.told()))
    store = CheckpointStore(path / "checkpoint.db")
    rows = (AgentRow(bytes_of(key), runs, body, told) for key in keys)
    point = Point(1, Moment(0.0, at(0)))
    store.put(Checkpoint(point, core_of(life.state, point), rows), [bytes_of(key) for key in keys])
    store.close()
    journal = Store(path / "journal.db")
    journal.append(Entry(2 + one, REQUEST, Moment(0.0, at(0)), codec.write(request(one))) for one in range(requests))
    journal.close()
    return b"filled"


def _multiplied(book: Any, first: AgentKey, keys: list[AgentKey]) -> Any:
    """The series of one agent, for each of many."""
    told = of_agent(first)

    def of(labels: Any, key: AgentKey) -> Any:
        others = of_agent(key)
        return tuple((name, others.get(name, value) if name in told else value) for name, value in labels)

    return {
        name: {of(labels, key): copy(cell) for key in keys for labels, cell in cells.items()}
        for name, cells in book.items()
    }


def request(number: int) -> Decoded:
    """The spans of one run."""
    trace = number + 1
    calls = [tool(3 + place, 1, name, trace=trace) for place, name in enumerate(TOOLS)]
    return Decoded((agent(1, called=f"agent {number}", trace=trace), model(2, 1, trace=trace), *calls))


def timed(action: Callable[[], object]) -> float:
    """Seconds of this process that something takes."""
    began = time.process_time()
    action()
    return time.process_time() - began


def measure(path: Path, agents: int, requests: int) -> Measured:
    """Start, and scrape twice."""
    disk = sum(file.stat().st_size for file in path.iterdir())
    life, before = Life(agents), resident()
    ready = timed(Sqlite(life.state, life.clock, StateDirectory(path)).restore)
    memory_ready = resident() - before
    assert len(life.engine.fleet) == agents
    assert life.engine.open_runs == requests
    first, second = timed(life.scrape), timed(life.scrape)
    return Measured(ready, first, second, memory_ready, resident() - before, disk)


def restarted(agents: int, runs: int, requests: int) -> Measured:
    """Leave a journal, and start from it. It is left by another process, whose memory does not count."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name)
        with Apart(lambda: fill(path, agents, runs, requests)) as filling:
            done = filling.wait()
        assert not done.failure, done.failure
        return measure(path, agents, requests)


def rows(agents: int = 10_000, runs: int = 100, requests: int = 10_000) -> list[Row]:
    """Seconds and memory of a restart."""
    found = restarted(agents, runs, requests)
    state = f"{agents:,} agents × {runs} runs, {requests:,} requests since, {found.disk / MEGABYTE:,.0f} MB on disk"

    def one(name: str, value: float, unit: str, at_most: float | None = None) -> Row:
        return Row(f"restart: {name}", value, at_most, unit, (value, value), state)

    return [
        one("until ready", found.ready, "s CPU", 20.0),
        one("memory when ready", found.memory_ready / MEGABYTE, "MB"),
        one("first scrape", found.first_scrape, "s CPU"),
        one("next scrape", found.next_scrape, "s CPU"),
        one("memory after scrapes", found.memory / MEGABYTE, "MB"),
    ]


def main(*numbers: int) -> None:
    """Print it."""
    found = rows(*numbers)
    print(found[0].against)
    for row in found:
        print(f"{row.name}: {row.value:,.1f} {row.unit}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
