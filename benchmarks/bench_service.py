"""CPU per span of a whole service next to a Collector that makes metrics of the same requests of recorded spans.

Each is a process of its own and gets the same requests of 512 spans from the same client over OTLP/HTTP. Counted is the CPU time
that the system charges to the process and its children from the first request of one round to the first of the next: closing
runs, collecting garbage and committing state are in it. The service runs with its default settings, but for a linger and a
`reopen` of one second.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Generator, Mapping
from contextlib import ExitStack, contextmanager
from itertools import islice
from pathlib import Path
from typing import Final

from benchmarks import without_native
from benchmarks.measure import Row, ratios, row
from benchmarks.otlp import SPANS
from benchmarks.serving import CLOSED_S, QUICK, Server, collector, send, service
from benchmarks.shapes import RECORDED, traffic
from tests.real.install import components

ROUNDS: Final = 7
WARM: Final = 2
"""Rounds before the first that counts: they fill the windows."""
REQUESTS: Final = 80
NATIVE, PYTHON, STATE, COLLECTOR = "service, native extension", "service, Python", "service with --state", "Collector"
LIMITS: Final = {NATIVE: 3.5, PYTHON: 4.5}


def rows(rounds: int = ROUNDS, requests: int = REQUESTS) -> list[Row]:
    """Return the costs of the service as multiples of the Collector's, and of state as a multiple of none."""
    with servers() as found:
        costs = measured(found, RECORDED, rounds, requests)
    told = [
        row(f"{name}, recorded traffic", ratios(costs[name], costs[COLLECTOR]), at_most=LIMITS[name], against=AGAINST)
        for name in LIMITS
        if name in costs and COLLECTOR in costs
    ]
    plain = NATIVE if NATIVE in costs else PYTHON
    told.append(row(f"{STATE}, recorded traffic", ratios(costs[STATE], costs[plain]), against="without"))
    on = f"recorded traffic over OTLP/HTTP, {SPANS} spans per request"
    return told + [row(f"{name}, per span", each, unit="µs", scale=1e6, against=on) for name, each in costs.items()]


AGAINST: Final = f"Collector {components()['collector'].version} with span_metrics"


@contextmanager
def servers() -> Generator[Mapping[str, Server]]:
    """Start everything that is measured. Without a Collector, its rows are left out."""
    with tempfile.TemporaryDirectory() as name, ExitStack() as running:
        folder = Path(name)
        found = {PYTHON: service(folder / "python", *QUICK, native=False)}
        if without_native.installed():
            found[NATIVE] = service(folder / "native", *QUICK)
        found[STATE] = service(folder / "state", *QUICK, "--state", f"{folder}/kept")
        component = components()["collector"]
        if component.ready():
            found[COLLECTOR] = collector(folder / "collector", component.folder / "bin" / "otelcol")
        else:
            print(f"no comparison with a Collector: {component.why_unavailable()}", file=sys.stderr)
        for server in found.values():
            running.callback(server.process.stop)
            server.process.start()
        yield found


def measured(
    found: Mapping[str, Server], kind: str, rounds: int = ROUNDS, requests: int = REQUESTS
) -> dict[str, list[float]]:
    """Return CPU seconds per span of each server in each round; every round begins with another server.

    Raises `Unavailable` where the traffic is absent.
    """
    bodies, names = traffic(kind), list(found)
    costs: dict[str, list[float]] = {name: [] for name in names}
    before = {name: server.cpu() for name, server in found.items()}
    for turn in range(WARM + rounds):
        fresh = list(islice(bodies, requests))
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            send(found[name].otlp, fresh)
        time.sleep(CLOSED_S)
        now = {name: server.cpu() for name, server in found.items()}
        for name in names if turn >= WARM else ():
            costs[name].append((now[name] - before[name]) / (SPANS * requests))
        before = now
    return costs
