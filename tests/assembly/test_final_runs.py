"""Final runs can still be evaluated."""

from __future__ import annotations

import pytest

from otel_reliability import testing
from otel_reliability.assembly import evaluations
from otel_reliability.assembly.evaluations import FinalRuns
from otel_reliability.config import OutcomeSettings
from otel_reliability.model.run import Run
from otel_reliability.model.span import Evaluation

TRACE = testing.trace_id(1)
GOOD = Evaluation("quality", 0.75, None, 5)


def run(number: int, trace: int | None = None) -> Run:
    """The n-th run, which may lie in the trace of another."""
    return testing.run(["search"], number, trace_id=testing.trace_id(trace or number), nested=number > 1 and trace == 1)


def test_an_evaluation_makes_a_new_version() -> None:
    """The next one is of that version; one that says nothing new changes nothing."""
    final, one, worse = FinalRuns(OutcomeSettings()), run(1), GOOD._replace(score=0.5, time_ns=6)
    final.remember(one)

    first = final.evaluate(GOOD, TRACE)
    assert first == (one, one._replace(evaluations=(GOOD,)))
    assert first is not None
    assert final.evaluate(GOOD, TRACE) == (first[1], first[1])
    assert final.evaluate(worse, TRACE) == (first[1], one._replace(evaluations=(worse,)))


def test_of_several_in_a_trace_the_top_level_run_is_evaluated() -> None:
    """They stand by their ids, and are forgotten together."""
    final = FinalRuns(OutcomeSettings())
    for one in (run(1), run(2, 1)):
        final.remember(one)

    found = final.evaluate(GOOD, TRACE)
    assert found is not None
    assert found[0] == run(1)
    final.forget(TRACE)
    assert final.evaluate(GOOD, TRACE) is None


def test_the_first_final_runs_are_dropped_beyond_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only so many are remembered."""
    monkeypatch.setattr(evaluations, "MAX_RUNS", 2)
    final = FinalRuns(OutcomeSettings())
    for number in (1, 2, 3):
        final.remember(run(number))

    assert final.evaluate(GOOD, TRACE) is None
    assert final.evaluate(GOOD, testing.trace_id(2)) is not None
    assert final.evaluate(GOOD, testing.trace_id(3)) is not None
