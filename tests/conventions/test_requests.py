"""The request of a run, as conventions write it: same words, same sketch, and no text."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest
from opentelemetry.sdk.trace import TracerProvider

from otel_reliability.config import Settings
from otel_reliability.conventions import requests
from otel_reliability.conventions.sketch import sketch_of, words_of
from otel_reliability.engine import Engine
from otel_reliability.model.span import InvocationFacts, ModelFacts
from otel_reliability.statistics.likeness import groups_of
from otel_reliability.telemetry.span_queue import SpanQueue
from otel_reliability.testing import span
from tests.conventions.reading import read

ASKED: Final = "Please cancel the order and refund what I paid"
SYSTEM: Final = {"role": "system", "content": "You handle orders."}
USER: Final = {"role": "user", "content": ASKED}
TOOL: Final = {"role": "tool", "content": "{}"}
HUMAN: Final = {
    "lc": 1,
    "type": "constructor",
    "id": ["langchain", "schema", "messages", "HumanMessage"],
    "kwargs": {"content": ASKED},
}

SHAPES: Final[tuple[Any, ...]] = (
    ASKED,
    json.dumps(ASKED),
    [SYSTEM, USER],
    json.dumps([SYSTEM, USER]),
    {"messages": [SYSTEM, USER]},
    {"messages": [[HUMAN]]},
    {"inputs": {"messages": [HUMAN]}},
    {"messages": [["user", ASKED]]},
    {"messages": [{"type": "human", "data": {"content": ASKED}}]},
    {"agent": {"messages": [{"role": "user", "content": [{"text": ASKED}]}]}},
    [{"role": "user", "parts": [{"type": "text", "content": ASKED}]}],
    {"args": [[USER], 12], "kwargs": {}},
    {"task": ASKED, "stream": False},
    {"system": "You handle orders.", "prompt": ASKED},
    "[" + json.dumps({"role": "system", "content": "x " * 20_000}) + ", " + json.dumps(USER) + "]",
)


@pytest.mark.parametrize("value", SHAPES)
def test_the_request_is_found_in_every_shape(value: object) -> None:
    assert requests.of_invocation(value) == sketch_of(ASKED)
    if isinstance(value, str):
        assert requests.cut(requests.cut(value)) == requests.cut(value)
        assert requests.of_invocation(requests.cut(value)) == sketch_of(ASKED)


@pytest.mark.parametrize("value", [[USER, TOOL], json.dumps([USER, TOOL])])
def test_a_model_call_that_continues_a_run_tells_no_request(value: object) -> None:
    """But that it does."""
    assert requests.of_model(value) == b""
    assert requests.of_invocation(value) == sketch_of(ASKED)


@pytest.mark.parametrize(
    "value", ["", "[", "{}", "[]", "[[[[[[[[", None, 3, "__REDACTED__", "<f object at 0x7f14a8>"]
)
def test_what_holds_no_request_has_no_sketch(value: object) -> None:
    assert requests.of_invocation(value) is None


def test_a_short_answer_counts_with_the_message_before_it() -> None:
    asked = {"role": "assistant", "content": "Shall I cancel the order?"}

    found = requests.request_in([USER, asked, {"role": "user", "content": "yes please"}])

    assert found == "Shall I cancel the order? yes please"


def test_numbers_addresses_and_links_are_masked() -> None:
    assert words_of("Refund W-4711 to bob@example.com, see https://x.example/y by 2026-05-01") == [
        "refund",
        "to",
        "see",
        "by",
    ]


def test_long_texts_count_by_their_first_and_last_words() -> None:
    words = words_of(" ".join(["first"] * 500 + ["middle"] * 500 + ["last"] * 500))

    assert (len(words), words[0], words[-1]) == (128, "first", "last")
    assert "middle" not in words


@pytest.mark.parametrize(
    ("one", "same", "other"),
    [
        ("cancel my order", "please cancel the order i made", "what is the weather tomorrow"),
        (
            "Ich möchte meine Bestellung stornieren",
            "Bitte die Bestellung stornieren",
            "Wie wird das Wetter morgen in Hamburg",
        ),
        ("quiero cancelar mi pedido ya", "quiero cancelar el pedido", "qué tiempo hará mañana"),
    ],
)
def test_alike_requests_are_one_group(one: str, same: str, other: str) -> None:
    found = [sketch_of(text) for text in (one, same, other)]

    assert groups_of([each for each in found if each is not None]) == [0, 0, 1]


def test_flattened_messages_are_read_from_the_last_two() -> None:
    keys = {
        f"llm.input_messages.{at}.message.{part}": value
        for at, message in enumerate((SYSTEM, USER))
        for part, value in message.items()
    }

    assert requests.of_attributes(keys, (), is_model=True) == sketch_of(ASKED)


def test_a_reader_reads_requests_of_agents_and_models_unless_it_is_off() -> None:
    given = {"gen_ai.operation.name": "invoke_agent", "gen_ai.input.messages": json.dumps([USER])}

    facts = read(span(1, attributes=given)).facts
    off = read(span(1, attributes=given), inputs={"group": "off"}).facts
    model = read(span(1, attributes={**given, "gen_ai.operation.name": "chat"})).facts

    assert isinstance(facts, InvocationFacts)
    assert isinstance(model, ModelFacts)
    assert isinstance(off, InvocationFacts)
    assert (facts.request, model.request, off.request) == (sketch_of(ASKED), sketch_of(ASKED), None)


CHAT: Final = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "model-1"}
IN_EVENTS: Final = (
    [("gen_ai.content.prompt", {"gen_ai.prompt": json.dumps([SYSTEM, USER])})],
    [
        ("gen_ai.system.message", {"content": "Be kind."}),
        ("gen_ai.user.message", {"content": ASKED}),
        ("gen_ai.choice", {"message": "It is on its way."}),
    ],
    [("gen_ai.user.message", {"gen_ai.event.content": json.dumps(USER)})],
)


@pytest.mark.parametrize("events", IN_EVENTS)
def test_request_is_read_from_events_of_a_span(events: list[tuple[str, dict[str, Any]]]) -> None:
    facts = read(span(1, attributes=CHAT, events=events)).facts
    off = read(span(1, attributes=CHAT, events=events), inputs={"group": "off"}).facts
    later = read(
        span(1, attributes=CHAT, events=[*events, ("gen_ai.tool.message", {"content": "7"})])
    ).facts

    assert isinstance(facts, ModelFacts)
    assert isinstance(off, ModelFacts)
    assert isinstance(later, ModelFacts)
    assert (facts.request, off.request, later.request) == (sketch_of(ASKED), None, None)


@pytest.mark.parametrize("events", IN_EVENTS)
def test_request_in_events_is_read_in_process_too(
    events: list[tuple[str, dict[str, Any]]],
) -> None:
    engine = Engine(Settings(), clock=lambda: 0.0, wall=None)
    queue = SpanQueue(engine)
    tracer = TracerProvider().get_tracer("test")
    with tracer.start_as_current_span("chat", attributes=CHAT) as made:
        for name, attributes in events:
            made.add_event(name, attributes)
    queue.put(made)

    [found] = queue.read_all(9)
    assert isinstance(found.facts, ModelFacts)
    assert found.facts.request == sketch_of(ASKED)


GENAI_AGENT: Final = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "orders"}


@pytest.mark.parametrize(
    ("scope", "attributes"),
    [
        (
            "genkit-tracer",
            {"genkit:type": "action", "genkit:metadata:subtype": "flow", "genkit:input": ASKED},
        ),
        ("@voltagent/core", {"entity.type": "agent", "agent.messages": json.dumps([SYSTEM, USER])}),
        ("@mastra/otel-bridge", {**GENAI_AGENT, "mastra.agent_run.input": ASKED}),
        ("openlit.otel.tracing", {**GENAI_AGENT, "gen_ai.task.description": ASKED}),
        (
            "gcp.vertex.agent",
            {
                "gen_ai.operation.name": "generate_content",
                "gcp.vertex.agent.llm_request": json.dumps({"contents": [USER]}),
            },
        ),
    ],
)
def test_each_convention_names_its_own_inputs(scope: str, attributes: dict[str, Any]) -> None:
    facts = read(span(1, scope=scope, name="invoke_agent", attributes=attributes)).facts

    assert isinstance(facts, InvocationFacts | ModelFacts)
    assert facts.request == sketch_of(ASKED)


@pytest.mark.parametrize("kind", ["tool_result", "tool_call_response"])
@pytest.mark.parametrize("has_text", [False, True])
def test_what_tools_returned_may_stand_in_the_name_of_the_user(kind: str, has_text: bool) -> None:
    """As Anthropic and pydantic-ai have it; a picture without words is no such thing."""
    text = [{"type": "text", "text": "Please cancel the order too"}] if has_text else []
    returned = {"role": "user", "content": [{"type": kind, "content": "{}"}, *text]}
    for value in ([USER, returned], json.dumps([USER, returned])):
        assert (requests.of_model(value) == b"") is not has_text
    assert requests.of_model([USER, {"role": "user", "content": [{"type": "image"}]}]) is None
