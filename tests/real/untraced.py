"""Processes without coverage: it has a lock, and whoever is interrupted or forked off while that is held never goes on."""

from __future__ import annotations

import os


def untraced() -> dict[str, str]:
    """The environment of a process that is interrupted, killed, or forks."""
    return {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")}
