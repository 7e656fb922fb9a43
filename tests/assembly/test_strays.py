"""Tool calls in traces of their own, beside agents of the same service."""

from __future__ import annotations

import itertools

import pytest
from msgspec.structs import replace

from otel_reliability.engine import Engine
from otel_reliability.model.flaws import SPLIT_TRACE
from otel_reliability.model.run import CloseReason, Run, Tools
from otel_reliability.model.span import AgentSpan, Resource
from otel_reliability.testing import FakeClock, agent, model, tool, trace_id

OTHER = Resource.of({"service.name": "other"})


def final(*traces: list[AgentSpan]) -> list[Run]:
    """The final runs of traces that arrive one after the other, a second apart."""
    clock = FakeClock()
    engine = Engine(clock=clock, wall=None)
    for spans in traces:
        engine.receive(spans)
        for _ in range(30):
            clock.advance(1.0)
            engine.tick()
    engine.flush(CloseReason.SHUTDOWN)
    runs = engine.take_final()
    assert engine.accounts["used", ""] == sum(run.span_count for run in runs)
    return sorted(runs, key=lambda run: run.run_id)


def stray(trace: int, start: float, **fields: object) -> list[AgentSpan]:
    return [replace(tool(1, None, "search", start=start, end=start + 0.5, trace=trace), **fields)]


def asks(trace: int, start: float) -> list[AgentSpan]:
    """A run of ten seconds with a model call and no tool span."""
    return [
        agent(1, called="bot", start=start, end=start + 10, trace=trace),
        model(2, 1, start=start + 1, end=start + 2, trace=trace),
    ]


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_a_call_beside_an_agent_is_no_run_and_hides_the_path_of_the_run_around_it(
    order: tuple[int, ...],
) -> None:
    traces = [asks(1, 0.0), stray(2, 3.0), asks(3, 100.0)]

    around, apart = final(*(traces[at] for at in order))

    assert (around.key.agent, around.path, around.tool_calls) == ("bot", None, None)
    assert (around.tools, around.flaws) == (Tools.UNOBSERVABLE, (SPLIT_TRACE,))
    assert (apart.key.agent, apart.path, apart.flaws) == ("bot", (), ())


def test_calls_of_a_service_without_an_agent_are_runs() -> None:
    assert [run.path for run in final(stray(1, 0.0), stray(2, 5.0))] == [("search",)] * 2


def test_another_service_is_not_concerned() -> None:
    run, other = final(asks(1, 0.0), stray(2, 3.0, resource=OTHER))

    assert (run.path, run.flaws) == ((), ())
    assert (other.key.service_name, other.path) == ("other", ("search",))


def test_a_run_that_has_its_calls_keeps_its_path() -> None:
    spans = [*asks(1, 0.0), tool(3, 1, "book", start=4, end=5, trace=1)]

    [run] = final(spans, stray(2, 3.0))

    assert (run.path, run.flaws) == (("book",), ())


def test_runs_of_a_file_are_held_until_its_end() -> None:
    engine = Engine(clock=lambda: 0.0, wall=None)
    engine.receive(asks(1, 0.0))
    engine.complete([trace_id(1)])
    assert engine.take_final() == []

    engine.receive(stray(2, 3.0))
    engine.complete([trace_id(2)])
    engine.flush(CloseReason.END_OF_INPUT)

    assert [run.path for run in engine.take_final()] == [None]
