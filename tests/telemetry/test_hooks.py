"""The compiled hooks do what those in Python do. `tests/test_processor.py` runs by both."""

from __future__ import annotations

import weakref
from collections import deque
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.context import Context
from opentelemetry.trace import Link, NonRecordingSpan, SpanContext, StatusCode, TraceFlags, set_span_in_context

from otel_reliability.engine import Engine
from otel_reliability.model.span import AgentSpan
from otel_reliability.processor import STRIDE, ReliabilitySpanProcessor
from otel_reliability.telemetry import queues
from otel_reliability.telemetry.capture import SMALL_TEXT
from otel_reliability.telemetry.guard import Guard
from otel_reliability.telemetry.hooks import PlainHooks
from otel_reliability.telemetry.live import live_of
from otel_reliability.testing import FakeClock
from tests.telemetry.meters import Meters
from tests.telemetry.spans import provider

pytestmark = pytest.mark.skipif(queues.NATIVE is None, reason="otel-reliability-native is not installed")

ARGUMENTS = "gen_ai.tool.call.arguments"
WEB: dict[str, Any] = {"http.request.method": "GET", "http.route": "/orders/{id}", "server.port": 443}
TOOL: dict[str, Any] = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search", "server.port": 443}
SETS: list[dict[str, Any]] = [
    {}, WEB, TOOL, {**TOOL, ARGUMENTS: "{}"}, {**TOOL, ARGUMENTS: "x" * SMALL_TEXT}, {**TOOL, ARGUMENTS: "x" * (SMALL_TEXT + 1)},
    {**TOOL, ARGUMENTS: 7}, {**TOOL, "gen_ai.response.finish_reasons": ("stop",)}, {**TOOL, "input.value": "text"},
    {**WEB, "own": 1}, {f"key-{number}": number for number in range(40)},
    {"gen_ai.operation.name": "chat", "gen_ai.output.messages": "[]"}, {**WEB, "session.id": "s"},
]  # fmt: skip
SPANS = st.fixed_dictionaries(
    {
        "name": st.sampled_from(["GET", "SELECT", "execute_tool search", "chat m"]),
        "scope": st.sampled_from(["web", "agent", "gcp.vertex.agent"]),
        "attributes": st.sampled_from(SETS),
        "above": st.sampled_from(["none", "local", "remote"]),
        "event": st.booleans(),
        "linked": st.booleans(),
        "failed": st.booleans(),
        "times": st.sampled_from([None, (5, 6), (2**62, 2**62), (2**70, 2**70), (0, -1)]),
    }
)


def play(tracing: Any, scene: dict[str, Any]) -> None:
    """Begin and end a span, below another where it stands below one."""
    tracer, over = tracing.get_tracer(scene["scope"]), tracing.get_tracer("web").start_span("GET", attributes=WEB)
    remote = NonRecordingSpan(SpanContext(5, 6, is_remote=True, trace_flags=TraceFlags(1)))
    above = {"none": Context(), "local": set_span_in_context(over), "remote": set_span_in_context(remote)}
    start, end = scene["times"] or (None, None)
    links = [Link(SpanContext(8, 9, is_remote=True))] if scene["linked"] else []
    span = tracer.start_span(
        scene["name"], above[scene["above"]], attributes=scene["attributes"], links=links, start_time=start
    )
    if scene["event"]:
        span.add_event("exception")
    if scene["failed"]:
        span.set_status(StatusCode.ERROR)
    span.end(end)
    over.end()


class Plain(ReliabilitySpanProcessor):
    """A processor with the hooks in Python."""

    on_start, on_end, _fill, _look_after = (
        PlainHooks.on_start, PlainHooks.on_end, PlainHooks._fill, PlainHooks._look_after,
    )  # fmt: skip


def made(*kinds: type[ReliabilitySpanProcessor]) -> list[ReliabilitySpanProcessor]:
    """Processors of one engine, for which no time passes."""
    meters, clock, found = Meters(), FakeClock(), list[ReliabilitySpanProcessor]()
    live = live_of(meters.provider, None, lambda settings: Engine(settings, clock=clock, wall=clock.wall))
    live.tick(0)
    for kind in kinds:
        with pytest.MonkeyPatch.context() as patch:
            if kind is Plain:
                patch.setattr(queues, "NATIVE", None)
            found.append(kind(meter_provider=meters.provider))
    return found


