"""Wait for something to become true, but not for ever."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

PATIENCE = 180.0
"""Seconds a real program gets: many times what it needs, because two cores may be shared with other
tests.
"""


class NeverHappened(AssertionError):
    """What was waited for did not come in time."""


def until(
    probe: Callable[[], T | None], what: str, *, patience: float = PATIENCE, pause: float = 0.05
) -> T:
    """Return the first answer of `probe` that counts as true.

    >>> answers = iter([None, "", "ready"])
    >>> until(lambda: next(answers), "an answer")
    'ready'
    >>> until(lambda: None, "the impossible", patience=0.0)
    Traceback (most recent call last):
    tests.real.waiting.NeverHappened: waited 0 s for the impossible
    """
    deadline = time.monotonic() + patience
    while True:
        answer = probe()
        if answer:
            return answer
        if time.monotonic() >= deadline:
            raise NeverHappened(f"waited {patience:.0f} s for {what}")
        time.sleep(pause)
