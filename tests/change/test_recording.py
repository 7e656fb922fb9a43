from __future__ import annotations

import itertools

import pytest

from otel_reliability.change import recording
from otel_reliability.change.recording import Observations, evaluate
from otel_reliability.change.result import Result
from otel_reliability.config import ChangeSettings
from otel_reliability.model.run import AgentKey
from otel_reliability.testing import run
from tests.change.build import exchangeable

SETTINGS = ChangeSettings(runs_per_false_alarm=500)


def test_observations_are_ordered_and_sessions_joined() -> None:
    runs = [
        run(["a"], 4, session_id="s"),
        run(["b"], 1, session_id="s"),
        run(["c"], 2),
        run(["d"], 9, nested=True),
        run(["e"], 3, incomplete=True),
        run(["f"], 5, condition="fault"),
    ]
    for order in itertools.permutations(runs):
        (observations,) = Observations(order).values()
        assert [(one.id, one.path) for one in observations] == [
            ("run-2", ("c",)),
            ("s", ("b", "a")),
        ]


def test_agents_are_judged_apart() -> None:
    other = AgentKey("", "other", "", "agent")
    found = Observations([run(["a"], 1, session_id="s"), run(["b"], 2, session_id="s", key=other)])
    assert [[one.path for one in observations] for observations in found.values()] == [
        [("a",)],
        [("b",)],
    ]


def test_a_run_is_not_taken_for_the_session_of_its_name() -> None:
    """A session may be called like a run of no session."""
    (observations,) = Observations([run(["a"], 1), run(["b"], 2, session_id="run-1")]).values()
    assert len(observations) == 2


def test_a_change_near_the_end_is_told_though_it_learns_anew_there() -> None:
    judgement = evaluate(exchangeable(100) + exchangeable(25, 1, 101, longer=4), SETTINGS)
    assert judgement.result is Result.CHANGED
    assert len(judgement.alarms) == 1


def test_a_run_may_come_at_any_time() -> None:
    runs = [
        run([tool], at, session_id=session)
        for tool, at, session in (("a", 4, "s"), ("b", 1, "s"), ("c", 2, None))
    ]
    observations = Observations()
    for one in reversed(runs):
        observations.add([one])
    assert observations == Observations(runs)


def test_of_an_endless_recording_the_latest_observations_stay(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    runs = [run(["a"], at) for at in range(100)]
    every = dict(Observations(runs))
    monkeypatch.setattr(recording, "MAX_OBSERVATIONS", 10)
    (kept,) = Observations(runs).values()
    assert kept == next(iter(every.values()))[-10:]
