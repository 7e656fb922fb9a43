"""The keys of what has changed and is to be stored."""

from __future__ import annotations

from collections.abc import Collection, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class ChangedKeys(Generic[K]):
    """Keys that changed since they were last taken, each once, the one that changed last at the
    end.

    None is kept until they are taken for the first time: where no state is stored they are never
    taken, and would only grow.

    >>> changed = ChangedKeys[str]()
    >>> changed.add("early")
    >>> changed.take()
    []
    >>> changed.add("a"), changed.add("b"), changed.add("a"), changed.take()
    (None, None, None, ['b', 'a'])
    """

    __slots__ = ("_keys",)

    def __init__(self) -> None:
        self._keys: dict[K, None] | None = None

    def add(self, key: K) -> None:
        """Note that the state of a key has changed, or is gone."""
        keys = self._keys
        if keys is not None:
            keys.pop(key, None)
            keys[key] = None

    def take(self) -> Collection[K]:
        """Return the keys and forget them."""
        found = list(self._keys or ())
        self._keys = {}
        return found

    def clear(self) -> None:
        """Drop the keys: what they stand for is stored as it is."""
        if self._keys is not None:
            self._keys.clear()
