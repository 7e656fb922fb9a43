"""The limits that protect memory, as self-telemetry shows them."""

from __future__ import annotations

from typing import NamedTuple


class Limit(NamedTuple):
    """A limit, its use, and how often it was hit. `used` is None for a limit that applies to each
    run or agent.
    """

    name: str
    used: int | None
    limit: int
    hits: int
