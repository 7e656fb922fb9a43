"""Reports on very large folders of session files: constant memory, and the speed of OTLP-JSON
lines.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import session_files
from benchmarks.bench_report import GROWTH, recording_of, report_on

MAX_GROWTH = 1.1
"""Of the memory, where there is so many times as much to read."""


@pytest.mark.soak
@pytest.mark.parametrize("megabytes", [1_000], ids=["a gigabyte"])
def test_session_files_take_constant_memory_and_no_longer_than_otlp(
    tmp_path: Path, megabytes: int
) -> None:
    small = report_on(session_files.write(tmp_path / "small", megabytes // GROWTH))
    large = report_on(session_files.write(tmp_path / "large", megabytes))
    otlp = report_on(recording_of(tmp_path / "otlp.jsonl", megabytes))

    print(
        f"found: {megabytes:,} MB at {megabytes / large.seconds:.1f} MB/s with "
        f"{large.memory / 2**20:.0f} MiB; OTLP-JSON lines at {megabytes / otlp.seconds:.1f} MB/s"
    )
    assert large.memory <= MAX_GROWTH * small.memory
    assert large.seconds <= otlp.seconds
