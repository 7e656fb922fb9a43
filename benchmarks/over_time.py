"""Whether a service costs after millions of spans what it cost at first: `python -m benchmarks.over_time [spans] [minutes]`.

One service gets spans for so long, at least so many, and its memory is looked at meanwhile. Then another one starts, and both
get the same requests without a pause: at first until the young one too closes runs, settles them and closes sessions as fast as
they come, and then while the CPU time of each is looked at. The ratio of what a span costs them is what age adds. Every look of
the old one for garbage is timed. By default that takes some minutes, and what a service remembers of closed runs is kept short,
so that it is full well before the end; `10000000 60` is the long form, with what the settings say by default, but for sessions:
they close after a minute.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

from benchmarks import serving
from benchmarks.bench_service import Candidate
from benchmarks.measure import ratios, row
from benchmarks.payloads import SPANS, Traffic
from benchmarks.run import machine, versions
from benchmarks.watched_service import LONG as PAUSE

HERE: Final = Path(__file__).parent
RESULTS: Final = HERE / "over_time.json"
MANY, MINUTES = 1_000_000, 2.0
YOUNG: Final = 100_000
"""Spans that a young service has seen, at least."""
LONG: Final = 30.0
"""Minutes from which the settings are those by default."""
BLOCK: Final = 50
"""Requests between two looks at memory."""
ROUNDS, BLOCKS = 15, 8
"""Rounds in which services are compared, and the blocks of one: a second of CPU time or so."""
AT_MOST: Final = 1.1
"""What age may make of the cost of a span."""
GROWTH: Final = 0.05
"""By how much memory may be above what it was in the third quarter, in the last."""
DOORS: Final = ("--metrics", "off", "--set", "service.commit_timeout=60s")
SHORT: Final = (
    "--set", "assembly.linger=1s", "--set", "assembly.reopen=1s", "--set", "assembly.remember=15s", "--set", "sessions.idle=5s",
)  # fmt: skip
USUAL: Final = ("--set", "sessions.idle=60s")
SETTLED: Final = {SHORT: 0.25, USUAL: 2.5}
"""Minutes after which a service does everything that it ever does with a run but forget its ids."""


class Look(NamedTuple):
    """After so many seconds and spans, so much memory."""

    seconds: float
    spans: int
    resident: int


def trial(spans: int = MANY, minutes: float = MINUTES) -> dict[str, Any]:
    """All of it."""
    settings = USUAL if minutes >= LONG else SHORT
    with tempfile.TemporaryDirectory() as name, ExitStack() as running:
        folder = Path(name)
        log = folder / "pauses.json"
        old = _service(folder / "old", running, log, *DOORS, *settings)
        traffic = Traffic()
        looks = fed([old], traffic, spans, minutes)
        young = _service(folder / "young", running, folder / "other.json", *DOORS, *settings)
        first = fed([young, old], traffic, YOUNG, SETTLED[settings])[-1]
        times = costs([old, young], traffic)
        running.close()
        pauses = json.loads(log.read_text())
    cost = row("a span after so many, as a multiple of what it costs a young service", ratios(*times), against="young")
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "machine": machine(),
        "versions": versions(),
        "settings": [one for one in settings if "=" in one],
        "spans": looks[-1].spans,
        "minutes": round(looks[-1].seconds / 60, 1),
        "cost": {"ratio": round(cost.value, 3), "spread": [round(one, 3) for one in cost.spread], "at_most": AT_MOST},
        "young": {"spans": first.spans, "minutes": round(first.seconds / 60, 1)},
        "memory": {"growth": round(growth(looks), 4), "at_most": GROWTH, "looks": thinned(looks)},
        "garbage": summary(pauses),
    }


def fed(services: Sequence[Candidate], traffic: Traffic, spans: int, minutes: float) -> list[Look]:
    """Send so many spans to each, and for so long, and look at the first."""
    looks = list[Look]()
    began, sent = time.monotonic(), 0
    while sent < spans or time.monotonic() - began < 60 * minutes:
        bodies = traffic.requests(BLOCK)
        for service in services:
            serving.send(service.place, bodies)
        sent += BLOCK * SPANS
        looks.append(Look(round(time.monotonic() - began, 1), sent, serving.resident(services[0].process.pid)))
    return looks


def costs(services: Sequence[Candidate], traffic: Traffic) -> list[list[float]]:
    """CPU seconds of each service while it gets the next blocks of requests, the same for all, round after round.

    Nothing waits between rounds: what spans of one cost in the next, when their runs close, is as much as came from the one
    before.
    """
    before = [serving.cpu(one.process.pid) for one in services]
    times = list[list[float]]()
    for turn in range(ROUNDS):
        for block in range(BLOCKS):
            bodies = traffic.requests(BLOCK)
            for place in range(len(services)):
                serving.send(services[(turn + block + place) % len(services)].place, bodies)
        now = [serving.cpu(one.process.pid) for one in services]
        times.append([late - early for late, early in zip(now, before, strict=True)])
        before = now
    return [list(one) for one in zip(*times, strict=True)]


def growth(looks: Sequence[Look]) -> float:
    """How far memory in the last quarter is above that in the third, as a share: the middle of each.

    >>> growth([Look(0, 0, 10), Look(1, 1, 20), Look(2, 2, 20), Look(3, 3, 21)])
    0.05
    """
    quarter = max(1, len(looks) // 4)
    last, third = looks[-quarter:], looks[-2 * quarter : -quarter] or looks[-quarter:]
    middles = [statistics.median(look.resident for look in some) for some in (last, third)]
    return round(middles[0] / middles[1] - 1, 4)


def thinned(looks: Sequence[Look], most: int = 20) -> list[Look]:
    """At most so many of them, evenly, the last among them."""
    step = -(-len(looks) // most)
    return list(looks[::-1][::step][::-1])


def summary(pauses: dict[str, Any]) -> dict[str, Any]:
    """How many looks for garbage took long, and how many of these by work of their own, with the longest of each kind."""
    long: list[dict[str, float]] = pauses["long"]
    worked = [one for one in long if one["work_s"] > PAUSE]
    return {
        **pauses,
        "long": len(long),
        "worked": len(worked),
        "longest": max(long, key=lambda one: one["pause_s"], default=None),
        "most_work": max(worked, key=lambda one: one["work_s"], default=None),
    }


def over(found: dict[str, Any]) -> list[str]:
    """What is not as it should be."""
    cost, memory = found["cost"], found["memory"]
    told = [f"a span costs {cost['ratio']:.2f} times what it costs a young service"] if cost["ratio"] > AT_MOST else []
    return [*told, *([f"memory grew by {memory['growth']:.1%}"] if memory["growth"] > GROWTH else [])]


def main(*numbers: str) -> int:
    """Run it and write it down. 1: something is not as it should be."""
    found = trial(*(int(one) for one in numbers[:1]), *(float(one) for one in numbers[1:]))
    RESULTS.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")
    print(json.dumps({key: value for key, value in found.items() if key not in {"machine", "versions"}}))
    for one in over(found):
        print(f"over its limit: {one}")
    return int(bool(over(found)))


def _service(folder: Path, running: ExitStack, log: Path, *options: str) -> Candidate:
    process, place = serving.service(folder, *options, module=("benchmarks.watched_service", str(log)))
    running.callback(process.stop)
    process.start()
    return Candidate(process, place)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
