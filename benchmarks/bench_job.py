"""The whole job in process, per shape of run: bytes to windows, with and without the native
extension.
"""

from __future__ import annotations

import statistics
from contextlib import ExitStack
from typing import Final

from benchmarks import without_native
from benchmarks.measure import ROUNDS, Row, in_turns, ratios, row
from benchmarks.recorded import CAPTURED
from benchmarks.shapes import RECORDED, SHAPES, WEB
from benchmarks.worker import Cost, worker

MAX_RATIO: Final = 3.0
"""Limit of the costliest shape as a multiple of the cheapest."""
PARSE: Final = "bare ParseFromString of the same requests"


def rows(rounds: int = ROUNDS) -> list[Row]:
    """Return the costs of every shape, and of the costliest as a multiple of the cheapest."""
    names = [*SHAPES, WEB, *([RECORDED] if CAPTURED.exists() else [])]
    found = list[Row]()
    for native in [True, False] if without_native.installed() else [False]:
        reader = "native extension" if native else "Python"
        with ExitStack() as running:
            workers = {name: running.enter_context(worker(name, native=native)) for name in names}
            costs = in_turns(workers, rounds)
        found.append(_spread(costs, reader))
        for name, each in costs.items():
            job = [cost.job for cost in each]
            parse = [cost.parse for cost in each]
            found += [
                row(f"whole job, {name}, {reader}", ratios(job, parse), against=PARSE),
                row(
                    f"whole job, {name}, {reader}, per span",
                    job,
                    unit="µs",
                    scale=1e6,
                    against="requests of 512 spans",
                ),
            ]
    return found


def _spread(costs: dict[str, list[Cost]], reader: str) -> Row:
    """Return the costliest shape as a multiple of the cheapest."""
    jobs = {name: [cost.job for cost in costs[name]] for name in SHAPES}
    ordered = sorted(jobs, key=lambda name: statistics.median(jobs[name]))
    name = f"costliest shape ({ordered[-1]}) per span, {reader}"
    return row(
        name,
        ratios(jobs[ordered[-1]], jobs[ordered[0]]),
        at_most=MAX_RATIO,
        against=f"cheapest ({ordered[0]})",
    )
