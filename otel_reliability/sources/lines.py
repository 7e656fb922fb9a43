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

    A line that begins with a bracket ends the document, which was a broken line then: it costs no other.

    >>> [line.text for line in documents([b'{\n  "a": 1\n}\n'])], [line.text for line in documents([b"{}\n{}\n"])]
    ([b'{\n  "a": 1\n}'], [b'{}', b'{}'])
    """
    lines = split(pieces, longest)
    for line in lines:
        text = (line.text or b"").strip()
        if text.endswith(_OPENING):
            yield from _document(line, lines, longest)
        elif text or line.text is None:
            yield line
        else:
            continue
        yield from lines


def _document(first: Line, lines: Iterator[Line], longest: int) -> Iterator[Line]:
    document, line = _Held(longest), first
    document.add(first.text or b"")
    for line in lines:
        if line.text is None:  # beyond the bound, so the document is too
            document.size += longest
        elif line.text.startswith(_OPENING):
            yield Line(first.number, document.take())
            yield line
            return
        document.add(b"\n" + (line.text or b""))
    yield Line(first.number, document.take(), ended=line.ended)


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
