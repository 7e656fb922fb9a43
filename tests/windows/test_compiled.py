"""What the compiled module makes of runs and rows is what Python makes of them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from otel_reliability.windows.tally import PlainTally

from otel_reliability.model.model_calls import ModelCall, ModelCalls
from otel_reliability.model.row import Row
from otel_reliability.model.run import Outcome, Run
from otel_reliability.model.span import Evaluation
from otel_reliability.model.tool_calls import ToolCall, ToolCalls
from otel_reliability.model.tools import DEFAULT_RULES
from otel_reliability.windows import rows
from otel_reliability.windows.compiled import NATIVE, Tally, new_tally, row_of, usual_row_of
from otel_reliability.windows.paths import PathTable
from tests.metrics.strategies import rows as many_rows
from tests.windows.runs import call, model_call, run

pytestmark = pytest.mark.skipif(NATIVE is None, reason="the compiled module (native/) is not installed")

TIMES = st.one_of(st.integers(0, 50), st.sampled_from([-1, 2**52, 2**62, 2**63, 2**64]))
TOOL_CALLS = st.lists(
    st.builds(
        ToolCall,
        st.sampled_from(["a", "b", "get_a", "\u0141"]), st.booleans(), st.booleans(), st.booleans(), st.integers(0, 3),
        st.just("support"), TIMES, TIMES, st.none(), st.none(), st.sampled_from([None, b"e"]),
    ),
    max_size=4,
)  # fmt: skip
TOKENS = st.sampled_from([None, 0, 7])
MODEL_CALLS = st.lists(
    st.builds(ModelCall, st.just("m"), TOKENS, TOKENS, st.booleans(), st.just("support"), TIMES, TIMES), max_size=4
)


@st.composite
def runs(draw: st.DrawFn) -> Run:
    """A run of any kind: usual ones, and those of which something is not."""
    tools, models = draw(st.none() | TOOL_CALLS), draw(MODEL_CALLS)
    return run(
        draw(st.sampled_from(["one", "other"])),
        draw(st.integers(0, 9)),
        draw(st.sampled_from(["", "a", "a b a", "\u0141 \U00010000 a", None])),
        tool_calls=None if tools is None else draw(st.sampled_from([ToolCalls.of, tuple]))(tools),
        model_calls=draw(st.sampled_from([ModelCalls.of, tuple]))(models),
        task_id=draw(st.sampled_from([None, "t"])),
        incomplete=draw(st.booleans()),
        input_tokens=draw(TOKENS),
        output_tokens=draw(TOKENS),
        outcome=draw(st.sampled_from(Outcome)),
        outcome_source=draw(st.sampled_from(["root", "status"])),
        violations=draw(st.sampled_from([None, (), (("pii", "low"),)])),
        evaluations=draw(st.sampled_from([(), (Evaluation("constraint.pii", 0.5, "high", 0),)])),
        weight=draw(st.integers(1, 2)),
        arguments_known=draw(st.booleans()),
        confidence=draw(st.sampled_from([None, 0.5])),
        token_pressure=draw(st.sampled_from([None, 0.5])),
        branches=draw(st.sampled_from([(), (("way", "left"),)])),
    )


def told(row: Row) -> tuple[Any, ...]:
    """All that a row says, with what its values are."""
    path = None if row.path is None else (row.path.code, row.path.names)
    return tuple([(type(value), value) for value in row._replace(path=None)]), path


@given(st.lists(runs(), max_size=6), st.integers(1, 4))
def test_the_same_rows(many: list[Run], limit: int) -> None:
    """Of runs of any kind, whatever names share a character; and each holds its path once."""
    ours, theirs = PathTable(limit), PathTable(limit)
    found = [row_of(one, ours, DEFAULT_RULES) for one in many]
    expected = [rows.row_of(one, theirs, DEFAULT_RULES) for one in many]
    assert list(map(told, found)) == list(map(told, expected))
    held = [{path.names: path.held for path in table.paths.values()} for table in (ours, theirs)]
    assert held[0] == held[1]
    for row in found:
        if row.path is not None:
            ours.release(row.path)
    assert not len(ours)


def test_the_usual_run_is_made_here() -> None:
    """Else nothing would be compared."""
    table = PathTable()
    calls, models = ToolCalls.of([call("a"), call("b")]), ModelCalls.of([model_call(start=0, end=9)])
    one = run("one", 9, "a b", tool_calls=calls, model_calls=models, evaluations=())
    assert usual_row_of(one, table, DEFAULT_RULES) is not None
    assert usual_row_of(one._replace(model_calls=(model_call(),)), table, DEFAULT_RULES) is None
    assert usual_row_of(tuple(one), table, DEFAULT_RULES) is None  # pyright: ignore[reportArgumentType]  # test
    assert [path.held for path in table.paths.values()] == [1]


def test_columns_that_are_none_are_left_to_python() -> None:
    """Whatever lies there, nothing is read beyond it."""
    calls, models = ToolCalls.of([call("a")]), ModelCalls.of([model_call()])
    one = run("one", 9, "a", tool_calls=calls, model_calls=models, evaluations=())
    for odd in (
        (),
        None,
        (1,) * 3,
        (("m",), None, None, False, "s", (0.5,), (1,)),
        (("m",), None, None, False, "s", bytes(8), bytes(8)),
        (("m",), None, None, False, "s", (1,), ()),
    ):
        spoilt = one._replace(model_calls=ModelCalls(odd))
        assert usual_row_of(spoilt, PathTable(), DEFAULT_RULES) is None
    for odd in ((), None, (("a",),), ("a", *calls.columns[1:]), (("a", "b"), (True,), *calls.columns[2:])):
        spoilt = one._replace(tool_calls=ToolCalls(odd))
        assert usual_row_of(spoilt, PathTable(), DEFAULT_RULES) is None


@given(many_rows(most=24), st.lists(st.tuples(st.integers(0, 30), st.booleans()), max_size=60))
def test_the_same_tally(some: list[Row], steps: list[tuple[int, bool]]) -> None:
    """Whoever comes and leaves, in any order, and whatever is taken in between."""
    ours, oracle = new_tally(), PlainTally()
    for at, leaves in steps:
        if at < len(some):
            step = -1 if leaves else 1
            assert ours.note(some[at], step) == oracle.note(some[at], step)
        else:
            rest = {kind: dict(paths) for kind, paths in oracle.kinds.items()} if leaves else None
            other = None if rest is None else {kind: dict(paths) for kind, paths in rest.items()}
            assert ours.take(rest) == oracle.take(other)
        assert ours.kinds == oracle.kinds
        for name in ("number", "runs", "known", "passed"):
            assert getattr(ours, name) == getattr(oracle, name), name


def test_what_is_no_row_is_refused() -> None:
    """A tuple of as many values is none."""
    tally, (row,) = new_tally(), [rows.row_of(run("one"), PathTable())]
    with pytest.raises(TypeError):
        tally.note(tuple(row), 1)  # pyright: ignore[reportArgumentType]  # test
    assert (tally.number, tally.runs) == (0, 0)


def test_rows_and_runs_of_other_fields_are_refused() -> None:
    """A module that was built for others takes nothing for what it is not."""
    assert NATIVE is not None
    with pytest.raises(ValueError, match="other fields"):
        NATIVE.Words(ToolCall, "baseline", Outcome.SUCCESS, Outcome.FAILURE)
    with pytest.raises(ValueError, match="from 0 on"):
        NATIVE.Rows(Run, Row, (ToolCalls, (0, 1, 2, -99)), (ModelCalls, (5, 6)), None, "status", None, None)


def test_nothing_is_there_half_made() -> None:
    """An object that was never told what it works with would read what is not there."""
    assert NATIVE is not None
    for kind in (NATIVE.Rows, NATIVE.Words, NATIVE.Tally):
        with pytest.raises(TypeError):
            kind.__new__(kind)


class Odd(str):
    """A text that lets somebody in whenever it is compared."""

    __slots__ = ("told",)
    told: Callable[[], object]

    def __eq__(self, other: object) -> bool:
        self.told()
        return str(self) == other

    __hash__ = str.__hash__


def odd(text: str, told: Callable[[], object]) -> Odd:
    """Such a text, and who is let in."""
    made = Odd(text)
    made.told = told
    return made


@pytest.mark.parametrize("new", [new_tally, PlainTally])
def test_what_cannot_be_counted_is_not_counted(new: Callable[[], Tally]) -> None:
    """An error in the middle leaves no count without the other."""
    (row,) = [rows.row_of(run("one", task_id="t"), PathTable())]
    tally = new()
    for spoilt in (row._replace(task=[]), row._replace(task=None, branches=Broken())):
        with pytest.raises((TypeError, ZeroDivisionError)):
            tally.note(spoilt, 1)
    assert (tally.number, tally.runs, tally.known, tally.passed, tally.kinds) == (0, 0, 0, 0, {})


def test_what_was_counted_stays_where_it_cannot_be_taken() -> None:
    """What is no count of paths takes the place of none."""
    (row,) = [rows.row_of(run("one"), PathTable())]
    tally = new_tally()
    tally.note(row, 1)
    before = tally.kinds
    with pytest.raises(TypeError):
        tally.take({("kind",): [1, 2]})  # pyright: ignore[reportArgumentType]  # test
    assert tally.kinds is before
    tally.note(row, -1)
    assert (tally.number, tally.runs, tally.kinds) == (0, 0, {})


class Broken(tuple[Any, ...]):
    """A tuple of which nobody can say whether it is empty."""

    __slots__ = ()

    def __bool__(self) -> bool:
        return bool(1 // 0)


def test_whoever_comes_in_between_is_harmless() -> None:
    """A comparison that takes the tally away, or changes it, while it is looked at."""
    (row,) = [rows.row_of(run("one", task_id="t"), PathTable())]
    tally = new_tally()

    def took() -> None:
        tally.take()
        for at in range(20):
            tally.note(row._replace(task=f"{at}"), 1)
        tally.take()

    for _ in range(50):
        tally.note(row, 1)
        tally.note(row._replace(task=odd("t", took)), 1)
        tally.note(row._replace(condition=odd("other", took)), 1)
        tally.note(row, 1)
    assert tally.number == len([path for paths in tally.kinds.values() for path in paths])


def test_a_path_is_held_only_for_a_row() -> None:
    """Whichever allocation fails: as many hold a path as rows were made."""
    capi: Any = pytest.importorskip("_testcapi")
    if not hasattr(capi, "set_nomemory"):
        pytest.skip("this Python cannot run out of memory at will")
    table, found, failed = PathTable(), list[Row | None](), 0
    calls, models = ToolCalls.of([call("a"), call("b")]), ModelCalls.of([model_call(start=0, end=9**9)])
    one = run(
        "one", 9, "a b", tool_calls=calls, model_calls=models, evaluations=(), input_tokens=7_000, output_tokens=9
    )
    found += [usual_row_of(one, table, DEFAULT_RULES) for _ in range(300)]
    restored = capi.remove_mem_hooks
    for at in range(1, 40):
        row = None
        try:  # one allocation fails; it may be of whoever watches the lines of a test
            try:
                capi.set_nomemory(at, at + 1)
                row = usual_row_of(one, table, DEFAULT_RULES)
            except MemoryError:
                failed += 1
            restored()
        except MemoryError:
            restored()
        if row is not None:
            found.append(row)
    assert failed
    assert None not in found
    assert sum(path.held for path in table.paths.values()) == len(found)


def test_nothing_leaks() -> None:
    """Thousands of rows made and counted hold on to nothing once they are gone."""
    calls, models = ToolCalls.of([call("a")]), ModelCalls.of([model_call(start=0, end=9**9)])
    one = run("one", 9, "a", tool_calls=calls, model_calls=models, evaluations=(), task_id="task")
    table, tally = PathTable(), new_tally()
    first = usual_row_of(one, table, DEFAULT_RULES)
    assert first is not None
    watched = (Row, one, calls, models, one.task_id, one.path, first.path, first.retries, first.effects, ())
    before = [sys.getrefcount(value) for value in watched]
    for _ in range(2_000):
        for step in (1, -1):
            row = usual_row_of(one, table, DEFAULT_RULES)
            assert row is not None
            tally.note(row, step)
            tally.note(row._replace(weight=2), step)
    assert all(sys.getrefcount(value) - was < 100 for value, was in zip(watched, before, strict=True))
