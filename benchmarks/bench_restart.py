"""A restart: a service with state of many agents is killed and started again. `python -m benchmarks.bench_restart 10000`."""

from __future__ import annotations

import sys
import tempfile
import time
from itertools import islice
from pathlib import Path
from typing import Final

from benchmarks.measure import Row, row
from benchmarks.otlp import SPANS, requests
from benchmarks.serving import CLOSED_S, QUICK, send, service
from benchmarks.shapes import Shape, runs

AGENTS: Final = 500
RUNS: Final = 100
SPANS_PER_RUN: Final = 14
START_S: Final = 1.5
"""CPU seconds of an interpreter and its imports, which the limit of a small number of agents must include."""
SECONDS_PER_AGENT: Final = (20 - START_S) / 10_000
"""The limit: 20 s of CPU for 10,000 agents, with the start."""


def rows(agents: int = AGENTS) -> list[Row]:
    """Return the CPU seconds and the memory of a restart, until the service is ready."""
    with tempfile.TemporaryDirectory() as name:
        server = service(Path(name, "service"), *QUICK, "--state", f"{name}/kept")
        server.process.start()
        try:
            bodies = requests(runs(Shape(agents=agents)))
            for _ in range(agents * RUNS * SPANS_PER_RUN // (SPANS * 50)):
                send(server.otlp, list(islice(bodies, 50)))
            time.sleep(CLOSED_S)
            server.process.kill()
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


if __name__ == "__main__":
    found = rows(*map(int, sys.argv[1:]))
    print(*found, sep="\n")
    sys.exit(any(one.over for one in found))