def kept(processor: ReliabilitySpanProcessor) -> list[Any]:
    """All that waits, field by field."""
    queue = processor._queue
    others = [one if isinstance(one, AgentSpan) else (one[0].keys, *map(shown, one[1:])) for one in queue._queue]
    return [list(queue.begun), list(queue.ordinary.ended), others]


def shown(field: Any) -> Any:
    """A field that can be compared."""
    return [link.context for link in cast("list[Link]", field)] if isinstance(field, list) else field


@given(st.lists(SPANS, max_size=8))
def test_the_same_is_kept(played: list[dict[str, Any]]) -> None:
    """Of every span, met before or not, usual or not: whatever the compiled hooks do not know they leave to Python."""
    plain, compiled = made(Plain, ReliabilitySpanProcessor)
    assert isinstance(plain._begun, deque)
    assert not isinstance(compiled._begun, deque)
    tracing = provider(plain, compiled)
    for scene in [*played, *played]:
        play(tracing, scene)
        for processor in (plain, compiled):
            processor._look_after(1)
        assert kept(plain) == kept(compiled)


def test_usual_spans_are_taken_by_what_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once their like was seen Python is not asked."""
    (compiled,) = made(ReliabilitySpanProcessor)
    tracer = provider(compiled).get_tracer("web")

    def work() -> None:
        for name, attributes in (("GET", WEB), ("execute_tool search", {**TOOL, ARGUMENTS: "{}"})):
            with tracer.start_as_current_span(name, attributes=attributes):
                tracer.start_span(name, attributes=attributes).end()

    work()
    compiled._look_after(STRIDE)
    for closely in ("_begin_closely", "_end_closely"):
        monkeypatch.setattr(type(compiled), closely, None)
    work()

    assert (len(compiled._queue), len(compiled._ordinary.ended)) == (8, 2)


@pytest.mark.parametrize("odd", [None, 7, object(), NonRecordingSpan(SpanContext(1, 2, is_remote=False))])
def test_what_is_no_span_is_left_to_python(odd: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """There it is guarded: nothing reaches the host."""
    monkeypatch.setattr(Guard, "loud", False)
    (compiled,), before = made(ReliabilitySpanProcessor), Guard.faults.total()
    compiled.on_start(odd)
    compiled.on_end(odd)

    assert Guard.faults.total() == before + 2
    assert kept(compiled) == [[], [], []]


STEPS = st.lists(st.one_of(st.integers(0, 3), st.lists(st.integers(0, 9), max_size=70)), max_size=40)


@given(STEPS, st.one_of(st.none(), st.integers(1, 100)))
def test_a_compiled_queue_is_a_queue(steps: list[Any], most: int | None) -> None:
    """It holds what a `deque` holds, however it grew, wrapped around and lost its oldest."""
    ours, theirs = queues.queue(most), deque[Any](maxlen=most)
    for step in steps:
        found = [act(queue, step) for queue in (ours, theirs)]
        assert found[0] == found[1]
        assert (len(ours), list(ours), bool(ours)) == (len(theirs), list(theirs), bool(theirs))


def act(queue: deque[Any], step: Any) -> Any:
    """Do one thing with a queue."""
    if isinstance(step, list):
        return queue.extend(cast("list[int]", step))
    if step == 3:
        return queue.clear()
    if step == 2:
        return queue.append("one")
    try:
        return [queue.popleft() for _ in range(1 + 30 * step)]
    except IndexError:
        return "empty"


def test_a_compiled_queue_keeps_nothing_that_left_it() -> None:
    """What it held is let go of: taken, pushed out, cleared, or with the queue."""

    class Thing: ...

    queue, things = queues.queue(3), [Thing() for _ in range(6)]
    alive = weakref.WeakSet(things)
    queue.extend(things)
    del things
    assert len(alive) == 3
    queue.popleft()
    assert len(alive) == 2
    queue.clear()
    assert not alive
    queue.append(Thing())
    alive.update(queue)
    del queue
    assert not alive
