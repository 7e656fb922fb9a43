"""MLflow."""

from __future__ import annotations

import pytest

from otel_reliability.model.span import Kind, Tokens
from otel_reliability.testing import span
from tests.conventions.reading import (
    call,
    hashed,
    invocation,
    is_nothing,
    model,
    read,
    runs,
    session,
)

SCOPE = "mlflow.tracing.provider"


def test_q21_every_value_is_json_text() -> None:
    """`"TOOL"` with its quotes is TOOL; names, usage and call ids are decoded the same way."""
    tool = {
        "mlflow.spanType": '"TOOL"',
        "mlflow.spanInputs": '{"q": 1}',
        "mlflow.spanOutputs": '"ok"',
        "tool_call_id": '"c1"',
    }
    one = call(span(name="search", attributes=tool, scope=SCOPE))
    usage = '{"input_tokens":100,"output_tokens":10,"total_tokens":110}'
    chat = {
        "mlflow.spanType": '"CHAT_MODEL"',
        "mlflow.llm.model": '"gpt-4o-mini"',
        "mlflow.chat.tokenUsage": usage,
    }
    facts = model(span(attributes=chat, scope=SCOPE))

    assert (one.name, one.call_id, one.arguments, one.result) == (
        "search",
        "c1",
        hashed({"q": 1}),
        hashed("ok"),
    )
    assert (facts.model, facts.tokens) == ("gpt-4o-mini", Tokens(100, 10))


@pytest.mark.parametrize(
    ("kind", "ours"), [("RETRIEVER", Kind.RETRIEVAL), ("LLM", Kind.MODEL), ("PARSER", Kind.OTHER)]
)
def test_other_types(kind: str, ours: Kind) -> None:
    assert read(span(attributes={"mlflow.spanType": f'"{kind}"'}, scope=SCOPE)).kind is ours


def test_an_agent_is_named_by_its_span() -> None:
    assert (
        invocation(
            span(name="support", attributes={"mlflow.spanType": '"AGENT"'}, scope=SCOPE)
        ).name
        == "support"
    )


def test_a_thread_is_a_session() -> None:
    """The thread id stands in the metadata."""
    attributes = {"mlflow.spanType": '"TOOL"', "metadata": '{"thread_id":"conv-7"}'}

    assert session(span(attributes=attributes, scope=SCOPE)) == "conv-7"


def test_without_a_type_it_is_not_mlflows() -> None:
    assert is_nothing(span(scope=SCOPE))


def test_a_type_that_is_no_text_is_nobody_s() -> None:
    for kind in ({"a": 1}, [1], '{"a": 1}', 3, None):
        assert is_nothing(span(scope="mlflow", attributes={"mlflow.spanType": kind}))


def test_q45_the_runner_of_openai_agents_is_no_agent() -> None:
    """`AgentRunner.run` is the function around the agents: a container; the run is named after its
    first agent.
    """
    agent = {"mlflow.spanType": '"AGENT"'}
    tool = {"mlflow.spanType": '"TOOL"'}
    spans = [
        span(1, name="AgentRunner.run", attributes=agent, scope=SCOPE, start=0, end=9),
        span(2, 1, name="support", attributes=agent, scope=SCOPE, start=1, end=8),
        span(3, 2, name="search", attributes=tool, scope=SCOPE, start=2, end=3),
    ]

    assert [(one.key.agent, one.path) for one in runs(*spans)] == [("support", ("search",))]
