from __future__ import annotations

from itertools import cycle, pairwise

import pytest

from otel_reliability.change.detector import BLIND
from otel_reliability.config import ChangeSettings, MetricSettings, Settings, WindowSettings
from otel_reliability.engine import Engine
from otel_reliability.model.event import RunChange, RunEvent
from otel_reliability.model.run import AgentKey
from otel_reliability.pages import look as looking
from otel_reliability.pages.agent import agent_view
from otel_reliability.pages.look import AgentLook, Changes, changes_of, look_of, taken
from otel_reliability.report.scorecard import scorecard
from otel_reliability.testing import KEY, call, run

SETTINGS = Settings(
    metrics=MetricSettings(min_runs=2),
    windows=(WindowSettings(last=1_000),),
    change=ChangeSettings(signals=("calls",), runs_per_false_alarm=100),
)
PATHS = ("search book", "search book", "search pay", "look", "search search search book")


def engine_of(*paths: str, settings: Settings = SETTINGS) -> Engine:
    """An engine after these runs."""
    engine = Engine(settings, clock=lambda: 0.0, wall=None)
    for number, path in enumerate(paths, start=1):
        happened = run(path.split(), number, task_id=f"task-{number % 2}", token_pressure=0.5)
        engine.receive_events([RunEvent(RunChange.CLOSED, happened, None)])
    return engine


def looked(engine: Engine, key: AgentKey = KEY) -> AgentLook:
    """What is seen of the agent."""
    found = engine.read(lambda fleet: taken(engine, fleet, key))
    assert found is not None
    return look_of(found, engine.settings)


def test_an_agent_is_seen_as_a_report_tells_it() -> None:
    """Outside the engine's turn, from a copy, number by number."""
    engine = engine_of(*PATHS * 4)
    state = engine.fleet.agent(KEY)
    assert state is not None
    whole = scorecard(KEY, state.windows["recent"], [], engine.settings, most_for_intervals=200)

    assert looked(engine).card == whole


def test_of_a_long_window_the_numbers_are_those_of_all_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """And what is behind them is that of the newest."""
    monkeypatch.setattr(looking, "MOST_LOOKED_AT", 10)
    engine = engine_of(*["rare once"] * 5, *PATHS * 4)
    state = engine.fleet.agent(KEY)
    assert state is not None
    whole = scorecard(KEY, state.windows["recent"], [], engine.settings, most_for_intervals=0)
    card = looked(engine).card

    assert card.readings == whole.readings
    assert (card.runs, card.outcomes, card.rows) == (whole.runs, whole.outcomes, tuple(whole.rows))
    assert card.findings.costs == whole.findings.costs
    assert sum(task.runs for task in card.tasks) == 10
    assert "rare" not in {use.tool for use in card.findings.tools}


def test_who_has_expired_is_not_seen() -> None:
    """Nor is anybody unknown."""
    engine = engine_of("a")

    assert engine.read(lambda fleet: taken(engine, fleet, KEY._replace(agent="nobody"))) is None


def test_changes_are_told_as_they_come() -> None:
    """First it learns, then it watches, then it tells; the mark stands where the change began."""
    engine = engine_of(*["a b"] * 10)
    learning = changes_of(engine, KEY)
    calls = cycle(["a b", "a b c"])
    watching = changes_of(engine_of(*(next(calls) for _ in range(BLIND + 5))), KEY)
    changed = looked(engine_of(*(next(calls) for _ in range(100)), *["a b c d e f g"] * 30)).changes

    assert learning.state == "learning"
    assert learning.head == "Learning:"
    assert learning.rest.endswith("more units until a change can be told.")
    assert (watching.state, watching.head) == ("watching", f"No change noticed in {BLIND + 5} units.")
    assert watching.rest.endswith("an alarm takes 100.")
    assert changed.state == "changed"
    assert changed.head.startswith("Changed about unit ")
    assert "more units until a further change can be told" in changed.rest
    assert len(changed.marks) == 1


def test_changes_may_be_switched_off() -> None:
    """Then that is what is said."""
    engine = engine_of("a", settings=Settings(change=ChangeSettings(enabled=False)))

    assert changes_of(engine, KEY) == Changes("off", "Not watched:", "change detection is switched off.")


def test_an_agent_that_no_detector_has_seen_has_no_verdict() -> None:
    """Its runs do not count for changes."""
    engine = engine_of("a")

    assert changes_of(engine, KEY._replace(agent="nobody")).state == "none"


def test_penalties_lead_from_a_hundred_down_to_the_score() -> None:
    """The dearest first, each where the one before ends."""
    view = agent_view(looked(engine_of(*PATHS * 4)))
    known = [part for part in view.penalties if part.filled is not None]

    assert view.line.score is not None
    assert known[-1].start == pytest.approx(view.line.score, abs=0.01)
    assert [part.filled for part in known] == sorted((part.filled for part in known), key=lambda points: -(points or 0))
    assert all(
        later.start == pytest.approx(one.start - (later.filled or 0), abs=0.02) for one, later in pairwise(known)
    )


def test_the_usual_path_is_not_unusual() -> None:
    """However far it is from the others; and who leaves it is shown where."""
    view = agent_view(looked(engine_of(*["search book"] * 6, "search pay", "look far away and wide", "")))
    degrees = {tuple(step.name for step in one.steps): one.degree for one in view.runs}
    parting = {tuple(step.name for step in one.steps): [step.parts for step in one.steps] for one in view.runs}

    assert degrees[("search", "book")] == 0
    assert (degrees[("search", "pay")] or 0) > 0
    assert parting[("search", "pay")] == [False, True]
    assert [one.no_path for one in view.runs if not one.steps] == ["no tool called"]


def test_tasks_whose_attempts_disagree_come_first() -> None:
    """With the tools in which they part, and how many attempts called them; never what they called them with."""
    engine = Engine(SETTINGS, clock=lambda: 0.0, wall=None)
    for number in range(1, 7):
        effect = b"secret" if number % 2 else b"other secret"
        calls = (call("refund_order", effect=effect), call("look_up"))
        facts = {"task_id": f"task-{number % 3}", "tool_calls": calls}
        engine.receive_events([RunEvent(RunChange.CLOSED, run(["refund_order", "look_up"], number, **facts), None)])
    tasks = agent_view(looked(engine)).tasks

    assert [task.runs for task in tasks] == [2, 2, 2]
    assert {task.apart for task in tasks} == {"100 %"}
    assert tasks[0].splits[0].tool == "refund_order"
    assert tasks[0].splits[0].told == "2 different calls, each by 1 of 2"
    assert "secret" not in repr(tasks)
