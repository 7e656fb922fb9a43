"""The journal's file: entries in the order they came, until a checkpoint holds what follows from them. One thread uses it."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from otel_reliability.service.clock import Moment
from otel_reliability.service.journal_file import Form, JournalFile, Sync, WrongJournal, told

FORM: Final = Form(
    0x6F746C72,
    "CREATE TABLE entry (seq INTEGER PRIMARY KEY, kind INTEGER NOT NULL, now REAL NOT NULL, wall INTEGER NOT NULL, body BLOB);",
)
REQUEST: Final = 0
TICK: Final = 1
_SOME: Final = 64
"""Entries that are deleted in one transaction."""


class Entry(NamedTuple):
    """A request, or a moment at which deadlines were met."""

    seq: int
    kind: int
    moment: Moment
    body: bytes


class Store:
    """An open journal. Raises `WrongJournal` where it is damaged or another, and `Unavailable` where it cannot be written."""

    def __init__(self, path: Path, sync: Sync = "normal") -> None:
        self._file = JournalFile(path, FORM, sync)

    @property
    def damage(self) -> str:
        """What is damaged in it; empty where it is sound."""
        return self._file.damage

    @property
    def size(self) -> int:
        """Bytes in use."""
        return self._file.size

    def append(self, entries: Iterable[Entry]) -> None:
        """Keep entries, all or none. One that has the number of another takes its place."""
        rows = ((one.seq, one.kind, one.moment.now, one.moment.wall_ns, one.body) for one in entries)
        self._file.transact([("INSERT OR REPLACE INTO entry VALUES (?, ?, ?, ?, ?)", rows)])

    def entries(self, after: int) -> Iterator[Entry]:
        """The entries after a number, in order."""
        try:
            found = self._file.db.execute("SELECT * FROM entry WHERE seq > ? ORDER BY seq", (after,))
            for seq, kind, now, wall, body in found:
                yield Entry(seq, kind, Moment(now, wall), body)
        except sqlite3.DatabaseError as error:
            raise WrongJournal(f"it is damaged ({error})") from None

    def prune(self, seq: int, seconds: float) -> bool:
        """Let go of entries up to a number, as many as can be within so many seconds. True: of all of them."""
        ends = time.monotonic() + seconds
        while True:
            first = self._first()
            if first is None or first > seq:
                return True
            last = min(seq, first + _SOME - 1)
            self._file.transact([("DELETE FROM entry WHERE seq <= ?", [(last,)])])
            if time.monotonic() >= ends:
                return False

    def _first(self) -> int | None:
        try:
            found: int | None = self._file.db.execute("SELECT min(seq) FROM entry").fetchone()[0]
        except sqlite3.DatabaseError as error:
            raise told(error) from None
        return found

    def close(self) -> None:
        """Close the file."""
        self._file.close()
