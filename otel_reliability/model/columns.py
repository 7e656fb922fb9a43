"""Records as columns: the values of one field side by side, instead of one object a record.

A run holds a dozen calls, and a service thousands of runs. As objects they would be made one by one, and looked at one by one
whenever garbage is looked for; tuples of plain values are cheaper to make, and are looked at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import repeat
from typing import Any, ClassVar, Final, Self, SupportsIndex, TypeVar, cast, overload

T = TypeVar("T")

_tuple: Final[Callable[..., Any]] = tuple.__new__  # pyright: ignore[reportUnknownMemberType,reportUnknownVariableType]


class Columns(Sequence[T]):
    """A sequence of named tuples of one kind, which are made when somebody asks for them. It is equal to a tuple of the same.

    `columns` has one item for each field: a tuple of its values, or the one value that all records have. A value is no tuple
    itself. A field named in `apart` has a tuple always. Nobody changes a column.

    Columns that are packed are made when somebody asks for one: until then `packed` holds them, and `front` what is mostly asked.
    """

    __slots__ = ("_columns", "front", "packed")

    fields: ClassVar[tuple[str, ...]]
    apart: ClassVar[frozenset[str]]
    make: ClassVar[Callable[[Iterable[Any]], Any]]

    def __init_subclass__(cls, record: Any, apart: Iterable[str]) -> None:
        """`record`: the named tuple. `apart`: the fields that are hardly ever the same."""
        cls.fields, cls.apart = record._fields, frozenset(apart)
        cls.make = partial(_tuple, record)

    def __init__(self, columns: Any, front: tuple[Any, ...] = (), packed: Any = None) -> None:
        """`columns` are made later where they are `packed`."""
        self._columns, self.front, self.packed = columns, front, packed

    @property
    def columns(self) -> tuple[Any, ...]:
        """One item for each field."""
        packed = self.packed
        if packed is not None:  # another thread may make them too: they are the same
            self._columns = self._unpacked(packed)
            self.packed = None
        return self._columns

    def _unpacked(self, packed: Any) -> tuple[Any, ...]:
        """The columns, of what is packed and in front."""
        raise NotImplementedError

    @classmethod
    def of(cls, records: Iterable[tuple[Any, ...]]) -> Self:
        """These records as columns; they are given back where they are that already."""
        if type(records) is cls:
            return records
        columns = tuple(zip(*records, strict=True)) or ((),) * len(cls.fields)
        return cls(
            tuple([at if name in cls.apart else shared(at) for name, at in zip(cls.fields, columns, strict=True)])
        )

    def column(self, name: str) -> tuple[Any, ...]:
        """The values of one field.

        >>> from otel_reliability.model.model_calls import ModelCalls
        >>> ModelCalls.of([("m", 5, 1, False, "a", 0, 3), ("m", 7, 1, False, "a", 4, 6)]).column("output_tokens")
        (1, 1)
        """
        column = self.columns[self.fields.index(name)]
        if type(column) is not tuple:
            return (column,) * len(self)
        return cast("tuple[Any, ...]", column)

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """The records as plain tuples."""
        told: list[Any] = [column if type(column) is tuple else repeat(column) for column in self.columns]
        return zip(*told, strict=False)

    def __iter__(self) -> Iterator[T]:
        return map(type(self).make, self.rows())

    @overload
    def __getitem__(self, at: SupportsIndex) -> T: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[T, ...]: ...
    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, slice):
            return tuple(self)[at]
        return type(self).make([column[at] if type(column) is tuple else column for column in self.columns])

    def __eq__(self, other: object) -> bool:
        if isinstance(other, type(self)):
            return self.columns == other.columns or tuple(self) == tuple(other)
        return tuple(self) == other if isinstance(other, tuple) else NotImplemented

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return f"{type(self).__name__}.of({list(self)!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        packed = self.packed
        return type(self), (self.columns,) if packed is None else (None, self.front, packed)


def shared(column: tuple[Any, ...]) -> Any:
    """The one value of a column, where all its values are the same; else the column.

    >>> shared((0, 0)), shared((0, 1)), shared(())
    (0, (0, 1), ())
    """
    return column[0] if column and column.count(column[0]) == len(column) else column
