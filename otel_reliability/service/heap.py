"""Memory that the process no longer needs: when it is free again.

Spans and runs make no reference cycles, and the work of Python's collector grows with the objects
that are new, so it is to run seldom. But the libraries of both servers leave a cycle behind with
each connection or call, and what the client sent stays with it. So what they leave is counted, in
bytes.
"""

from __future__ import annotations

import ctypes
import gc
import sys
from typing import Final

_SELDOM: Final = (1_000_000, 10, 20)
"""Thresholds of the collector. At 200,000 new objects in place of the first, collections were a
tenth of the service's work. One stops every thread: for a quarter of a second at a million.
"""
MAX_GARBAGE: Final = 8 * 1024 * 1024
"""Bytes that are left before they are freed."""
_M_ARENA_MAX: Final = -8


class Garbage:
    """Counts what the connections or calls of a server have left, and has it collected in time."""

    def __init__(self) -> None:
        self._bytes = 0

    def left(self, size: int) -> None:
        """Note that so many bytes wait for the collector."""
        self._bytes += size
        if self._bytes >= MAX_GARBAGE:
            self._bytes = 0
            collect()


def collect_seldom() -> None:
    """Make collections of reference cycles rare: spans make none, and each collection costs."""
    gc.set_threshold(*_SELDOM)


def collect() -> None:
    """Collect what is due. The collector decides whether that is more than what is new, as it does
    by itself: `gc.collect` takes a generation, and to examine all objects can take seconds.
    """
    thresholds = gc.get_threshold()
    gc.set_threshold(1, *thresholds[1:])
    new: list[set[None]] = []
    for _ in range(3):  # a few objects of a type that the interpreter does not reuse
        new.append(set())  # noqa: PERF401 (each turn lets the collector begin)
    gc.set_threshold(*thresholds)


def use_one_arena() -> None:
    """Let all threads allocate from one heap. With one for each, as glibc has it, what one thread
    frees is of no use to another. Other systems' allocators stay as they are.
    """
    if sys.platform != "linux":
        return
    set_option = getattr(ctypes.CDLL(None), "mallopt", None)
    if set_option is not None:
        set_option(_M_ARENA_MAX, 1)
