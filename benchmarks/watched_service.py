"""`otel-reliability serve`, with a log of every look for garbage: `python -m benchmarks.watched_service LOG serve …`."""

from __future__ import annotations

import atexit
import gc
import json
import sys
import time
from pathlib import Path
from typing import Any, Final

LONG: Final = 0.05
"""Seconds from which a pause is told by itself."""


class Pauses:
    """Every collection: how long all threads waited for it, and how much of that it worked.

    What is told of long ones is how much memory was in use, in blocks: what there is to look at decides what a look costs. Where
    the pause is much longer than the work, the machine gave the process no time. (Objects themselves are not counted: who lists
    them holds them, also a tuple that is being made, and that fails.)
    """

    def __init__(self, log: Path) -> None:
        self._log = log
        self._long: list[dict[str, float]] = []
        self._numbers, self._worked = [0, 0, 0], 0.0
        self._began = (0.0, 0.0)

    def __call__(self, phase: str, info: dict[str, Any]) -> None:
        """What the collector tells, before and after."""
        now, worked = time.perf_counter(), time.thread_time()
        if phase == "start":
            self._began = (now, worked)
            return
        pause, work = now - self._began[0], worked - self._began[1]
        self._numbers[info["generation"]] += 1
        self._worked += work
        if pause > LONG:
            told = {"generation": info["generation"], "pause_s": round(pause, 4), "work_s": round(work, 4)}
            self._long.append({**told, "blocks": sys.getallocatedblocks(), "collected": info["collected"]})

    def write(self) -> None:
        """Write it down, at the end of the process."""
        found = {"collections": self._numbers, "work_s": round(self._worked, 3), "long": self._long}
        self._log.write_text(json.dumps(found))


def main() -> None:
    """Serve."""
    pauses = Pauses(Path(sys.argv.pop(1)))
    gc.callbacks.append(pauses)
    atexit.register(pauses.write)
    from otel_reliability.cli import main as command  # noqa: PLC0415 (what it imports is watched too)

    command()


if __name__ == "__main__":
    main()
