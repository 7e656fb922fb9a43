"""The state database: one SQLite file in WAL mode that holds data, no objects. One thread writes
it; others only load agents from it, within the engine's turn.

- `arrival`: spans, evaluations and counts of requests, and the moments at which deadlines were met,
  in their order, until the runs that they belong to are final;
- `run`: records of final runs that windows, recent runs and change detection still need, by agent;
- `part`: everything else by name and key: closed ids, sessions, detectors, totals, counters and
  histograms, history;
- `saved`: the last arrival that `run` and `part` include, and its moment.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import struct
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from otel_reliability.model.span import TraceId
from otel_reliability.state.clock import Moment

_logger = logging.getLogger("otel_reliability.service")

Sync: TypeAlias = Literal["normal", "full"]
Statement: TypeAlias = tuple[str, Iterable[tuple[object, ...]]]

LAYOUT: Final = 2
"""Layout of the database; raised when a reader of the layout before could no longer read it."""
APPLICATION: Final = 0x6F746C73
"""Number in the head of the file that marks it as a database of this program."""
SCHEMA: Final = """
CREATE TABLE arrival (
    seq INTEGER PRIMARY KEY, kind INTEGER NOT NULL, now REAL NOT NULL, wall INTEGER NOT NULL,
    trace BLOB, body BLOB NOT NULL
);
CREATE TABLE agent (id INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE, seen REAL NOT NULL);
CREATE TABLE run (
    seq INTEGER PRIMARY KEY, run_id TEXT NOT NULL UNIQUE, agent INTEGER NOT NULL,
    end_ns INTEGER NOT NULL, body BLOB NOT NULL
);
CREATE INDEX run_of_agent ON run (agent, end_ns, run_id);
CREATE TABLE part (
    name TEXT NOT NULL, key BLOB NOT NULL, position INTEGER NOT NULL, body BLOB NOT NULL,
    PRIMARY KEY (name, key)
) WITHOUT ROWID;
CREATE TABLE saved (
    one INTEGER PRIMARY KEY CHECK (one = 1), seq INTEGER NOT NULL, now REAL NOT NULL,
    wall INTEGER NOT NULL
);
"""
ORDER: Final = {
    "arrival": "seq {0}",
    "agent": "id {0}",
    "run": "seq {0}",
    "part": "name {0}, key {0}",
    "saved": "one {0}",
}
"""Primary keys of the tables: a damaged table is read from both its ends."""
TICK: Final = 0
SPANS: Final = 1
EVALUATIONS: Final = 2
COUNTS: Final = 3

_PAGE: Final = 4_096
"""Bytes of a page: SQLite's default, which no statement of ours changes."""
_HEAD: Final = struct.Struct(f">28sI{_PAGE - 32}s")
"""A first page: the number of pages stands within its header."""
_WAL_LIMIT: Final = 16 * 1024 * 1024
_BUSY_TIMEOUT_S: Final = 1.0
_ERRORS: Final = (sqlite3.DatabaseError, UnicodeDecodeError)
_DAMAGE: Final = frozenset(
    {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR, sqlite3.SQLITE_MISMATCH}
)
_UNREADABLE: Final = frozenset(
    {sqlite3.SQLITE_IOERR_READ, sqlite3.SQLITE_IOERR_SHORT_READ, sqlite3.SQLITE_IOERR_CORRUPTFS}
)


def _columns(db: sqlite3.Connection) -> dict[str, list[str]]:
    """Return the columns of each table and index."""
    found: dict[str, list[str]] = {}
    for name, column in db.execute(
        "SELECT m.name, t.name FROM sqlite_schema m JOIN pragma_table_info(m.name) t "
        "UNION ALL SELECT m.name, i.name FROM sqlite_schema m JOIN pragma_index_info(m.name) i "
        "WHERE m.name = 'run_of_agent'"
    ):
        found.setdefault(name, []).append(column)
    return found


def _columns_of_schema() -> dict[str, list[str]]:
    with closing(sqlite3.connect(":memory:")) as db:
        db.executescript(SCHEMA)
        return _columns(db)


COLUMNS: Final = _columns_of_schema()


class Unavailable(Exception):
    """Error: nothing can be stored now (the disk is full, say). Requests are refused, and their
    senders try again.
    """

    def __init__(self, reason: str, detail: str) -> None:
        self.reason = reason
        self.detail = detail
        super().__init__(f"{reason}: {detail}")


class Unreadable(Exception):
    """Error: the file is damaged. The message says how."""


class OtherLayout(Exception):
    """Error: the file is intact, but not for this version. The message says what to do."""


class Arrival(NamedTuple):
    """One row of `arrival`. `trace`: that of its spans or evaluations; None for what names none."""

    seq: int
    kind: int
    now: float
    wall_ns: int
    trace: TraceId | None
    body: bytes

    @property
    def moment(self) -> Moment:
        """When it was applied."""
        return Moment(self.now, self.wall_ns)


