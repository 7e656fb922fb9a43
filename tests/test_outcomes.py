"""Outcomes that are reported apart from spans reach their runs whenever they arrive."""

from __future__ import annotations

import itertools

import pytest

from otel_reliability.assembly.evaluations import WAIT
from otel_reliability.config import MappingSettings, MetricSettings, Settings, WindowSettings
from otel_reliability.engine import Engine
from otel_reliability.model.outcomes import BadOutcome, outcome_of, read_outcome
from otel_reliability.model.run import Outcome
from otel_reliability.model.span import Evaluation, RawSpan, Subject, SubjectKind
from otel_reliability.testing import FakeClock, at, span, span_id, trace_id
from otel_reliability.windows.agents import AgentState

LONG = 3 * 3600.0
"""Seconds after which assembly has forgotten a trace."""
SETTINGS = Settings(
    windows=(WindowSettings("recent", last=10),),
    mapping=MappingSettings(outcome_key=("ticket",)),
    metrics=MetricSettings(min_runs=2),
    hash_key="00" * 16,
)
SUBJECTS = {
    "trace": Subject(SubjectKind.TRACE, trace_id(1).hex()),
    "run": Subject(SubjectKind.RUN, f"{trace_id(1).hex()}-{span_id(1).hex()}"),
    "session": Subject(SubjectKind.SESSION, "chat-1"),
    "key": Subject(SubjectKind.KEY, "T-1"),
}
LATER_NS = at(1_000_000)


def agent_spans(number: int, *, session: str | None = None, **notes: object) -> list[RawSpan]:
    """Return a run with a nested one, of its own session and ticket."""
    facts = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "desk",
        "gen_ai.conversation.id": session or f"chat-{number}",
        "ticket": f"T-{number}",
        **notes,
    }
    inner = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "helper"}
    ask = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "ask"}
    look = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "look"}
    start = 100.0 * number
    return [
        span(1, trace=number, start=start, end=start + 9, attributes=facts),
        span(2, 1, trace=number, start=start + 1, end=start + 4, attributes=ask),
        span(3, 2, trace=number, start=start + 1, end=start + 4, attributes=inner),
        span(4, 3, trace=number, start=start + 2, end=start + 3, attributes=look),
    ]


class Bench:
    """An engine whose clock a test winds."""

    def __init__(self) -> None:
        self.clock = FakeClock(1_000.0)
        self.engine = Engine(SETTINGS, clock=self.clock, wall=None)

    def runs(self, *numbers: int, **facts: object) -> None:
        for number in numbers:
            self.engine.receive(agent_spans(number, **facts))  # type: ignore[arg-type]

    def wait(self, seconds: float) -> None:
        """Let time pass, in which runs close, become final, and are forgotten one after another."""
        for step in (min(seconds, 5.0), min(max(seconds - 5.0, 0.0), 95.0), seconds - 100.0):
            self.clock.advance(max(step, 0.0))
            self.engine.tick()

    def report(self, about: Subject, time_ns: int = LATER_NS, *, success: bool) -> int:
        [reached] = self.engine.report_outcomes([outcome_of(success, about, time_ns)]) or [0]
        self.engine.tick()
        return reached

    def state(self, agent: str = "desk") -> AgentState:
        keys = self.engine.agents.keys()
        [key] = [key for key in keys if key.agent == agent]
        state = self.engine.agents.agent(key)
        assert state is not None
        return state

    def outcomes(self, agent: str = "desk") -> list[Outcome]:
        return [row.outcome for row in self.state(agent).first_window.rows()]


@pytest.mark.parametrize("kind", SUBJECTS)
@pytest.mark.parametrize("waited", [None, 0.0, 5.0, 100.0, LONG])
def test_outcome_reaches_its_run_whenever_it_arrives(kind: str, waited: float | None) -> None:
    """Before its spans (None), while the run is open, closed, final, and when only the window
    holds it.
    """
    bench = Bench()
    if waited is None:
        assert bench.report(SUBJECTS[kind], success=False) == 0
    bench.runs(1)
    bench.runs(2, **{"reliability.run.success": True})
    if waited is not None:
        bench.wait(waited)
        reached = bench.report(SUBJECTS[kind], success=False)
        assert reached == (waited > 0.0)
    bench.wait(100.0)

    assert bench.outcomes() == [Outcome.FAILURE, Outcome.SUCCESS]
    assert bench.outcomes("helper") == [Outcome.COMPLETED, Outcome.COMPLETED]
    assert bench.state().first_window.reading("success_rate").value == 0.5
    assert [run.outcome for run in bench.state().recent] == bench.outcomes()
    late = [one.outcome for one in bench.engine.take_late()]
    final = {run.run_id: run.outcome for run in bench.engine.take_final()}
    named = final[SUBJECTS["run"].value]
    assert (named, late) == (
        (Outcome.COMPLETED, [Outcome.FAILURE]) if waited in {100.0, LONG} else (Outcome.FAILURE, [])
    )


@pytest.mark.parametrize("waits", list(itertools.product([0.0, 5.0, LONG], repeat=3)))
@pytest.mark.parametrize("order", list(itertools.permutations([0, 1, 2])))
def test_of_several_outcomes_the_latest_counts_in_any_order(
    order: tuple[int, ...], waits: tuple[float, ...]
) -> None:
    told = [(SUBJECTS["key"], 1, True), (SUBJECTS["trace"], 3, False), (SUBJECTS["run"], 2, True)]
    bench = Bench()
    bench.runs(1)
    for number, wait in zip(order, waits, strict=True):
        bench.wait(wait)
        about, since, success = told[number]
        bench.report(about, LATER_NS + since, success=success)
    bench.wait(100.0)

    assert bench.outcomes() == [Outcome.FAILURE]


