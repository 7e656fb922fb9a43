from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from otel_reliability.model.run import Run
from otel_reliability.testing import run
from otel_reliability.windows.agents import RecentRuns
from otel_reliability.windows.rows import order_of
from tests.windows.runs import model_call

LIMIT = 4
IDS = [
    *(f"odd {number}" for number in range(4)),
    *(f"{number:032x}-{number:016x}" for number in range(4)),
]
STEPS = st.tuples(
    st.sampled_from(["close", "close", "close", "finalize", "withdraw"]),
    st.sampled_from(IDS),
    st.integers(0, 5),
)


def order(one: Run) -> bytes:
    return order_of(one.end_ns, one.run_id)


@given(st.lists(STEPS, max_size=60))
def test_the_last_runs_are_those_that_ended_last(steps: list[tuple[str, str, int]]) -> None:
    recent = RecentRuns(LIMIT)
    expected = list[Run]()
    for step, run_id, end in steps:
        known = [one for one in expected if one.run_id == run_id]
        for one in known if step != "finalize" else ():
            recent.remove(order(one))
            expected.remove(one)
        if step == "close":
            made = replace(run(["a"] * end), run_id=run_id, start_ns=0, end_ns=end)
            recent.add(made, order(made))
            expected = sorted([*expected, made], key=lambda one: (one.end_ns, one.run_id))[-LIMIT:]
        recent.finalize(order_of(known[0].end_ns if known and step == "finalize" else 99, run_id))
        assert [replace(one, tool_calls=None) for one in recent] == [
            replace(one, tool_calls=None) for one in expected
        ]
        assert len(recent) == len(expected)
        recent.remove(order_of(99, run_id))


def test_final_runs_are_the_same_without_the_hashes_of_their_calls() -> None:
    """Numbers beyond 64 bits, which no encoder sends, are made the greatest that there is; ends are
    what they were.
    """
    recent = RecentRuns(4)
    made = [
        run(["search", "book"], 1),
        run(["pay"], 2, model_calls=(model_call((2**70, None)),)),
        run(None, 3, end_ns=2**70, session_id="s"),
        run([], 4, run_id=IDS[-1], end_ns=2**70 + 1),
    ]
    for one in made:
        recent.add(one, order(one))
    assert list(recent) == made
    for one in made:
        recent.finalize(order(one))
    bare = [
        one.tool_calls
        and tuple(
            replace(call, arguments=None, result=None, effect=None) for call in one.tool_calls
        )
        for one in made
    ]
    expected = [replace(one, tool_calls=calls) for one, calls in zip(made, bare, strict=True)]
    expected[1] = replace(expected[1], model_calls=(model_call((2**63 - 1, None)),))
    assert list(recent) == expected
