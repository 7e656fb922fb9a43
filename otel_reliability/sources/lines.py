"""Pieces of bytes → lines, or one document over several lines, each within a bound."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

LONGEST: Final = 256 * 1024 * 1024
"""Bytes of one line, above which it is passed over unread. OTLP's own limit for a request is 64 MiB."""

_OPENING: Final = (b"{", b"[")


class Line(NamedTuple):
    """A line, or the document that begins on it. `text` None: it was longer than the bound. `ended`: a line end followed."""

    number: int
    text: bytes | None
    ended: bool = True


def split(pieces: Iterable[bytes], longest: int = LONGEST) -> Iterator[Line]:
    r"""The lines of the pieces, however they are cut. Of a line beyond the bound nothing is kept, and the next one is read.

    >>> [line.text for line in split([b"one\nt", b"wo\n", b"a long one\nfour"], longest=5)]
    [b'one', b'two', None, b'four']
    """
    number, held = 1, _Held(longest)
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
    r"""The lines of a file; all of it as one document where its first line ends with an opening bracket (indented JSON).

    >>> [line.text for line in documents([b'{\n  "a": 1\n}\n'])], [line.text for line in documents([b"{}\n{}\n"])]
    ([b'{\n  "a": 1\n}'], [b'{}', b'{}'])
    """
    lines = split(pieces, longest)
    for line in lines:
        if line.number > 1 or line.text is None or not line.text.rstrip().endswith(_OPENING):
            yield line
            continue
        document = _Held(longest)
        document.add(line.text)
        for further in lines:
            if further.text is None:  # beyond the bound, so the document is too
                document.size += longest
            document.add(b"\n" + (further.text or b""))
        yield Line(1, document.take())


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
