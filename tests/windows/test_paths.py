"""Paths are made once, and forgotten with the last row that holds them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from otel_reliability.model.row import Path
from otel_reliability.windows.rows import OTHER_CODE, OTHER_STEP, SURROGATES, PathTable

NAMES = st.lists(st.sampled_from("abcdef"), max_size=4).map(tuple)


@given(st.lists(NAMES, max_size=30))
def test_codes_spell_paths(paths: list[tuple[str, ...]]) -> None:
    table = PathTable()
    made = [table.intern(names) for names in paths]
    for one, names in zip(made, paths, strict=True):
        for other, others in zip(made, paths, strict=True):
            assert (one is other) == (names == others) == (one.code == other.code)
        assert (one.names, len(one.code), one.tools) == (
            names,
            len(names),
            tuple(sorted(set(names))),
        )
        assert dict(one.counts) == {name: names.count(name) for name in names}
    assert len(table) == len(set(paths))


@given(st.lists(st.tuples(NAMES, st.booleans()), max_size=40))
def test_codes_stay_apart_while_paths_come_and_go(
    steps: list[tuple[tuple[str, ...], bool]],
) -> None:
    table = PathTable(limit=6)
    held = list[tuple[str, ...]]()
    for names, release in steps:
        if release and held:
            gone = table.intern(held.pop(0))
            table.release(gone)
            table.release(gone)
        else:
            table.intern(names)
            held.append(names)
        codes: dict[str, str] = {}
        for kept in set(held):
            path = table.intern(kept)
            table.release(path)
            for name, code in zip(path.names, path.code, strict=True):
                assert codes.setdefault(name, code) == code
        assert len(set(codes.values())) == len(codes)
        assert OTHER_CODE not in codes.values()
        assert len(table) == len(set(held))


def test_steps_beyond_the_limit_share_a_code() -> None:
    table = PathTable(limit=1)
    first = table.intern(("a",))
    second = table.intern(("b",))
    third = table.intern(("c",))
    assert first.names == ("a",)
    assert second is third
    assert (second.code, second.names) == (OTHER_CODE, (OTHER_STEP,))
    for path in (first, second, third):
        table.release(path)
    assert table.intern(("d",)).code == first.code
    assert table.intern(("e",)).code == OTHER_CODE


def test_names_beyond_the_limit_are_not_remembered() -> None:
    """A name that shared a character gets one of its own once there is a free one, also while
    another name still shares it.
    """
    table = PathTable(limit=2)
    first, second, kept = (table.intern((name,)) for name in "abc")
    table.release(table.intern(("d",)))
    table.release(first)
    table.release(second)
    assert table.intern(("e",)).code in first.code + second.code
    assert table.intern(("d",)).code in first.code + second.code
    assert (kept.code, kept.names) == (OTHER_CODE, (OTHER_STEP,))


def test_no_code_is_half_a_character() -> None:
    """Surrogates are no characters, so they are left out."""
    table = PathTable()
    codes = {table.intern((str(number),)).code for number in range(SURROGATES.stop + 100)}
    assert len(codes) == SURROGATES.stop + 100
    assert not any(ord(code) in SURROGATES for code in codes)


def test_names_of_no_path_are_forgotten_in_time() -> None:
    table = PathTable()
    first = PathTable().intern(("zero",))
    gone = [table.intern((f"tool {at}", "search", f"tool {at}")) for at in range(3)]
    for path in gone:
        table.release(path)
    codes = {path.code for path in gone}
    for at in range(3, 500):
        first = table.intern((f"tool {at}", "search", f"tool {at}"))
        codes.add(first.code)
        table.release(first)

    assert len({code for path in codes for code in path}) < 12
    assert [path.names for path in gone] == [
        (f"tool {at}", "search", f"tool {at}") for at in range(3)
    ]
    assert first.counts == (("search", 1), ("tool 499", 2))


def test_what_characters_stand_for_is_kept_once() -> None:
    table = PathTable()
    kept = list[Path]()
    for number in range(60):
        for other in range(8):
            table.release(table.intern((f"{number} {other}",)))
        kept.append(table.intern((f"{number}",)))
    table.intern(("last",))
    assert [path.names for path in kept] == [(f"{number}",) for number in range(60)]
    assert len({id(path._spelled) for path in kept}) == 1
