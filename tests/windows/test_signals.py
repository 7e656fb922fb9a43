from __future__ import annotations

from otel_reliability import testing
from otel_reliability.model.run import Run
from otel_reliability.model.span import Evaluation
from otel_reliability.windows.sessions import derived_signals, trace_of


def told(run: Run, *, derive: bool) -> tuple[dict[str, float], tuple[str, ...], tuple[str, ...]]:
    """The signals of a run, those that are derived, and those that are refused."""
    trace, refused = trace_of(run, derive)
    return trace.signals, trace.derived, refused


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
    assert told(run, derive=False) == ({"confidence": 0.4}, (), ())


def test_a_refused_signal_may_be_derived() -> None:
    """A score out of range did not arrive."""
    run = testing.run(["a"], evaluations=(Evaluation("tool_correctness", 2.0, None, 0),))
    both = ("loop_detection", "tool_correctness")
    assert told(run, derive=True) == (dict.fromkeys(both, 1.0), both, ("tool_correctness",))


def test_what_is_judged_is_not_derived() -> None:
    """Judgements stand beside what only the calls tell."""
    run = testing.run(
        ["a"], evaluations=(Evaluation("tool_correctness", 0.5, None, 0), Evaluation("coherence", 0.7, None, 0))
    )
    found = {"loop_detection": 1.0, "tool_correctness": 0.5, "coherence": 0.7}

    assert told(run, derive=True) == (found, ("loop_detection",), ())


def test_shares_of_repeats_and_failures() -> None:
    """One repeat and two failures among four calls."""
    calls = (
        testing.call("a"),
        testing.call("a", 1, repeat=True),
        testing.call("b", 2, ok=False),
        testing.call("b", 3, ok=False, retry=True),
    )
    assert derived_signals(calls) == (0.75, 0.5)


def test_unobservable_tools_derive_nothing() -> None:
    """No tool calls, and no way to see them, are both no evidence."""
    assert told(testing.run(None), derive=True)[0] == {}
    assert told(testing.run(()), derive=True)[0] == {}
