"""Where a partition keeps what must outlive its worker: keys and values, written in one transaction with what is sent."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Protocol

PIECE: Final = 512 * 1024
"""Bytes of one value: what is larger is kept in pieces, for a message of the changelog holds a megabyte."""


class Shelf(Protocol):
    """The state of one partition."""

    def get(self, key: bytes) -> bytes | None:
        """What stands at a key; None where nothing does."""
        ...

    def put(self, key: bytes, value: bytes) -> None:
        """Put something there, in place of what stood there."""
        ...

    def drop(self, key: bytes) -> None:
        """Take away what stands there, if anything does."""
        ...

    def items(self) -> Iterator[tuple[bytes, bytes]]:
        """All that stands here, by key. Asked only before anything is put or dropped."""
        ...


class MemoryShelf:
    """A shelf that nothing outlives but who holds it, for tests and benchmarks.

    >>> shelf = MemoryShelf()
    >>> shelf.put(b"a", b"1")
    >>> shelf.drop(b"b")
    >>> list(shelf.items())
    [(b'a', b'1')]
    """

    def __init__(self) -> None:
        self.kept: dict[bytes, bytes] = {}

    def get(self, key: bytes) -> bytes | None:
        """What stands at a key."""
        return self.kept.get(key)

    def put(self, key: bytes, value: bytes) -> None:
        """Put something there."""
        self.kept[key] = value

    def drop(self, key: bytes) -> None:
        """Take it away."""
        self.kept.pop(key, None)

    def items(self) -> Iterator[tuple[bytes, bytes]]:
        """All, by key."""
        return iter(sorted(self.kept.items()))
