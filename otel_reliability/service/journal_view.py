"""What a state directory holds, for people. Reads only, also while a service writes."""

from __future__ import annotations

import sqlite3
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

from otel_reliability.model.run import AgentKey
from otel_reliability.service import checkpoint_store, journal_store
from otel_reliability.service import journal_codec as codec
from otel_reliability.service.journal_file import VERSION, Form
from otel_reliability.service.journal_store import REQUEST
from otel_reliability.service.state_directory import BESIDE, CHECKPOINT, DAMAGED, JOURNAL, KEPT


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
    if not (directory / JOURNAL).is_file():
        raise Unreadable(f"there is no {JOURNAL} in it")
    try:
        point, agents = _checkpoint(directory / CHECKPOINT)
        with _opened(directory / JOURNAL, journal_store.FORM) as database:
            kinds, last = _entries(database, -1 if point is None else point[0])
    except (sqlite3.DatabaseError, codec.Damaged) as error:
        raise Unreadable(f"its journal cannot be read: {error}") from None
    files = [directory / f"{name}{beside}" for name in KEPT for beside in BESIDE]
    checkpoint_ns = None if point is None else point[1]
    return Contents(
        sum(file.stat().st_size for file in files if file.exists()),
        checkpoint_ns,
        kinds.get(REQUEST, 0),
        sum(number for kind, number in kinds.items() if kind != REQUEST),
        checkpoint_ns if last is None else last,
        agents,
        sorted(file.name for file in directory.glob(f"*{DAMAGED}*") if not file.name.endswith(BESIDE[1:])),
    )


def _checkpoint(path: Path) -> tuple[tuple[int, int] | None, list[AgentRuns]]:
    if not path.is_file():
        return None, []
    with _opened(path, checkpoint_store.FORM) as database:
        point = database.execute("SELECT seq, wall FROM point").fetchone()
        found = database.execute("SELECT key, runs FROM agent").fetchall()
    return point, [AgentRuns(AgentKey(*codec.unpack(key)), runs) for key, runs in found]


def _entries(database: sqlite3.Connection, after: int) -> tuple[dict[int, int], int | None]:
    """How many there are of each kind, and the time of the last."""
    kinds: dict[int, int] = dict(
        database.execute("SELECT kind, count(*) FROM entry WHERE seq > ? GROUP BY kind", (after,)).fetchall()
    )
    last = database.execute("SELECT wall FROM entry WHERE seq > ? ORDER BY seq DESC LIMIT 1", (after,)).fetchone()
    return kinds, None if last is None else last[0]


@contextmanager
def _opened(path: Path, form: Form) -> Generator[sqlite3.Connection]:
    with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, timeout=5.0)) as database:
        database.execute("BEGIN")
        version = database.execute("PRAGMA user_version").fetchone()[0]
        if (database.execute("PRAGMA application_id").fetchone()[0], version) != (form.application, VERSION):
            raise Unreadable(f"its {path.name} has version {version}; this is version {VERSION}")
        yield database
