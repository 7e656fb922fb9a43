"""Rows as plain values, for whoever keeps windows over a restart.

Plain means nested tuples of None, booleans, numbers, texts and bytes. Nothing here depends on settings: what is read back goes
into whatever windows there are then.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from otel_reliability.model.row import Retries, Row
from otel_reliability.model.run import Outcome
from otel_reliability.windows.paths import PathTable

Plain = Any

_PATH: Final = Row._fields.index("path")
_RETRIES: Final = Row._fields.index("retries")
_OUTCOME: Final = Row._fields.index("outcome")
_EFFECTS: Final = Row._fields.index("effects")


class Standing(NamedTuple):
    """What a window remembers beside its rows: how many it let go of, the latest end of a settled run, how many it refused."""

    forgotten: int
    settled_ns: int | None
    refused: int


def write_row(row: Row) -> Plain:
    """A row as plain values."""
    plain: list[Any] = list(row)
    plain[_PATH] = None if row.path is None else row.path.names
    plain[_RETRIES] = None if row.retries is None else tuple(row.retries)
    plain[_OUTCOME] = row.outcome.value
    plain[_EFFECTS] = None if row.effects is None else tuple(sorted(row.effects, key=_order))
    return tuple(plain)


def read_row(plain: Plain, paths: PathTable) -> Row:
    """The row, its path held in `paths` until it is released there.

    >>> from otel_reliability.testing import run
    >>> from otel_reliability.windows.rows import row_of
    >>> paths = PathTable()
    >>> row = row_of(run(["search", "book"]), paths)
    >>> read_row(write_row(row), paths) == row
    True
    """
    values = list(plain)
    names, retries, effects = values[_PATH], values[_RETRIES], values[_EFFECTS]
    values[_PATH] = None if names is None else paths.intern(names)
    values[_RETRIES] = None if retries is None else Retries(*retries)
    values[_OUTCOME] = Outcome(values[_OUTCOME])
    values[_EFFECTS] = None if effects is None else frozenset(effects)
    return Row(*values)


def is_adaptable(fields: Sequence[str]) -> bool:
    """Whether rows that had these fields can be ours: what they lack has a default."""
    return set(Row._fields) <= {*fields, *Row._field_defaults}


def adapted(plain: Plain, fields: Sequence[str]) -> Plain:
    """The plain values of a row that had these fields, as one of ours: what is new has its default, what is gone goes.

    >>> from otel_reliability.testing import run
    >>> from otel_reliability.windows.rows import row_of
    >>> plain = write_row(row_of(run(["search"]), PathTable()))
    >>> before = ("gone", *Row._fields[:-1])
    >>> is_adaptable(before), adapted((1, *plain[:-1]), before) == plain
    (True, True)
    """
    known = {**Row._field_defaults, **dict(zip(fields, plain, strict=True))}
    return tuple([known[name] for name in Row._fields])


def _order(effect: tuple[str, bytes | None]) -> tuple[str, bytes]:
    return (effect[0], effect[1] or b"")
