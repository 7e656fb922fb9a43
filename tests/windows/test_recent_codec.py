"""Whole runs as bytes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from otel_reliability.model.run import Run
from otel_reliability.model.span import Evaluation
from otel_reliability.testing import call, run
from otel_reliability.windows.recent import RecentRuns
from otel_reliability.windows.recent_codec import RunCodec
from tests.windows.runs import model_call, runs

TOKENS = st.none() | st.integers(0, 9_000)


@given(st.lists(runs("run"), max_size=5), st.lists(st.tuples(TOKENS, TOKENS), max_size=3), st.tuples(TOKENS, TOKENS))
def test_runs_come_back_as_they_were(
    given_runs: list[Run], tokens: list[tuple[int | None, int | None]], told: tuple[int | None, int | None]
) -> None:
    """Whatever a run tells, and whether or not its totals are the sums of its calls', it is the same run again."""
    models = tuple(model_call(each, start=at, end=at + 7) for at, each in enumerate(tokens))
    judged = (Evaluation("helpful", 0.5, "yes", 3, None, b"12345678", None),)
    codec = RunCodec()
    for number, steps in enumerate([["a"], None, [], ["a", "b"]]):
        calls = None if steps is None else tuple(call(name, float(number)) for name in steps)
        for made in (run(steps, number, tool_calls=calls), *given_runs):
            whole = made._replace(model_calls=models, input_tokens=told[0], output_tokens=told[1], evaluations=judged)
            assert codec.read(codec.write(whole), whole.run_id, whole.end_ns) == whole


def test_an_id_of_a_trace_and_a_span_is_told_once() -> None:
    """Such an id says which trace and which root it is."""
    told = run(["a"])._replace(trace_id=b"\1" * 16, root_span_id=b"\2" * 8)
    usual = told._replace(run_id=f"{'01' * 16}-{'02' * 8}")
    codec = RunCodec()
    assert codec.read(codec.write(usual), usual.run_id, usual.end_ns) == usual
    assert codec.read(codec.write(told), told.run_id, told.end_ns) == told


def test_settled_runs_are_the_same_among_the_last() -> None:
    """Those that will not change are bytes, in their places; they can still be withdrawn, and go when newer ones come."""
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
