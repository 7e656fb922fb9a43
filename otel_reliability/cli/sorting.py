"""Lines in order, however many: what memory should not hold lies in a file for a while."""

from __future__ import annotations

import heapq
import json
import tempfile
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import IO, Final, Self, TypeAlias

HELD: Final = 16 * 1024 * 1024
"""Characters of lines that are held; as many of them as there are, in order, make one file."""
MOST_FILES: Final = 64
"""Files of one size that lie side by side; as many are merged into one, since a process may have few hundred open."""

Keyed: TypeAlias = tuple[int, str, str]
"""A line, after the number and the text that it stands by."""


class Sorted:
    """Lines that come in any order, given out by (number, text).

    >>> with Sorted(held=3) as lines:
    ...     for at in (3, 1, 2):
    ...         lines.add((at, "", f"line {at}"))
    ...     list(lines)
    ['line 1', 'line 2', 'line 3']
    """

    def __init__(self, held: int = HELD, most_files: int = MOST_FILES) -> None:
        self._most, self._size = held, 0
        self._most_files = most_files
        self._held: list[Keyed] = []
        self._files: list[list[IO[str]]] = []
        """By how often their lines were merged."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Let the files go."""
        for file in chain.from_iterable(self._files):
            file.close()

    def add(self, line: Keyed) -> None:
        """Take in a line."""
        self._held.append(line)
        self._size += len(line[2])
        if self._size > self._most:
            self._put_away(sorted(self._held), 0)
            self._held, self._size = [], 0

    def __iter__(self) -> Iterator[str]:
        """All lines, once, in order."""
        self._held.sort()
        for line in heapq.merge(self._held, *map(_lines, chain.from_iterable(self._files))):
            yield line[2]

    def _put_away(self, lines: Iterable[Keyed], merged: int) -> None:
        file = tempfile.TemporaryFile("w+", encoding="utf-8", newline="\n")  # noqa: SIM115  closed with the others
        if merged == len(self._files):
            self._files.append([])
        files = self._files[merged]
        files.append(file)
        file.writelines(f"{json.dumps(line)}\n" for line in lines)
        if len(files) >= self._most_files:
            self._put_away(heapq.merge(*map(_lines, files)), merged + 1)
            for one in files:
                one.close()
            files.clear()


def _lines(file: IO[str]) -> Iterator[Keyed]:
    file.seek(0)
    for line in file:
        number, text, told = json.loads(line)
        yield number, text, told
