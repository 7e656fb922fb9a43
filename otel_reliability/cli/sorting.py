"""Lines in order, however many: a temporary database holds and sorts what memory should not."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from typing import Self, TypeAlias

Keyed: TypeAlias = tuple[int, str, str]
"""A line, after the number and the text that it is sorted by."""


class Sorted:
    """Lines that are added in any order, and read by (number, text).

    >>> with Sorted() as lines:
    ...     lines.add((at, "", f"line {at}") for at in (3, 1, 2))
    ...     list(lines)
    ['line 1', 'line 2', 'line 3']
    """

    def __init__(self) -> None:
        self._database = sqlite3.connect("")  # in memory while it is small, then in a file that nobody else sees
        self._database.execute("PRAGMA journal_mode = OFF")
        self._database.execute("CREATE TABLE lines (number INTEGER, text TEXT, line BLOB)")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Delete the database."""
        self._database.close()

    def add(self, lines: Iterable[Keyed]) -> None:
        """Add lines."""
        rows = ((number, text, line.encode("utf-8", "surrogatepass")) for number, text, line in lines)
        self._database.executemany("INSERT INTO lines VALUES (?, ?, ?)", rows)

    def __iter__(self) -> Iterator[str]:
        """Yield all lines in order."""
        for (line,) in self._database.execute("SELECT line FROM lines ORDER BY number, text"):
            yield line.decode("utf-8", "surrogatepass")
