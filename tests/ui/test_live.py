from __future__ import annotations

from dataclasses import replace
from itertools import cycle

import pytest

from otel_reliability.change.detector import BLIND
from otel_reliability.config import ChangeSettings, MetricSettings, Settings, WindowSettings
from otel_reliability.engine import Engine
from otel_reliability.model.run import AgentKey, RunChange, RunEvent
from otel_reliability.read_view import ReadView
from otel_reliability.report.build import AgentSource, agent_view
from otel_reliability.report.view import AgentView
from otel_reliability.testing import KEY, run
from otel_reliability.ui import live
from otel_reliability.ui.live import change_of, live_view, snapshot
from otel_reliability.ui.runs import run_lines

SETTINGS = Settings(
    metrics=MetricSettings(min_runs=2),
    windows=(WindowSettings(last=1_000),),
    change=ChangeSettings(runs_per_false_alarm=100),
)
PATHS = ("search book", "search book", "search pay", "look", "search search search book")


def engine_of(*paths: str, settings: Settings = SETTINGS) -> Engine:
    engine = Engine(settings, clock=lambda: 0.0, wall=None)
    for number, path in enumerate(paths, start=1):
        happened = run(path.split(), number, task_id=f"task-{number % 2}", token_pressure=0.5)
        engine.receive_events([RunEvent(RunChange.CLOSED, happened, None)])
    return engine


def read(engine: Engine, key: AgentKey = KEY) -> AgentSource | None:
    def ask(view: ReadView) -> AgentSource | None:
        return snapshot(view, key)

    return engine.read(ask)


def viewed(engine: Engine) -> AgentView:
    found = read(engine)
    assert found is not None
    return live_view(found, engine.settings)


def whole(engine: Engine, max_runs_for_intervals: int) -> AgentView:
    """The view of the agent, from its window as a whole."""
    found = read(engine)
    assert found is not None
    source = found._replace(readings=found.window.readings())
    return agent_view(source, engine.settings, max_runs_for_intervals)


def test_a_service_shows_what_a_report_shows() -> None:
    engine = engine_of(*PATHS * 4)
    found, expected = (replace(view, sessions=()) for view in (viewed(engine), whole(engine, 200)))

    assert found == expected


def test_of_a_long_window_the_numbers_cover_all_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "MAX_EXAMINED", 10)
    engine = engine_of(*["rare once"] * 5, *PATHS * 4)
    found = viewed(engine)
    expected = whole(engine, 0)

    values = {name: (reading.value, reading.runs) for name, reading in found.metrics.items()}
    assert values == {
        name: (reading.value, reading.runs) for name, reading in expected.metrics.items()
    }
    assert (found.runs, found.outcomes, found.paths) == (25, expected.outcomes, expected.paths)
    assert found.findings.costs == expected.findings.costs
    assert sum(task.runs for task in found.tasks) == 10
    assert "rare" not in {use.tool for use in found.findings.tools}
    assert {reading.method for reading in found.metrics.values()} == {""}


def test_change_detection_collects_a_baseline_then_watches_then_alarms() -> None:
    baseline = change_of(engine_of(*["a b"] * 10).view, KEY)
    calls = cycle(["a b", "a b c"])
    watching = change_of(engine_of(*(next(calls) for _ in range(BLIND + 5))).view, KEY)
    changed = change_of(
        engine_of(*(next(calls) for _ in range(100)), *["a b c d e f g"] * 30).view, KEY
    )

    assert (baseline.state, baseline.sentence) == (
        "learning",
        f"Collecting a baseline: {BLIND - 10} more observations",
    )
    assert watching.state == "watching"
    assert watching.sentence.startswith(
        f"No change found of paths, calls, tokens or failures in {BLIND + 5} observations: the evidence "
    )
    assert watching.sentence.endswith("an alarm needs 100")
    assert changed.state == "changed"
    assert changed.sentence.startswith("changed about observation ")
    assert "Collecting a new baseline: " in changed.sentence
    assert len(changed.marks) == 1


def test_without_a_detector_there_is_no_result() -> None:
    off = engine_of("a", settings=Settings(change=ChangeSettings(enabled=False)))

    assert change_of(off.view, KEY).state == "off"
    assert change_of(engine_of("a").view, KEY._replace(agent="nobody")).state == "none"


def test_the_common_path_is_not_unusual() -> None:
    lines = run_lines(
        viewed(engine_of(*["search book"] * 6, "search pay", "look far away and wide", ""))
    )
    by_path = {one.run.path: one for one in lines}

    assert by_path[("search", "book")].degree == 0
    assert (by_path[("search", "pay")].degree or 0) > 0
    assert by_path[("search", "pay")].differs_at == 1
    assert by_path[("search", "book")].differs_at is by_path[()].differs_at is None
