from __future__ import annotations

from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from otel_reliability.model.row import Row
from otel_reliability.testing import row
from otel_reliability.windows.rows import PathTable, RowStore, order_of, row_of
from tests.windows.runs import runs

IDS = st.one_of(
    st.integers(0, 2**192 - 1).map(
        lambda number: f"{number >> 64:032x}-{number & (2**64 - 1):016x}"
    ),
    st.text(st.characters(codec=None), max_size=50).filter(lambda text: "\0" not in text),
    st.just("0AF7" * 8 + "-" + "b7ad" * 4),
)
OWN: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {
        "run_id": IDS,
        "end_ns": st.integers(-(2**70), 2**70) | st.integers(0, 3),
        "start_ns": st.integers(-(2**70), 2**70),
        "tokens": st.none() | st.integers(0, 2**80),
        "latency_ns": st.none() | st.integers(0, 2**60),
        "pressure": st.none() | st.floats(0, 1),
        "session_id": st.none() | st.text(),
        "signals": st.just(()) | st.just((("confidence", 0.5),)),
    }
)


@st.composite
def rows(draw: st.DrawFn) -> Row:
    return replace(row_of(draw(runs("run")), PathTable()), **draw(OWN))


ENDED_TOGETHER = [replace(row(), run_id=run_id) for run_id in ("", "x", "xx")]
"""Each id is the beginning of the next one."""


@example(ENDED_TOGETHER)
@given(st.lists(rows(), max_size=12, unique_by=lambda one: one.run_id))
def test_rows_come_back_as_they_were(made: list[Row]) -> None:
    store = RowStore()
    for one in made:
        assert store.row(store.insert(one, order_of(one.end_ns, one.run_id))) == one
    kept = store.rows()
    ends = {(one.end_ns, one.run_id) for one in made}
    assert sorted(kept, key=lambda one: one.run_id) == sorted(made, key=lambda one: one.run_id)
    assert [one.end_ns for one in kept] == sorted(one.end_ns for one in made)
    for at, one in enumerate(kept):
        assert store.index(order_of(one.end_ns, one.run_id)) == store.find(one.run_id) == at
        assert (store.end_ns(at), store.run_id(at)) == (one.end_ns, one.run_id)
        assert store.after(one.end_ns) == sum(other.end_ns <= one.end_ns for other in made)
        longer = one.run_id + "x"
        is_kept = (one.end_ns, longer) in ends
        assert (store.index(order_of(one.end_ns, longer)) is not None) == is_kept
    store.delete(1, 2)
    assert store.rows() == kept[:1] + kept[3:]


@given(st.lists(st.text(), unique=True))
def test_rows_that_end_together_are_in_the_order_of_their_ids(ids: list[str]) -> None:
    """Ids of one form: all of them text, or all of them hexadecimal."""
    store = RowStore()
    one = row()
    names = [name.replace("\0", "") for name in ids]
    for name in dict.fromkeys(names):
        store.insert(replace(one, run_id=name), order_of(one.end_ns, name))
    assert [kept.run_id for kept in store.rows()] == sorted(set(names), key=str.encode)
