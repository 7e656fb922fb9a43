"""What is kept of the traces of a partition: their parts as they came, and heads, which say how far each was told."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final, NamedTuple

from otel_reliability.kafka.log import Entry, Log
from otel_reliability.kafka.shelf import Shelf
from otel_reliability.kafka.trace import Part
from otel_reliability.model.span import TraceId
from otel_reliability.service import journal_codec
from otel_reliability.service.decoded import Decoded

_PART: Final = b"p"
_HEAD: Final = b"h"
_TIME: Final = struct.Struct(">d")
_WHERE: Final = struct.Struct(">IddQd?")


class Head(NamedTuple):
    """What is known of a trace beside its parts.

    `parts`: how many there were when this was written. `last`: when the last came. `upto`: what happened until then is told;
    `told_ns`: the greatest time of a record. `due`: when it is to be looked at. `over`: all is told, and it is only remembered.
    """

    parts: int
    last: float
    upto: float
    told_ns: int
    due: float
    over: bool


UNTOLD: Final = Head(0, 0.0, -1.0, 0, 0.0, over=False)
"""Of a trace of which nothing was told."""


@dataclass(slots=True)
class Standing:
    """How a trace stands: how many `parts` and `heads` were kept of it, and the last head."""

    born: int
    parts: int = 0
    heads: int = 0
    head: Head = UNTOLD

    @property
    def is_told(self) -> bool:
        """Whether the head speaks of all parts."""
        return self.head.parts == self.parts

    def see(self, entry: Entry) -> None:
        """One more entry of it."""
        if entry.kind == _PART:
            self.parts = max(self.parts, entry.number + 1)
        elif entry.number >= self.heads:
            self.heads, self.head = entry.number + 1, Head(*_WHERE.unpack(entry.body))


class TraceLog:
    """The log of one partition, of parts and heads.

    >>> from otel_reliability.kafka.shelf import MemoryShelf
    >>> log, trace_id = TraceLog(MemoryShelf()), bytes(16)
    >>> log.add_part(trace_id, log.birth(), 0, Part(10.0))
    >>> log.of(trace_id)[1]
    [Part(now=10.0, spans=(), evaluations=())]
    """

    def __init__(self, shelf: Shelf) -> None:
        self.now = 0.0
        """When the last part came, of those that stood there at first."""
        self._shelf, self._log = shelf, Log(shelf)
        self.birth, self.write, self.forget = self._log.birth, self._log.write, self._log.forget

    @property
    def damaged(self) -> int:
        """Pages that could not be read to their end."""
        return self._log.damaged

    def add_part(self, trace_id: TraceId, born: int, number: int, part: Part) -> None:
        """Keep a part."""
        body = _TIME.pack(part.now) + journal_codec.write(Decoded(part.spans, part.evaluations))
        self._log.add(Entry(_PART, trace_id, born, number, body))

    def add_head(self, trace_id: TraceId, born: int, number: int, head: Head) -> None:
        """Keep a head, in place of the one before."""
        self._log.add(Entry(_HEAD, trace_id, born, number, _WHERE.pack(*head)))

    def of(self, trace_id: TraceId) -> tuple[Standing, list[Part | None]]:
        """All that is kept of a trace. A part that is damaged is None."""
        entries = self._log.of(trace_id)
        standing = Standing(entries[0].born if entries else self.birth())
        for entry in entries:
            standing.see(entry)
        return standing, [_part(entry.body) for entry in entries if entry.kind == _PART]

    def restore(self) -> dict[TraceId, Standing]:
        """Every trace of which something stands there. What its parts hold is read when it is asked for."""
        found: dict[TraceId, Standing] = {}
        for key, kept in self._shelf.items():
            for entry in self._log.restore(key, kept) or ():
                self._see(entry, found)
        self._log.begin()
        return found

    def _see(self, entry: Entry, found: dict[TraceId, Standing]) -> None:
        known = found.get(entry.owner)
        if known is None or known.born < entry.born:
            known = found[entry.owner] = Standing(entry.born)
        if known.born == entry.born:
            known.see(entry)
        if entry.kind == _PART:
            self.now = max(self.now, _TIME.unpack_from(entry.body)[0])


def _part(body: bytes) -> Part | None:
    try:
        found = journal_codec.read(body[_TIME.size :])
    except journal_codec.Damaged:
        return None
    return Part(_TIME.unpack_from(body)[0], found.spans, found.evaluations)
