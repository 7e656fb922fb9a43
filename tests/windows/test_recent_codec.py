"""Whole runs as bytes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_reliability.model.run import ModelCall, Run, ToolCall
from otel_reliability.model.span import Evaluation
from otel_reliability.testing import call, run
from otel_reliability.windows.recent_codec import read, write
from tests.windows.runs import model_call, runs

TOKENS = st.none() | st.integers(0, 9_000)
TIMES = st.integers(-3, 12) | st.integers(-(2**40), 2**40)
UNITS = st.sampled_from([1, 7, 1_000, 10**6])


def again(one: Run) -> Run:
    """The run as it comes back."""
    return read(write(one), one.run_id, one.end_ns)


@given(st.lists(runs("run"), max_size=5), st.lists(st.tuples(TOKENS, TOKENS), max_size=3), st.tuples(TOKENS, TOKENS))
def test_runs_come_back_as_they_were(
    given_runs: list[Run], tokens: list[tuple[int | None, int | None]], told: tuple[int | None, int | None]
) -> None:
    """Whatever a run tells, and whether or not its totals are the sums of its calls', it is the same run again."""
    models = tuple(model_call(each, start=at, end=at + 7) for at, each in enumerate(tokens))
    judged = (Evaluation("helpful", 0.5, "yes", 3, None, b"12345678", None),)
    for number, steps in enumerate([["a"], None, [], ["a", "b"]]):
        calls = None if steps is None else tuple(call(name, float(number)) for name in steps)
        for made in (run(steps, number, tool_calls=calls), *given_runs):
            whole = made._replace(model_calls=models, input_tokens=told[0], output_tokens=told[1], evaluations=judged)
            assert again(whole) == whole


@given(
    st.lists(st.tuples(TIMES, TIMES), max_size=5), st.lists(st.tuples(TIMES, TIMES), max_size=5), UNITS, TIMES, TIMES
)
def test_calls_keep_their_times(
    modelled: list[tuple[int, int]], called: list[tuple[int, int]], unit: int, start: int, end: int
) -> None:
    """In whatever order calls stand, side by side or one after the other, before their run or after it."""
    models = tuple(ModelCall("m", 1, None, False, "a", unit * begin, unit * over) for begin, over in modelled)
    calls = tuple(
        ToolCall("t", True, False, False, 0, "a", unit * begin, unit * over, None, None, None) for begin, over in called
    )
    whole = run(["t"])._replace(start_ns=unit * start, end_ns=end, tool_calls=calls, model_calls=models)
    assert again(whole) == whole


def test_an_id_of_a_trace_and_a_span_is_told_once() -> None:
    """Such an id says which trace and which root it is."""
    told = run(["a"])._replace(trace_id=b"\1" * 16, root_span_id=b"\2" * 8)
    usual = told._replace(run_id=f"{'01' * 16}-{'02' * 8}")
    assert again(usual) == usual
    assert again(told) == told


def test_numbers_beyond_all_measure_are_refused() -> None:
    """A recording may say whatever it likes."""
    with pytest.raises(OverflowError):
        write(run(["a"])._replace(model_calls=(model_call((2**63, 0)), model_call((1, 0)))))