def test_late_outcome_keeps_the_path_of_its_run() -> None:
    """A row is replaced, and holds its path still: names that no path has may be used again."""
    facts = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "desk"}
    bench = Bench()
    for number, name in enumerate(("search", "book", "pay"), 1):
        call = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name}
        root = span(1, trace=number, start=number, end=number + 1, attributes=facts)
        bench.engine.receive([root, span(2, 1, trace=number, start=number, attributes=call)])
        bench.wait(LONG)
        assert bench.report(SUBJECTS["trace"], LATER_NS + number, success=number == 2) == 1

    window = bench.state().first_window
    assert [row.path and row.path.names for row in window.rows()] == [
        ("search",),
        ("book",),
        ("pay",),
    ]
    assert window.reading("distinct_paths").value == 3


def test_equal_outcomes_change_nothing_and_count_once() -> None:
    bench = Bench()
    bench.runs(1)
    bench.wait(LONG)
    for _ in range(3):
        assert bench.report(SUBJECTS["key"], success=True) == 1
    assert [one.outcome for one in bench.engine.take_late()] == [Outcome.SUCCESS]
    bench.report(SUBJECTS["key"], LATER_NS + 1, success=False)
    assert [one.outcome for one in bench.engine.take_late()] == [Outcome.FAILURE]


def test_reported_outcome_is_stronger_than_that_of_the_agent() -> None:
    bench = Bench()
    bench.runs(1, **{"reliability.run.success": True})
    bench.runs(2, **{"reliability.run.success": True})
    bench.wait(5.0)
    bench.report(SUBJECTS["key"], success=False)
    bench.wait(LONG)
    bench.report(Subject(SubjectKind.KEY, "T-2"), success=False)

    assert bench.outcomes() == [Outcome.FAILURE, Outcome.FAILURE]


@pytest.mark.parametrize("waited", [None, 5.0, 100.0, LONG])
def test_outcome_of_a_session_is_about_the_runs_that_had_begun(waited: float | None) -> None:
    bench = Bench()
    about = Subject(SubjectKind.SESSION, "chat")
    if waited is None:
        bench.report(about, at(250.0), success=True)
    bench.runs(1, 2, 3, session="chat")
    if waited is not None:
        bench.wait(waited)
        assert bench.report(about, at(250.0), success=True) == 2
    bench.wait(100.0)

    assert bench.outcomes() == [Outcome.SUCCESS, Outcome.SUCCESS, Outcome.COMPLETED]


def test_evaluation_of_a_forgotten_trace_reaches_the_window() -> None:
    bench = Bench()
    bench.runs(1)
    bench.wait(LONG)
    bench.engine.receive_evaluations([Evaluation("correctness", 0.9, None, 5, trace_id(1))])

    assert bench.outcomes() == [Outcome.SUCCESS]
    [row] = bench.state().first_window.rows()
    assert row.signals == (("correctness", 0.9),)


def test_unknown_subjects_reach_nothing_and_are_counted() -> None:
    bench = Bench()
    bench.runs(1)
    bench.wait(5.0)
    for kind in SubjectKind:
        if kind != SubjectKind.HASHED_KEY:
            other = "ff" * 16 if kind == SubjectKind.TRACE else "another"
            assert bench.report(Subject(kind, other), success=True) == 0
    bench.wait(WAIT + 1.0)

    assert bench.engine.refused_evaluations["no_run"] == 4
    assert bench.outcomes() == [Outcome.COMPLETED]


def test_windows_stay_as_they_were_but_for_the_outcome() -> None:
    bench = Bench()
    bench.runs(*range(1, 15))
    bench.wait(LONG)
    window = bench.state().first_window
    before = [row.run_id for row in window.rows()]
    paths = window.reading("path_entropy")
    oldest = window.rows()[0].session_id or ""
    assert bench.report(Subject(SubjectKind.SESSION, oldest), success=True) == 1

    assert [row.run_id for row in window.rows()] == before
    assert window.reading("path_entropy") == paths
    assert window.reading("success_rate").runs == 1
    assert bench.report(SUBJECTS["key"], success=True) == 0  # no window holds it any more


def test_key_is_kept_as_a_keyed_hash() -> None:
    bench = Bench()
    bench.runs(1)
    bench.wait(5.0)
    [row] = bench.state().first_window.rows()

    assert row.outcome_key is not None
    assert "T-1" not in row.outcome_key
    assert row.outcome_key == bench.engine.reader.hasher.text("T-1")


@pytest.mark.parametrize(
    ("facts", "why"),
    [
        ({"success": True}, "give one of"),
        ({"key": "a", "run_id": "b", "success": True}, "give one of"),
        ({"key": "a"}, "success is not true or false"),
        ({"key": "a", "success": "perhaps"}, "success is not true or false"),
        ({"key": ["a"], "success": True}, "key is not a text"),
        ({"trace_id": "xyz", "success": True}, "trace_id is not 32 hexadecimal digits"),
        ({"key": "a", "success": True, "time": "soon"}, "time is not a time like"),
    ],
)
def test_what_is_no_outcome_is_refused(facts: dict[str, object], why: str) -> None:
    with pytest.raises(BadOutcome, match=why):
        read_outcome(facts, 1)
