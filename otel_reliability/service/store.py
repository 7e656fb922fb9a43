"""The state database: one SQLite file in WAL mode that holds data, no objects. One thread uses it.

- `arrival`: spans, evaluations and counts of requests, and the moments at which deadlines were met,
  in their order, until the runs that they belong to are final;
- `run`: records of final runs that windows, recent runs and change detection still need, by agent;
- `part`: everything else by name and key: closed ids, sessions, detectors, totals, counters and
  histograms, history;
- `saved`: the last arrival that `run` and `part` include, and its moment.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from otel_reliability.model.span import TraceId
from otel_reliability.service.clock import Moment

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
TICK: Final = 0
SPANS: Final = 1
EVALUATIONS: Final = 2
COUNTS: Final = 3

_WAL_LIMIT: Final = 16 * 1024 * 1024
_BUSY_TIMEOUT_S: Final = 1.0
_ERRORS: Final = (sqlite3.DatabaseError, UnicodeDecodeError)
_DAMAGE: Final = frozenset(
    {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR, sqlite3.SQLITE_MISMATCH}
)
_UNREADABLE: Final = frozenset(
    {sqlite3.SQLITE_IOERR_READ, sqlite3.SQLITE_IOERR_SHORT_READ, sqlite3.SQLITE_IOERR_CORRUPTFS}
)


class Unavailable(Exception):
    """Error: nothing can be stored now (the disk is full, say). Requests are refused, and their
    senders try again.
    """

    def __init__(self, reason: str, detail: str) -> None:
        self.reason = reason
        self.detail = detail
        super().__init__(f"{reason}: {detail}")


class Unreadable(Exception):
    """Error: the file is damaged, or of another kind or layout. The message says which."""


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
    """An open state database. Raises `Unreadable` or `Unavailable`. `damage` says what of it is
    damaged, if anything is.
    """

    def __init__(self, path: Path, sync: Sync = "normal") -> None:
        self.damage = ""
        self.db = sqlite3.connect(
            path, isolation_level=None, timeout=_BUSY_TIMEOUT_S, check_same_thread=False
        )
        try:
            self._open(sync)
        except Unreadable:
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
        self._page_size = int(db.execute("PRAGMA page_size").fetchone()[0])

    def _check_layout(self) -> bool:
        """Return whether the file is new. Raise `Unreadable` for one that this version did not
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
            raise Unreadable(f"its layout is {layout}; this version reads layout {LAYOUT}")
        return not layout

    @property
    def size(self) -> int:
        """Bytes in use."""
        pages = int(self.db.execute("PRAGMA page_count").fetchone()[0])
        free = int(self.db.execute("PRAGMA freelist_count").fetchone()[0])
        return (pages - free) * self._page_size

    def transact(self, statements: Iterable[Statement]) -> None:
        """Run each statement for each of its rows, all or none."""
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


def copy_of(store: Store, table: str) -> Statement:
    """Return the statement that inserts all rows of a table that can be read
    into another database.
    """
    rows: list[tuple[object, ...]] = []
    try:
        rows.extend(store.rows(f"SELECT * FROM {table}"))  # noqa: S608 (a table of ours)
    except Unreadable as error:
        _logger.warning("Of the table %s only %d rows can be read: %s.", table, len(rows), error)
    marks = ", ".join("?" * len(rows[0])) if rows else "NULL"
    return f"INSERT OR IGNORE INTO {table} VALUES ({marks})", rows  # noqa: S608 (as above)
