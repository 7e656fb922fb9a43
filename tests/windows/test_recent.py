"""The last whole runs of an agent, those that may change and those that will not."""

from __future__ import annotations

import marshal

from hypothesis import given
from hypothesis import strategies as st

from otel_reliability.model.run import Run
from otel_reliability.testing import run
from otel_reliability.windows.recent import RecentRuns
from otel_reliability.windows.recent_record import pack
from otel_reliability.windows.recent_settled import FEW, SettledRuns
from tests.windows.runs import model_call

LIMIT = 4
IDS = [*(f"odd {number}" for number in range(4)), *(f"{number:032x}-{number:016x}" for number in range(4))]
STEPS = st.tuples(
    st.sampled_from(["close", "close", "close", "settle", "settle", "withdraw", "restart"]),
    st.sampled_from(IDS),
    st.integers(0, 5),
)


@given(st.lists(STEPS, max_size=60))
def test_the_last_runs_are_those_that_ended_last(steps: list[tuple[str, str, int]]) -> None:
    """Whatever closes, settles and is withdrawn, and in whatever order; a restart changes nothing."""
    recent, expected = RecentRuns(LIMIT), list[Run]()
    for step, run_id, end in steps:
        if step == "settle":
            recent.settle(run_id)
        elif step != "restart":
            recent.remove(run_id)
            expected = [one for one in expected if one.run_id != run_id]
        if step == "close":
            made = run(["a"] * end)._replace(run_id=run_id, start_ns=0, end_ns=end)
            recent.add(made)
            expected = sorted([*expected, made], key=lambda one: (one.end_ns, one.run_id))[-LIMIT:]
        if step == "restart":
            recent = restarted(recent)
            expected = [one.run() for one in map(pack, expected)]
        assert list(recent) == expected
        assert len(recent) == len(expected)


def restarted(recent: RecentRuns) -> RecentRuns:
    """What comes of them in another process."""
    restored = RecentRuns(LIMIT)
    restored.restore(recent.to_state())
    return restored


def test_settled_runs_are_the_same_among_the_last() -> None:
    """Those that will not change can still be withdrawn, and go when newer ones come."""
    recent = RecentRuns(3)
    made = [run(["a"], number, end_ns=number * 10) for number in range(4)]
    for one in (made[2], made[0], made[1]):
        recent.add(one)
        recent.settle(one.run_id)
    assert list(recent) == made[:3]
    recent.add(made[3])
    assert list(recent) == made[1:]
    recent.remove(made[2].run_id)
    recent.remove("nobody")
    assert list(recent) == [made[1], made[3]]
    recent.add(made[2])
    assert list(recent) == made[1:]


def test_runs_of_numbers_beyond_all_measure_are_kept_as_they_are() -> None:
    """They are among the last like others."""
    recent = RecentRuns(3)
    made = [
        run(["a"], 0, end_ns=1),
        run(["a"], 1, end_ns=2)._replace(model_calls=(model_call((2**63, 0)), model_call((1, 0)))),
        run(["a"], 2, end_ns=2**63),
    ]
    for one in made:
        recent.add(one)
        recent.settle(one.run_id)
    assert list(recent) == made
    recent.add(run([], 3, end_ns=2**70))
    assert list(recent)[:2] == made[1:]


def test_a_run_that_is_not_made_of_plain_values_is_kept_as_it_is() -> None:
    """Nobody waits for it to be packed, or fails."""
    recent = RecentRuns(3)
    made = [run(["a"], 0), run(["a"], 1, session_id=type("Word", (str,), {})("s")), run(["a"], 2)]
    for one in made:
        recent.add(one)
        recent.settle(one.run_id)
    assert list(recent) == made


def test_many_runs_take_little_room_each() -> None:
    """What they have in common is told once."""
    settled = SettledRuns()
    for number in range(10 * FEW):
        settled.add(run(["search", "book"], number))
    assert len(settled) == 10 * FEW
    assert [one.path for one in settled if isinstance(one, Run)] == [("search", "book")] * 10 * FEW


def test_what_is_read_back_takes_little_room_and_what_cannot_be_read_is_not_shown() -> None:
    """It is kept for the version that wrote it, and goes as others do."""
    recent = RecentRuns(LIMIT)
    made = [run(["search", "book"], number) for number in range(3)]
    packed = [(one.end_ns, one.run_id, one.body) for one in map(pack, made)]
    state = [*packed, (made[-1].end_ns + 1, "strange", marshal.dumps("no run")), (2**70, "late", packed[0][2])]
    recent.restore(state)
    assert recent.to_state() == state[-LIMIT:]
    assert [one.run_id for one in recent] == [made[1].run_id, made[2].run_id, made[0].run_id]
    assert len(recent) == LIMIT
