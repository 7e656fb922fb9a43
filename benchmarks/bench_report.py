"""Reading recordings: how fast, beside a parser of JSON written in Rust that makes nothing of it, and in how much memory.

    python -m benchmarks.bench_report 1000

reads a recording of so many megabytes instead of the default. After its last line little is kept of a run: its session, up to
`limits.sessions`, and what change is told by, of 200,000 runs of an agent. Its spans and its calls are let go of.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple

import orjson

from benchmarks.measure import Row, ratios, row, seconds
from benchmarks.payloads import SPANS, Traffic
from otel_reliability.sources.otlp_json import read_file
from otel_reliability.sources.otlp_write import traces_json

MEGABYTES: Final = 48
PARSED: Final = 4
"""Megabytes that are only parsed, round by round."""
GROWTH: Final = 4
"""How many times the larger recording is the smaller."""
MOST_GROWTH: Final = 1.1
"""How much more memory the larger may take."""
MOST_MEMORY: Final = 256
"""MiB that a report may take, the interpreter and its libraries among them."""
_MB: Final = 1_000_000


class Used(NamedTuple):
    """What a process took: CPU seconds, and MiB of memory at most."""

    seconds: float
    mebibytes: float


def lines() -> Iterator[bytes]:
    """What the Collector's file exporter writes, for ever."""
    spans = Traffic(chaotic=True, content=True).spans()
    while True:
        yield orjson.dumps(traces_json(islice(spans, SPANS))) + b"\n"


def write(path: Path, megabytes: int) -> Path:
    """A recording of so many megabytes."""
    with path.open("wb") as file:
        stream = lines()
        while file.tell() < megabytes * _MB:
            file.write(next(stream))
    return path


def report(path: Path) -> Used:
    """The command line's report on a recording, over windows of 100 runs: without one it keeps every run it read."""
    command = [sys.executable, "-m", "otel_reliability.cli", "report", "--quiet", "--window", "100", "--format", "json"]
    with subprocess.Popen([*command, str(path)], stdout=subprocess.DEVNULL) as process:  # noqa: S603 - our own program
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return Used(usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def rows(megabytes: int = MEGABYTES) -> list[Row]:
    """Speed and memory."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        return [*_parsing(write(folder / "parsed.jsonl", PARSED)), *_reporting(folder, megabytes)]


def _parsing(path: Path) -> list[Row]:
    def reading() -> None:
        for _ in read_file(path):
            pass

    def parsing() -> None:
        with path.open("rb") as file:
            for line in file:
                orjson.loads(line)

    ours, theirs = seconds(reading, parsing)
    return [
        row("OTLP-JSON lines → spans", ratios(ours, theirs), against="orjson.loads alone"),
        row("orjson.loads alone", [PARSED / took for took in theirs], unit="MB/s", against="lines of 512 spans"),
    ]


def _reporting(folder: Path, megabytes: int) -> list[Row]:
    small = report(write(folder / "small.jsonl", megabytes // GROWTH))
    large = report(write(folder / "large.jsonl", megabytes))
    recording = f"a recording of {megabytes} MB"
    return [
        row("report on OTLP-JSON lines", [megabytes / large.seconds], unit="MB/s", against=recording),
        row("memory of report", [large.mebibytes], at_most=MOST_MEMORY, unit="MiB", against=recording),
        row(
            f"memory of report for a recording {GROWTH} times as large",
            [large.mebibytes / small.mebibytes],
            at_most=MOST_GROWTH,
            against=f"a recording of {megabytes // GROWTH} MB",
        ),
    ]


if __name__ == "__main__":
    began = time.perf_counter()
    for one in rows(*map(int, sys.argv[1:])):
        print(*one, sep=" · ")
    print(f"{time.perf_counter() - began:.0f} s")
