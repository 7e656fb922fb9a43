"""What is remembered of other traces is bounded, and what is forgotten is counted."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from otel_reliability.assembly import resumptions
from otel_reliability.assembly.across_traces import AcrossTraces
from otel_reliability.assembly.replayed_runs import ReplayedRuns
from otel_reliability.config import Settings
from otel_reliability.model.remembered import Remembered
from otel_reliability.testing import run


def test_runs_of_a_restart_are_bounded_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resumptions, "MAX_CONVERSATIONS", 3)
    monkeypatch.setattr("otel_reliability.assembly.replayed_runs.MAX_FIRST_STEPS", 3)
    monkeypatch.setattr("otel_reliability.assembly.response_chains.MAX_TURNS", 3)
    across = AcrossTraces(Settings(), lambda _trace_id, _run_id: None)
    for number in range(10):
        one = run(["search"], number)
        across.restore_final(
            replace(
                one,
                session_id=f"talk {number}",
                first_step=f"r{number}",
                last_response=f"r{number}",
            )
        )

    used = {limit.name: (limit.used, limit.limit, limit.hits) for limit in across.limits}
    assert used == {
        "response_turns": (1, 3, 9),
        "first_steps": (1, 3, 9),
        "conversations": (1, 3, 9),
    }


def test_a_run_that_is_restored_twice_is_remembered_once() -> None:
    known = ReplayedRuns(Settings().outcome, lambda _trace_id, _run_id: None)
    one = replace(run(["search"], 1), first_step="r1")
    for _ in range(2):
        known.restore_final(one)

    assert known.limit.used == 1


def test_what_is_forgotten_is_counted() -> None:
    known = Remembered[int, int](2)
    for number in range(5):
        known[number] = number

    assert (len(known), known.forgotten) == (1, 4)
