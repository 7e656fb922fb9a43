"""Room for requests, in bytes: what has arrived and is not committed yet may not grow beyond a bound.

Room is taken before anything is parsed, as the bytes arrive and again as they unpack, and given back when the request is
answered. Where there is none left the client is told to come again: it still has the request.
"""

from __future__ import annotations

import threading
from collections.abc import Generator
from contextlib import contextmanager

from otel_reliability.service.refusal import Refused, overload


class Room:
    """So many bytes, shared by all doors.

    >>> room = Room(100)
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

    def __init__(self, room: Room) -> None:
        self._room, self.size = room, 0

    def grow(self, size: int) -> None:
        """The request turned out larger. Raises `Refused` where there is not enough room; what it has it keeps."""
        self._room.take(size)
        self.size += size

    def release(self) -> None:
        """The request is answered."""
        self._room.give(self.size, places=1)
        self.size = 0
