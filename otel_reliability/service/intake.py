"""From the bytes of a request to its acknowledgement, for both receivers.

A receiver calls `admit`, reads the bytes while it reserves budget for them, calls `submit`, and waits for the writer. Bytes that
have arrived and are not committed yet are bounded: they are reserved before anything is parsed, again as they are decompressed,
and released when the request is answered. A client that is refused still has its request, and sends it again.
"""

from __future__ import annotations

import threading
import zlib
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Final

from otel_reliability.service.answers import Encoding, OtlpSignal, Problem, Refused, overload
from otel_reliability.service.decoded import Decoder
from otel_reliability.service.health import Readiness
from otel_reliability.service.writer import Ack, Writer


class RequestBudget:
    """So many bytes, shared by all doors.

    >>> room = RequestBudget(100)
    >>> with room.reserve(60) as place:
    ...     place.grow(30)
    ...     room.used
    90
    >>> room.used
    0
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.refused = 0
        """How often there was not enough."""
        self.held = 0
        """How many requests have a place."""
        self._used = 0
        self._lock = threading.Lock()

    @property
    def used(self) -> int:
        """Bytes that are taken."""
        return self._used

    @contextmanager
    def reserve(self, size: int = 0) -> Generator[Reservation]:
        """A place of that size for as long as the context lasts. Raises `Refused` where there is not enough room."""
        place = self.place(size)
        try:
            yield place
        finally:
            place.release()

    def place(self, size: int = 0) -> Reservation:
        """A place that whoever asked for it gives back with `release`. Raises `Refused` where there is not enough room."""
        place = Reservation(self)
        place.grow(size)
        with self._lock:
            self.held += 1
        return place

    def check(self) -> None:
        """Raises `Refused` where there is no room at all."""
        if self._used >= self.capacity:
            raise self._full()

    def take(self, size: int) -> None:
        """Take so many bytes, or none at all."""
        with self._lock:
            if self._used + size > self.capacity:
                raise self._full()
            self._used += size

    def _full(self) -> Refused:
        self.refused += 1
        return overload("queue_full", f"the queue of {self.capacity} bytes is full; send this again later")

    def give(self, size: int, *, places: int = 0) -> None:
        """Give bytes back, and places with them."""
        with self._lock:
            self._used -= size
            self.held -= places


class Reservation:
    """The room that one request has."""

    __slots__ = ("_room", "size")

    def __init__(self, room: RequestBudget) -> None:
        self._room, self.size = room, 0

    def grow(self, size: int) -> None:
        """The request turned out larger. Raises `Refused` where there is not enough room; what it has it keeps."""
        self._room.take(size)
        self.size += size

    def release(self) -> None:
        """The request is answered."""
        self._room.give(self.size, places=1)
        self.size = 0


MAGIC: Final = b"\x1f\x8b"
"""What gzip begins with; no OTLP message in protobuf does (it would be a field of an unknown wire type)."""
MOST_MEMBERS: Final = 64
"""Members that one body may have. Encoders write one; a million empty ones would only cost time."""
_GZIP: Final = 16 + zlib.MAX_WBITS
_IN: Final = 64 * 1024
_OUT: Final = 1024 * 1024


def inflate(packed: bytes, limit: int, grow: Callable[[int], None] = lambda size: None) -> bytes:
    """What was packed, in one or more gzip members. `grow` is told each part's size before the next is unpacked.

    Raises `Refused`: TOO_LARGE beyond `limit`, UNDECODABLE for what is damaged, cut off or no gzip.

    >>> import gzip
    >>> inflate(gzip.compress(b"one") + gzip.compress(b"two"), 100)
    b'onetwo'
    """
    parts: list[bytes] = []
    left = limit
    for part in _parts(packed):
        left -= len(part)
        if left < 0:
            raise Refused(Problem.TOO_LARGE, "too_large", f"the body unpacks to more than {limit} bytes")
        grow(len(part))
        parts.append(part)
    return b"".join(parts)


def _parts(packed: bytes) -> Iterator[bytes]:
    """What was packed, in parts of a bounded size, the next unpacked when it is asked for."""
    members, member = 0, None
    for start in range(0, len(packed), _IN):
        rest = packed[start : start + _IN]
        while rest:
            if member is None:
                members += 1
                member = _member(members)
            part = _part(member, rest)
            if part:
                yield part
            rest = member.unused_data if member.eof else member.unconsumed_tail
            if member.eof:
                member = None
    if member is not None:
        raise _damaged("it is cut off")


def _member(number: int) -> zlib._Decompress:
    if number > MOST_MEMBERS:
        raise _damaged(f"it has more than {MOST_MEMBERS} members")
    return zlib.decompressobj(_GZIP)


def _part(member: zlib._Decompress, rest: bytes) -> bytes:
    try:
        return member.decompress(rest, _OUT)
    except zlib.error:
        raise _damaged("it is damaged") from None


def _damaged(how: str) -> Refused:
    return Refused(Problem.UNDECODABLE, "gzip", f"the body is said to be gzip, but {how}")


JSON_WEIGHT: Final = 3
"""Further bytes that a byte of JSON takes while it is parsed."""


class Intake:
    """Takes requests, or says why not.

    `requests` counts them by (signal, transport, what became of them): `accepted`, `partial`, or the reason of a refusal.
    """

    def __init__(
        self,
        decoder: Decoder,
        writer: Writer,
        readiness: Readiness,
        room: RequestBudget,
        *,
        limit: int,
        patience: float,
    ) -> None:
        self.room, self.limit, self.patience = room, limit, patience
        self.requests: Counter[tuple[str, str, str]] = Counter()
        self._decode, self._writer, self._readiness = decoder, writer, readiness
        self._lock = threading.Lock()

    def admit(self, size: int | None = None) -> None:
        """Raises `Refused` where a request, of `size` bytes where that is known, need not be read at all."""
        refusal = self._readiness.refusal()
        if refusal is not None:
            raise refusal
        if size is not None and size > self.limit:
            raise self.too_large()
        self.room.check()

    def too_large(self) -> Refused:
        """What a body beyond the limit is answered."""
        return Refused(Problem.TOO_LARGE, "too_large", f"the body is larger than {self.limit} bytes")

    def submit(
        self,
        signal: OtlpSignal,
        encoding: Encoding,
        body: bytes,
        place: Reservation,
        *,
        gzip: bool,
        answer: Future[Ack] | None = None,
    ) -> Future[Ack]:
        """Unpack and read a body for whose bytes `place` has room, and hand it to the writer. Raises `Refused`.

        `answer` is the future that is given, where somebody waits for it already.
        """
        if gzip:
            body = inflate(body, self.limit, place.grow)
        if encoding is Encoding.JSON:
            place.grow(min(JSON_WEIGHT * len(body), self.room.capacity - place.size))
        return self._writer.commit(self._decode(signal, encoding, body), answer)

    def late(self, answer: Future[Ack]) -> Refused:
        """The writer did not answer in time: the request is taken back where it can be, and is to be sent again."""
        answer.cancel()
        return overload("commit_timeout", f"not committed within {self.patience:g} s")

    def count(self, signal: OtlpSignal | None, transport: str, outcome: str) -> None:
        """One more request, and what became of it."""
        with self._lock:
            self.requests["" if signal is None else signal.value, transport, outcome] += 1
