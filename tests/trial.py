from __future__ import annotations

from typing import NamedTuple


class Trial(NamedTuple):
    """What it does, how much of it, and where it is."""

    name: str
    shows: str
    size: str
    tests: tuple[str, ...]
