"""Reports on very large folders of session files: their memory and speed."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import session_files
from benchmarks.bench_report import GROWTH, recording_of, report_on

MAX_MEMORY = 256 * 2**20
"""Bytes that a report takes, as one on OTLP-JSON lines: what it keeps of runs is limited by their
number, which a gigabyte does not reach, and not by what there is to read.
"""
MAX_GROWTH = 32 * 2**20
"""Bytes that three quarters of a gigabyte add: eight for each id that a later file may repeat, and
what is kept of closed sessions.
"""


@pytest.mark.soak
@pytest.mark.parametrize("megabytes", [1_000], ids=["a gigabyte"])
def test_session_files_take_limited_memory_and_no_longer_than_otlp(
    tmp_path: Path, megabytes: int
) -> None:
    small = report_on(session_files.write(tmp_path / "small", megabytes // GROWTH))
    large = report_on(session_files.write(tmp_path / "large", megabytes))
    otlp = report_on(recording_of(tmp_path / "otlp.jsonl", megabytes))

    print(
        f"found: {megabytes:,} MB at {megabytes / large.seconds:.1f} MB/s with "
        f"{large.memory / 2**20:.0f} MiB, a quarter of it with {small.memory / 2**20:.0f} MiB; "
        f"OTLP-JSON lines at {megabytes / otlp.seconds:.1f} MB/s with {otlp.memory / 2**20:.0f} MiB"
    )
    assert large.memory <= MAX_MEMORY
    assert large.memory - small.memory <= MAX_GROWTH
    assert large.seconds <= otlp.seconds
