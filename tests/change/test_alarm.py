from __future__ import annotations

from otel_reliability.change.alarm import Summary, ToolShift, tool_shifts


def test_summaries_of_nothing_are_none() -> None:
    assert Summary.of([]) is None
    assert Summary.of([1, 2, 6]) == (3, 3, 2)


def test_only_clear_shifts_are_told_and_at_most_three() -> None:
    before = [("a", "a", "b"), ("a", "b"), ("a",), ("a", "c"), None]
    after = [("d", "a"), ("d", "a"), ("d", "e", "a"), ("d", "f", "a"), None]
    assert tool_shifts(before, after) == (
        ToolShift("d", 0, 1),
        ToolShift("b", 0.5, 0),
        ToolShift("c", 0.25, 0),
    )


def test_observations_that_use_no_tool_any_more_are_a_shift() -> None:
    assert tool_shifts([("a",)], [()]) == (ToolShift("a", 1, 0),)
    assert tool_shifts([("a",)], [None]) == ()
    assert tool_shifts([()], [()]) == ()
