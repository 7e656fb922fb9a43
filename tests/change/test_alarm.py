from __future__ import annotations

import random

from otel_reliability.change.alarm import Summary, ToolShift, tool_shifts


def test_summaries_of_nothing_are_none() -> None:
    assert Summary.of([]) is None
    assert Summary.of([1, 2, 6]) == (3, 3, 2)


def test_only_clear_shifts_are_told_and_at_most_three() -> None:
    before = [*[("a", "a", "b", "c")] * 10, ("a", "b"), ("a", "b"), ("a", "c"), ("a", "c"), None]
    after = [*[("d", "a", "e")] * 9, ("d", "f", "a"), None]
    assert tool_shifts(before, after) == (
        ToolShift("d", 0, 1),
        ToolShift("e", 0, 0.9),
        ToolShift("b", 12 / 14, 0),
    )


def test_tools_of_a_few_latest_runs_are_no_shift() -> None:
    """Kinds of work at random: of so few runs their shares differ by far more than a fifth."""
    chance = random.Random(0)
    kinds = [
        ("order", "policy", "refund"),
        ("order", "ship"),
        ("user", "address"),
        ("user", "mail"),
    ]
    shifts = [
        tool_shifts(chance.choices(kinds, k=40), chance.choices(kinds, k=9)) for _ in range(200)
    ]
    assert sum(map(bool, shifts)) <= 4


def test_observations_that_use_no_tool_any_more_are_a_shift() -> None:
    assert tool_shifts([("a",)] * 6, [()] * 6) == (ToolShift("a", 1, 0),)
    assert tool_shifts([("a",)] * 6, [None] * 6) == ()
    assert tool_shifts([()] * 6, [()] * 6) == ()
