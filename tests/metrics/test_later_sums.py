"""The sums of distances by columns, beside all pairs one by one."""

from __future__ import annotations

from collections import Counter
from functools import partial
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_reliability.metrics import apart, later_sums, pairs
from otel_reliability.metrics.apart import LONGEST, REMEMBERED, column_of, edit_column, edit_shares
from otel_reliability.metrics.compiled import PathSums, path_sums, path_total
from otel_reliability.metrics.later_sums import LaterSums

CODES = st.text("abcd", max_size=6)


def all_pairs(codes: list[str]) -> int:
    """The sum of all distances, one by one."""
    return sum(edit_shares(one, [other])[0] for one, other in combinations(codes, 2))


@given(
    st.dictionaries(CODES, st.integers(1, 3), max_size=5), st.lists(st.tuples(CODES, st.integers(0, 4)), max_size=40)
)
@pytest.mark.parametrize("fitting", [2047, 3])
@pytest.mark.parametrize("room", [64, 1])
def test_sums_are_over_all_pairs_whoever_leaves(
    fitting: int, room: int, there: dict[str, int], steps: list[tuple[str, int]]
) -> None:
    """Whoever leaves, the first or another, and whether sums fit into 64 bits or not."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(later_sums, "FITTING", fitting)
        patch.setattr(later_sums, "ROOM", room)
        sums, left = LaterSums(edit_column, there), [code for code, runs in there.items() for _ in range(runs)]
        for code, leaving in steps:
            if leaving < len(left):
                sums.remove(left.pop(leaving))
            else:
                sums.add(code)
                left.append(code)
            assert sums.total == all_pairs(left)
            assert sums.distance("ab") == sum(edit_shares("ab", left))
            assert sums.counts() == Counter(left)


@given(CODES, st.lists(CODES, max_size=20))
def test_a_column_is_the_list(code: str, others: list[str]) -> None:
    """All at once, any distance is what it is one by one; also of paths longer than 64 bits hold the edits of."""
    sums = LaterSums(column_of(edit_shares), Counter(others))
    assert sums.distance(code) == LaterSums(edit_column, Counter(others)).distance(code)
    long = ["a" * LONGEST, "b" * (LONGEST + 1)]
    assert LaterSums(edit_column, Counter([*others, *long])).distance(code) == sum(edit_shares(code, [*others, *long]))


@given(st.lists(st.tuples(st.sampled_from("abcdefgh"), st.booleans()), max_size=60))
@pytest.mark.parametrize("begin", [partial(LaterSums[str], edit_column), path_sums])
def test_habits_come_and_go(begin: PathSums, steps: list[tuple[str, bool]]) -> None:
    """An agent that takes to ever new paths and back to few has the sums of all its pairs all the time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pairs, "HABITS", 4)
        patch.setattr(pairs, "FEW_HABITS", 2)
        sums, left = pairs.PairSums(edit_shares, pairs.Ways(begin, path_total)), list[str]()
        for code, leave in steps:
            if leave and left:
                sums.remove(left.pop(0))
            else:
                sums.add(code)
                left.append(code)
            assert sums.total == all_pairs(left)
            assert (sums.distinct, all(code in sums for code in left)) == (len(set(left)), True)


def test_distances_of_long_paths_are_not_remembered() -> None:
    """They would be kept alive by it, as many as there are places; their distances are the same."""
    apart._edit_share.cache_clear()
    long = "a" * (REMEMBERED + 1)

    assert [edit_shares("b", [long]), edit_shares(long, ["b"])] == [[apart.ONE], [apart.ONE]]
    assert apart._edit_share.cache_info().currsize == 0
