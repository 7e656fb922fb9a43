"""The recording of the demo: `python -m tests.demo.recording` writes the spans of the fleet into
the package.
"""

from __future__ import annotations

import gzip
import json
from typing import Any

from otel_reliability.demo.replay import RECORDING
from otel_reliability.sources.otlp_write import logs_json, traces_json
from otel_reliability.testing import SECOND
from tests.demo.bookshop import ROUND, Bookshop
from tests.demo.fleet import ROUNDS

SEED = 7
BEGAN_NS = 1_700_000_000 * SECOND


def recorded() -> bytes:
    """The recording: a line for each round, with the spans that come late apart."""
    lines = list[str]()
    wall = BEGAN_NS + ROUNDS * ROUND * SECOND
    shop = Bookshop(SEED, wall=lambda: wall, clock=lambda: 0.0)
    for number in range(1, ROUNDS + 1):
        shop.round()
        spans, evaluations = shop.ended()
        found: dict[str, Any] = {
            "end_ns": BEGAN_NS + number * ROUND * SECOND,
            "traces": traces_json(spans),
        }
        if evaluations:
            found["logs"] = logs_json(evaluations)
        shop.end_late()
        late, _ = shop.ended()
        if late:
            found["late"] = traces_json(late)
        lines.append(f"{json.dumps(found)}\n")
    shop.close()
    return gzip.compress("".join(lines).encode(), mtime=0)


if __name__ == "__main__":
    RECORDING.write_bytes(recorded())
