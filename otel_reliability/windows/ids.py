"""Run ids in 24 bytes each."""

from __future__ import annotations

import hashlib
from typing import Final

SIZE: Final = 24
"""Bytes of a packed id: those of a trace's id and of a span's."""
_LENGTH: Final = 49
_TRACE: Final = 32


class Ids:
    """Packs run ids, and gives them back.

    Nearly all are a trace's id and a span's in hexadecimal, which bytes hold in half the room. Of any other the digest is
    packed, and the id itself remembered until it is let go of.

    >>> ids = Ids()
    >>> usual, odd = f"{'0af7' * 8}-{'b7ad' * 4}", "run-1"
    >>> [ids.unpack(ids.pack(one)) == one for one in (usual, odd)]
    [True, True]
    """

    __slots__ = ("_odd",)

    def __init__(self) -> None:
        self._odd: dict[bytes, str] | None = None

    def pack(self, run_id: str) -> bytes:
        """The bytes of an id that is to be kept."""
        packed = packed_id(run_id)
        if packed is None:
            packed = _digest(run_id)
            self._odd = self._odd or {}
            self._odd[packed] = run_id
        return packed

    def unpack(self, packed: bytes) -> str:
        """The id of these bytes."""
        odd = None if self._odd is None else self._odd.get(packed)
        return _spelt(packed) if odd is None else odd

    def release(self, packed: bytes) -> None:
        """An id is kept no more."""
        if self._odd is not None:
            self._odd.pop(packed, None)

    @staticmethod
    def known_as(run_id: str) -> bytes:
        """What an id would be packed to, to look for it."""
        return packed_id(run_id) or _digest(run_id)


def packed_id(run_id: str) -> bytes | None:
    """The 24 bytes that an id spells in lower case; None where it spells none.

    >>> packed_id("run-1") is None
    True
    """
    if len(run_id) != _LENGTH:
        return None
    try:
        packed = bytes.fromhex(run_id[:_TRACE] + run_id[_TRACE + 1 :])
    except ValueError:
        return None
    return packed if _spelt(packed) == run_id else None


def _spelt(packed: bytes) -> str:
    return packed.hex("-", -16)


def _digest(run_id: str) -> bytes:
    return hashlib.blake2b(run_id.encode("utf-8", "surrogatepass"), digest_size=SIZE).digest()
