"""The journal's file: entries in the order they came, and the last checkpoint. SQLite in WAL mode; one thread uses it.

A checkpoint is the state after some entry; with it that entry and those before it go, in one transaction. So the file holds
what is needed to be where we were, and no more.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, Literal, NamedTuple, TypeAlias

from otel_reliability.service.clock import Moment
from otel_reliability.service.journal import Unavailable

Sync: TypeAlias = Literal["normal", "full"]

VERSION: Final = 1
"""Raised when a reader of the version before could no longer understand a journal."""
APPLICATION: Final = 0x6F746C72
"""Stands in the head of the file, so that it is told from any other database."""
PIECE: Final = 8 * 1024 * 1024
"""Bytes of a checkpoint in one row."""
REQUEST: Final = 0
TICK: Final = 1
_WAL_LIMIT: Final = 16 * 1024 * 1024
_SCHEMA: Final = """
CREATE TABLE entry (seq INTEGER PRIMARY KEY, kind INTEGER NOT NULL, now REAL NOT NULL, wall INTEGER NOT NULL, body BLOB);
CREATE TABLE core (piece INTEGER PRIMARY KEY, body BLOB NOT NULL);
CREATE TABLE agent (key BLOB PRIMARY KEY, body BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE point (one INTEGER PRIMARY KEY CHECK (one = 1), seq INTEGER NOT NULL, now REAL NOT NULL, wall INTEGER NOT NULL);
"""


class WrongJournal(Exception):
    """The file is no journal that can be read: why."""


class Entry(NamedTuple):
    """A request, or a moment at which deadlines were met."""

    seq: int
    kind: int
    moment: Moment
    body: bytes


class Checkpoint(NamedTuple):
    """The state after the entry `seq`: what all share, and what each agent has, by its key."""

    seq: int
    moment: Moment
    core: bytes
    agents: Sequence[tuple[bytes, bytes]]


class Store:
    """An open journal. Raises `WrongJournal` where it is damaged or another, and `Unavailable` where it cannot be written."""

    def __init__(self, path: Path, sync: Sync = "normal", limit: int | None = None) -> None:
        self._limit = limit
        self.used = 0
        """Bytes in use when an entry was last added: any thread may ask."""
        self._db = sqlite3.connect(path, isolation_level=None, timeout=1.0, check_same_thread=False)
        try:
            self._open(sync)
        except WrongJournal:
            self._db.close()
            raise
        except sqlite3.DatabaseError as error:
            self._db.close()
            raise _told(error) from None

    def _open(self, sync: Sync) -> None:
        db = self._db
        self._check_kind()
        db.execute("PRAGMA journal_mode = WAL")
        db.execute(f"PRAGMA synchronous = {sync.upper()}")
        db.execute(f"PRAGMA journal_size_limit = {_WAL_LIMIT}")
        found = db.execute("PRAGMA quick_check(1)").fetchone()[0]
        if found != "ok":
            raise WrongJournal(f"it is damaged ({found})")
        if not db.execute("PRAGMA user_version").fetchone()[0]:
            db.executescript(
                f"BEGIN; {_SCHEMA} PRAGMA application_id = {APPLICATION}; PRAGMA user_version = {VERSION}; COMMIT;"
            )
        self._page = int(db.execute("PRAGMA page_size").fetchone()[0])

    def _check_kind(self) -> None:
        version = int(self._db.execute("PRAGMA user_version").fetchone()[0])
        application = int(self._db.execute("PRAGMA application_id").fetchone()[0])
        tables = int(self._db.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0])
        if (version, application) not in {(0, 0), (VERSION, APPLICATION)} or (version == 0 and tables):
            raise WrongJournal(f"it has version {version}; this service reads version {VERSION}")

    @property
    def size(self) -> int:
        """Bytes in use."""
        pages = int(self._db.execute("PRAGMA page_count").fetchone()[0])
        free = int(self._db.execute("PRAGMA freelist_count").fetchone()[0])
        return (pages - free) * self._page

    def append(self, entries: Iterable[Entry]) -> None:
        """Keep entries, all or none. One that has the number of another takes its place."""
        self.used = self.size
        if self._limit is not None and self.used >= self._limit:
            raise Unavailable("state_full", f"the journal has reached its limit of {self._limit} bytes")
        rows = [(one.seq, one.kind, one.moment.now, one.moment.wall_ns, one.body) for one in entries]
        self._transact([("INSERT OR REPLACE INTO entry VALUES (?, ?, ?, ?, ?)", rows)])

    def put(self, checkpoint: Checkpoint, keep: Sequence[bytes]) -> None:
        """Keep a checkpoint in place of the last, with all entries up to it. `keep`: the agents there still are."""
        core = memoryview(checkpoint.core)
        pieces = [(at, bytes(core[at : at + PIECE])) for at in range(0, len(core), PIECE)]
        kept = set(keep)
        gone = [(key,) for (key,) in self._db.execute("SELECT key FROM agent") if key not in kept]
        self._transact(
            [
                ("DELETE FROM core", [()]),
                ("INSERT INTO core VALUES (?, ?)", pieces),
                ("DELETE FROM agent WHERE key = ?", gone),
                ("INSERT OR REPLACE INTO agent VALUES (?, ?)", checkpoint.agents),
                ("INSERT OR REPLACE INTO point VALUES (1, ?, ?, ?)", [(checkpoint.seq, *checkpoint.moment)]),
                ("DELETE FROM entry WHERE seq <= ?", [(checkpoint.seq,)]),
            ]
        )

    def checkpoint(self) -> Checkpoint | None:
        """The last checkpoint, None if there is none. Its agents come when they are asked for."""
        try:
            found = self._db.execute("SELECT seq, now, wall FROM point").fetchone()
            if found is None:
                return None
            core = b"".join(body for (body,) in self._db.execute("SELECT body FROM core ORDER BY piece"))
            agents = self._db.execute("SELECT key, body FROM agent").fetchall()
        except sqlite3.DatabaseError as error:
            raise WrongJournal(f"it is damaged ({error})") from None
        return Checkpoint(found[0], Moment(found[1], found[2]), core, agents)

    def entries(self) -> Iterator[Entry]:
        """The entries since, in order."""
        try:
            for seq, kind, now, wall, body in self._db.execute("SELECT * FROM entry ORDER BY seq"):
                yield Entry(seq, kind, Moment(now, wall), body)
        except sqlite3.DatabaseError as error:
            raise WrongJournal(f"it is damaged ({error})") from None

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def _transact(self, statements: Iterable[tuple[str, Iterable[tuple[object, ...]]]]) -> None:
        db = self._db
        try:
            db.execute("BEGIN IMMEDIATE")
            for statement, rows in statements:
                db.executemany(statement, rows)
            db.execute("COMMIT")
        except sqlite3.DatabaseError as error:
            self._roll_back()
            raise _told(error) from None

    def _roll_back(self) -> None:
        try:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
        except sqlite3.DatabaseError as error:
            raise _told(error) from None


_DAMAGE: Final = frozenset(
    {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR, sqlite3.SQLITE_MISMATCH}
)
_UNREADABLE: Final = frozenset(
    {sqlite3.SQLITE_IOERR_READ, sqlite3.SQLITE_IOERR_SHORT_READ, sqlite3.SQLITE_IOERR_CORRUPTFS}
)


def _told(error: sqlite3.DatabaseError) -> WrongJournal | Unavailable:
    code: int = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT)
    if code & 0xFF in _DAMAGE or code in _UNREADABLE:
        return WrongJournal(f"it is damaged ({error})")
    return Unavailable("state_unwritable", f"the journal cannot be written ({error})")
