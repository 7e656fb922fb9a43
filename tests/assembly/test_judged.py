"""Runs that have settled can still be judged."""

from __future__ import annotations

import pytest

from otel_reliability import testing
from otel_reliability.assembly import judged
from otel_reliability.assembly.judged import SettledRuns
from otel_reliability.config import OutcomeSettings
from otel_reliability.model.run import Run
from otel_reliability.model.span import Evaluation

TRACE = testing.trace_id(1)
GOOD = Evaluation("quality", 0.75, None, 5)


def run(number: int, trace: int | None = None) -> Run:
    """The n-th run, which may lie in the trace of another."""
    return testing.run(["search"], number, trace_id=testing.trace_id(trace or number), nested=number > 1 and trace == 1)


def test_a_judgement_makes_a_new_version() -> None:
    """The next one is of that version; one that says nothing new changes nothing."""
    settled, one, worse = SettledRuns(OutcomeSettings()), run(1), GOOD._replace(score=0.5, time_ns=6)
    settled.remember(one)

    first = settled.judge(GOOD, TRACE)
    assert first == (one, one._replace(evaluations=(GOOD,)))
    assert first is not None
    assert settled.judge(GOOD, TRACE) == (first[1], first[1])
    assert settled.judge(worse, TRACE) == (first[1], one._replace(evaluations=(worse,)))


def test_of_several_in_a_trace_the_one_at_the_top_is_judged() -> None:
    """They stand by their ids, and are forgotten together."""
    settled = SettledRuns(OutcomeSettings())
    for one in (run(1), run(2, 1)):
        settled.remember(one)

    found = settled.judge(GOOD, TRACE)
    assert found is not None
    assert found[0] == run(1)
    settled.forget(TRACE)
    assert settled.judge(GOOD, TRACE) is None


def test_the_first_to_have_settled_are_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only so many are remembered."""
    monkeypatch.setattr(judged, "MOST", 2)
    settled = SettledRuns(OutcomeSettings())
    for number in (1, 2, 3):
        settled.remember(run(number))

    assert settled.judge(GOOD, TRACE) is None
    assert settled.judge(GOOD, testing.trace_id(2)) is not None
    assert settled.judge(GOOD, testing.trace_id(3)) is not None


def test_an_exception_out_of_nowhere_has_nobody_keep_those_that_are_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """It comes just before they would have been; they go with the next."""

    def raising(_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(judged, "MOST", 1)
    settled = SettledRuns(OutcomeSettings())
    for number in range(judged.TOGETHER):
        settled.remember(run(number))
    with monkeypatch.context() as patch:
        patch.setattr(judged, "fetch", raising)
        with pytest.raises(KeyboardInterrupt):
            settled.remember(run(1_000))
    for number in range(1_001, 1_001 + judged.TOGETHER):
        settled.remember(run(number))

    assert len(settled._gone) < judged.TOGETHER
