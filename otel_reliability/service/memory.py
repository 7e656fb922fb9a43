"""The memory of this process, and the line above which no request is taken."""

from __future__ import annotations

import gc
import os
from pathlib import Path
from typing import Final

from otel_reliability.service.readiness import Readiness

REASON: Final = "memory"
SHARE: Final = 0.9
"""Of a container's limit: beyond, its kernel ends the process without a word."""
_BELOW: Final = 0.95
"""Of the line: how far memory must fall before requests are taken again."""
_LIMITS: Final = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
_STATM: Final = Path("/proc/self/statm")
_GARBAGE: Final = (1_000_000, 10, 20)
"""How many new objects it takes to look for circles among them. A look costs what there is new, and nearly all of that are runs,
which make no circles: with a look every 200 000 objects, looks were a tenth of the service's work. What circles there are, of
connections that closed and of errors, some fifteen objects each, wait that long. A look stops every thread: at a million new
objects for a quarter of a second, once in a million spans or so while a service fills up, and hardly ever once it is full.
"""
_UNLIMITED: Final = 1 << 50


class Memory:
    """Watches the resident memory. Above `limit` bytes the service is not ready; 0: 90 % of the container's limit."""

    def __init__(self, limit: int, readiness: Readiness) -> None:
        self.limit = limit or container_limit()
        self.used = resident()
        self.crossings = 0
        """How often the line was crossed."""
        self._readiness = readiness
        self._above = False

    def __call__(self) -> None:
        """Look."""
        self.used = resident()
        if self.limit is None:
            return
        if not self._above and self.used > self.limit:
            self._above = True
            self.crossings += 1
            self._readiness.hold(REASON, f"the process uses more than {self.limit} bytes of memory")
        elif self._above and self.used < self.limit * _BELOW:
            self._above = False
            self._readiness.release(REASON)


def look_seldom() -> None:
    """Look for circles of objects seldom: spans make none, and each look costs."""
    gc.set_threshold(*_GARBAGE)


def resident() -> int:
    """Bytes of this process that are in memory; 0 where the system does not tell."""
    try:
        return int(_STATM.read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


def container_limit() -> int | None:
    """Nine tenths of what the container may use; None where there is no container, or no limit."""
    for path in _LIMITS:
        try:
            found = int(path.read_text(encoding="ascii"))
        except (OSError, ValueError):
            continue
        return int(found * SHARE) if found < _UNLIMITED else None
    return None
