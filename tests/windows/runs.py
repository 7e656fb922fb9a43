"""Runs by hand, and histories of runs for property tests."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hypothesis import strategies as st
from msgspec.structs import replace

from otel_reliability import testing
from otel_reliability.config import Settings, WindowSettings
from otel_reliability.conventions.sketch import sketch_of
from otel_reliability.metrics.base import DEFAULTS
from otel_reliability.model.row import Row
from otel_reliability.model.run import (
    AgentKey,
    ModelCall,
    Outcome,
    Run,
    RunChange,
    RunEvent,
    ToolCall,
)
from otel_reliability.windows.agents import AgentRegistry, AgentState
from otel_reliability.windows.window import AgentWindow

KEY = AgentKey("", "shop", "", "support")
REQUESTS = (
    None,
    sketch_of("cancel my order please"),
    sketch_of("please cancel order 7"),
    sketch_of("how is the weather today"),
)
"""Sketches of what users ask: of an unknown input, of two inputs that are alike, and another."""


def call(
    name: str,
    *,
    ok: bool = True,
    retry: int = 0,
    repeat: bool = False,
    start: int = 0,
    end: int = 1,
) -> ToolCall:
    """A tool call; `retry` is its place in its chain of retries."""
    return ToolCall(
        name, ok, retry > 0, repeat, retry, "support", start, end, b"a", None, b"e", has_effect=ok
    )


def model_call(
    tokens: tuple[int | None, int | None] = (None, None), *, start: int = 0, end: int = 1
) -> ModelCall:
    return ModelCall("m", *tokens, False, "support", start, end)


def run(run_id: str, end_ns: int = 0, path: str | None = "", **fields: Any) -> Run:
    """A run that ended then and took this path (names with spaces between; None: its tools are
    unobservable).
    """
    names = None if path is None else path.split()
    place: dict[str, Any] = {"run_id": run_id, "start_ns": end_ns, "end_ns": end_ns, "key": KEY}
    return replace(testing.run(names), **(place | fields))


def state_of(agents: AgentRegistry, key: AgentKey = KEY) -> AgentState:
    found = agents.agent(key)
    assert found is not None
    return found


def closed(one: Run) -> RunEvent:
    return RunEvent(RunChange.CLOSED, one)


def revised(one: Run, previous: Run) -> RunEvent:
    return RunEvent(RunChange.REVISED, one, previous)


def withdrawn(one: Run) -> RunEvent:
    return RunEvent(RunChange.WITHDRAWN, one)


def final(one: Run) -> RunEvent:
    return RunEvent(RunChange.FINAL, one)


@st.composite
def runs(draw: st.DrawFn, run_id: str, *, inputs: bool = True) -> Run:
    """A run; without `inputs`, what its user asked is unknown."""
    path = draw(st.sampled_from(["", "a", "b", "a b", "b a", "a b a", None]))
    chain = draw(st.sampled_from([0, 0, 2, 4]))
    return run(
        run_id,
        draw(st.integers(0, 40)),
        path,
        key=KEY._replace(agent=draw(st.sampled_from(["one", "one", "one", "two"]))),
        task_id=draw(st.sampled_from([None, "x", "y"])),
        request=draw(st.sampled_from(REQUESTS)) if inputs else None,
        condition=draw(st.sampled_from(["baseline", "baseline", "baseline", "fault"])),
        incomplete=draw(st.sampled_from([False, False, True])),
        branches=draw(st.sampled_from([(), (), (("kind", "usual"),), (("kind", "odd"),)])),
        tool_calls=None
        if path is None
        else tuple(call("t", ok=False, retry=place) for place in range(chain)),
        token_pressure=draw(st.none() | st.floats(0, 1)),
        outcome=draw(st.sampled_from(list(Outcome))),
        confidence=draw(st.none() | st.sampled_from([0.1, 0.5, 0.9])),
        cost=draw(st.none() | st.floats(0, 1e6)),
        weight=draw(st.integers(1, 4)),
    )


@st.composite
def histories(draw: st.DrawFn, most: int = 14, *, inputs: bool = True) -> list[RunEvent]:
    """What assembly may say: runs close in any order; until they become final they are revised,
    withdrawn and closed again.
    """
    events: list[RunEvent] = []
    open_runs: dict[str, Run] = {}
    for _ in range(draw(st.integers(1, 4 * most))):
        if not open_runs or draw(st.integers(0, 2)) == 0:
            one = draw(runs(f"run-{draw(st.integers(0, 10**6))}", inputs=inputs))
            if any(event.run.run_id == one.run_id for event in events):
                continue
            open_runs[one.run_id] = one
            events.append(closed(one))
            continue
        name = draw(st.sampled_from(sorted(open_runs)))
        deed = draw(st.sampled_from(["revise", "withdraw", "finalize", "finalize"]))
        events.append(_deed(draw, deed, open_runs, name, inputs=inputs))
    return events


def _deed(
    draw: st.DrawFn, deed: str, open_runs: dict[str, Run], name: str, *, inputs: bool
) -> RunEvent:
    if deed == "revise":
        previous, open_runs[name] = open_runs[name], draw(runs(name, inputs=inputs))
        return revised(open_runs[name], previous)
    return withdrawn(open_runs.pop(name)) if deed == "withdraw" else final(open_runs.pop(name))


def window_over(rows: Iterable[Row], settings: Settings = DEFAULTS) -> AgentWindow:
    window = AgentWindow(WindowSettings("all", last=10_000), settings)
    for row in rows:
        window.insert(row)
    return window
