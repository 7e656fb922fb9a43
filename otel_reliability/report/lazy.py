"""A sequence whose items are built when they are read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar, overload

T = TypeVar("T")


class Lazy(Sequence[T], Generic[T]):
    """Items made from other items, each when it is read: sessions may be tens of thousands, and what explains them is large.

    >>> squares = Lazy([1, 2, 3], lambda number: number * number)
    >>> list(squares), squares[-1], list(squares[:2])
    ([1, 4, 9], 9, [1, 4])
    """

    def __init__(self, items: Sequence[Any], build: Callable[[Any], T]) -> None:
        self._items, self._build = items, build

    def __len__(self) -> int:
        return len(self._items)

    @overload
    def __getitem__(self, at: int) -> T: ...
    @overload
    def __getitem__(self, at: slice) -> Lazy[T]: ...
    def __getitem__(self, at: int | slice) -> T | Lazy[T]:
        return Lazy(self._items[at], self._build) if isinstance(at, slice) else self._build(self._items[at])
