"""Which ids are there, told in four bytes each: whoever looks for one that is not there hardly ever has to look through all."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

_SIZE: Final = 4
_ROOM: Final = 64
"""How many ids a part is made for. It takes twice as many before all are divided anew."""


class Marks:
    """Ids by a few bits of their hash, in parts that are short enough to be looked through.

    Of those that are there none is missed. Of those that are not, one in some ten million is taken to be there.

    >>> marks = Marks([b"one", b"other"])
    >>> marks.may_have(b"one"), marks.may_have(b"third")
    (True, False)
    >>> marks.discard(b"one")
    >>> marks.may_have(b"one"), marks.may_have(b"other")
    (False, True)
    """

    __slots__ = ("_parts", "most")

    def __init__(self, ids: Iterable[bytes]) -> None:
        known = list(ids)
        number = 1 << (len(known) // _ROOM).bit_length()
        self._parts = [bytearray() for _ in range(number)]
        self.most = 2 * _ROOM * number
        """As many ids there may be before all should be divided anew, into more parts."""
        for one in known:
            self.add(one)

    def add(self, one: bytes) -> None:
        """An id comes, perhaps once more."""
        part, mark = self._place(one)
        part += mark

    def discard(self, one: bytes) -> None:
        """An id that came goes, once."""
        part, mark = self._place(one)
        at = _index(part, mark)
        del part[at : at + _SIZE]

    def may_have(self, one: bytes) -> bool:
        """False: the id is not there."""
        return _index(*self._place(one)) >= 0

    def _place(self, one: bytes) -> tuple[bytearray, bytes]:
        found = hash(one)
        return self._parts[found % len(self._parts)], (found >> 24 & 0xFFFFFFFF).to_bytes(_SIZE, "little")


def _index(part: bytearray, mark: bytes) -> int:
    at = part.find(mark)
    while at % _SIZE and at >= 0:
        at = part.find(mark, at + 1)
    return at
