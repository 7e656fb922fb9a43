"""Rows in order, packed or not, beside a plain sorted list of them."""

from __future__ import annotations

from bisect import insort
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_reliability.metrics.examples import row
from otel_reliability.model.row import Retries, Row
from otel_reliability.windows.kinds import MOST, kind_of
from otel_reliability.windows.ordered import OrderedRows
from otel_reliability.windows.store import PackedRows
from tests.metrics.strategies import rows


@given(rows(), st.randoms(use_true_random=False))
def test_packed_rows_are_a_sorted_list(given_rows: list[Row], dice: Random) -> None:
    """Whatever comes in whatever order, and goes: the rows, their places, and where each run is found."""
    store, plain = PackedRows(), list[Row]()
    for one in dice.sample(given_rows, len(given_rows)):
        store.insert(one)
        plain = sorted([*plain, one])
        if len(plain) > 3:
            gone = dice.randrange(len(plain))
            store.delete(gone)
            del plain[gone]
        assert list(store) == plain
        assert [store.find(each.run_id) for each in plain] == list(range(len(plain)))
        assert [store.index(each) for each in plain] == list(range(len(plain)))
    assert store.find("nobody") is None


@given(rows(), st.randoms(use_true_random=False))
def test_rows_are_the_same_before_and_after_they_are_packed(given_rows: list[Row], dice: Random) -> None:
    """They settle in any order; at each step the rows are those of a plain list, and the settled ones are found by their runs."""
    ordered, plain, open_ids = OrderedRows(), list[Row](), set[str]()
    for one in dice.sample(given_rows, len(given_rows)):
        open_ids.add(one.run_id)
        assert ordered.insert(one) == sorted([*plain, one]).index(one)
        plain = sorted([*plain, one])
        while open_ids and dice.random() < 0.6:
            settled = next(each for each in dice.sample(plain, len(plain)) if each.run_id in open_ids)
            open_ids.discard(settled.run_id)
            at = ordered.index(settled)
            assert at is not None
            assert at == plain.index(settled)
            ordered.settled(at, settled, dice.choice((0, 0, 2)), open_ids)
        if len(plain) > 5:
            gone = dice.randrange(len(plain))
            open_ids.discard(plain[gone].run_id)
            ordered.delete(gone)
            del plain[gone]
        assert ordered.rows() == plain
        assert [(ordered.row(at), ordered.end_ns(at), ordered.run_id(at)) for at in range(len(plain))] == [
            (each, each.end_ns, each.run_id) for each in plain
        ]
        assert [ordered.find(each.run_id) for each in plain if each.run_id not in open_ids] == [
            each for each in plain if each.run_id not in open_ids
        ]
        ends = [each.end_ns for each in plain]
        assert [ordered.beyond(end) for end in ends] == [sum(other <= end for other in ends) for end in ends]


def test_runs_are_found_among_many() -> None:
    """However many there were and are: those that are there, and none that is not."""
    store, plain, dice = PackedRows(), list[Row](), Random(7)
    usual = row("a")
    for wanted in (1_500, 3, 700, 400, 2_500, 0, 600):
        while len(plain) > wanted:
            gone = dice.randrange(len(plain))
            store.delete(gone)
            del plain[gone]
        while len(plain) < wanted:
            one = usual._replace(
                end_ns=dice.randrange(10**6), run_id=f"{dice.randbytes(16).hex()}-{dice.randbytes(8).hex()}"
            )
            store.insert(one)
            insort(plain, one)
        assert [store.find(each.run_id) for each in plain] == list(range(len(plain)))
        assert store.find("nobody") is None


@pytest.mark.parametrize(
    "fields",
    [
        {"latency_ns": -1}, {"latency_ns": -2}, {"latency_ns": 0}, {"latency_ns": 2**48 - 2}, {"latency_ns": 2**48 - 1},
        {"tokens": 2**31}, {"tokens": -(2**31)}, {"tokens": 0}, {"start_ns": 2, "end_ns": 1}, {"pressure": 0.0},
        {"start_ns": 0, "end_ns": 2**48 - 1}, {"start_ns": 0, "end_ns": 2**48}, {"start_ns": -1, "end_ns": 0},
    ],
)  # fmt: skip
def test_all_numbers_come_back(fields: dict[str, Any]) -> None:
    """Whether they fit into what is usual or not, none, nothing and little stay what they are."""
    store, one = PackedRows(), row("a", **fields)
    store.insert(one)
    assert list(store) == [one]


def test_numbers_beyond_64_bits_are_kept() -> None:
    """A recording may hold any: such a row is the same, and stands where its end belongs."""
    store, far = PackedRows(), row("a", end_ns=10**30, tokens=10**40)
    for one in (far, row("b", end_ns=1), row("c", end_ns=10**31)):
        store.insert(one)
    assert [each.end_ns for each in store] == [1, 10**30, 10**31]
    assert store.row(1) == far
    assert store.find(far.run_id) == 1


def test_rows_of_one_kind_share_it() -> None:
    """What rows have in common is one object; what retries cost is each row's own; the memory of kinds has an end."""
    one, other = row("a", start_ns=1, pressure=0.5), row("a b", tool_calls=1, confidence=0.5)
    assert kind_of(one) is kind_of(other)
    costly = Retries(1, 1, "a", 10, 10, 0)
    assert kind_of(row("a")._replace(retries=costly)) is not kind_of(row("a")._replace(retries=costly))
    for number in range(MOST):
        kind_of(row("a", task=str(number)))
    assert kind_of(one) is not kind_of(row("a", start_ns=1, task="other"))
