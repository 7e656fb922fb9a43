from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_reliability import conventions
from otel_reliability.config import AssemblySettings, MappingSettings, Settings
from otel_reliability.conventions.reader import Reader
from otel_reliability.engine import Engine
from otel_reliability.model.run import CloseReason, Run
from otel_reliability.model.span import KIND_CLIENT, KIND_CONSUMER, KIND_SERVER, AgentSpan, Kind, RawSpan, Resource
from otel_reliability.service.answers import Encoding, Signal
from otel_reliability.service.decoded import Decoder
from otel_reliability.service.ordinary import MARKERS, Ordinary
from otel_reliability.sources import otlp
from otel_reliability.sources.otlp_json import read_file
from otel_reliability.testing import span, traces_protobuf
from tests.service.running import run_of
from tests.sources.recordings import every_recording

SETTINGS = Settings()
READER = Reader(SETTINGS, conventions.TABLE)
ORDINARY = Ordinary(SETTINGS, READER)
MOST = 300
"""Spans of a recording that are looked at."""
WEB = {"http.request.method": "GET", "http.route": "/orders/{id}", "server.port": 443}


def web(number: int, parent: int | None = None, **facts: Any) -> RawSpan:
    """A span of a web server."""
    facts.setdefault("attributes", WEB)
    facts.setdefault("name", "GET /orders/{id}")
    return span(number, parent, kind=KIND_SERVER, **facts)


def read_in_full(body: bytes) -> tuple[list[AgentSpan], int]:
    """The spans of a request by the full decoder and the reader, and how many are malformed."""
    batch = otlp.decode_traces(body)
    return [READER.read(one) for one in batch.spans], len(batch.malformed)


def comparable(spans: list[AgentSpan]) -> list[AgentSpan]:
    """Spans whose resource is compared by what it says."""
    return [one._replace(resource=one.resource._replace(attributes=dict(one.resource.attributes))) for one in spans]


def test_an_ordinary_request_is_read_as_the_reader_would() -> None:
    """Span for span the same, the malformed ones too."""
    spans = [
        web(1),
        web(2, 1, status=2, start=5, end=3),
        web(3, 2, remote=True, scope="opentelemetry.instrumentation.asgi"),
        web(4, 3, remote=None),
        web(5, 4)._replace(span_id=b"short"),
        web(6, 4)._replace(parent_id=bytes(8)),
        web(7, 4, events=[("exception", {"exception.type": "E"})], links=[(9, 9)]),
        web(8, 4, resource=Resource.of({"service.name": "other"})),
    ]
    body = traces_protobuf(spans)
    found, expected = ORDINARY.read(body), read_in_full(body)

    assert found is not None
    assert (comparable(found[0]), len(found[1])) == (comparable(expected[0]), expected[1])
    assert {one.kind for one in found[0]} == {Kind.OTHER}


@pytest.mark.parametrize(
    "one",
    [
        *run_of(),
        web(1, attributes={**WEB, "session.id": "7"}),
        web(1, attributes={**WEB, "gen_ai.conversation.id": "7"}),
        web(1, attributes={**WEB, "reliability.task.id": "7"}),
        web(1, attributes={"evaluations.0.evaluation.name": "ok", "evaluations.0.evaluation.score": 1.0}),
        web(1, attributes={"annotations.0.annotation.name": "ok", "annotations.0.annotation.score": 1.0}),
        web(1, attributes={"openinference.span.kind": "TOOL"}),
        web(1, attributes={"traceloop.span.kind": "tool"}),
        web(1, attributes={"llm.request.type": "chat"}),
        web(1, attributes={"ai.operationId": "ai.toolCall"}),
        web(1, attributes={"mcp.method.name": "tools/call"}),
        web(1, attributes={"gen_ai.tool.name": "search"}),
        web(1, events=[("gen_ai.evaluation.result", {"gen_ai.evaluation.name": "ok"})]),
        web(1, trace_state="ot=th:8"),
        web(1, links=[(2, 2)])._replace(span_kind=KIND_CONSUMER),
        span(1, name="execute_tool search", status=2),
        span(1, name="invoke_agent support"),
        span(1, name="chat model", kind=KIND_CLIENT),
        span(1, name="claude_code.interaction"),
        span(1, name="crewai.workflow"),
        span(1, name="support run", attributes={"agent_name": "support"}),
        span(1, scope="strands.telemetry.tracer"),
        span(1, scope="pydantic-ai"),
    ],
    ids=lambda one: f"{one.name} {' '.join(one.attributes)} {one.scope}",
)
def test_what_may_be_more_is_left_to_the_full_decoders(one: RawSpan) -> None:
    """Work of an agent, a session, a note, a judgement, a sampling threshold, a link that may be a parent."""
    assert ORDINARY.read(traces_protobuf([web(9), one])) is None


def test_every_convention_says_what_its_spans_must_hold() -> None:
    """A convention that is keyed on attributes has its markers here, or this fails; one keyed on scopes is told by them."""
    keyed = {convention.name for convention in conventions.TABLE if not convention.scopes}

    assert set(MARKERS) == keyed


