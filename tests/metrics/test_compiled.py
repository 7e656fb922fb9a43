"""What the compiled module makes of paths is what Python makes of them."""

from __future__ import annotations

import sys
from collections import Counter, deque
from collections.abc import Callable, Mapping
from itertools import combinations
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rapidfuzz.distance.Levenshtein import distance

from otel_reliability.metrics import compiled
from otel_reliability.metrics.apart import LONGEST, ONE, edit_column, edit_shares, total
from otel_reliability.metrics.compiled import NATIVE, path_sums, path_total, sorted_tools, tools_of
from otel_reliability.metrics.later_sums import LaterSums
from tests.metrics.reference import edits

pytestmark = pytest.mark.skipif(NATIVE is None, reason="the compiled module (native/) is not installed")

STEPS = "ab\xfe\xff\u0100\u0141\u0180\ud7ff\ue000\U00010000\U00010080\U0010ffff"
"""Of strings of one, two and four bytes a character; some fall into one slot of a table of 128."""
SHORT = st.text("abc", max_size=4)
PATHS = st.one_of(SHORT, st.text(STEPS, max_size=12), st.text(STEPS, min_size=62, max_size=67))
MANY = st.text([chr(0x21 + at) for at in range(600)], max_size=130)


def in_python(there: Mapping[str, int]) -> LaterSums[str]:
    """What it is compared with."""
    return LaterSums(edit_column, there)


def said(sums: LaterSums[str], asked: str) -> object:
    """All that sums say."""
    return sums.total, len(sums), sums.counts(), sums.distance(asked), asked in sums


@given(
    st.dictionaries(PATHS, st.integers(1, 3), max_size=4),
    st.lists(st.tuples(st.one_of(PATHS, MANY), st.integers(0, 6)), max_size=40),
    PATHS,
)
def test_the_same_sums(there: dict[str, int], steps: list[tuple[str, int]], asked: str) -> None:
    """Whoever comes and goes, the first or another, once or again; of whatever characters and lengths."""
    ours, oracle = path_sums(there), in_python(there)
    left = [code for code, runs in there.items() for _ in range(runs)]
    for code, leaving in steps:
        if leaving < len(left):
            gone = left.pop(leaving)
            ours.remove(gone)
            oracle.remove(gone)
        else:
            ours.add(code)
            oracle.add(code)
            left.append(code)
        assert said(ours, asked) == said(oracle, asked)
    assert ours.total == sum(edit_shares(one, [other])[0] for one, other in combinations(left, 2))


