"""Pipecat."""

from __future__ import annotations

import json
from typing import Any

from otel_reliability.model.run import Tools
from otel_reliability.model.span import RawSpan
from otel_reliability.testing import span
from tests.conventions.reading import is_nothing, run, runs

QUESTION = [{"role": "system", "content": "plan"}, {"role": "user", "content": "go"}]


def asked(name: str, result: Any) -> list[dict[str, Any]]:
    """A call and its result, as messages."""
    function = {"name": name, "arguments": '{"q": 1}'}
    calls = [{"id": "c-" + name, "function": function, "type": "function"}]
    return [
        {"role": "assistant", "tool_calls": calls},
        {"role": "tool", "content": json.dumps(result), "tool_call_id": "c-" + name},
    ]


def llm(number: int, parent: int, *messages: dict[str, Any]) -> RawSpan:
    """A model call of these messages after the question."""
    given = json.dumps([*QUESTION, *messages])
    attributes = {
        "gen_ai.operation.name": "chat",
        "input": given,
        "gen_ai.usage.input_tokens": 10,
        "gen_ai.usage.output_tokens": 1,
    }
    return span(
        number, parent, name="llm", attributes=attributes, scope="pipecat", start=float(number)
    )


def turn(number: int, start: float = 1.0) -> RawSpan:
    attributes = {"conversation.id": "conv-1"}
    return span(
        number,
        1,
        name="turn",
        attributes=attributes,
        scope="pipecat.turn",
        start=start,
        end=start + 9.0,
    )


CONVERSATION = span(1, name="conversation", scope="pipecat.turn", end=99.0)


def test_calls_stand_in_the_messages_of_the_next_model_call() -> None:
    first, second = asked("search", {"status": "ok"}), asked("book", {"error": "full"})
    found = run(CONVERSATION, turn(2), llm(3, 2), llm(4, 2, *first), llm(5, 2, *first, *second))
    assert (found.path, found.tools) == (("search", "book"), Tools.MESSAGES)
    assert (found.session_id, found.input_tokens) == ("conv-1", 30)


def test_calls_before_the_last_text_are_of_an_earlier_turn() -> None:
    earlier = [*asked("search", "found"), {"role": "assistant", "content": "Here."}]
    later = [*earlier, {"role": "user", "content": "and now?"}]
    found = runs(
        CONVERSATION,
        turn(2),
        llm(3, 2),
        llm(4, 2, *asked("search", "found")),
        turn(20, 20.0),
        llm(21, 20, *later),
        llm(22, 20, *later, *asked("book", "booked")),
    )
    assert [one.path for one in found] == [("search",), ("book",)]
    assert is_nothing(span(name="tts", scope="pipecat"))
