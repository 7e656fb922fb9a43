"""From the bytes of a request to its acknowledgement, for both receivers.

A receiver calls `admit`, reads the bytes while it reserves budget for them, calls `submit`, and
waits for the writer. Bytes that have arrived and are not committed yet are bounded: they are
reserved before anything is parsed, again as they are decompressed, and released when the request is
answered. A client that is refused still has its request, and sends it again.
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Executor, Future
from functools import partial
from typing import Final, Generic, Protocol, Self, TypeVar

from otel_reliability.model.limit import Limit
from otel_reliability.service.answers import Encoding, OtlpSignal, Problem, Refused, overload
from otel_reliability.service.arrivals import Refusal
from otel_reliability.service.compression import ContentCoding, inflate
from otel_reliability.service.health import Readiness
from otel_reliability.service.writer import Ack

T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)


class RequestBudget:
    """Bytes for requests that are not committed yet, shared by both receivers.

    >>> budget = RequestBudget(100)
    >>> with budget.reserve(60) as reservation:
    ...     reservation.grow(30)
    ...     budget.used
    90
    >>> budget.used
    0
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.refused = 0
        """Number of reservations that were refused."""
        self.held = 0
        """Number of requests with a reservation."""
        self.used = 0
        """Bytes that are reserved."""
        self.lock = threading.Lock()

    def reserve(self, size: int = 0) -> Reservation:
        """Reserve bytes until `release`, or as long as a `with` lasts. Raise `Refused` if the
        budget does not allow it.
        """
        reservation = Reservation(self)
        reservation.grow(size)
        with self.lock:
            self.held += 1
        return reservation

    def check(self, size: int = 1) -> None:
        """Raise `Refused` if the budget does not allow so many further bytes."""
        if self.used + size > self.capacity:
            self.refused += 1
            raise overload(
                "queue_full", f"the queue of {self.capacity} bytes is full; send this again later"
            )


class Reservation:
    """The bytes that one request has reserved."""

    __slots__ = ("_budget", "size")

    def __init__(self, budget: RequestBudget) -> None:
        self._budget = budget
        self.size = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def grow(self, size: int) -> None:
        """Reserve further bytes. Raise `Refused` if the budget does not allow it; what is reserved
        stays.
        """
        with self._budget.lock:
            self._budget.check(size)
            self._budget.used += size
        self.size += size

    def release(self) -> None:
        """Release all bytes: the request is answered."""
        with self._budget.lock:
            self._budget.used -= self.size
            self._budget.held -= 1
        self.size = 0


BODY_TIMEOUT: Final = 30.0
"""Seconds that a body, or a message of gRPC, may take to arrive."""
SMALL: Final = 16 * 1024
"""Bytes of a body without compression that is decoded at once; a larger or compressed one would
hold up other clients, and goes to a thread.
"""
JSON_WEIGHT: Final = 3
"""Further bytes that a byte of JSON takes while it is parsed."""


class Commits(Protocol[T_contra]):
    """A receiver of decoded requests, which answers when one is committed."""

    def commit(self, request: T_contra) -> Future[Ack]:
        """Have a request committed."""
        ...


class RequestIntake(Generic[T]):
    """Accepts requests, or raises the reason not to. `T` is a decoded request.

    `requests` counts them by (signal, transport, outcome): `accepted`, `partial`, or the reason of
    a refusal.
    """

    def __init__(
        self,
        decoder: Callable[[OtlpSignal, Encoding, bytes], T],
        writer: Commits[T],
        readiness: Readiness,
        budget: RequestBudget,
        *,
        limit: int,
        patience: float,
    ) -> None:
        self.budget = budget
        self.limit = limit
        self.patience = patience
        self.requests: Counter[tuple[str, str, str]] = Counter()
        self.refusal: Refusal | None = None
        """The last one."""
        self._decode = decoder
        self._writer = writer
        self._readiness = readiness
        self._lock = threading.Lock()

    def admit(self, size: int | None = None) -> None:
        """Raise `Refused` if a request, of `size` bytes where that is known, need not be read at
        all.
        """
        self._readiness.check()
        if size is not None and size > self.limit:
            raise self.too_large()
        self.budget.check()

    def slow(self) -> Refused:
        return Refused(
            Problem.TIMEOUT, "slow", f"the body did not arrive within {BODY_TIMEOUT:g} s"
        )

    def too_large(self) -> Refused:
        return Refused(
            Problem.TOO_LARGE, "too_large", f"the body is larger than {self.limit} bytes"
        )

    def limits(self) -> tuple[Limit, ...]:
        return (Limit("queue_bytes", self.budget.used, self.budget.capacity, self.budget.refused),)

    async def commit(
        self,
        threads: Executor,
        signal: OtlpSignal,
        encoding: Encoding,
        body: bytes,
        reservation: Reservation,
        *,
        compression: ContentCoding | None,
    ) -> Ack:
        """Decode a body, at once or on one of the threads, and wait for the writer: `patience`
        seconds from when it has the request. Raise `Refused`.

        An error holds this frame, so no variable may hold a future that holds the error: the body
        would stay with both.
        """
        submit = partial(self.submit, signal, encoding, body, reservation, compression=compression)
        loop = asyncio.get_running_loop()
        at_once = compression is None and len(body) <= SMALL
        committed = submit() if at_once else await loop.run_in_executor(threads, submit)
        try:
            async with asyncio.timeout(self.patience):
                return await asyncio.wrap_future(committed)
        except TimeoutError:
            raise self.late(committed) from None
        finally:
            del committed

    def submit(
        self,
        signal: OtlpSignal,
        encoding: Encoding,
        body: bytes,
        reservation: Reservation,
        *,
        compression: ContentCoding | None,
    ) -> Future[Ack]:
        """Decompress and decode a body whose bytes `reservation` has reserved, and hand it to the
        writer. Raise `Refused`.
        """
        if compression is not None:
            body = inflate(body, compression, self.limit, reservation.grow)
        if encoding is Encoding.JSON:
            reservation.grow(min(JSON_WEIGHT * len(body), self.budget.capacity - reservation.size))
        return self._writer.commit(self._decode(signal, encoding, body))

    def late(self, answer: Future[Ack]) -> Refused:
        """The writer did not answer in time: the request is taken back where it can be, and is to
        be sent again.
        """
        answer.cancel()
        return overload("commit_timeout", f"not committed within {self.patience:g} s")

    def count(
        self, signal: OtlpSignal | None, transport: str, outcome: str, peer: str | None = None
    ) -> None:
        """Count a request by its outcome; `peer` is the client of one that was refused."""
        if peer:
            self.refusal = Refusal(peer, transport, outcome)
        with self._lock:
            self.requests["" if signal is None else signal.value, transport, outcome] += 1
