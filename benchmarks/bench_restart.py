"""A restart: a service with state of 10,000 agents is killed and started again.

The state of 500 agents is what a service made of their runs. That of the others is copied from
these within the database, under further names: to send the runs of all would take a quarter of an
hour.
"""

from __future__ import annotations

import sqlite3
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

AGENTS: Final = 10_000
SENT: Final = 500
"""Agents whose runs are sent."""
RUNS: Final = 100
SPANS_PER_RUN: Final = 14
MAX_S: Final = 20.0


def rows() -> list[Row]:
    """Return the CPU seconds and the memory of a restart, until the service is ready."""
    with tempfile.TemporaryDirectory() as name:
        server = service(Path(name, "service"), *QUICK, "--state", f"{name}/kept")
        server.process.start()
        try:
            bodies = requests(runs(Shape(agents=SENT)))
            for _ in range(SENT * RUNS * SPANS_PER_RUN // (SPANS * 50)):
                send(server.otlp, list(islice(bodies, 50)))
            time.sleep(CLOSED_S)
            server.process.kill()
            multiply(Path(name, "kept", "state.db"), AGENTS // SENT)
            disk = (
                sum(file.stat().st_size for file in Path(name, "kept").rglob("*") if file.is_file())
                / 1e6
            )
            server.process.start()
            ready = server.cpu()
            memory = server.resident() / 1e6
        finally:
            server.process.kill()
    state = f"{AGENTS:,} agents × {RUNS} runs, {disk:,.0f} MB on disk"
    return [
        row("restart: until ready", [ready], at_most=MAX_S, unit="s CPU", against=state),
        row("restart: memory", [memory], unit="MB", against=state),
    ]


def multiply(database: Path, times: int) -> None:
    """Let a state database hold every agent so many times, each with its runs, series, detector and
    history.

    Runs keep the name of the first in their bodies, which no start reads. Sessions are at their
    limit already.
    """
    with closing(sqlite3.connect(database, isolation_level=None)) as db:
        agents = db.execute("SELECT id, key, seen FROM agent").fetchall()
        parts = db.execute(
            "SELECT name, key, position, body FROM part WHERE name IN ('series', "
            "'history', 'change')"
        )
        parts = [
            one for one in parts.fetchall() if one[0] != "change" or len(unpack(one[1])) == 1
        ]  # no session of it
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
                (
                    (name, _renamed(key, number), at, _renamed(body, number))
                    for name, key, at, body in parts
                ),
            )
            db.execute("COMMIT")


def _renamed(packed: bytes, number: int) -> bytes:
    """Return a stored value with the names of agents changed. A key without one stays what it is,
    and is there already.
    """

    def renamed(plain: Any) -> Any:
        if isinstance(plain, list):
            return [renamed(one) for one in cast("list[Any]", plain)]
        return (
            f"copy-{number} {plain}"
            if isinstance(plain, str) and plain.startswith("agent ")
            else plain
        )

    return pack(renamed(unpack(packed)))
