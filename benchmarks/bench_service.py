"""CPU per span of a whole service next to a Collector that makes metrics of the same requests of
recorded spans.

Each is a process of its own and gets the same requests of 512 spans from the same client over
OTLP/HTTP, one server after the other. Counted is the CPU time of the process and its children from
the first request of its turn until it is idle and all runs are final: working off its queue,
closing runs, collecting garbage and committing state are in it, and nothing of one turn is charged
to the next or runs next to another server. The service runs with its default settings, but for a
linger and a `reopen` of one second.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Generator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import islice, tee
from pathlib import Path
from typing import Final

from benchmarks import without_native
from benchmarks.measure import Row, in_turns, ratios, row
from benchmarks.otlp import SPANS
from benchmarks.serving import CLOSED_S, QUICK, Server, collector, send, service
from benchmarks.shapes import RECORDED, traffic
from tests.real.install import components
from tests.real.waiting import until

ROUNDS: Final = 11
REQUESTS: Final = 60
"""Requests of a turn."""
WARM: Final = 4
"""Turns of each server before the first that counts: they fill the windows, and heaps grow to the
size they keep.
"""
IDLE_S: Final = 0.25
IDLE_SHARE: Final = 0.03
"""A server is idle when it used less than this share of a core for so many seconds."""
NATIVE = "service, native extension"
PYTHON = "service, Python"
STATE = "service with --state"
COLLECTOR = "Collector"
LIMITS: Final = {NATIVE: 3.5, PYTHON: 4.5}


def rows(rounds: int = ROUNDS, requests: int = REQUESTS) -> list[Row]:
    """Return the costs of the service as multiples of the Collector's, and of state as a multiple
    of none.
    """
    with servers() as found:
        costs = measured(found, RECORDED, rounds, requests)
    told = [
        row(
            f"{name}, recorded traffic",
            ratios(costs[name], costs[COLLECTOR]),
            at_most=LIMITS[name],
            against=AGAINST,
        )
        for name in LIMITS
        if name in costs and COLLECTOR in costs
    ]
    plain = NATIVE if NATIVE in costs else PYTHON
    told.append(
        row(f"{STATE}, recorded traffic", ratios(costs[STATE], costs[plain]), against="without")
    )
    on = f"recorded traffic over OTLP/HTTP, {SPANS} spans per request"
    return told + [
        row(f"{name}, per span", each, unit="µs", scale=1e6, against=on)
        for name, each in costs.items()
    ]


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
    """Return CPU seconds per span of each server in each round; every round begins with another
    server.

    Raises `Unavailable` where the traffic is absent.
    """
    streams = dict(zip(found, tee(traffic(kind), len(found)), strict=True))

    def warm(name: str) -> None:
        send(found[name].otlp, list(islice(streams[name], requests)))

    def cost(name: str) -> float:
        bodies = list(islice(streams[name], requests))
        server = found[name]
        before = server.cpu()
        send(server.otlp, bodies)
        _until_idle(server)  # what was accepted is processed
        time.sleep(CLOSED_S)
        _until_idle(server)
        return (server.cpu() - before) / (SPANS * requests)

    in_turns({name: partial(warm, name) for name in found}, WARM)
    for server in found.values():
        _until_idle(server)
    return in_turns({name: partial(cost, name) for name in found}, rounds)


def _until_idle(server: Server) -> None:
    """Wait until a server has processed what it accepted: until its CPU clock stands still, but for
    its timers.
    """
    used = [server.cpu()]

    def is_idle() -> bool:
        time.sleep(IDLE_S)
        used.append(server.cpu())
        return used[-1] - used[-2] < IDLE_SHARE * IDLE_S

    until(is_idle, "the server to be idle")
