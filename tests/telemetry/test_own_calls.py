from __future__ import annotations

from otel_reliability.model.run import AgentKey, Run, ToolCall
from otel_reliability.telemetry.recorder import own_calls
from otel_reliability.testing import call, run, trace_id


def of(agent: str, calls: list[ToolCall], number: int, *, nested: bool, seconds: float) -> Run:
    """A run of an agent in trace 1 with those calls, lasting that long."""
    key = AgentKey("", "shop", "test", agent)
    made = run([], number, key=key, nested=nested, trace_id=trace_id(1), tool_calls=tuple(calls))
    return made._replace(end_ns=made.start_ns + round(seconds * 1e9))


def counted(*runs: Run) -> list[tuple[str, str]]:
    """(agent, tool) of every call as it is counted."""
    return sorted((found.key.agent, taken.name) for found, calls in own_calls(runs) for taken in calls)


def test_a_call_counts_for_the_agent_that_took_it() -> None:
    """The run above has the step of the nested run too; only the nested agent is told of it."""
    outer, inner = call("ask", 1.0, agent="planner"), call("search", 2.0, agent="worker")
    planner = of("planner", [outer, inner], 1, nested=False, seconds=10)
    worker = of("worker", [inner], 2, nested=True, seconds=3)

    assert counted(planner, worker) == [("planner", "ask"), ("worker", "search")]


def test_an_agent_that_calls_itself_counts_each_call_once() -> None:
    """Under one name the inner run has the call, whatever marks of retries the outer one gives it."""
    outer, inner = call("ask", 1.0), call("search", 2.0)
    top = of("agent", [outer, inner._replace(retry=True, chain=1)], 1, nested=False, seconds=10)
    below = of("agent", [inner], 2, nested=True, seconds=3)

    assert counted(top, below) == [("agent", "ask"), ("agent", "search")]


def test_three_levels_under_one_name() -> None:
    """The innermost run has the call, however deep."""
    calls = [call("ask", 1.0), call("dig", 2.0), call("search", 3.0)]
    runs = [of("agent", calls[depth:], depth + 1, nested=depth > 0, seconds=10 - depth) for depth in range(3)]

    assert counted(*runs) == [("agent", "ask"), ("agent", "dig"), ("agent", "search")]


def test_equal_calls_of_one_run_all_count() -> None:
    """Two calls at the same instant are two calls."""
    twin = call("search", 1.0)
    assert counted(of("agent", [twin, twin], 1, nested=False, seconds=5)) == [("agent", "search")] * 2
