"""Kinds and paths of rows by numbers, beside a plain list of them."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_reliability.metrics.examples import row
from otel_reliability.model.row import Path
from otel_reliability.windows.kind_column import BYTE, KindColumn
from otel_reliability.windows.kinds import Kind, kind_of
from otel_reliability.windows.paths import PathTable

KINDS = [kind_of(row("a", task=task)) for task in ("x", "y", None)]


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 5)), max_size=40), st.randoms(use_true_random=False))
def test_rows_keep_their_kinds_and_paths(steps: list[tuple[int, int]], dice: Random) -> None:
    """Wherever rows come and go, and however many took a path."""
    table, column, plain = PathTable(), KindColumn(), list[tuple[Kind, Path | None]]()
    for kind, steps_taken in steps:
        path = table.intern(("a",) * steps_taken) if steps_taken else None
        at = dice.randrange(len(plain) + 1)
        column.insert(at, KINDS[kind], path)
        plain.insert(at, (KINDS[kind], path))
        while plain and dice.random() < 0.4:
            first = dice.randrange(len(plain))
            last = first + dice.randrange(3)
            gone = plain[first:last]
            column.delete(first, last)
            del plain[first:last]
            for _, one in gone:
                if one is not None:
                    table.release(one)
        assert len(column) == len(plain)
        assert [(column.kind(at), column.path(at)) for at in range(len(plain))] == plain


@pytest.mark.parametrize("number", [BYTE - 1, BYTE, BYTE + 1, 3 * BYTE])
def test_as_many_paths_as_there_are_rows(number: int) -> None:
    """Beyond what a byte can number rows have their own, until none is left."""
    table, column = PathTable(), KindColumn()
    paths = [table.intern((str(at),)) for at in range(number)]
    for at, path in enumerate(paths):
        column.insert(at, KINDS[0], path)
    assert [column.path(at) for at in range(number)] == paths
    column.delete(0, number - 1)
    column.insert(1, KINDS[1], None)
    assert [(column.kind(at), column.path(at)) for at in range(2)] == [(KINDS[0], paths[-1]), (KINDS[1], None)]
    column.delete(0, 2)
    column.insert(0, KINDS[2], paths[0])
    assert (len(column), column.kind(0), column.path(0)) == (1, KINDS[2], paths[0])
