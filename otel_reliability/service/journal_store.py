"""The journal's file: entries in the order they came, until a checkpoint holds what follows from them. One thread uses it."""

from __future__ import annotations

import struct
import time
import zlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

from otel_reliability.service.clock import Moment
from otel_reliability.service.journal_file import ERRORS, Form, JournalFile, Sync, WrongJournal, told

FORM: Final = Form(
    0x6F746C72,
    """
    CREATE TABLE entry (
        seq INTEGER PRIMARY KEY, kind INTEGER NOT NULL, now REAL NOT NULL, wall INTEGER NOT NULL, body BLOB,
        mark INTEGER NOT NULL
    );
    """,
)
REQUEST: Final = 0
TICK: Final = 1
DAMAGED: Final = 2
_HEAD: Final = struct.Struct("<qqdq")
_SOME: Final = 64
"""Entries that are deleted in one transaction."""


class Entry(NamedTuple):
    """A request, or a moment at which deadlines were met; or what was one of them, of which nothing is to be believed."""

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
        rows = ((one.seq, one.kind, *one.moment, one.body, _mark(one.seq, one.kind, *one.moment)) for one in entries)
        self._file.transact([("INSERT OR REPLACE INTO entry VALUES (?, ?, ?, ?, ?, ?)", rows)])

    def entries(self, after: int) -> Iterator[Entry]:
        """The entries after a number, in order."""
        try:
            found = self._file.db.execute("SELECT * FROM entry WHERE seq > ? ORDER BY seq", (after,))
            for seq, kind, now, wall, body, mark in found:
                yield Entry(seq, kind if _is_marked(mark, seq, kind, now, wall) else DAMAGED, Moment(now, wall), body)
        except ERRORS as error:
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
        except ERRORS as error:
            raise told(error) from None
        return found

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _mark(seq: int, kind: int, now: float, wall_ns: int) -> int:
    """The checksum of what stands beside a body, which has its own."""
    return zlib.crc32(_HEAD.pack(seq, kind, now, wall_ns))


def _is_marked(mark: object, *head: Any) -> bool:
    with suppress(struct.error):
        return mark == _mark(*head)
    return False