@pytest.mark.parametrize("mapped", ["agent", "session", "task", "outcome", "confidence", "cost"])
def test_an_attribute_of_the_user_s_is_a_marker(mapped: str) -> None:
    """What settings map is looked for in every body."""
    settings = Settings(mapping=MappingSettings(**{mapped: ("acme.thing",)}))
    ordinary = Ordinary(settings, Reader(settings, conventions.TABLE))

    assert ordinary.read(traces_protobuf([web(1, attributes={"acme.thing": "x"})])) is None
    assert ordinary.read(traces_protobuf([web(1)])) is not None


def test_keys_of_runs_and_agents_are_not_passed_over() -> None:
    """An attribute that groups runs is a marker; one that is part of an agent's identity may stand on any resource."""
    grouping = Settings(assembly=AssemblySettings(run_key="acme.run"))
    keyed = Settings(agent_key=("service.version",))

    assert Ordinary(grouping, Reader(grouping, conventions.TABLE)).read(traces_protobuf([_run_key()])) is None
    assert Ordinary(keyed, Reader(keyed, conventions.TABLE)).read(traces_protobuf([web(1)])) is None


def _run_key() -> RawSpan:
    return web(1, attributes={"acme.run": "7"})


@pytest.mark.parametrize("body", [b"\xff\xff", traces_protobuf([web(1)])[:-3]], ids=["garbage", "cut off"])
def test_what_cannot_be_read_is_left_to_the_full_decoders(body: bytes) -> None:
    """They say why."""
    assert ORDINARY.read(body) is None


KEYS = sorted(
    {key for convention in conventions.TABLE for key in convention.keys} | {"session.id", "reliability.trial"}
)
WORDS = (
    "agent",
    "tool",
    "AGENT",
    "TOOL",
    "chat",
    "execute_tool",
    "invoke_agent",
    "ai.toolCall",
    "workflow",
    "LLM",
    "7",
    "x",
)
NAMES = (
    "GET /",
    "execute_tool search",
    "chat gpt",
    "x run",
    "crewai.workflow",
    "claude_code.tool",
    "ai.toolCall",
    "a.tool",
)


SCOPES = ("test", "asgi", *(scope for one in conventions.TABLE for scope in one.scopes))


@st.composite
def any_span(draw: st.DrawFn) -> RawSpan:
    """A span of any name, keys and scope that matter to some convention, and of some that matter to none."""
    return span(
        1,
        name=draw(st.sampled_from(NAMES)),
        attributes=draw(st.dictionaries(st.sampled_from(KEYS), st.sampled_from(WORDS), max_size=4)),
        kind=draw(st.integers(0, 5)),
        scope=draw(st.sampled_from(SCOPES)),
        status=draw(st.integers(0, 2)),
    )


@given(st.lists(any_span(), min_size=1, max_size=3))
def test_nothing_that_a_convention_recognises_is_passed_over(spans: list[RawSpan]) -> None:
    """Whatever keys, names and scopes meet: what is read as ordinary is what the reader makes of it."""
    body = traces_protobuf([one._replace(span_id=bytes([at + 1] * 8)) for at, one in enumerate(spans)])
    found = ORDINARY.read(body)
    if found is not None:
        assert comparable(found[0]) == comparable(read_in_full(body)[0])


def runs_by(decode: Callable[[bytes], Iterable[AgentSpan]], bodies: list[bytes]) -> list[Run]:
    """The runs of requests, read one way or the other."""
    engine = Engine(clock=lambda: 0.0, wall=None)
    for body in bodies:
        engine.receive(decode(body))
    engine.flush(CloseReason.END_OF_INPUT)
    return sorted(engine.take_settled(), key=lambda one: one.run_id)


def test_chains_run_through_ordinary_requests() -> None:
    """An agent's tool calls another service, whose agent is a nested run: the same runs with and without the shortcut."""
    top, tool = run_of(1)
    hops = [web(20, 2), web(21, 20), web(22, 21)]
    nested = [one._replace(span_id=bytes([30 + at] * 8)) for at, one in enumerate(run_of(1, ("book",), "clerk", 0.2))]
    nested[0] = nested[0]._replace(parent_id=hops[2].span_id)
    nested[1] = nested[1]._replace(parent_id=nested[0].span_id)
    bodies = [traces_protobuf(part) for part in ([tool], [hops[0], hops[2]], nested, [hops[1]], [top])]
    decoder = Decoder(SETTINGS, READER)
    short = runs_by(lambda body: decoder(Signal.TRACES, Encoding.PROTOBUF, body).spans, bodies)
    full = runs_by(lambda body: read_in_full(body)[0], bodies)

    assert ORDINARY.read(bodies[1]) is not None
    assert short == full
    assert [(one.key.agent, one.nested) for one in short if one.nested] == [("clerk", True)]


@every_recording
def test_recordings_are_read_the_same(recording: Path) -> None:
    """Of every recorded framework each span, in a request of its own: shortcut or not, the same comes out."""
    decoder = Decoder(SETTINGS, READER)
    for one in islice((one for batch in read_file(recording) for one in batch.spans), MOST):
        body = traces_protobuf([one])
        short = list(decoder(Signal.TRACES, Encoding.PROTOBUF, body).spans)
        assert comparable(short) == comparable(read_in_full(body)[0])
