"""The last whole runs of an agent."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from otel_reliability.model.run import Run
from otel_reliability.testing import run
from otel_reliability.windows.recent import RecentRuns
from tests.windows.runs import model_call

LIMIT = 4
IDS = [*(f"odd {number}" for number in range(4)), *(f"{number:032x}-{number:016x}" for number in range(4))]
STEPS = st.tuples(
    st.sampled_from(["close", "close", "close", "withdraw"]),
    st.sampled_from(IDS),
    st.integers(0, 5),
)


@given(st.lists(STEPS, max_size=60))
def test_the_last_runs_are_those_that_ended_last(steps: list[tuple[str, str, int]]) -> None:
    """In any order of closing and withdrawing."""
    recent, expected = RecentRuns(LIMIT), list[Run]()
    for step, run_id, end in steps:
        for one in expected:
            if one.run_id == run_id:
                recent.remove(one.end_ns, run_id)
        expected = [one for one in expected if one.run_id != run_id]
        if step == "close":
            made = run(["a"] * end)._replace(run_id=run_id, start_ns=0, end_ns=end)
            recent.add(made)
            expected = sorted([*expected, made], key=lambda one: (one.end_ns, one.run_id))[-LIMIT:]
        assert list(recent) == expected
        assert len(recent) == len(expected)


def test_removed_runs_make_room_for_earlier_ones() -> None:
    """A withdrawn run goes; one that is closed again has its new position."""
    recent = RecentRuns(3)
    made = [run(["a"], number, end_ns=number * 10) for number in range(4)]
    for one in (made[2], made[0], made[1]):
        recent.add(one)
    assert list(recent) == made[:3]
    recent.add(made[3])
    assert list(recent) == made[1:]
    recent.remove(made[2].end_ns, made[2].run_id)
    recent.remove(0, "unknown")
    assert list(recent) == [made[1], made[3]]
    recent.add(made[2])
    assert list(recent) == made[1:]


def test_final_runs_are_the_same_without_the_hashes_of_arguments_and_results() -> None:
    """They are packed; a run with numbers beyond 64 bits stays as it is."""
    recent = RecentRuns(4)
    made = [
        run(["search", "book"], 1),
        run(["pay"], 2, model_calls=(model_call((2**70, None)),)),
        run(None, 3, end_ns=2**70, session_id="s"),
        run([], 4, run_id=IDS[-1], end_ns=2**70 + 1),
    ]
    for one in made:
        recent.add(one)
        recent.finalize(one.end_ns, one.run_id)
    bare = tuple(call._replace(arguments=None, result=None) for call in made[0].tool_calls or ())
    assert list(recent) == [made[0]._replace(tool_calls=bare), *made[1:]]
    recent.finalize(0, "unknown")
    recent.add(made[0])
    assert list(recent) == made
