"""A restart: a service with state of many agents is killed and started again. `python -m benchmarks.bench_restart 10000`.

The state of 500 agents is what a service made of their runs. That of more agents is copied from these within the database,
under further names: to send 10,000 agents' runs would take an hour.
"""

from __future__ import annotations

import sqlite3
import sys
import tempfile
import time
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any, Final, cast

from benchmarks.measure import Row, row
from benchmarks.otlp import SPANS, requests
from benchmarks.serving import CLOSED_S, QUICK, send, service
from benchmarks.shapes import Shape, runs
from otel_reliability.model.record import pack, unpack

AGENTS: Final = 500
RUNS: Final = 100
SPANS_PER_RUN: Final = 14
START_S: Final = 1.5
"""CPU seconds of an interpreter and its imports, which the limit of a small number of agents must include."""
SECONDS_PER_AGENT: Final = (20 - START_S) / 10_000
"""The limit: 20 s of CPU for 10,000 agents, with the start."""


def rows(agents: int = AGENTS) -> list[Row]:
    """Return the CPU seconds and the memory of a restart, until the service is ready. `agents`: a multiple of 500."""
    with tempfile.TemporaryDirectory() as name:
        server = service(Path(name, "service"), *QUICK, "--state", f"{name}/kept")
        server.process.start()
        try:
            bodies = requests(runs(Shape(agents=AGENTS)))
            for _ in range(AGENTS * RUNS * SPANS_PER_RUN // (SPANS * 50)):
                send(server.otlp, list(islice(bodies, 50)))
            time.sleep(CLOSED_S)
            server.process.kill()
            multiply(Path(name, "kept", "state.db"), agents // AGENTS)
            disk = sum(file.stat().st_size for file in Path(name, "kept").rglob("*") if file.is_file()) / 1e6
            server.process.start()
            ready, memory = server.cpu(), server.resident() / 1e6
        finally:
            server.process.kill()
    state, limit = f"{agents:,} agents × {RUNS} runs, {disk:,.0f} MB on disk", START_S + agents * SECONDS_PER_AGENT
    return [
        row("restart: until ready", [ready], at_most=limit, unit="s CPU", against=state),
        row("restart: memory", [memory], unit="MB", against=state),
    ]


def multiply(database: Path, times: int) -> None:
    """Let a state database hold every agent so many times, each with its runs, series, detector and history.

    Runs keep the name of the first in their bodies, which no start reads. Sessions are at their limit already.
    """
    with closing(sqlite3.connect(database, isolation_level=None)) as db:
        agents = db.execute("SELECT id, key, seen FROM agent").fetchall()
        parts = db.execute("SELECT name, key, position, body FROM part WHERE name IN ('series', 'history', 'change')")
        parts = [one for one in parts.fetchall() if one[0] != "change" or len(unpack(one[1])) == 1]  # no session of it
        (last,) = db.execute("SELECT max(seq) FROM run").fetchone()
        for number in range(1, times):
            first = number * len(agents)
            db.execute("BEGIN")
            db.executemany(
                "INSERT INTO agent VALUES (?, ?, ?)",
                ((first + id_, _renamed(key, number), seen) for id_, key, seen in agents),
            )
            db.execute(
                "INSERT INTO run (run_id, agent, end_ns, body) "
                "SELECT ? || run_id, ? + agent, end_ns, body FROM run WHERE seq <= ? ORDER BY seq",
                (f"{number}-", first, last),
            )
            db.executemany(
                "INSERT OR IGNORE INTO part VALUES (?, ?, ?, ?)",
                ((name, _renamed(key, number), at, _renamed(body, number)) for name, key, at, body in parts),
            )
            db.execute("COMMIT")


def _renamed(packed: bytes, number: int) -> bytes:
    """Return a stored value with the names of agents changed. A key without one stays what it is, and is there already."""

    def renamed(plain: Any) -> Any:
        if isinstance(plain, list):
            return [renamed(one) for one in cast("list[Any]", plain)]
        return f"copy-{number} {plain}" if isinstance(plain, str) and plain.startswith("agent ") else plain

    return pack(renamed(unpack(packed)))


if __name__ == "__main__":
    found = rows(*map(int, sys.argv[1:]))
    print(*found, sep="\n")
    sys.exit(any(one.over for one in found))
