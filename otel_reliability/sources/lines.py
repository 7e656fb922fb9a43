"""Pieces of bytes → lines, or one document over several lines, each within a bound."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

LONGEST: Final = 256 * 1024 * 1024
"""Bytes of one line, above which it is passed over unread. OTLP's own limit for a request is 64
MiB.
"""

_OPENING: Final = (b"{", b"[")


class Line(NamedTuple):
    """A line, or the document that begins on it. `text` None: it was longer than the bound.
    `ended`: a line end followed.
    """

    number: int
    text: bytes | None
    ended: bool = True


def split(pieces: Iterable[bytes], longest: int = LONGEST) -> Iterator[Line]:
    r"""The lines of the pieces, however they are cut. Of a line beyond the bound nothing is kept,
    and the next one is read.

    >>> [line.text for line in split([b"one\nt", b"wo\n", b"a long one\nfour"], longest=5)]
    [b'one', b'two', None, b'four']
    """
    number = 1
    held = _Held(longest)
    for piece in pieces:
        first, *others = piece.split(b"\n")
        held.add(first)
        for part in others:
            yield Line(number, held.take())
            number += 1
            held.add(part)
    if held.size:
        yield Line(number, held.take(), ended=False)


def documents(pieces: Iterable[bytes], longest: int = LONGEST) -> Iterator[Line]:
    r"""The lines of a file; indented JSON, which begins with a line that ends with an opening
    bracket, as one line.

    It goes on to the next line that begins with an opening bracket: so a broken line costs no
    other.

    >>> [line.text for line in documents([b'{}\n{\n  "a": 1\n}\n{}\n'])]
    [b'{}', b'{\n  "a": 1\n}', b'{}']
    """
    document = _Held(longest)
    first = 0
    ended = True
    for line in split(pieces, longest):
        text = line.text
        ended = line.ended
        if first and text is not None and text.startswith(_OPENING):
            yield Line(first, document.take())
            first = 0
        if first:
            document.add(b"\n" + (text or b""))
            document.size += (
                longest if text is None else 0
            )  # a line beyond the bound makes the document one
        elif text is not None and text.rstrip().endswith(_OPENING):
            document.add(text)
            first = line.number
        else:
            yield line
    if first:
        yield Line(first, document.take(), ended)


class _Held:
    """Parts of one line, and its size; the parts are dropped once it is beyond the bound."""

    def __init__(self, longest: int) -> None:
        self._longest = longest
        self._parts: list[bytes] = []
        self.size = 0

    def add(self, part: bytes) -> None:
        self.size += len(part)
        if self.size > self._longest:
            self._parts.clear()
        elif part:
            self._parts.append(part)

    def take(self) -> bytes | None:
        text = b"".join(self._parts) if self.size <= self._longest else None
        self._parts.clear()
        self.size = 0
        return text
