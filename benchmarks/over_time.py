"""Cost and memory of a service after hours: `python -m benchmarks.over_time [spans] [minutes]`,
written to over_time.json.

One service gets recorded traffic for so long, and its memory is read meanwhile. Then a second one
starts, and both get the same requests: first until the young one too closes runs and sessions as
fast as they arrive, then while their CPU time is read.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple

from benchmarks.bench_service import measured
from benchmarks.measure import ratios, row
from benchmarks.otlp import SPANS
from benchmarks.run import machine, versions
from benchmarks.serving import QUICK, Server, send, service
from benchmarks.shapes import RECORDED, traffic

RESULTS: Final = Path(__file__).parent / "over_time.json"
SPANS_TOTAL = 300_000
MINUTES = 2.0
YOUNG_S: Final = 40.0
"""Seconds of traffic after which a service closes runs, those without a root too, and sessions as
fast as they arrive.
"""
BLOCK: Final = 50
"""Requests between two readings of memory."""
SETTINGS: Final = (*QUICK, "--set", "assembly.idle_timeout=20s", "--set", "sessions.idle=20s")
MAX_COST: Final = 1.10
MAX_GROWTH: Final = 0.05
"""Limit of the growth of memory from the third quarter of the time to the last, as a share."""


class Sample(NamedTuple):
    """Memory of the service, in bytes, after so many seconds and spans."""

    seconds: float
    spans: int
    resident: int


def trial(spans: int = SPANS_TOTAL, minutes: float = MINUTES) -> dict[str, Any]:
    """Return what was measured, as it is written down. Raises `Unavailable` without recorded
    traffic.
    """
    bodies = traffic(RECORDED)
    with tempfile.TemporaryDirectory() as name:
        old, young = (service(Path(name, age), *SETTINGS) for age in ("old", "young"))
        try:
            old.process.start()
            samples = fed([old], bodies, spans, minutes)
            young.process.start()
            fed([old, young], bodies, 0, YOUNG_S / 60)
            costs = measured({"old": old, "young": young}, RECORDED)
        finally:
            for server in (old, young):
                server.process.kill()
    cost = row("old", ratios(costs["old"], costs["young"]), against="young")
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "machine": machine(),
        "versions": versions(),
        "settings": [one for one in SETTINGS if "=" in one],
        "spans": samples[-1].spans,
        "minutes": round(samples[-1].seconds / 60, 1),
        "cost": {
            "ratio": round(cost.value, 3),
            "spread": [round(one, 3) for one in cost.spread],
            "at_most": MAX_COST,
        },
        "memory": {"growth": growth(samples), "at_most": MAX_GROWTH, "samples": thinned(samples)},
    }


def fed(
    servers: Sequence[Server], bodies: Iterator[bytes], spans: int, minutes: float
) -> list[Sample]:
    """Send at least so many spans to each, for at least so long, and read the memory
    of the first.
    """
    samples = list[Sample]()
    began = time.monotonic()
    sent = 0
    while sent < spans or time.monotonic() - began < 60 * minutes:
        block = list(islice(bodies, BLOCK))
        for server in servers:
            send(server.otlp, block)
        sent += BLOCK * SPANS
        samples.append(Sample(round(time.monotonic() - began, 1), sent, servers[0].resident()))
    return samples


def growth(samples: Sequence[Sample]) -> float:
    """Return by which share the median memory of the last quarter is above that of the third.

    >>> growth([Sample(0, 0, 10), Sample(1, 1, 20), Sample(2, 2, 20), Sample(3, 3, 21)])
    0.05
    """
    quarter = max(1, len(samples) // 4)
    last = samples[-quarter:]
    third = samples[-2 * quarter : -quarter] or samples[-quarter:]
    middles = [statistics.median(sample.resident for sample in some) for some in (last, third)]
    return round(middles[0] / middles[1] - 1, 4)


def thinned(samples: Sequence[Sample], limit: int = 20) -> list[Sample]:
    """Return at most `limit` samples, evenly spaced, the last among them."""
    step = -(-len(samples) // limit)
    return list(samples[::-1][::step][::-1])


def over(found: Mapping[str, Any]) -> list[str]:
    """Return the limits that were passed, in words."""
    cost = found["cost"]
    memory = found["memory"]
    passed = (
        [f"a span costs {cost['ratio']:.2f} times what it costs a young service"]
        if cost["ratio"] > MAX_COST
        else []
    )
    return [
        *passed,
        *([f"memory grew by {memory['growth']:.1%}"] if memory["growth"] > MAX_GROWTH else []),
    ]


def main(*numbers: str) -> int:
    """Measure and write the result. Return 1 where a limit is passed."""
    found = trial(*(int(one) for one in numbers[:1]), *(float(one) for one in numbers[1:]))
    RESULTS.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")
    print(
        json.dumps(
            {key: value for key, value in found.items() if key not in {"machine", "versions"}}
        )
    )
    for one in over(found):
        print(f"over its limit: {one}")
    return int(bool(over(found)))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
