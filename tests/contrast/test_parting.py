"""The fork at which failing and succeeding runs part."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from otel_reliability.contrast.parting import MIN_RUNS, Ends, PartingStep, parting_step

STEPS = st.lists(st.sampled_from("abc"), max_size=4).map(tuple)
ENDS = st.tuples(st.integers(0, 6), st.integers(0, 6)).map(lambda pair: Ends(pair[0], sum(pair)))
PATHS = st.dictionaries(STEPS, ENDS, max_size=12)


def test_the_branch_that_fails_is_found_below_steps_that_all_share() -> None:
    found = parting_step(
        {
            ("look", "check", "pay"): Ends(8, 10),
            ("look", "check", "ask"): Ends(1, 10),
            ("look", "check"): Ends(0, 5),
            ("search",): Ends(2, 5),
        }
    )

    assert found == PartingStep(("look", "check"), "pay", Ends(8, 10), Ends(1, 15))


def test_runs_that_end_too_early_are_a_branch() -> None:
    found = parting_step({("look",): Ends(5, 5), ("look", "pay"): Ends(0, 9)})

    assert found == PartingStep(("look",), None, Ends(5, 5), Ends(0, 9))


def test_few_runs_and_equal_shares_say_nothing() -> None:
    few = MIN_RUNS - 1

    assert parting_step({("a",): Ends(few, few), ("b",): Ends(0, 50)}) is None
    assert parting_step({("a",): Ends(2, 4), ("b",): Ends(25, 50)}) is None
    assert parting_step({("a",): Ends(9, 9)}) is None
    assert parting_step({}) is None


@given(PATHS)
def test_order_of_paths_does_not_matter(paths: dict[tuple[str, ...], Ends]) -> None:
    assert parting_step(paths) == parting_step(dict(reversed(paths.items())))


@given(PATHS)
def test_both_sides_are_runs_that_did_the_same_until_the_fork(
    paths: dict[tuple[str, ...], Ends],
) -> None:
    found = parting_step(paths)

    if found is not None:
        below = [ends for path, ends in paths.items() if path[: len(found.before)] == found.before]
        assert found.taking.known + found.others.known == sum(ends.known for ends in below)
        assert min(found.taking.known, found.others.known) >= MIN_RUNS
        assert found.taking.share != found.others.share
