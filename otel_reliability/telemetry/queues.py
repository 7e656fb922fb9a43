"""Queues that any thread may add to, in one call: compiled where `otel-reliability-native` is installed."""

from __future__ import annotations

from collections import deque
from typing import Any, Final

from otel_reliability.native import load

MODULE: Final = "otel_reliability_native_hooks"
NATIVE: Final = load(MODULE)


def queue(most: int | None = None) -> deque[Any]:
    """An empty queue; with `most` the oldest go when more are added.

    The compiled one does what is asked of it here as a `deque` does: append, extend, popleft, clear, its length.

    >>> found = queue(most=2)
    >>> found.extend((1, 2, 3))
    >>> found.popleft(), len(found)
    (2, 1)
    """
    if NATIVE is None:
        return deque(maxlen=most)
    found: deque[Any] = NATIVE.Queue(most)
    return found
