"""Pieces of bytes → lines, and documents written over several lines, each within a bound."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

LONGEST: Final = 256 * 1024 * 1024
"""Bytes of one line, above which it is passed over unread. OTLP's own limit for a request is 64 MiB."""

_OPENING: Final = (b"{", b"[")
_CLOSING: Final = (b"}", b"]")
_INSIDE: Final = (b" ", b"\t", *_CLOSING)


class Line(NamedTuple):
    """A line, or a document that begins on it. `text` None: it was longer than the bound. `ended`: a line end followed."""

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


def documents(lines: Iterable[Line], longest: int = LONGEST) -> Iterator[Line]:
    r"""The lines, with those of a pretty-printed document put together.

    A document begins on a line that ends with an opening bracket, goes on over indented lines, and ends with a closing
    bracket in the first column. A line that does not belong ends it: it is given out as far as it came, so that one broken
    line costs no other.

    >>> [d.text for d in documents(split([b'{\n  "a": 1\n}\n{}\n[{\n{"b": 2}\n']))]
    [b'{\n  "a": 1\n}', b'{}', b'[{', b'{"b": 2}']
    """
    document = _Document(longest)
    for line in lines:
        if document.holds and not _inside(line):
            yield document.take()
        if document.holds or _opens(line):
            document.add(line)
        else:
            yield line
        if document.holds and _closes(line):
            yield document.take()
    if document.holds:
        yield document.take()._replace(ended=False)


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


class _Document:
    """The lines of one document so far."""

    def __init__(self, longest: int) -> None:
        self._held = _Held(longest)
        self._first, self._ended = 0, True
        self.holds = False

    def add(self, line: Line) -> None:
        self._first = self._first if self.holds else line.number
        self._held.add((line.text or b"") + b"\n")
        self.holds, self._ended = True, line.ended

    def take(self) -> Line:
        text = self._held.take()
        self.holds = False
        return Line(self._first, text.removesuffix(b"\n") if text else None, self._ended)


def _opens(line: Line) -> bool:
    return line.text is not None and line.text.rstrip().endswith(_OPENING)


def _inside(line: Line) -> bool:
    return line.text is not None and (not line.text or line.text.startswith(_INSIDE))


def _closes(line: Line) -> bool:
    return line.text is not None and line.text.startswith(_CLOSING)
