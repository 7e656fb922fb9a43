"""Spring AI."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from msgspec.structs import replace

from otel_reliability.model.span import RawSpan
from otel_reliability.testing import span
from tests.conventions.reading import call, is_nothing, model, run


def spring(
    kind: str, facts: Mapping[str, Any] = {}, number: int = 1, parent: int | None = None
) -> RawSpan:
    """A span of Spring AI, whose operation says nothing."""
    told = {f"spring.ai.{key}": value for key, value in facts.items()}
    attributes = {"gen_ai.operation.name": "framework", "spring.ai.kind": kind, **told}
    return span(number, parent, attributes=attributes, scope="org.springframework.boot")


@pytest.mark.parametrize("operation", ["framework", "execute_tool"])
def test_tools_stand_under_keys_of_their_own(operation: str) -> None:
    found = spring("tool_call", {"tool.definition.name": "weather", "tool.call.id": "c1"})
    attributes = {**found.attributes, "gen_ai.operation.name": operation}
    read = call(replace(found, attributes=attributes))
    assert (read.name, read.call_id) == ("weather", "c1")


def test_a_chat_client_is_an_agent_of_its_service() -> None:
    chat = {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "gpt",
        "gen_ai.usage.input_tokens": "120",
    }
    found = run(
        spring("chat_client", {"chat.client.conversation.id": "conv-7"}),
        spring("advisor", {}, 2, 1),
        span(3, 2, attributes=chat, scope="org.springframework.boot"),
        spring("tool_call", {"tool.definition.name": "weather"}, 4, 2),
    )
    assert (found.session_id, found.path, found.input_tokens) == ("conv-7", ("weather",), 120)
    assert is_nothing(spring("advisor"))


def test_a_graph_of_spring_ai_alibaba_is_the_agent_of_its_nodes() -> None:
    def node(kind: str, number: int, parent: int | None, **facts: str) -> RawSpan:
        told = {f"spring.ai.alibaba.{key}": value for key, value in facts.items()}
        attributes = {"spring.ai.alibaba.kind": kind, **told}
        return span(number, parent, attributes=attributes, end=9)

    found = run(
        node("graph", 1, None, **{"graph.name": "planner"}),
        node("node", 2, 1),
        spring("chat_client", {}, 3, 2),
        node("node", 4, 1),
        spring("tool_call", {"tool.definition.name": "weather"}, 5, 4),
        node("node", 6, 1),
        spring("chat_client", {}, 7, 6),
    )
    assert (found.key.agent, found.path) == ("planner", ("weather",))


def test_a_call_that_failed_names_the_model_that_was_asked() -> None:
    facts = {"gen_ai.request.model": "gpt", "gen_ai.response.model": "none"}
    attributes = {"gen_ai.operation.name": "chat", **facts}
    found = model(span(attributes=attributes, scope="org.springframework.boot"))
    assert (found.model, found.request_model) == (None, "gpt")
