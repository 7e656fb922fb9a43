from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from otel_reliability import testing
from otel_reliability.config import ChangeSettings, LimitSettings, SessionSettings, Settings
from otel_reliability.metrics.sessions import SessionScore, agent_consistency, agent_reliability
from otel_reliability.model.run import AgentKey, Run, RunEvent
from otel_reliability.model.span import Evaluation
from otel_reliability.windows import sessions as module
from otel_reliability.windows.session_runs import derived_signals, session_run_of
from otel_reliability.windows.session_scores import LAST, RecentSessions, SessionScores
from otel_reliability.windows.sessions import SessionEvent, Sessions
from tests.windows.runs import closed, final, revised, withdrawn

KEY = AgentKey("", "shop", "", "support")
OTHER = KEY._replace(agent="other")
IDLE = 1800.0
JUDGED_ONLY = Settings(sessions=SessionSettings(derive=False))


def judged(number: int, session: str | None = "s", *, key: AgentKey = KEY, **facts: Any) -> Run:
    names = {"confidence", "coherence", "loop_detection", "tool_correctness"} & facts.keys()
    evaluations = tuple(Evaluation(name, facts.pop(name), None, 0) for name in sorted(names))
    return testing.run(
        (), number, **({"key": key, "session_id": session, "evaluations": evaluations} | facts)
    )


def told(*runs: Run, settings: Settings = JUDGED_ONLY) -> Sessions:
    sessions = Sessions(settings)
    for second, run in enumerate(runs):
        sessions.apply(closed(run), float(second))
    return sessions


def scores(events: list[SessionEvent]) -> list[tuple[str, float | None, float | None, bool]]:
    """What was said of sessions: (id, reliability, consistency, whether it has just closed)."""
    return [
        (
            event.scores.session_id,
            event.scores.reliability and event.scores.reliability.score,
            event.scores.consistency and event.scores.consistency.score,
            event.first,
        )
        for event in events
    ]


def test_a_session_closes_when_nothing_happened_for_long_enough() -> None:
    sessions = told(judged(1, confidence=0.9))
    sessions.apply(closed(judged(2, confidence=0.6)), 1000.0)

    assert sessions.tick(1000.0 + IDLE - 0.1) == []
    assert scores(sessions.tick(1000.0 + IDLE)) == [("s", 0.6, 0.7085, True)]
    assert sessions.tick(10**6) == []


def test_a_session_is_scored_as_the_bare_functions_score_it() -> None:
    runs = [judged(2, confidence=0.3, coherence=0.9), judged(1, loop_detection=0.8), judged(3)]
    [event] = told(*runs).close_all()
    order = ["run-1", "run-2", "run-3"]
    signals = {"run-1": {"loop_detection": 0.8}, "run-2": {"confidence": 0.3, "coherence": 0.9}}

    assert event.scores.runs == tuple(order)
    assert event.scores.reliability == agent_reliability(order, signals)
    assert event.scores.consistency == agent_consistency(order, signals)
    assert event.scores.derived == ()
    assert (event.scores.start_ns, event.scores.end_ns) == (runs[1].start_ns, runs[2].end_ns)


def test_sessions_are_told_apart_by_agent_and_id() -> None:
    runs = [
        judged(1, "a", confidence=0.9),
        judged(2, "b", confidence=0.8),
        judged(3, "a", key=OTHER, confidence=0.7),
    ]
    events = told(*runs).close_all()

    found = [
        (event.scores.key.agent, event.scores.session_id, event.scores.runs) for event in events
    ]
    assert found == [
        ("support", "a", ("run-1",)),
        ("support", "b", ("run-2",)),
        ("other", "a", ("run-3",)),
    ]


@pytest.mark.parametrize("facts", [{"session_id": None}, {"nested": True}, {"condition": "fault"}])
def test_only_top_level_baseline_runs_of_a_session_count(facts: dict[str, Any]) -> None:
    assert told(judged(1, confidence=0.9, **facts)).close_all() == []


@pytest.mark.parametrize(
    ("change", "expected", "runs"),
    [
        (closed(judged(2, confidence=0.5)), [("s", 0.5, 0.6394, False)], 2),
        (
            revised(judged(1, confidence=0.2), judged(1, confidence=0.9)),
            [("s", 0.2, 0.2, False)],
            1,
        ),
        (final(judged(1, confidence=0.9)), [], 1),
    ],
    ids=["a late run", "a late evaluation", "no change"],
)
def test_a_late_change_has_a_closed_session_scored_again(
    change: RunEvent, expected: list[Any], runs: int
) -> None:
    sessions = told(judged(1, confidence=0.9))
    sessions.tick(IDLE)

    sessions.apply(change, IDLE + 60)

    assert sessions.number_open == 0
    assert scores(sessions.tick(IDLE + 60)) == expected
    assert sessions.remembered_runs == runs
    assert sessions.tick(10**6) == []


