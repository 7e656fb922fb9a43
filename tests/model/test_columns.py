"""Calls as columns are what tuples of calls are."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_reliability.model.columns import Columns
from otel_reliability.model.model_calls import ModelCall, ModelCalls
from otel_reliability.model.tool_calls import ToolCall, ToolCalls
from otel_reliability.testing import call, run

HASHES = st.none() | st.sampled_from((b"one", b"two"))
TIMES = st.integers(0, 3)
TOKENS = st.none() | st.integers(0, 2)
NAMES = st.sampled_from(("search", "pay"))

tool_calls = st.lists(
    st.builds(
        ToolCall, NAMES, st.booleans(), st.booleans(), st.booleans(), st.integers(0, 2), NAMES, TIMES, TIMES, HASHES,
        HASHES, HASHES,
    ),
    max_size=4,
).map(tuple)  # fmt: skip
model_calls = st.lists(
    st.builds(ModelCall, st.none() | NAMES, TOKENS, TOKENS, st.booleans(), NAMES, TIMES, TIMES), max_size=4
).map(tuple)


def columns_of(calls: Sequence[Any], kind: type[Columns[Any]]) -> Columns[Any]:
    """These calls as columns of that kind."""
    return kind.of(calls)


pairs = st.one_of(
    tool_calls.map(lambda calls: (calls, columns_of(calls, ToolCalls))),
    model_calls.map(lambda calls: (calls, columns_of(calls, ModelCalls))),
)


@given(pairs)
def test_columns_are_a_sequence_of_the_same_records(pair: tuple[tuple[Any, ...], Columns[Any]]) -> None:
    """By length, by place, by slice, forwards and backwards."""
    plain, columns = pair

    assert len(columns) == len(plain)
    assert list(columns) == list(plain)
    assert [type(one) for one in columns] == [type(one) for one in plain]
    assert list(reversed(columns)) == list(reversed(plain))
    assert list(columns.rows()) == [tuple(one) for one in plain]
    for at in range(-len(plain), len(plain)):
        assert columns[at] == plain[at]
        assert columns[at:] == plain[at:]
    with pytest.raises(IndexError):
        columns[len(plain)]
    for at, name in enumerate(columns.fields):
        assert columns.column(name) == tuple(one[at] for one in plain)


@given(pairs, pairs)
def test_they_are_equal_where_tuples_are(
    one: tuple[tuple[Any, ...], Columns[Any]], other: tuple[tuple[Any, ...], Columns[Any]]
) -> None:
    """To each other and to plain tuples, on both sides, and hash alike."""
    (plain, columns), (plain_too, columns_too) = one, other
    equal = plain == plain_too

    assert (columns == plain_too) is equal
    assert (plain == columns_too) is equal
    assert columns == plain
    assert plain == columns
    assert hash(columns) == hash(plain)
    assert columns != list(plain)
    if type(columns) is type(columns_too):
        assert (columns == columns_too) is equal
        assert (hash(columns) == hash(columns_too)) is (hash(plain) == hash(plain_too))


@given(pairs)
def test_they_are_copied(pair: tuple[tuple[Any, ...], Columns[Any]]) -> None:
    """By pickling, by copying, and by what they say of themselves."""
    plain, columns = pair
    kind = type(columns)

    for copied in (
        pickle.loads(pickle.dumps(columns)),
        copy.copy(columns),
        copy.deepcopy(columns),
        eval(repr(columns)),
    ):
        assert type(copied) is kind
        assert copied == plain
        assert copied.columns == columns.columns
    assert kind.of(columns) is columns
    assert kind.of(list(columns)).columns == columns.columns


@given(pairs)
def test_a_column_of_one_value_is_that_value(pair: tuple[tuple[Any, ...], Columns[Any]]) -> None:
    """But for names and times, which are always told one by one."""
    _, columns = pair
    for name, column in zip(columns.fields, columns.columns, strict=True):
        if name in columns.apart or not len(columns):
            assert type(column) is tuple
        else:
            assert (type(column) is tuple) is (len(set(columns.column(name))) > 1)


@given(tool_calls)
def test_facts_of_tool_calls(plain: tuple[ToolCall, ...]) -> None:
    """Are those of the calls, and a run tells them of whatever sequence it holds."""
    calls = ToolCalls.of(plain)

    assert calls.names == tuple(one.name for one in plain)
    assert calls.failed == sum(not one.ok for one in plain)
    assert calls.retries == sum(one.retry for one in plain)
    assert calls.repeats == sum(one.repeat for one in plain)
    assert calls.longest_chain == max((one.chain for one in plain), default=0)
    held = run(["search"], tool_calls=calls)
    assert held == run(["search"], tool_calls=plain)
    assert hash(held) == hash(run(["search"], tool_calls=plain))
    assert held.retries == run(["search"], tool_calls=plain).retries == calls.retries
    assert held.longest_retry_chain == run(["search"], tool_calls=plain).longest_retry_chain == calls.longest_chain


@given(model_calls)
def test_facts_of_model_calls(plain: tuple[ModelCall, ...]) -> None:
    """Are those of the calls."""
    calls = ModelCalls.of(plain)

    assert calls.input_tokens == tuple(one.input_tokens for one in plain)
    assert calls.output_tokens == tuple(one.output_tokens for one in plain)
    assert calls.ends == tuple(one.end_ns for one in plain)
    assert calls.duration_ns == sum(one.end_ns - one.start_ns for one in plain)


def test_other_kinds_are_not_equal() -> None:
    """No calls are no calls of either kind; else a tool call is no model call."""
    assert ToolCalls.of(()) == ()
    assert ModelCalls.of([ModelCall("m", 1, 1, False, "a", 0, 1)]) != ToolCalls.of([call("m")])
