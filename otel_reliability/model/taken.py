"""Items that one thread leaves for others."""

from __future__ import annotations

from collections import deque
from typing import TypeVar

T = TypeVar("T")


def taken(items: deque[T]) -> list[T]:
    """Remove and return all items of a deque that other threads use too: each goes to one of them.

    >>> left = deque([1, 2])
    >>> taken(left), taken(left)
    ([1, 2], [])
    """
    found: list[T] = []
    while items:
        try:
            found.append(items.popleft())
        except IndexError:
            break
    return found