def test_a_withdrawn_run_leaves_its_session() -> None:
    first = judged(1, confidence=0.9)
    second = judged(2, confidence=0.5)
    sessions = told(first, second)
    sessions.close_all()

    sessions.apply(withdrawn(second), 2.0)
    assert scores(sessions.tick(2.0)) == [("s", 0.9, 0.9, False)]

    sessions.apply(withdrawn(first), 3.0)
    assert sessions.tick(3.0) == []
    assert (len(sessions), sessions.remembered_runs) == (0, 0)
    assert sessions.recent(KEY) is None


@pytest.mark.parametrize(
    ("signals", "expected", "refused"),
    [
        ({}, (None, None), 0),
        ({"coherence": 0.7}, (0.7, None), 0),
        *(
            ({"coherence": 0.7, "confidence": wrong}, (0.7, None), 1)
            for wrong in (1.7, -0.1, float("nan"))
        ),
    ],
)
def test_without_a_signal_in_range_there_is_no_score(
    signals: dict[str, Any], expected: Any, refused: int
) -> None:
    """The bare functions answer 1.0 without signals; here nothing is claimed. Consistency needs a
    confidence.
    """
    sessions = told(judged(1, **signals))

    assert scores(sessions.close_all()) == [("s", *expected, True)]
    assert sessions.accounts == ({("signals", "confidence"): 1} if refused else {})


def test_signals_are_derived_from_tool_calls_unless_switched_off() -> None:
    calls = (
        testing.call("a"),
        testing.call("a", 1, repeat=True),
        testing.call("b", 2, ok=False),
        testing.call("c", 3),
    )
    run = judged(1, confidence=0.9, loop_detection=1.0, tool_calls=calls)

    [derived] = told(run, settings=Settings()).close_all()
    [alone] = told(run).close_all()

    assert derived.scores.derived == ("tool_correctness",)
    assert derived.scores.reliability is not None
    assert derived.scores.reliability.score == 0.8
    assert alone.scores.derived == ()
    assert alone.scores.reliability is not None
    assert alone.scores.reliability.score == 0.9


def test_weights_are_those_of_the_settings() -> None:
    settings = Settings(sessions=SessionSettings(derive=False, weights={"coherence": 0.5}))
    [event] = told(judged(1, coherence=0.0), settings=settings).close_all()

    assert event.scores.reliability is not None
    assert event.scores.reliability.score == 0.5
    assert event.scores.reliability.metadata["signal_weights"]["tool_correctness"] == 0.8


def test_agents_that_are_not_known_have_no_sessions() -> None:
    sessions = Sessions(JUDGED_ONLY, known=lambda key: key == KEY)
    sessions.apply(closed(judged(1, key=OTHER, confidence=0.9)), 0.0)

    assert len(sessions) == 0


def test_an_expired_agent_is_forgotten_whole() -> None:
    sessions = told(judged(1, "a", confidence=0.9), judged(2, "b", key=OTHER, confidence=0.9))
    sessions.close_all()
    sessions.apply(closed(judged(3, "c", confidence=0.9)), 5.0)

    sessions.forget(KEY)

    assert sessions.recent(KEY) is None
    assert (len(sessions), sessions.number_open, sessions.remembered_runs) == (1, 0, 1)
    assert [event.scores.session_id for event in sessions.close_all()] == []


def test_beyond_the_limit_the_first_to_have_closed_is_forgotten() -> None:
    settings = Settings(sessions=SessionSettings(derive=False), limits=LimitSettings(sessions=2))
    sessions = told(
        judged(1, "a", confidence=0.9), judged(2, "b", confidence=0.8), settings=settings
    )
    sessions.close_all()

    sessions.apply(closed(judged(3, "c", confidence=0.7)), 9.0)

    assert (len(sessions), sessions.remembered_runs) == (2, 2)
    assert sessions.accounts == {("sessions", "forgotten"): 1}
    assert [found.session_id for found in sessions.scores(KEY)] == ["b"]
    recent = sessions.recent(KEY)
    assert recent is not None
    assert [one.session_id for one in recent.sessions()] == ["a", "b"]


