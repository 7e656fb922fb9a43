from __future__ import annotations

from collections import Counter

import pytest

from otel_reliability.config import Settings, WindowSettings
from otel_reliability.engine import Engine
from otel_reliability.model.run import CloseReason
from otel_reliability.model.span import Evaluation, Session
from otel_reliability.telemetry import names
from otel_reliability.telemetry import self as self_telemetry
from otel_reliability.telemetry.guard import Guard
from otel_reliability.telemetry.ledger import ToolLedger
from otel_reliability.testing import FakeClock, agent, model, other, span, tool


def told(engine: Engine) -> dict[tuple[str, tuple[tuple[str, object], ...]], float]:
    """What the engine tells of itself: (short name, labels) → value."""
    points = self_telemetry.points(engine, ToolLedger(Settings()))
    return {
        (name.removeprefix("otel_reliability."), tuple(sorted(labels.items()))): value
        for name, value, labels in points
    }


def used() -> tuple[Engine, FakeClock]:
    """An engine that saw a run with a nested one, a span of no convention, and the loss of two."""
    clock = FakeClock()
    engine = Engine(clock=clock, wall=clock.wall)
    engine.receive(
        [
            agent(1, end=9),
            tool(2, 1, start=1, end=8),
            agent(3, 2, "worker", start=2, end=7),
            tool(4, 3, start=3),
        ]
    )
    engine.receive([agent(1, end=9), other(5)])
    engine.count("malformed", "shape", 2)
    return engine, clock


def test_every_span_is_told_by_what_became_of_it() -> None:
    engine, _ = used()
    engine.flush(CloseReason.FLUSH)
    found = {labels: value for (name, labels), value in told(engine).items() if name == "spans"}

    assert found == {
        (("disposition", "received"),): 8,
        (("disposition", "used"),): 4,
        (("disposition", "other"), ("reason", "no_convention")): 1,
        (("disposition", "duplicate"),): 1,
        (("disposition", "malformed"), ("reason", "shape")): 2,
    }


def test_runs_are_told_without_their_agent() -> None:
    engine, clock = used()
    assert told(engine)["runs.open", ()] == 1
    clock.advance(5)
    engine.tick()
    engine.flush(CloseReason.FLUSH)
    found = told(engine)

    assert found["runs", (("closed_by", "root"), ("nested", False), ("outcome.source", "end"))] == 1
    assert found["runs", (("closed_by", "root"), ("nested", True), ("outcome.source", "end"))] == 1
    assert found["runs.closed", (("reason", "root"),)] == 2
    assert (found["runs.open", ()], found["runs.incomplete", ()], found["runs.revised", ()]) == (
        0,
        0,
        0,
    )
    assert found["agents", ()] == 2


def test_what_is_let_go_is_told_by_why() -> None:
    clock = FakeClock()
    engine = Engine(
        Settings(windows=(WindowSettings("few", last=1),)), clock=clock, wall=clock.wall
    )
    for trace, start in enumerate([5_000, 200, 100], 1):
        engine.receive([agent(1, trace=trace, start=start, end=start + 1)])
        engine.flush(CloseReason.FLUSH)
    engine.receive_evaluations([Evaluation("success", None, "pass", 0)])
    clock.advance(100_000)
    engine.tick()
    found = told(engine)

    assert found["runs.late", (("window", "few"),)] >= 1
    assert (found["runs.clamped", ()], found["agents.expired", ()], found["agents", ()]) == (
        1,
        1,
        0,
    )
    assert found["evaluations.refused", (("reason", "no_target"),)] == 1


def test_sessions_are_told_open_and_closed() -> None:
    clock = FakeClock()
    engine = Engine(clock=clock, wall=clock.wall)
    engine.receive([agent(1, session=Session(0, "conversation"))])
    engine.flush(CloseReason.FLUSH)
    before = told(engine)
    clock.advance(2_000)
    engine.tick()
    after = told(engine)

    states = ((("state", "open"),), (("state", "closed"),))
    assert [before["sessions", state] for state in states] == [1, 0]
    assert [after["sessions", state] for state in states] == [0, 1]


def test_a_counter_of_spans_never_falls() -> None:
    """A span that was nobody's and turns out to be part of a run is used then; the counter of the
    others stays.
    """
    clock = FakeClock()
    engine = Engine(clock=clock, wall=clock.wall)
    engine.receive([model(2, 1, remote=True)])
    clock.advance(700)
    engine.tick()
    before = told(engine)
    engine.receive([agent(1, end=9)])
    clock.advance(5)
    engine.tick()
    after = told(engine)

    spans = {key for key in before if key[0] == "spans"}
    assert any(dict(labels)["disposition"] == "other" for _, labels in spans)
    assert engine.accounts["used", ""] == 2
    assert all(after[key] >= before[key] for key in spans)


def test_every_limit_is_told_with_its_limit() -> None:
    found = told(used()[0])
    limits = {labels for name, labels in found if name == "limit.value"}

    assert {dict(labels)["limit"] for labels in limits} >= {
        "agents",
        "tools",
        "open_runs",
        "open_bytes",
        "reopenable_bytes",
        "other_spans",
        "closed_ids",
        "waiting_evaluations",
        "first_steps",
        "response_turns",
        "conversations",
        "unread_runs",
        "run_spans",
        "tasks",
        "sessions",
    }
    for labels in limits:
        assert 0 <= found.get(("limit.used", labels), 0) <= found["limit.value", labels]
        assert found["limit.hits", labels] == 0


def test_host_shows_its_queues_and_what_a_collection_costs() -> None:
    found = {
        name.removeprefix("otel_reliability."): value
        for name, value, _ in self_telemetry.of_host(3, 10, 0.5)
    }

    assert found == {"queue.length": 3, "queue.capacity": 10, "collect.duration": 0.5}
    assert told(used()[0])["event_lag", ()] == 0.0


def test_refused_attributes_and_faults_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Guard, "faults", Counter({"a place": 2}))
    engine, _ = used()
    engine.receive(
        [span(9, attributes={"gen_ai.operation.name": "chat", "reliability.run.confidence": 1.7})]
    )
    found = told(engine)
    refused = (("attribute", "reliability.run.confidence"), ("reason", "not a number from 0 to 1"))

    assert found["faults", (("place", "a place"),)] == 2
    assert found["attributes.refused", refused] == 1


def test_nothing_is_told_that_the_table_does_not_name() -> None:
    specs = {spec.name.removeprefix("otel_reliability."): spec for spec in names.SELF}
    for name, labels in told(used()[0]):
        assert {label for label, _ in labels} <= set(specs[name].attributes)
