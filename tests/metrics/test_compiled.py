"""What the compiled module makes of paths is what Python makes of them."""

from __future__ import annotations

import sys
from collections import Counter, deque
from collections.abc import Callable, Mapping
from itertools import combinations
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rapidfuzz.distance.Levenshtein import distance

from otel_reliability.metrics import compiled
from otel_reliability.metrics.apart import LONGEST, ONE, edit_column, edit_shares, total
from otel_reliability.metrics.compiled import (
    NATIVE,
    codes_in,
    codes_of,
    count_all,
    path_sums,
    path_total,
    sets_of,
    sorted_tools,
    steps_in,
    steps_of,
    tool_sets,
    tools_of,
)
from otel_reliability.metrics.counts import Multiset
from otel_reliability.metrics.later_sums import LaterSums
from otel_reliability.metrics.stability.tool_call_variation import CallCounts
from otel_reliability.model.row import SHARED_CODE, Path
from otel_reliability.windows.paths import PathTable
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


def split(dice: Random, runs: Counter[str]) -> tuple[list[str], list[int]]:
    """How many more of each come than leave, no more of them than are there; what is there then is told in `runs`."""
    times = {code: dice.choice((-runs[code], -(runs[code] // 2), 1, 2)) for code in dice.sample(CODES, k=20)}
    times = {code: many for code, many in times.items() if many}
    runs.update(times)
    return list(times), list(times.values())


CODES = [
    *("".join(Random(at).choices("abcdef", k=at % 19)) for at in range(60)),
    "\xff" * 14,
    "\u0141a",
    "b" * 64,
    "b" * 65,
]
"""Paths that are compared many at once, and others."""


@given(st.integers(0, 2**32))
def test_many_at_once_are_the_same_as_one_by_one(seed: int) -> None:
    """Values, calls and distances, when some come and others leave."""
    dice, runs, table = Random(seed), Counter[str](), PathTable()
    paths = {code: table.intern(tuple(code)) for code in CODES}
    sums, kept, one_by_one = path_sums({}), in_python({}), in_python({})
    values, plain = Multiset[str](), Multiset[str]()
    calls, apart = CallCounts(), CallCounts()
    for _ in range(6):
        codes, times = split(dice, runs)
        sums.count_all(codes, times)
        kept.count_all(codes, times)
        values.count_all(codes, times)
        calls.count_all([paths[code] for code in codes], times)
        for code, many in zip(codes, times, strict=True):
            plain.count(code, many)
            apart.count(paths[code], many)
            for _ in range(abs(many)):
                (one_by_one.add if many > 0 else one_by_one.remove)(code)
        assert said(sums, "abc") == said(kept, "abc") == said(one_by_one, "abc")
        assert (values.total, values.distinct, values.modal) == (plain.total, plain.distinct, plain.modal)
        assert values.bits() == plain.bits()
        assert (len(calls), calls.share()) == (len(apart), apart.share())


ALPHABETS = ["ab", "abcdefgh", [chr(at) for at in range(1, 256)], "abc\xff\u0100\U0010ffff"]
"""Of as many symbols as a byte has so many paths are not compared at once: it would take too much; nor wider ones."""
EDGES = [*range(18), 63, 64, 65, 66]
"""Lengths about those up to which paths are compared at once, or by one word."""


def drawn(dice: Random, lengths: list[int]) -> str:
    """A path of one of these lengths."""
    return "".join(dice.choices(dice.choice(ALPHABETS[: dice.choice((2, 2, 4))]), k=dice.choice(lengths)))


@given(st.integers(0, 2**32), st.sampled_from([0, 1, 7, 8, 9, 60, 130, 200]), st.sampled_from([range(1, 10), EDGES]))
@settings(max_examples=60)
def test_many_are_compared_at_once(seed: int, places: int, lengths: list[int]) -> None:
    """Of whatever lengths and symbols, also the same again in one call; while some leave, in whatever order, and leave places."""
    dice, runs = Random(seed), Counter[str]()
    pool = [drawn(dice, lengths) for _ in range(places + 10)]
    runs.update(pool[:places])
    sums, kept = path_sums(runs), in_python(runs)
    for share in (3, 1, 2, 9):
        gone = Counter(dice.sample(list(runs.elements()), k=runs.total() // share))
        batch = [
            *((code, -many) for code, many in gone.items()),
            *((dice.choice(pool), dice.choice((1, 1, 2))) for _ in pool),
        ]
        dice.shuffle(batch)
        codes, times = [code for code, _ in batch], [many for _, many in batch]
        sums.count_all(codes, times)
        kept.count_all(codes, times)
        for code, many in batch:
            runs[code] += many
        asked = drawn(dice, lengths)
        assert said(sums, asked) == said(kept, asked)
        assert sums.counts() == +runs
    for code in dice.sample(list(runs.elements()), k=runs.total()):
        sums.remove(code)
    assert said(sums, "") == (0, 0, {}, 0, False)


@given(st.lists(MANY, max_size=6), st.integers(1, 8))
def test_the_same_steps_and_sets(codes: list[str], limit: int) -> None:
    """Of paths in which tools share a character too."""
    table = PathTable(limit)
    paths = [table.intern(tuple(code)) for code in codes]
    assert steps_of(paths) == steps_in(paths)
    assert codes_of(paths) == codes_in(paths)
    assert sets_of(paths) == tool_sets(paths)
    calls, apart = CallCounts(), CallCounts()
    calls.count_all(paths, [1] * len(paths))
    for path in paths:
        apart.count(path, 1)
    assert calls.share() == apart.share()


@given(st.lists(st.text([chr(at) for at in (0x20, *range(0x21, 0x25), 0x5B, 0x5C, 0x5D, 0x5E, 0x10000)]), max_size=8))
def test_a_set_of_tools_is_that_of_whoever_used_the_same(codes: list[str]) -> None:
    """Whether all of them have a bit, the last too, or not."""
    paths = [Path(code, {}) for code in [*codes, "", "\\", "]", "".join(map(chr, range(0x21, 0x5D)))]]
    found = sets_of(paths)
    assert found == tool_sets(paths)
    assert len(set(found)) == len({frozenset(path.code) for path in paths})


@given(st.lists(st.lists(st.tuples(st.sampled_from("abcd"), st.integers(-40, 40)), max_size=8), max_size=6))
def test_sizes_are_those_of_the_counts(batches: list[list[tuple[str, int]]]) -> None:
    """Whether values are there often or not, and also where something else cannot be counted."""
    counts, sizes, plain = dict[object, int](), dict[int, int](), Counter[object]()
    assert count_all is not None
    for batch in batches:
        those = {value: max(many, -plain[value]) for value, many in batch}
        those = {value: many for value, many in those.items() if many}
        plain.update(those)
        with pytest.raises(TypeError):
            count_all(counts, sizes, [*those, []], [*those.values(), 1])
        assert counts == +plain
        assert sizes == Counter(counts.values())


def test_what_is_no_path_spells_nothing() -> None:
    """Something else, one of another class, and one that is not made yet."""

    class Other(Path):
        __slots__ = ()

        @property
        def steps(self) -> str:
            return "other"

    other = Other("ab", {})
    assert (codes_of([other]), steps_of([other])) == (["ab"], ["other"])
    for wrong in (None, Path.__new__(Path)):
        for ask in (codes_of, steps_of, sets_of):
            with pytest.raises(AttributeError):
                ask([wrong])  # pyright: ignore[reportArgumentType]  # test


def test_calls_beyond_64_bits_are_counted_in_python() -> None:
    """Paths that are too long or of too many runs, and what is no path."""
    sums = {"a": (1, 1)}
    assert NATIVE is not None
    for codes, times in (
        (["a" * 5_000], [1]),
        (["a"], [2**21]),
        (["a", SHARED_CODE], [1, 1]),
        ([["a"]], [1]),
        (["a"] * 5_000, [1] * 5_000),
    ):
        assert not NATIVE.count_calls(sums, codes, times)
    assert sums == {"a": (1, 1)}
    assert NATIVE.count_calls(sums, ["aab", "a" * 4_096], [-(2**20), 2**20])
    assert sums == {"a": (1 + 2**20 * 4_094, 1 + 2**20 * (2**24 - 4)), "b": (-(2**20), -(2**20))}


def test_as_many_numbers_as_values() -> None:
    """Nothing is read beyond either."""
    assert count_all is not None
    for wrong in (lambda: NATIVE.count_calls({}, ["a"], []), lambda: path_sums({}).count_all(["a"], [])):
        with pytest.raises(ValueError, match="as many"):
            wrong()
    with pytest.raises(ValueError, match="as many"):
        count_all({}, {}, [], [1])


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
    with pytest.raises(RuntimeError, match="while"):
        ours.count_all(["b" * 65, "b"], [1, 1])
    assert said(ours, "b") == before


def test_an_error_among_many_leaves_what_came_before() -> None:
    """Those that left and came before it are counted, the others are not."""

    def broken(one: str, other: str) -> int:
        raise MemoryError

    long, oracle = "a" * 65, in_python({"ab": 1, "b": 1, "a" * 65: 1})
    ours = NATIVE.PathSums(broken, {"ab": 1, "b": 1, long: 1})
    with pytest.raises(MemoryError):
        ours.count_all(["abc", "b", "b" * 65, "abcd"], [1, -1, 1, 1])
    oracle.count_all(["abc", "b"], [1, -1])
    assert said(ours, "bb") == said(oracle, "bb")
    with pytest.raises(KeyError):
        ours.count_all(["x", "ab", "nobody"], [1, -1, -1])
    oracle.remove("ab")
    assert said(ours, "bb") == said(oracle, "bb")


def test_what_cannot_be_counted_is_known_before_anything_is() -> None:
    """What is no path or no number, and numbers that change the sums while they are asked what they are."""
    ours, oracle = path_sums({"ab": 2}), in_python({"ab": 2})

    class Meddling:
        def __int__(self) -> int:
            for at in range(40):
                ours.add(f"{at}")
                oracle.add(f"{at}")
            return 1

    for codes, times, wrong in (
        (["b", b"b"], [1, 1], TypeError),
        (["b", None], [1, 1], TypeError),
        (["ab", "b"], [-1, "1"], TypeError),
        (["ab", "b"], [-1, 2**31], OverflowError),
    ):
        with pytest.raises(wrong):
            ours.count_all(codes, times)  # pyright: ignore[reportArgumentType]  # test
    assert said(ours, "a") == said(oracle, "a")
    ours.count_all(["b", "c"], [1, Meddling()])  # pyright: ignore[reportArgumentType]  # test
    oracle.count_all(["b", "c"], [1, 1])
    assert said(ours, "a") == said(oracle, "a")


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