def test_beyond_the_limit_the_longest_idle_session_closes_early() -> None:
    settings = Settings(sessions=SessionSettings(derive=False), limits=LimitSettings(sessions=1))
    sessions = told(
        judged(1, "a", confidence=0.9), judged(2, "b", confidence=0.8), settings=settings
    )

    assert scores(sessions.tick(2.0)) == [("a", 0.9, 0.9, True)]
    assert sessions.accounts == {("sessions", "closed_early"): 1, ("sessions", "forgotten"): 1}
    assert sessions.number_open == 1


def test_an_endless_session_keeps_its_newest_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_RUNS", 2)
    sessions = told(*(judged(number, confidence=number / 10) for number in (3, 1, 2, 4)))

    [event] = sessions.close_all()
    assert event.scores.runs == ("run-3", "run-4")
    assert event.observation is not None
    assert event.observation.start_ns == judged(3).start_ns
    assert sessions.accounts == {("session_runs", "limit"): 2}
    assert sessions.remembered_runs == 2


def test_a_run_may_leave_a_session_empty_where_there_is_no_room_for_another() -> None:
    """The session that it left goes first: it is none that could be closed early."""
    sessions = told(
        judged(1, "a", confidence=0.9),
        judged(2, "b"),
        settings=Settings(limits=LimitSettings(sessions=2)),
    )
    before = judged(1, "a", confidence=0.9)
    after = judged(1, "c", confidence=0.9)

    sessions.apply(revised(after, before), 3.0)

    assert {session_id for session_id, *_ in scores(sessions.close_all())} == {"b", "c"}
    assert sessions.accounts == {}


def test_runs_of_all_sessions_together_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_REMEMBERED_RUNS", 3)
    sessions = told(*(judged(number, f"s{number % 2}", confidence=0.5) for number in range(1, 9)))

    assert sessions.remembered_runs <= 3
    assert sessions.accounts["sessions", "forgotten"] > 0


def drawn(number: int, session: str | None, agent: str, signals: dict[str, float]) -> Run:
    return judged(number, session, key=KEY._replace(agent=agent), **signals)


SIGNALS = st.dictionaries(st.sampled_from(["confidence", "coherence"]), st.floats(0, 1))
RUNS = st.lists(
    st.builds(
        drawn,
        st.integers(1, 40),
        st.sampled_from(["a", "a", "b", None]),
        st.sampled_from(["one", "two"]),
        SIGNALS,
    ),
    max_size=12,
    unique_by=lambda run: run.run_id,
)


def state(sessions: Sessions) -> list[Any]:
    keys = [KEY._replace(agent=agent) for agent in ("one", "two")]
    recents = [sessions.recent(key) or RecentSessions() for key in keys]
    readings = [recent.readings() for recent in recents]
    return [
        [sessions.scores(key) for key in keys],
        readings,
        sessions.remembered_runs,
        len(sessions),
    ]


@given(
    runs=RUNS,
    others=RUNS,
    seed=st.randoms(use_true_random=False),
    step=st.sampled_from([0.0, 1.0, IDLE]),
)
def test_scores_depend_on_the_runs_alone(
    runs: list[Run], others: list[Run], seed: Any, step: float
) -> None:
    mixed = mixed_up(runs, others, seed, step)
    plain = told(*runs)
    plain.close_all()

    assert state(mixed) == state(plain)


@given(
    runs=RUNS,
    others=RUNS,
    seed=st.randoms(use_true_random=False),
    step=st.sampled_from([0.0, 1.0, IDLE]),
)
def test_sessions_restored_after_a_restart_score_as_before(
    runs: list[Run], others: list[Run], seed: Any, step: float
) -> None:
    sessions = mixed_up(others, [], seed, step, stored=True)
    restored = Sessions(JUDGED_ONLY)
    for second, run in enumerate(runs[:6]):
        sessions.apply(closed(run), 10.0**6 + second)
    sessions.tick(10.0**6 + 6)
    found = [change for change in sessions.changes() if change[1] is not None]
    restored.restore(found)
    assert state(restored) == state(sessions)
    for run in runs[6:]:
        sessions.apply(closed(run), 10.0**6 + 60)
        restored.apply(closed(run), 10.0**6 + 60)
    for now in (10.0**6 + 70, 10.0**6 + IDLE + 3, 10.0**7):
        assert restored.tick(now) == sessions.tick(now)
    assert state(restored) == state(sessions)


