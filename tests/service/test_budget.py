from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_reliability.service.answers import Problem, Refused
from otel_reliability.service.intake import RequestBudget


def test_there_is_never_more_taken_than_there_is() -> None:
    budget = RequestBudget(100)
    with budget.reserve(60) as place:
        with pytest.raises(Refused) as raised:
            place.grow(41)
        place.grow(40)

        assert (budget.used, budget.held) == (100, 1)
        assert (raised.value.problem, raised.value.reason) == (Problem.OVERLOAD, "queue_full")
        assert raised.value.retry_after
    with pytest.raises(ZeroDivisionError), budget.reserve(50):
        raise ZeroDivisionError
    assert (budget.used, budget.held, budget.refused) == (0, 0, 1)


@given(st.lists(st.lists(st.integers(0, 60), max_size=4), max_size=8))
def test_whoever_comes_and_goes_the_sum_is_right(requests: list[list[int]]) -> None:
    budget = RequestBudget(100)
    places = [budget.reserve() for _ in requests]
    for place, sizes in zip(places, requests, strict=True):
        for size in sizes:
            before = budget.used
            try:
                place.grow(size)
            except Refused:
                assert before + size > 100
                assert budget.used == before
        assert budget.used == sum(one.size for one in places) <= 100
    for place in places:
        place.release()

    assert (budget.used, budget.held) == (0, 0)


def test_threads_do_not_lose_count() -> None:
    budget = RequestBudget(1_000_000)

    def come_and_go(_: int) -> None:
        for _ in range(2_000):
            with budget.reserve(3) as place:
                place.grow(4)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(come_and_go, range(4)))

    assert (budget.used, budget.held) == (0, 0)