@given(st.one_of(PATHS, MANY), st.lists(st.one_of(PATHS, MANY), min_size=1, max_size=6))
def test_distances_are_those_of_the_textbook(code: str, others: list[str]) -> None:
    """In units of 2^-52, what is beyond cut off one by one."""
    expected = sum(edits(code, other) * ONE // max(len(code), len(other), 1) for other in others)
    assert path_sums(Counter(others)).distance(code) == expected


@given(st.dictionaries(st.one_of(PATHS, MANY), st.integers(1, 9), max_size=12))
def test_the_same_total_of_few(counts: dict[str, int]) -> None:
    """Of paths of whatever characters and lengths; and the tools of each."""
    assert path_total(counts) == total(edit_shares, counts)
    assert [tools_of(code) for code in counts] == [sorted_tools(code) for code in counts]


def test_what_is_no_path_leaves_no_trace() -> None:
    """The next distances are right."""
    with pytest.raises(TypeError):
        path_total({"ab": 1, b"b": 1, "abc": 1})  # pyright: ignore[reportArgumentType]  # test
    with pytest.raises(TypeError):
        tools_of(b"b")  # pyright: ignore[reportArgumentType]  # test
    assert path_total({"xyz": 1, "ab": 1}) == ONE


def test_paths_longer_than_any_word() -> None:
    """Edits in units of 2^-52 pass 64 bits from 2 048 steps on, the lengths of both sides differ, and one may be empty."""
    dice = Random(5)
    long = ["".join(dice.choices(STEPS, k=size)) for size in (0, 1, 64, 65, 500, LONGEST, LONGEST + 1, 3 * LONGEST)]
    ours, oracle = path_sums({}), in_python({})
    for code in [*long, *long[::2]]:
        ours.add(code)
        oracle.add(code)
        assert said(ours, long[-2]) == said(oracle, long[-2])
    for code in [long[4], *long]:
        ours.remove(code)
        oracle.remove(code)
        assert said(ours, long[4]) == said(oracle, long[4])


@pytest.mark.parametrize("habits", [40, 5_000])
def test_thousands_of_runs(habits: int) -> None:
    """Sums over all pairs and over one run's pass 2^64; runs leave in their order, but for one now and then."""
    dice = Random(habits)
    paths = ["".join(dice.choices("abcdefgh", k=dice.randrange(1, 9))) for _ in range(habits)]
    ours, oracle, there = path_sums({paths[0]: 3_000}), in_python({paths[0]: 3_000}), deque([paths[0]] * 3_000)
    for at in range(3_000):
        code = dice.choice(paths)
        ours.add(code)
        oracle.add(code)
        there.append(code)
        gone = there.popleft()
        if at % 50 == 0:
            gone, there[10] = there[10], gone
        ours.remove(gone)
        oracle.remove(gone)
        if at % 200 == 0:
            assert said(ours, paths[1]) == said(oracle, paths[1])
    assert said(ours, paths[1]) == said(oracle, paths[1])
    assert ours.total > 1 << 64


def test_who_was_not_there_cannot_leave() -> None:
    """A path that nobody took, and what is no path: they are refused, and nothing is changed by them."""
    ours = path_sums({"ab": 2})
    for wrong in (lambda: ours.remove("a"), lambda: ours.add("a", 0), lambda: ours.add(b"a")):  # pyright: ignore[reportArgumentType]  # test
        with pytest.raises((KeyError, ValueError, TypeError)):
            wrong()
    assert said(ours, "a") == said(in_python({"ab": 2}), "a")


def test_an_error_of_whoever_counts_edits_changes_nothing() -> None:
    """Two paths that no word holds are left to somebody else, who may be out of memory."""

    def broken(one: str, other: str) -> int:
        raise MemoryError

    long = "a" * 65
    ours = NATIVE.PathSums(broken, {"ab": 1, long: 1})
    before = said(ours, "b")
    for wrong in (ours.add, ours.distance):
        with pytest.raises(MemoryError):
            wrong("b" * 65)
    assert said(ours, "b") == before


def test_whoever_counts_edits_changes_nothing() -> None:
    """Not the runs whose distances it is asked for: places would move while they are looked at."""

    def meddling(one: str, other: str) -> int:
        for at in range(40):
            ours.add(f"{at}")
        return distance(one, other)

    long = "a" * 65
    ours = NATIVE.PathSums(meddling, {"ab": 1, long: 1})
    before = said(ours, "b")
    for wrong in (ours.add, ours.distance):
        with pytest.raises(RuntimeError, match="while"):
            wrong("b" * 65)
    assert said(ours, "b") == before


def test_what_has_left_is_let_go() -> None:
    """No path is kept alive by the sums it was part of, and what they take does not grow with what passes through."""
    path = repr("left behind")
    uses = sys.getrefcount(path)
    ours = path_sums({"a": 1})
    for at in range(500):
        ours.add(path)
        ours.add(f"other {at}")
        ours.remove(path)
        ours.remove(f"other {at}")
    assert sys.getrefcount(path) == uses
    assert sys.getsizeof(ours) < 2_000
    ours.add(path)
    del ours
    assert sys.getrefcount(path) == uses


def test_without_the_compiled_module_python_does_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """It need not be there."""
    monkeypatch.setitem(sys.modules, compiled.MODULE, None)
    load: Callable[[], object] = compiled.load

    assert load() is None


def test_edits_of_the_longest_are_those_of_the_shares() -> None:
    """Both sides ask the same judge about paths that no word holds."""
    one, other = "ab" * 40, "ba" * 50
    assert path_sums({other: 1}).distance(one) == distance(one, other) * ONE // 100
