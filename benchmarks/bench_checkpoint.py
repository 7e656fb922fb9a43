"""How long the writer waits for checkpoints: 50 000 runs of 500 agents, of which most can still change.

Told is the longest that the journal kept the writer from its work after deadlines were met, that is what a checkpoint adds,
in milliseconds of the process: where a machine has nothing else to do, they are those of the clock.
Other numbers may be given: runs, agents.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from benchmarks.bench_restart import Life, request
from benchmarks.measure import Row
from otel_reliability.service.decoded import Decoded
from otel_reliability.service.journal_sqlite import Sqlite
from otel_reliability.service.state_directory import StateDirectory

GROUP = 50
"""Requests committed together."""
LEAST = 8 * 1024 * 1024
"""Bytes of entries before a checkpoint: less than by default, so that there are several."""


class Waits(NamedTuple):
    """Seconds: the longest group of requests; the longest care for the journal where a checkpoint began, and elsewhere."""

    group: float
    checkpoint: float
    other: float
    checkpoints: int


def requests(number: int, agents: int) -> Iterator[list[Decoded]]:
    """Runs, some at a time."""
    for first in range(0, number, GROUP):
        yield [
            made._replace(spans=(made.spans[0]._replace(facts=other.spans[0].facts), *made.spans[1:]))
            for made, other in ((request(one), request(one % agents)) for one in range(first, first + GROUP))
        ]


def waits(path: Path, runs: int, agents: int) -> Waits:
    """Live, and look at the clock."""
    life = Life(agents)
    journal = Sqlite(life.state, life.clock, StateDirectory(path), least=LEAST)
    journal.restore()
    found = Waits(0.0, 0.0, 0.0, 0)
    for group in requests(runs, agents):
        began = time.process_time()
        journal.commit(group)
        for one in group:
            life.state.apply(one)
        journal.applied()
        took = time.process_time() - began
        life.fake.advance(0.05)
        journal.advancing()
        life.state.advance()
        found = found._replace(group=max(found.group, took))
        found = _with(found, journal, life)
    journal.checkpoints.cancel()
    return found


def _with(found: Waits, journal: Sqlite, life: Life) -> Waits:
    before, began = journal.checkpoints.under_way, time.process_time()
    journal.advanced(life.engine.now())
    took = time.process_time() - began
    if journal.checkpoints.under_way and not before:
        return found._replace(checkpoint=max(found.checkpoint, took), checkpoints=found.checkpoints + 1)
    return found._replace(other=max(found.other, took))


def rows(runs: int = 50_000, agents: int = 500) -> list[Row]:
    """The longest waits."""
    with tempfile.TemporaryDirectory() as name:
        found = waits(Path(name), runs, agents)
    state = f"{found.checkpoints} checkpoints of up to {runs:,} runs of {agents} agents"

    def one(name: str, seconds: float, at_most: float | None = None) -> Row:
        return Row(f"checkpoint: {name}", 1e3 * seconds, at_most, "ms CPU", (1e3 * seconds, 1e3 * seconds), state)

    return [
        one("the longest wait for one to begin", found.checkpoint, 100.0),
        one("the longest wait for what follows", found.other, 100.0),
        one(f"the longest group of {GROUP} requests", found.group),
    ]


def main(*numbers: int) -> None:
    """Print it."""
    found = rows(*numbers)
    print(found[0].against)
    for row in found:
        print(f"{row.name}: {row.value:,.0f} {row.unit}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