class Store:
    """An open state database, which its user alone may read. `damage` says what of it is damaged,
    if anything is. Raises `Unreadable`, `OtherLayout` or `Unavailable`.
    """

    def __init__(self, path: Path, sync: Sync = "normal") -> None:
        self.damage = ""
        self._path = path
        _keep_private(path)
        self._file = _identity(path)
        self.db = sqlite3.connect(
            path, isolation_level=None, timeout=_BUSY_TIMEOUT_S, check_same_thread=False
        )
        try:
            self._open(sync)
        except (Unreadable, OtherLayout):
            self.db.close()
            raise
        except _ERRORS as error:
            self.db.close()
            raise meaning(error) from None

    def _open(self, sync: Sync) -> None:
        db = self.db
        is_new = self._check_layout()
        db.execute("PRAGMA journal_mode = WAL")
        db.execute(f"PRAGMA synchronous = {sync.upper()}")
        db.execute(f"PRAGMA journal_size_limit = {_WAL_LIMIT}")
        if is_new:
            head = f"PRAGMA application_id = {APPLICATION}; PRAGMA user_version = {LAYOUT};"
            db.executescript(f"BEGIN; {SCHEMA} {head} COMMIT;")
        else:
            found = db.execute("PRAGMA quick_check(1)").fetchone()[0]
            self.damage = "" if found == "ok" else f"it is damaged ({found})"
            altered = [name for name in COLUMNS if _columns(db).get(name) != COLUMNS[name]]
            if altered and not self.damage:
                self.damage = f"it is damaged (missing or altered: {', '.join(altered)})"
        self._page_size = int(db.execute("PRAGMA page_size").fetchone()[0])

    def _check_layout(self) -> bool:
        """Return whether the file is new. Raise `OtherLayout` for one that this version did not
        write.
        """
        layout, application, tables = (
            int(self.db.execute(question).fetchone()[0])
            for question in (
                "PRAGMA user_version",
                "PRAGMA application_id",
                "SELECT count(*) FROM sqlite_schema",
            )
        )
        if (layout, application) != (LAYOUT, APPLICATION) and (layout or application or tables):
            raise OtherLayout(
                f"it has layout {layout} of application {application:#x}, and this version reads "
                f"layout {LAYOUT} of {APPLICATION:#x}; start the version that wrote it, or give "
                "another directory. Nothing was changed"
            )
        return not layout

    @property
    def size(self) -> int:
        """Bytes in use."""
        pages = int(self.db.execute("PRAGMA page_count").fetchone()[0])
        free = int(self.db.execute("PRAGMA freelist_count").fetchone()[0])
        return (pages - free) * self._page_size

    def transact(self, statements: Iterable[Statement]) -> None:
        """Run each statement for each of its rows, all or none. Raise `Unreadable` where the file
        is at its place no more: what is written to it would be lost with this process.
        """
        if _identity(self._path) != self._file:
            raise Unreadable("its file was deleted or replaced")
        try:
            with self.db as db:
                db.execute("BEGIN IMMEDIATE")
                for text, rows in statements:
                    db.executemany(text, rows)
        except _ERRORS as error:
            raise meaning(error) from None

    def rows(self, question: str, *given: object) -> Iterator[tuple[Any, ...]]:
        """Yield the rows that a query finds. Raise `Unreadable`."""
        try:
            yield from self.db.execute(question, given)
        except _ERRORS as error:
            raise Unreadable(f"it is damaged ({error})") from None

    def close(self) -> None:
        self.db.close()


def _identity(path: Path) -> tuple[int, int] | None:
    """Return what identifies a file; None without a file."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def meaning(error: Exception) -> Unreadable | Unavailable:
    """Return what an error of SQLite means here: the file is damaged, or it cannot
    be written now.
    """
    if isinstance(error, UnicodeDecodeError):
        return Unreadable("it is damaged (invalid text)")
    code: int = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT)
    if code & 0xFF in _DAMAGE or code in _UNREADABLE:
        return Unreadable(f"it is damaged ({error})")
    return Unavailable("state_unwritable", f"the state cannot be written ({error})")


def head_for(path: Path, fresh: Path) -> bytes:
    """Return a first page for a database that lost its own: that of a fresh one, whose tables begin
    on the same pages. Free pages are not known, and are nobody's.
    """
    with fresh.open("rb") as file:
        head = file.read(_PAGE)
    return _HEAD.pack(head[:28], path.stat().st_size // _PAGE, head[32:])


def copy_table(source: Store, table: str, target: Store) -> None:
    """Copy every row of a table that can be read: from the end as well, where the first pass stops
    at damage.
    """
    columns = COLUMNS[table]
    question = f"SELECT {', '.join(columns)} FROM {table} ORDER BY {ORDER[table]}"  # noqa: S608
    marks = ", ".join("?" * len(columns))
    insert = f"INSERT OR IGNORE INTO {table} VALUES ({marks})"  # noqa: S608 (a table of ours)
    damage: list[str] = []

    def readable(direction: str) -> Iterator[tuple[Any, ...]]:
        try:
            yield from source.rows(question.format(direction))
        except Unreadable as error:
            damage.append(str(error))

    target.transact([(insert, readable("ASC"))])
    if damage:
        target.transact([(insert, readable("DESC"))])
        _logger.warning("Not all of the table %s can be read: %s.", table, damage[0])


def _keep_private(path: Path) -> None:
    """Let its user alone read a database, also in a directory that others can read. SQLite gives
    the files next to it the same mode.
    """
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    except OSError as error:
        raise Unavailable(
            "state_unwritable", f"the state cannot be opened ({error.strerror})"
        ) from None
    for file in (path, path.with_name(f"{path.name}-wal"), path.with_name(f"{path.name}-shm")):
        with suppress(OSError):  # of another user, or not there
            file.chmod(0o600)
