"""From the bytes of a request to its acknowledgement: what both doors share.

A door calls `admit`, reads the bytes while it takes room for them, calls `submit`, and waits for the writer.
"""

from __future__ import annotations

import threading
from collections import Counter
from concurrent.futures import Future
from typing import Final

from otel_reliability.service.answers import Encoding, Signal
from otel_reliability.service.decoded import Decoder
from otel_reliability.service.inflate import inflate
from otel_reliability.service.readiness import Readiness
from otel_reliability.service.refusal import Problem, Refused, overload
from otel_reliability.service.room import Reservation, Room
from otel_reliability.service.writer import Ack, Writer

JSON_WEIGHT: Final = 3
"""Further bytes that a byte of JSON takes while it is parsed."""


class Intake:
    """Takes requests, or says why not.

    `requests` counts them by (signal, transport, what became of them): `accepted`, `partial`, or the reason of a refusal.
    """

    def __init__(
        self, decoder: Decoder, writer: Writer, readiness: Readiness, room: Room, *, limit: int, patience: float
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
        signal: Signal,
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

    def count(self, signal: Signal | None, transport: str, outcome: str) -> None:
        """One more request, and what became of it."""
        with self._lock:
            self.requests["" if signal is None else signal.value, transport, outcome] += 1