def mixed_up(
    runs: list[Run], others: list[Run], seed: Any, step: float, *, stored: bool = False
) -> Sessions:
    mixed = Sessions(JUDGED_ONLY)
    if stored:
        assert list(mixed.changes()) == []
    former = {run.run_id: run for run in others}
    arrival = [*runs, *(run for run in others if run.run_id not in {one.run_id for one in runs})]
    seed.shuffle(arrival)
    for second, run in enumerate(arrival):
        mixed.apply(closed(former.get(run.run_id, run)), second * step)
        mixed.tick(second * step)
    for run in arrival:
        mixed.apply(revised(run, former[run.run_id]) if run.run_id in former else final(run), 10**6)
    for run in arrival:
        if run not in runs:
            mixed.apply(withdrawn(run), 10**6)
    mixed.tick(10**6)
    mixed.close_all()
    return mixed


@given(runs=RUNS)
def test_scores_are_told_with_and_without_what_explains_them(runs: list[Run]) -> None:
    for event in told(*runs).close_all():
        recent = RecentSessions()
        recent.add_explained(event.scores)
        assert recent.sessions() == [event.session]
        assert event.key == event.scores.key


# --- What change detection compares ---------------------------------------------------------------


def run(calls: int, session: str | None = "s", **facts: Any) -> Run:
    """A run that is known by its number of calls."""
    return testing.run(["search"] * calls, calls, key=KEY, session_id=session, **facts)


def observed(events: list[SessionEvent]) -> dict[str, int | None]:
    """The calls of the observations by session."""
    return {
        event.session.session_id: event.observation.calls
        for event in events
        if event.observation is not None
    }


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ([closed(run(4))], {"s": 7}),
        ([closed(run(4, incomplete=True))], {"s": 3}),
        ([closed(run(4, incomplete=True)), revised(run(4), run(4, incomplete=True))], {"s": 7}),
        ([revised(replace(run(1), tool_calls=()), run(1))], {"s": 2}),
        ([revised(run(1, incomplete=True), run(1))], {"s": 2}),
        ([revised(run(1, "t"), run(1))], {"s": 2, "t": 1}),
        ([withdrawn(run(1))], {"s": 2}),
        ([withdrawn(run(1)), withdrawn(run(2))], {}),
        ([revised(run(4), run(4, None))], {"s": 3}),
    ],
    ids=[
        "one more",
        "incomplete",
        "completed",
        "changed",
        "cut",
        "moved",
        "withdrawn",
        "all withdrawn",
        "observed alone",
    ],
)
def test_a_session_is_an_observation_of_its_runs_as_it_closes(
    changes: list[RunEvent], expected: dict[str, int]
) -> None:
    sessions = told(run(1), run(2))
    for change in changes:
        sessions.apply(change, 2.0)

    assert observed(sessions.tick(IDLE + 2)) == expected


def test_a_session_is_an_observation_once() -> None:
    sessions = told(run(1), run(2))
    assert observed(sessions.tick(IDLE + 1)) == {"s": 3}

    for late in (closed(run(4)), revised(run(1, "t"), run(1)), withdrawn(run(2))):
        sessions.apply(late, IDLE + 2)
    events = sessions.tick(3 * IDLE)
    assert [(event.session.session_id, event.first) for event in events] == [
        ("t", True),
        ("s", False),
    ]
    assert observed(events) == {}


def test_nothing_is_observed_where_change_detection_is_switched_off() -> None:
    settings = Settings(change=ChangeSettings(enabled=False))
    assert observed(told(run(1), settings=settings).tick(IDLE)) == {}


@given(
    moments=st.lists(st.integers(0, 5), min_size=1, max_size=8),
    seed=st.randoms(use_true_random=False),
)
def test_sessions_close_in_the_same_order_at_any_ticks_and_after_a_restart(
    moments: list[int], seed: Any
) -> None:
    often, once, restored = (Sessions(JUDGED_ONLY) for _ in range(3))
    assert list(once.changes()) == []
    for moment, number in zip(sorted(moments), seed.sample(range(8), len(moments)), strict=True):
        for sessions in (often, once):
            sessions.apply(closed(run(number, f"s{number * 3 % 8}")), moment)
    stored = list(once.changes())
    seed.shuffle(stored)
    restored.restore(stored)

    at_each_second = [
        [event for second in range(6) for event in one.tick(IDLE + second)]
        for one in (often, restored)
    ]
    assert at_each_second == [once.tick(IDLE + 5)] * 2


# --- Long sessions --------------------------------------------------------------------------------


def test_a_long_session_scores_as_a_short_one_would() -> None:
    runs = [judged(number, confidence=number / 20) for number in range(1, 14)]
    sessions = told(*runs)
    sessions.apply(revised(judged(3, confidence=0.9), runs[2]), 20.0)
    sessions.apply(withdrawn(runs[4]), 21.0)

    [event] = sessions.close_all()
    assert sessions.remembered_runs == 12
    kept = {
        f"run-{number:d}": {"confidence": 0.9 if number == 3 else number / 20}
        for number in range(1, 14)
        if number != 5
    }
    assert event.scores.reliability == agent_reliability(list(kept), kept)
    assert event.reliability == agent_reliability(list(kept), kept).score


