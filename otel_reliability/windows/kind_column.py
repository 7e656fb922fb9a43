"""Of what kind each of many rows is, and which path it took: in a byte a row, where they do few things."""

from __future__ import annotations

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
        self._numbers: bytearray | None = bytearray()
        """None: there were more pairs than a byte can number, and each row has its own place in both lists."""
        self._kinds: list[Kind | None] = []
        """None: under that number nothing is listed any more."""
        self._paths: list[Path | None] = []
        self._free = 0
        """Under how many numbers nothing is listed."""

    def __len__(self) -> int:
        return len(self._kinds if self._numbers is None else self._numbers)

    def kind(self, at: int) -> Kind:
        """The kind of the row at this place."""
        return cast("Kind", self._kinds[at if self._numbers is None else self._numbers[at]])

    def path(self, at: int) -> Path | None:
        """The path of the row at this place."""
        return self._paths[at if self._numbers is None else self._numbers[at]]

    def insert(self, at: int, kind: Kind, path: Path | None) -> None:
        """A row comes to this place."""
        number = self._number(kind, path)
        if self._numbers is not None:
            self._numbers.insert(at, number)
        else:
            self._kinds.insert(at, kind)
            self._paths.insert(at, path)

    def delete(self, first: int, last: int) -> None:
        """The rows from one place to another go."""
        numbers = self._numbers
        if numbers is None:
            del self._kinds[first:last], self._paths[first:last]
            if not self._kinds:
                self._numbers = bytearray()
            return
        gone = numbers[first:last]
        del numbers[first:last]
        for number in gone:
            if number not in numbers:
                self._free += self._kinds[number] is not None
                self._kinds[number] = self._paths[number] = None

    def _number(self, kind: Kind, path: Path | None) -> int:
        """The number of such a pair, listed if it was not. Of no meaning where pairs have none any more."""
        if self._numbers is None:
            return 0
        number = self._listed(kind, path)
        if number is not None:
            return number
        if self._free:
            self._free -= 1
            number = self._kinds.index(None)
            self._kinds[number], self._paths[number] = kind, path
        elif len(self._kinds) < BYTE:
            number = len(self._kinds)
            self._kinds.append(kind)
            self._paths.append(path)
        else:
            self._spread(self._numbers)
            number = 0
        return number

    def _spread(self, numbers: bytearray) -> None:
        self._kinds, self._paths = [self._kinds[one] for one in numbers], [self._paths[one] for one in numbers]
        self._numbers = None

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
