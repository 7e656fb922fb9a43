"""What a state directory holds, for people. Reads only, also while a service writes."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from otel_reliability.model.run import AgentKey
from otel_reliability.service import journal_codec as codec
from otel_reliability.service.journal_store import APPLICATION, REQUEST, VERSION
from otel_reliability.service.state_directory import BESIDE, DAMAGED, JOURNAL


class Unreadable(Exception):
    """There is no journal, or it cannot be read: why."""


class AgentRuns(NamedTuple):
    """An agent, and how many runs its windows keep."""

    key: AgentKey
    runs: int


class Contents(NamedTuple):
    """What there is. Times are Unix nanoseconds by the clock of the machine that wrote them."""

    size: int
    checkpoint_ns: int | None
    requests: int
    moments: int
    last_ns: int | None
    agents: list[AgentRuns]
    damaged: list[str]


def contents_of(directory: Path) -> Contents:
    """Look into a directory. Raises `Unreadable`."""
    path = directory / JOURNAL
    if not path.is_file():
        raise Unreadable(f"there is no {JOURNAL} in it")
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, timeout=5.0)) as database:
            database.execute("BEGIN")
            return _read(database, directory)
    except (sqlite3.DatabaseError, codec.Damaged) as error:
        raise Unreadable(f"its journal cannot be read: {error}") from None


def _read(database: sqlite3.Connection, directory: Path) -> Contents:
    version = database.execute("PRAGMA user_version").fetchone()[0]
    if (database.execute("PRAGMA application_id").fetchone()[0], version) != (APPLICATION, VERSION):
        raise Unreadable(f"its journal has version {version}; this is version {VERSION}")
    point = database.execute("SELECT wall FROM point").fetchone()
    kinds: dict[int, int] = dict(database.execute("SELECT kind, count(*) FROM entry GROUP BY kind").fetchall())
    last = database.execute("SELECT wall FROM entry ORDER BY seq DESC LIMIT 1").fetchone() or point
    agents = [
        AgentRuns(AgentKey(*codec.unpack(key)), len(codec.unpack(body)["rows"]))
        for key, body in database.execute("SELECT key, body FROM agent")
    ]
    files = [directory / f"{JOURNAL}{beside}" for beside in BESIDE]
    return Contents(
        sum(file.stat().st_size for file in files if file.exists()),
        None if point is None else point[0],
        kinds.get(REQUEST, 0),
        sum(number for kind, number in kinds.items() if kind != REQUEST),
        None if last is None else last[0],
        agents,
        sorted(file.name for file in directory.glob(f"{JOURNAL}{DAMAGED}*") if not file.name.endswith(BESIDE[1:])),
    )
