"""Rows as plain values, for whoever keeps windows over a restart.

Plain means nested tuples of None, booleans, numbers, texts and bytes. Nothing here depends on settings: what is read back goes
into whatever windows there are then.
"""

from __future__ import annotations

import marshal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from otel_reliability.model.record import BadRecord, read_run, write_run
from otel_reliability.model.row import Retries, Row
from otel_reliability.model.run import Outcome
from otel_reliability.windows.paths import PathTable

if TYPE_CHECKING:
    from otel_reliability.windows.agent import AgentState

Plain = Any

_PATH: Final = Row._fields.index("path")
_RETRIES: Final = Row._fields.index("retries")
_OUTCOME: Final = Row._fields.index("outcome")
_EFFECTS: Final = Row._fields.index("effects")


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


# --- Agents over a restart, until the state keeps run records ---------------------------------------------------------


def write_agent(state: AgentState) -> dict[str, Any]:
    """Return everything of an agent in plain values."""
    return {
        "rows": [(write_row(row), state.is_reopenable(row.run_id)) for row in state.rows()],
        "windows": {},
        "recent": [(run.end_ns, run.run_id, marshal.dumps(write_run(run), 4)) for run in state.recent],
    }


def read_agent(state: AgentState, plain: Mapping[str, Any]) -> None:
    """Restore what `write_agent` returned."""
    rows = [(read_row(one[0], state._paths), one[1]) for one in plain["rows"]]  # noqa: SLF001
    for row, _ in rows:
        state.enter(row)
    for row, reopenable in rows:
        if not reopenable:
            state.settle(row)
    for _, _, body in plain["recent"]:
        with suppress(BadRecord):
            state.recent.add(read_run(marshal.loads(body)))  # noqa: S302 (we wrote it)
