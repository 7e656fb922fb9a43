"""What the traces or agents of a partition keep, in the order in which it came, many entries to a page of its shelf.

A value of its own costs a store with a changelog as much as rebuilding the run it belongs to; a page costs that once for all
that it holds. Nothing in a page is changed. A page goes when the last of its owners does; where few are left that live on,
their entries move to the page that is being filled, so that one that lives long holds no more than what is its own.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final, NamedTuple

from otel_reliability.kafka.shelf import PIECE, Shelf

PAGE: Final = 32 * 1024
"""Bytes after which a page is full. What is written of it before that is written again with what comes next."""
FEW: Final = 8
"""A page of which one in so many owners is left is cleared."""

_KEY: Final = b"log1"
"""What the keys of pages begin with, and the version of what is in them."""
_NUMBER: Final = struct.Struct(">Q")
_HEAD: Final = struct.Struct(">c16sQII")


class Entry(NamedTuple):
    """One thing that is kept of an owner (16 bytes): its `kind`, and its `number` among those of its kind.

    `born` tells an owner from an earlier one of the same id that is forgotten, and of which a page may still hold something.
    """

    kind: bytes
    owner: bytes
    born: int
    number: int
    body: bytes


class Log:
    """The pages of one partition. `damaged` counts those that could not be read to their end.

    >>> from otel_reliability.kafka.shelf import MemoryShelf
    >>> log, owner = Log(MemoryShelf()), bytes(16)
    >>> log.add(Entry(b"p", owner, log.birth(), 0, b"what came"))
    >>> [entry.body for entry in log.of(owner)]
    [b'what came']
    """

    def __init__(self, shelf: Shelf) -> None:
        self.damaged = 0
        self._shelf = shelf
        self._births = 0
        self._pages: dict[bytes, tuple[int, ...]] = {}
        self._left: dict[int, int] = {}
        """How many owners have entries in a page; `_most`: how many had."""
        self._most: dict[int, int] = {}
        self._number = self._size = 0
        self._page: list[bytes] = []
        self._is_written = True

    def birth(self) -> int:
        """The number of a new owner."""
        self._births += 1
        return self._births

    def add(self, entry: Entry) -> None:
        """Keep something, from the next `write` on."""
        size = _HEAD.size + len(entry.body)
        if self._size >= PAGE or (self._size and self._size + size > PIECE):
            self._turn()
        kind, owner, born, number, body = entry
        self._page.append(_HEAD.pack(kind, owner, born, number, len(body)))
        self._page.append(body)
        self._size += size
        self._is_written = False
        self._hold(owner, self._number)

    def write(self) -> None:
        """Put on the shelf what was added."""
        if not self._is_written:
            self._shelf.put(_key(self._number), b"".join(self._page))
            self._is_written = True

    def of(self, owner: bytes) -> list[Entry]:
        """All that is kept of an owner, by kind and number."""
        pages = self._pages.get(owner, ())
        found = [entry for page in pages for entry in self._read(page) if entry.owner == owner]
        born = max((entry.born for entry in found), default=0)
        return sorted(entry for entry in found if entry.born == born)

    def forget(self, owner: bytes) -> None:
        """An owner needs nothing more of what was kept of it."""
        pages = self._pages.pop(owner, ())
        for number in pages:
            self._left[number] -= 1
        for number in pages:
            self._look_at(number)

    def restore(self, key: bytes, kept: bytes) -> Sequence[Entry] | None:
        """What stood there at first is given page by page, before anything else. Gives the entries of one, in order, some of
        them perhaps of owners that were forgotten; None where it is no page. When all were given, `begin`.
        """
        if not key.startswith(_KEY):
            return None
        number = _NUMBER.unpack_from(key, len(_KEY))[0]
        entries, is_whole = _entries(kept)
        self.damaged += not is_whole
        if not entries:
            self._left[number] = self._most[number] = 0
        for entry in entries:
            self._births = max(self._births, entry.born)
            self._hold(entry.owner, number)
        self._number = max(self._number, number)
        return entries

    def begin(self) -> None:
        """Go on with a new page. Pages of which nothing can be read go."""
        self._number += 1
        for number in [number for number, left in self._left.items() if not left]:
            self._clear(number)

    def _hold(self, owner: bytes, number: int) -> None:
        pages = self._pages.get(owner, ())
        if number not in pages:
            self._pages[owner] = (*pages, number)
            self._left[number] = self._left.get(number, 0) + 1
            self._most[number] = self._most.get(number, 0) + 1

    def _turn(self) -> None:
        """Begin another page."""
        self.write()
        number = self._number
        self._number, self._size, self._page = number + 1, 0, []
        if self._is_worth_clearing(number):
            self._clear(number)

    def _look_at(self, number: int) -> None:
        """Something of a page was let go. It may be cleared already, where another was, and filled the one at hand."""
        if number == self._number:
            if not self._left.get(number, 1):
                self._turn()
        elif number in self._left and self._is_worth_clearing(number):
            self._clear(number)

    def _is_worth_clearing(self, number: int) -> bool:
        return self._left[number] * FEW <= self._most[number]

    def _clear(self, number: int) -> None:
        """Move what is left of a page, and let it go."""
        moved = [entry for entry in self._read(number) if number in self._pages.get(entry.owner, ())]
        for entry in moved:
            self.add(entry)
        for owner in {entry.owner for entry in moved}:
            self._pages[owner] = tuple(page for page in self._pages[owner] if page != number)
        self.write()
        self._shelf.drop(_key(number))
        del self._left[number], self._most[number]

    def _read(self, number: int) -> list[Entry]:
        if number == self._number:
            return _entries(b"".join(self._page))[0]
        return _entries(self._shelf.get(_key(number)) or b"")[0]


def _key(number: int) -> bytes:
    return _KEY + _NUMBER.pack(number)


def _entries(page: bytes) -> tuple[list[Entry], bool]:
    """The entries of a page, and whether they are all of it."""
    found: list[Entry] = []
    at, end = 0, len(page)
    while at + _HEAD.size <= end:
        kind, owner, born, number, size = _HEAD.unpack_from(page, at)
        begin = at + _HEAD.size
        at = begin + size
        if at > end:
            break
        found.append(Entry(kind, owner, born, number, page[begin:at]))
    return found, at == end
