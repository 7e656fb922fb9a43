"""Sessions of coding agents on this machine, for `--local`."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

from otel_reliability.errors import SourceError
from otel_reliability.report.text import clean, count
from otel_reliability.sources.kinds import sessions_below
from otel_reliability.sources.sessions.folders import FOLDERS, local_folders


def local_sessions() -> tuple[str, ...]:
    """Return the session files of all known agents, and name on standard error what was found.

    Raises `SourceError` where there are none.
    """
    home = Path.home()
    found: list[str] = []
    for agent, folder in local_folders(home, os.environ):
        below = sessions_below(folder)
        where = clean(_short(folder, home))
        if below.files:
            number = count(len(below.files), "session file")
            print(f"{agent}: {number} in {where}", file=sys.stderr)
        if below.unreadable:
            number = count(len(below.unreadable), "path")
            first = clean(_short(below.unreadable[0], home))
            print(f"{agent}: {number} in {where} may not be read: {first}", file=sys.stderr)
        found += map(str, below.files)
    if not found:
        raise SourceError(
            f"no session files were found. Searched: {'; '.join(_searched(home))}. Set the "
            "variable of an agent that keeps them elsewhere, or name a file or folder instead of "
            "--local."
        )
    return tuple(found)


def _searched(home: Path) -> Iterator[str]:
    """Yield the folders of each agent that were searched, and the variable that moves them."""
    for row in FOLDERS:
        folders = ", ".join(clean(_short(path, home)) for path in row.paths(home, os.environ))
        state = "set" if os.environ.get(row.variable) else "not set"
        yield f"{row.agent} in {folders} ({row.variable} is {state})"


def _short(folder: Path, home: Path) -> str:
    return f"~/{folder.relative_to(home)}" if folder.is_relative_to(home) else str(folder)
