"""A SQLite file of ours, in WAL mode: opened, checked, written all or nothing, and its errors told apart."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import Final, Literal, NamedTuple, TypeAlias

from otel_reliability.service.journal import Unavailable

Sync: TypeAlias = Literal["normal", "full"]
Statements: TypeAlias = Iterable[tuple[str, Iterable[tuple[object, ...]]]]

VERSION: Final = 2
"""Raised when a reader of the version before could no longer understand a file."""
_WAL_LIMIT: Final = 16 * 1024 * 1024
_PATIENCE: Final = 1.0


ERRORS: Final = (sqlite3.DatabaseError, UnicodeDecodeError)
"""What SQLite's own module raises of a file; the second where damage has reached a text, of an error message too."""


class WrongJournal(Exception):
    """The file is none of ours that can be read: why."""


class Form(NamedTuple):
    """What a kind of file is: the number in its head that tells it from any other database, and its tables."""

    application: int
    schema: str


class JournalFile:
    """An open file. Raises `WrongJournal` where it is of another kind or version, `Unavailable` where it cannot be opened.

    `damage` says what is damaged in it; what can be read of it can be read all the same.
    """

    def __init__(self, path: Path, form: Form, sync: Sync) -> None:
        self.damage = ""
        self.db = sqlite3.connect(path, isolation_level=None, timeout=_PATIENCE, check_same_thread=False)
        try:
            self._open(form, sync)
        except WrongJournal:
            self.db.close()
            raise
        except ERRORS as error:
            self.db.close()
            raise told(error) from None

    def _open(self, form: Form, sync: Sync) -> None:
        db = self.db
        fresh = self._check_kind(form)
        db.execute("PRAGMA journal_mode = WAL")
        db.execute(f"PRAGMA synchronous = {sync.upper()}")
        db.execute(f"PRAGMA journal_size_limit = {_WAL_LIMIT}")
        found = db.execute("PRAGMA quick_check(1)").fetchone()[0]
        if found != "ok":
            self.damage = f"it is damaged ({found})"
        elif fresh:
            head = f"PRAGMA application_id = {form.application}; PRAGMA user_version = {VERSION};"
            db.executescript(f"BEGIN; {form.schema} {head} COMMIT;")
        self._page = int(db.execute("PRAGMA page_size").fetchone()[0])

    def _check_kind(self, form: Form) -> bool:
        """Whether the file is new."""
        version = int(self.db.execute("PRAGMA user_version").fetchone()[0])
        application = int(self.db.execute("PRAGMA application_id").fetchone()[0])
        tables = int(self.db.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0])
        if (version, application) not in {(0, 0), (VERSION, form.application)} or (version == 0 and tables):
            raise WrongJournal(f"it has version {version}; this service reads version {VERSION}")
        return not version

    @property
    def size(self) -> int:
        """Bytes in use."""
        pages = int(self.db.execute("PRAGMA page_count").fetchone()[0])
        free = int(self.db.execute("PRAGMA freelist_count").fetchone()[0])
        return (pages - free) * self._page

    def transact(self, statements: Statements) -> None:
        """Run each statement for each of its rows, all or none."""
        db = self.db
        try:
            db.execute("BEGIN IMMEDIATE")
            for statement, rows in statements:
                db.executemany(statement, rows)
            db.execute("COMMIT")
        except ERRORS as error:
            self._roll_back()
            raise told(error) from None
        except BaseException:
            self._roll_back()
            raise

    def close(self) -> None:
        """Close it."""
        self.db.close()

    def _roll_back(self) -> None:
        try:
            if self.db.in_transaction:
                self.db.execute("ROLLBACK")
        except ERRORS as error:
            raise told(error) from None


_DAMAGE: Final = frozenset(
    {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR, sqlite3.SQLITE_MISMATCH}
)
_UNREADABLE: Final = frozenset(
    {sqlite3.SQLITE_IOERR_READ, sqlite3.SQLITE_IOERR_SHORT_READ, sqlite3.SQLITE_IOERR_CORRUPTFS}
)


def told(error: Exception) -> WrongJournal | Unavailable:
    """What an error of SQLite means: the file is damaged, or it cannot be written now."""
    if isinstance(error, UnicodeDecodeError):
        return WrongJournal("it is damaged (a text in it is none)")
    code: int = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT)
    if code & 0xFF in _DAMAGE or code in _UNREADABLE:
        return WrongJournal(f"it is damaged ({error})")
    return Unavailable("state_unwritable", f"the journal cannot be written ({error})")
