from __future__ import annotations

from otel_reliability import testing
from otel_reliability.model.span import Evaluation
from otel_reliability.windows.signals import derived_signals, trace_of


def test_signals_come_from_evaluations_of_their_names() -> None:
    """Of several of one name the greatest (time, score) wins; other names and labels alone are no signals."""
    run = testing.run(
        (),
        evaluations=(
            Evaluation("confidence", 0.9, None, 5),
            Evaluation("confidence", 0.4, None, 7),
            Evaluation("helpfulness", 0.1, None, 9),
            Evaluation("coherence", None, "good", 9),
        ),
    )
    trace = trace_of(run, derive=False)

    assert trace.signals == {"confidence": 0.4}
    assert (trace.derived, trace.refused) == ((), ())


def test_a_refused_signal_may_be_derived() -> None:
    """A score out of range did not arrive."""
    run = testing.run(["a"], evaluations=(Evaluation("tool_correctness", 2.0, None, 0),))
    trace = trace_of(run, derive=True)

    assert trace.signals == {"loop_detection": 1.0, "tool_correctness": 1.0}
    assert trace.derived == ("loop_detection", "tool_correctness")
    assert trace.refused == ("tool_correctness",)


def test_shares_of_repeats_and_failures() -> None:
    """One repeat and two failures among four calls."""
    calls = (
        testing.call("a"),
        testing.call("a", 1, repeat=True),
        testing.call("b", 2, ok=False),
        testing.call("b", 3, ok=False, retry=True),
    )
    assert derived_signals(calls) == {"loop_detection": 0.75, "tool_correctness": 0.5}


def test_unobservable_tools_derive_nothing() -> None:
    """No tool calls, and no way to see them, are both no evidence."""
    assert trace_of(testing.run(None), derive=True).signals == {}
    assert trace_of(testing.run(()), derive=True).signals == {}
