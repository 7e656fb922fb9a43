"""Memory and speed of `report` on a recording of recorded traffic: `python -m
benchmarks.bench_report 1000` reads a gigabyte.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Final

from benchmarks.measure import Row, row
from benchmarks.recorded import lines, recorded
from benchmarks.serving import Used, finished

MEGABYTES: Final = 48
GROWTH: Final = 4
"""Size of the large recording as a multiple of the small one."""
MB: Final = 1_000_000


def rows(megabytes: int = MEGABYTES) -> list[Row]:
    """Return the memory of a report, as a multiple of that of a smaller recording too, and its
    speed.
    """
    with tempfile.TemporaryDirectory() as name:
        small = report_on(recording_of(Path(name, "small.jsonl"), megabytes // GROWTH))
        large = report_on(recording_of(Path(name, "large.jsonl"), megabytes))
    recording = f"a recording of {megabytes} MB"
    growth = large.memory / small.memory
    return [
        row("report: memory", [large.memory / 2**20], at_most=256, unit="MiB", against=recording),
        row(
            "report: memory",
            [growth],
            at_most=1.1,
            against=f"a recording of {megabytes // GROWTH} MB",
        ),
        row("report: speed", [megabytes / large.seconds], unit="MB/s", against=recording),
    ]


def recording_of(path: Path, megabytes: int) -> Path:
    """Write recorded traffic of so many megabytes as OTLP-JSON lines; return the file."""
    with path.open("wb") as file:
        stream = lines(recorded())
        while file.tell() < megabytes * MB:
            file.write(next(stream))
    return path


def report_on(path: Path) -> Used:
    """Run `report` over windows of 100 runs: without a window it keeps every run."""
    command = (
        "-m",
        "otel_reliability.cli",
        "report",
        "--quiet",
        "--window",
        "100",
        "--format",
        "json",
    )
    return finished(*command, str(path))


if __name__ == "__main__":
    found = rows(*map(int, sys.argv[1:]))
    print(*found, sep="\n")
    sys.exit(any(one.over for one in found))
