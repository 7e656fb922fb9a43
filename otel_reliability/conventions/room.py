"""How much a reader may remember of the shapes of spans, all scopes together: a sender may invent shapes without end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

MOST: Final = 32 * 1024 * 1024
"""Bytes, roughly; with the next, all is forgotten, and what still comes is worked out anew."""


class Room:
    """Counts what is remembered, and calls `forget` when it is too much.

    >>> forgotten: list[str] = []
    >>> room = Room(lambda: forgotten.append("all"), most=10)
    >>> room.take(8), room.take(3), forgotten
    (None, None, ['all'])
    """

    def __init__(self, forget: Callable[[], None], most: int = MOST) -> None:
        self._forget, self._most, self._taken = forget, most, 0

    def take(self, size: int) -> None:
        """Something of this size is about to be remembered."""
        self._taken += size
        if self._taken > self._most:
            self._taken = size
            self._forget()
