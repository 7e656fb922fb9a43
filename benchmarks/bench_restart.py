"""How long a service takes to be where it was: 10 000 agents with windows of 100 runs each, and then requests since.

Other numbers may be given: agents, runs, requests.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from otel_reliability.config import Settings
from otel_reliability.engine import Engine
from otel_reliability.model.event import RunChange, RunEvent
from otel_reliability.model.run import AgentKey
from otel_reliability.service import journal_codec as codec
from otel_reliability.service import snapshot
from otel_reliability.service.clock import Clock, Moment
from otel_reliability.service.decoded import Decoded
from otel_reliability.service.journal_sqlite import Sqlite
from otel_reliability.service.journal_store import REQUEST, Checkpoint, Entry, Store
from otel_reliability.service.state import State
from otel_reliability.service.state_directory import JOURNAL, StateDirectory
from otel_reliability.testing import FakeClock, agent, at, model, run, tool

TOOLS = ("search", "read", "book", "pay")


def state_of(agents: int) -> tuple[State, Clock]:
    """A service's state that has seen nothing."""
    fake, defaults = FakeClock(), Settings()
    settings = replace(defaults, hash_key="00" * 16, limits=replace(defaults.limits, agents=agents))
    clock = Clock(fake, fake.wall)
    return State(settings, Engine(settings, clock=clock, wall=clock.wall, places_return=True)), clock


def agent_of(runs: int) -> bytes:
    """What the journal keeps of an agent with so many runs."""
    state, _ = state_of(1)
    for number in range(runs):
        one = run(TOOLS[: 1 + number % len(TOOLS)])
        one = one._replace(run_id=str(number), start_ns=at(number), end_ns=at(number + 1))
        state.engine.receive_events([RunEvent(RunChange.CLOSED, one), RunEvent(RunChange.SETTLED, one)])
    fleet = state.engine.fleet
    found = fleet.agent(fleet.keys()[0])
    assert found is not None
    return codec.pack(found.to_state())


def fill(path: Path, agents: int, runs: int, requests: int) -> None:
    """Write a journal as a service would have left it."""
    state, _ = state_of(agents)
    keys = [tuple(AgentKey("", "service", "", f"agent {number}")) for number in range(agents)]
    fleet = {"accounts": [], "places": keys, "agents": keys, "seen": [(key, 0.0) for key in keys]}
    core = codec.pack((snapshot.shapes(), fleet, snapshot.write(state.to_state(), state.engine)))
    body, packed = agent_of(runs), [codec.pack(key) for key in keys]
    store = Store(path / JOURNAL)
    store.put(Checkpoint(1, Moment(0.0, at(0)), core, [(key, body) for key in packed]), packed)
    store.append(Entry(2 + one, REQUEST, Moment(0.0, at(0)), codec.write(request(one))) for one in range(requests))
    store.close()


def request(number: int) -> Decoded:
    """The spans of one run."""
    trace = number + 1
    calls = [tool(3 + place, 1, name, trace=trace) for place, name in enumerate(TOOLS)]
    return Decoded((agent(1, called=f"agent {number}", trace=trace), model(2, 1, trace=trace), *calls))


def timed(action: Callable[[], object]) -> float:
    """Seconds that something takes."""
    began = time.perf_counter()
    action()
    return time.perf_counter() - began


def main(agents: int = 10_000, runs: int = 100, requests: int = 10_000) -> None:
    """Print it."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name)
        fill(path, agents, runs, requests)
        size = (path / JOURNAL).stat().st_size
        state, clock = state_of(agents)
        seconds = timed(Sqlite(state, clock, StateDirectory(path)).restore)
        assert len(state.engine.fleet) == agents
        assert state.engine.open_runs == requests
    print(
        f"restart: {agents:,} agents × {runs} runs and {requests:,} requests since: {seconds:.1f} s, {size / 1e6:,.0f} MB"
    )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
