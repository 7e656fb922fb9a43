from __future__ import annotations

import itertools

import pytest

from benchmarks.over_time import Look, growth, over, summary, thinned


def looks(*sizes: int) -> list[Look]:
    """A look a second that found so many bytes."""
    return [Look(float(at), 1_000 * at, size) for at, size in enumerate(sizes)]


def test_growth_is_between_the_last_two_quarters() -> None:
    """What is needed until everything that is remembered is there is no growth."""
    assert growth(looks(10, 50, 100, 100, 100, 100, 110, 110)) == pytest.approx(0.1)
    assert growth(looks(10, 50, 100, 100, 100, 100, 100, 100)) == 0
    assert growth(looks(10)) == 0


def test_few_looks_are_told_and_the_last_among_them() -> None:
    """Evenly over all the time."""
    found = thinned(looks(*range(95)), 10)

    assert len(found) <= 10
    assert found[-1].resident == 94
    assert {late.seconds - early.seconds for early, late in itertools.pairwise(found)} == {10.0}


@pytest.mark.parametrize(
    ("ratio", "grown", "expected"), [(1.05, 0.01, 0), (1.3, 0.01, 1), (1.05, 0.2, 1), (1.3, 0.2, 2)]
)
def test_what_is_not_as_it_should_be_is_named(ratio: float, grown: float, expected: int) -> None:
    """A span that costs more with age, and memory that grows."""
    assert len(over({"cost": {"ratio": ratio}, "memory": {"growth": grown}})) == expected


def test_pauses_are_told_apart_by_what_they_waited_for() -> None:
    """Own work, or a machine that was busy with other things."""
    waited, worked = {"pause_s": 0.3, "work_s": 0.01}, {"pause_s": 0.1, "work_s": 0.09}
    found = summary({"collections": [9, 1, 0], "work_s": 0.2, "long": [waited, worked]})

    assert (found["long"], found["worked"], found["longest"], found["most_work"]) == (2, 1, waited, worked)
    assert summary({"long": []})["longest"] is None
