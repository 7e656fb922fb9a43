"""Of what kind each of many rows is, and which path it took, in a byte a row."""

from __future__ import annotations

from array import array
from typing import Final, cast

from otel_reliability.model.row import Path
from otel_reliability.windows.kinds import Kind

BYTE: Final = 256


class KindColumn:
    """Kinds and paths of rows, by the number under which the pair of them is listed here: most agents do few things.

    >>> from otel_reliability.metrics.examples import rows_of
    >>> from otel_reliability.windows.kinds import kind_of
    >>> column, rows = KindColumn(), rows_of("search", "reply", "search")
    >>> for at, row in enumerate(rows):
    ...     column.insert(at, kind_of(row), row.path)
    >>> column.delete(1, 2)
    >>> [column.path(at) is row.path for at, row in enumerate(rows[::2])]
    [True, True]
    """

    __slots__ = ("_free", "_kinds", "_numbers", "_paths")

    def __init__(self) -> None:
        self._numbers: bytearray | array[int] = bytearray()
        self._kinds: list[Kind | None] = []
        """None: under that number nothing is listed any more."""
        self._paths: list[Path | None] = []
        self._free = 0
        """Under how many numbers nothing is listed."""

    def __len__(self) -> int:
        return len(self._numbers)

    def kind(self, at: int) -> Kind:
        """The kind of the row at this place."""
        return cast("Kind", self._kinds[self._numbers[at]])

    def path(self, at: int) -> Path | None:
        """The path of the row at this place."""
        return self._paths[self._numbers[at]]

    def insert(self, at: int, kind: Kind, path: Path | None) -> None:
        """A row comes to this place."""
        number = self._listed(kind, path)
        if number is None:
            number = self._list(kind, path)
        self._numbers.insert(at, number)

    def delete(self, first: int, last: int) -> None:
        """The rows from one place to another go."""
        numbers = self._numbers
        gone = numbers[first:last]
        del numbers[first:last]
        for number in gone:
            if number not in numbers:
                self._free += self._kinds[number] is not None
                self._kinds[number] = self._paths[number] = None

    def _listed(self, kind: Kind, path: Path | None) -> int | None:
        """The number of such a pair. (A path that one row has is not listed: looking for it would cost more than all else.)"""
        if path is not None and path.held == 1:
            return None
        paths, number = self._paths, -1
        try:
            while True:
                number = paths.index(path, number + 1)
                if self._kinds[number] is kind:
                    return number
        except ValueError:
            return None

    def _list(self, kind: Kind, path: Path | None) -> int:
        kinds = self._kinds
        if self._free:
            self._free -= 1
            number = kinds.index(None)
            kinds[number], self._paths[number] = kind, path
            return number
        kinds.append(kind)
        self._paths.append(path)
        if len(kinds) > BYTE and isinstance(self._numbers, bytearray):
            self._numbers = array("I", list(self._numbers))
        return len(kinds) - 1
