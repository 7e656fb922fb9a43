"""The state of one partition: keys and values, written in one transaction with what is sent."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, Protocol

from otel_reliability.model.record import Damaged, pack, unpack

PIECE_BYTES: Final = 512 * 1024
"""Size of one value at most: a message of the changelog holds a megabyte. Larger ones are divided.
"""
_DIVIDED: Final = b"\xff"
_NAME_END: Final = b"\x00"


class KeyValues(Protocol):
    """The store of one partition. `items` yields everything, by key; it is called only before
    anything is put or dropped.
    """

    def get(self, key: bytes) -> bytes | None: ...

    def put(self, key: bytes, value: bytes) -> None: ...

    def drop(self, key: bytes) -> None: ...

    def items(self) -> Iterator[tuple[bytes, bytes]]: ...


class PartitionValues:
    """Plain data by the name of what they are and a plain key, on a store. `damaged` counts values
    that could not be read.
    """

    def __init__(self, store: KeyValues) -> None:
        self.damaged = 0
        self._store = store
        self._pieces: dict[bytes, int] = {}

    def put(self, name: str, key: Any, body: Any) -> None:
        """Set what a key of a name holds; None deletes it."""
        place = name.encode() + _NAME_END + pack(key)
        value = b"" if body is None else pack(body)
        pieces = (
            [value[at : at + PIECE_BYTES] for at in range(0, len(value), PIECE_BYTES)]
            if body is not None
            else []
        )
        for number, piece in enumerate(pieces):
            self._store.put(_piece(place, number), piece)
        for number in range(len(pieces), self._pieces.pop(place, 1)):
            self._store.drop(_piece(place, number))
        if len(pieces) > 1:
            self._pieces[place] = len(pieces)

    def get(self, name: str, key: Any) -> Any:
        """Return what a key of a name holds; None where there is nothing, or it is damaged."""
        place = name.encode() + _NAME_END + pack(key)
        pieces = [
            self._store.get(_piece(place, number)) for number in range(self._pieces.get(place, 1))
        ]
        return None if pieces[0] is None else self._read(b"".join(piece or b"" for piece in pieces))

    def items(self) -> Iterator[tuple[str, Any, Any]]:
        """Yield name, key and data of everything. Called only before anything is put."""
        place = b""
        value = b""
        pieces = 0
        for found, piece in self._store.items():
            if pieces and found.startswith(place + _DIVIDED):
                value = value + piece
                pieces = pieces + 1
                self._pieces[place] = pieces
                continue
            yield from self._item(place, value)
            place = found
            value = piece
            pieces = 1
        yield from self._item(place, value)

    def _item(self, place: bytes, value: bytes) -> Iterable[tuple[str, Any, Any]]:
        name, found, key = place.partition(_NAME_END)
        if found:
            body = self._read(value)
            known = self._read(key)
            if body is not None:
                yield name.decode(), known, body

    def _read(self, value: bytes) -> Any:
        try:
            return unpack(value)
        except Damaged:
            self.damaged += 1
            return None


def _piece(place: bytes, number: int) -> bytes:
    return place + _DIVIDED + number.to_bytes(2, "big") if number else place
