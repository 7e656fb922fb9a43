"""Readiness of the service, which `/readyz`, the gRPC health service and every receiver check, and
its memory.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from otel_reliability.model.limit import Limit
from otel_reliability.service.answers import RETRY_LATER, overload

RECOVERING: Final = "recovering"
"""The reason while state is loaded: until then no number is complete."""


class Readiness:
    """Reasons not to be ready. Parts set and clear their own; any thread may ask.

    >>> ready = Readiness()
    >>> ready.hold("recovering", "state is loaded")
    >>> ready.reasons
    {'recovering': 'state is loaded'}
    >>> ready.release("recovering")
    >>> ready.check()
    """

    def __init__(self) -> None:
        self._reasons: dict[str, str] = {}

    @property
    def reasons(self) -> dict[str, str]:
        """Return the details by reason; empty when ready."""
        return dict(self._reasons)

    def hold(self, reason: str, detail: str) -> None:
        self._reasons[reason] = detail

    def release(self, reason: str) -> None:
        self._reasons.pop(reason, None)

    def check(self) -> None:
        """Raise `Refused` for a request, unless ready."""
        for reason, detail in self.reasons.items():
            raise overload(reason, detail, retry_after=RETRY_LATER)


REASON: Final = "memory"
SHARE: Final = 0.9
"""Share of a container's limit; beyond the limit the kernel ends the process."""
_BELOW: Final = 0.95
"""Share of the limit to which memory must fall before requests are accepted again."""
_LIMITS: Final = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)
_STATM: Final = Path("/proc/self/statm")
_UNLIMITED: Final = 1 << 50


class ResidentMemory:
    """Watches the resident memory. Above `limit` bytes the service is not ready; 0: 90 % of the
    container's limit.
    """

    def __init__(self, limit: int, readiness: Readiness) -> None:
        self.limit = limit or container_limit()
        self.used = resident()
        self.crossings = 0
        """Number of times the limit was crossed."""
        self._readiness = readiness

    def __call__(self) -> None:
        """Read the resident memory, and hold or release readiness."""
        self.used = resident()
        is_above = REASON in self._readiness.reasons
        if self.limit is None:
            return
        if not is_above and self.used > self.limit:
            self.crossings += 1
            self._readiness.hold(REASON, f"the process uses more than {self.limit} bytes of memory")
        elif is_above and self.used < self.limit * _BELOW:
            self._readiness.release(REASON)

    def limits(self) -> tuple[Limit, ...]:
        return (
            ()
            if self.limit is None
            else (Limit("memory_bytes", self.used, self.limit, self.crossings),)
        )


def resident() -> int:
    """Return the resident bytes of this process; 0 if the system does not report them."""
    try:
        return int(_STATM.read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


def container_limit() -> int | None:
    """Return nine tenths of the container's limit; None without a container or a limit."""
    for path in _LIMITS:
        try:
            found = int(path.read_text(encoding="ascii"))
        except (OSError, ValueError):
            continue
        return int(found * SHARE) if found < _UNLIMITED else None
    return None
