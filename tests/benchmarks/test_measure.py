from __future__ import annotations

from benchmarks.measure import Row, ratios, row, seconds


def test_works_are_measured_in_turns() -> None:
    """Each round measures every work once, beginning with another; what is done between them is done before each."""
    done: list[str] = []
    found = seconds(
        lambda: done.append("a"), lambda: done.append("b"), rounds=3, calls=1, between=lambda: done.append("-")
    )

    assert "".join(done) == "-a-b-b-a-a-b"
    assert [len(rounds) for rounds in found] == [3, 3]


def test_a_work_is_repeated_until_it_can_be_measured() -> None:
    """A work of nanoseconds is done many times, and told by the one."""
    calls: list[None] = []
    (found,) = seconds(lambda: calls.append(None), rounds=2, least=0.002)

    assert len(calls) > 100
    assert all(0 < one < 0.001 for one in found)


def test_a_row_is_the_median_with_the_middle_half() -> None:
    """One round in which the machine was busy moves neither."""
    found = row("name", [1.0, 2.0, 3.0, 4.0, 99.0], against="other", at_most=3.5, scale=2.0)

    assert found == Row("name", 6.0, 3.5, "×", (4.0, 8.0), "other")
    assert found.over
    assert not row("name", [1.0], against="other", at_most=1.0).over
    assert not row("name", [1.0], against="other").over


def test_ratios_are_of_neighbours() -> None:
    """Each round by itself: what slowed both down is in neither."""
    assert ratios([2.0, 20.0], [1.0, 10.0]) == [2.0, 2.0]