# --- The signals of a run -------------------------------------------------------------------------


def scored_as(name: str, score: float | None) -> Evaluation:
    return Evaluation(name, score, None if score is not None else "good", 0)


BOTH = ("loop_detection", "tool_correctness")


@pytest.mark.parametrize(
    ("path", "evaluations", "signals", "derived", "refused"),
    [
        ([], [scored_as("confidence", 0.4)], {"confidence": 0.4}, (), ()),
        ([], [scored_as("helpfulness", 0.1), scored_as("coherence", None)], {}, (), ()),
        (
            ["a"],
            [scored_as("tool_correctness", 2.0)],
            dict.fromkeys(BOTH, 1.0),
            BOTH,
            ("tool_correctness",),
        ),
        (
            ["a"],
            [scored_as("tool_correctness", 0.5), scored_as("coherence", 0.7)],
            {"loop_detection": 1.0, "tool_correctness": 0.5, "coherence": 0.7},
            ("loop_detection",),
            (),
        ),
        (None, [], {}, (), ()),
    ],
    ids=[
        "judged",
        "other names and labels",
        "refused, then derived",
        "judged, not derived",
        "tools not observable",
    ],
)
def test_signals_are_those_of_evaluations_else_derived_from_calls(
    path: list[str] | None,
    evaluations: list[Evaluation],
    signals: dict[str, float],
    derived: tuple[str, ...],
    refused: tuple[str, ...],
) -> None:
    kept, found = session_run_of(testing.run(path, evaluations=tuple(evaluations)), True)

    assert (kept.signals, kept.derived, found) == (signals, derived, refused)


def test_shares_of_repeats_and_failures() -> None:
    calls = (
        testing.call("a"),
        testing.call("a", 1, repeat=True),
        testing.call("b", 2, ok=False),
        testing.call("b", 3, ok=False, retry=True),
    )
    assert derived_signals(calls) == {"loop_detection": 0.75, "tool_correctness": 0.5}


# --- The gauges of recent sessions ----------------------------------------------------------------


def scored(
    number: int, reliability: float | None = 0.5, consistency: float | None = None, **facts: Any
) -> SessionScores:
    metadata = {"traces_evaluated": 2}
    return SessionScores(
        KEY,
        session_id=f"s{number}",
        runs=("a", "b"),
        start_ns=0,
        end_ns=number,
        reliability=None if reliability is None else SessionScore(reliability, "", metadata),
        consistency=None if consistency is None else SessionScore(consistency, "", metadata),
        **({"derived": ()} | facts),
    )


def recent(*sessions: SessionScores) -> RecentSessions:
    found = RecentSessions()
    for session in sessions:
        found.add_explained(session)
    return found


def values(sessions: RecentSessions) -> dict[str, float | None]:
    return {name: reading.value for name, reading in sessions.readings().items()}


def test_gauges_are_the_mean_and_the_worst() -> None:
    found = values(recent(scored(1, 1.0, 0.9), scored(2, 0.5), scored(3, None, 0.3)))

    assert found == {
        "mean_session_reliability": 0.75,
        "min_session_reliability": 0.5,
        "mean_session_consistency": 0.6,
        "min_session_consistency": 0.3,
    }


def test_no_session_gives_no_value() -> None:
    assert set(values(recent()).values()) == {None}
    assert recent(scored(1, None)).series() == []


def test_readings_tell_what_stands_behind_them() -> None:
    reading = recent(scored(1), scored(2, derived=("loop_detection",))).readings()[
        "mean_session_reliability"
    ]

    assert reading.runs == 4
    assert reading.note == "last 2 sessions; derived: loop_detection"


def test_only_the_last_sessions_count() -> None:
    sessions = [scored(number, 0.0 if number < 5 else 1.0) for number in range(LAST + 5)]

    assert values(recent(*reversed(sessions)))["mean_session_reliability"] == 1.0
    assert values(recent(*sessions))["mean_session_reliability"] == 1.0
    assert len(recent(*sessions)) == LAST


def test_a_session_scored_again_counts_once() -> None:
    found = recent(scored(1, 0.2), scored(2, 0.5), scored(1, 0.9)._replace(end_ns=3))

    assert [one.session_id for one in found.sessions()] == ["s2", "s1"]
    assert values(found)["min_session_reliability"] == 0.5
