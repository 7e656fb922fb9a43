"""Google ADK."""

from __future__ import annotations

from otel_reliability.model.span import Kind, RawSpan, Tokens
from otel_reliability.testing import span
from tests.conventions.reading import (
    call,
    hashed,
    invocation,
    is_nothing,
    model,
    read,
    run,
    session,
)

SCOPE = "gcp.vertex.agent"
OPERATION = "gen_ai.operation.name"


def llm(number: int = 3, parent: int | None = 2, response: str = "", **attributes: int) -> RawSpan:
    """A `call_llm` span of ADK 1.x, which names no operation."""
    usage = {f"gen_ai.usage.{key}_tokens": value for key, value in attributes.items()}
    told = {"gcp.vertex.agent.llm_response": response, "gcp.vertex.agent.session_id": "conv-7"}
    return span(number, parent, name="call_llm", attributes={**usage, **told}, scope=SCOPE, end=8)


def test_tools_have_keys_of_their_own() -> None:
    """Arguments and response of schema 1; `N/A` and what could not be written are unknown."""
    tool = {
        OPERATION: "execute_tool",
        "gen_ai.tool.name": "search",
        "gcp.vertex.agent.tool_call_args": '{"q": 1}',
    }
    full = call(
        span(attributes={**tool, "gcp.vertex.agent.tool_response": '{"found": 2}'}, scope=SCOPE)
    )
    bare = call(
        span(
            attributes={
                **tool,
                "gcp.vertex.agent.tool_call_args": "N/A",
                "gcp.vertex.agent.tool_response": "N/A",
            },
            scope=SCOPE,
        )
    )

    assert (full.arguments, full.result) == (hashed({"q": 1}), hashed({"found": 2}))
    assert (bare.name, bare.arguments, bare.result) == ("search", None, None)


def test_merged_tools_are_none_whatever_they_carry() -> None:
    merged = {
        OPERATION: "execute_tool",
        "gen_ai.tool.name": "(merged tools)",
        "gcp.vertex.agent.tool_call_args": "N/A",
    }

    assert read(span(attributes=merged, scope=SCOPE)).kind is Kind.OTHER


def test_q07_invocation_is_a_container() -> None:
    """Schema 1 puts `invocation`, without an attribute, above the agent: one run, the agent's."""
    assert invocation(span(name="invocation", scope=SCOPE), Kind.WORKFLOW).name is None


def test_q26_kinds_by_name() -> None:
    """`agent_run [X]` and `call_llm` name no operation; the session stands on the model call."""
    spans = (
        span(1, name="invocation", scope=SCOPE, end=9),
        span(2, 1, name="agent_run [support_agent]", scope=SCOPE, end=9),
        llm(input=100, output=10),
    )
    found = run(*spans)

    assert (found.key.agent, found.session_id, found.input_tokens, found.path) == (
        "support_agent",
        "conv-7",
        100,
        (),
    )


def test_q27_output_that_is_the_total_loses_the_input() -> None:
    """ADK 1.5 writes the total as output; the response's JSON gives it away. Without that JSON the
    total cannot be split.
    """
    total = '{"usage_metadata":{"prompt_token_count":229,"total_token_count":241}}'

    assert model(llm(response=total, input=229, output=241)).tokens == Tokens(229, 12)
    assert model(llm(response=total, input=229, output=12)).tokens == Tokens(229, 12)
    assert model(llm(input=229, output=241)).tokens == Tokens(229, 241)


def test_q28_a_sub_agent_below_a_model_span_is_not_the_same_call() -> None:
    """ADK 1.x hangs tools and sub-agents below `call_llm`: the sub-agent's model calls are calls of
    their own.
    """
    tool = span(
        4,
        3,
        attributes={OPERATION: "execute_tool", "gen_ai.tool.name": "billing_agent"},
        scope=SCOPE,
        start=1,
        end=7,
    )
    inner = span(5, 4, name="agent_run [billing_agent]", scope=SCOPE, start=2, end=6)
    spans = (
        span(1, name="invocation", scope=SCOPE, end=9),
        span(2, 1, name="agent_run [support_agent]", scope=SCOPE, end=9),
        llm(3, 2, input=100, output=10),
        tool,
        inner,
        llm(6, 5, input=40, output=4),
    )
    found = run(*spans)

    assert (found.input_tokens, found.output_tokens, len(found.model_calls)) == (140, 14, 2)
    assert found.path == ("billing_agent",)


def test_schema_2_is_otel_genai_with_a_session() -> None:
    attributes = {
        OPERATION: "invoke_agent",
        "gen_ai.agent.name": "support",
        "gcp.vertex.agent.session_id": "s",
    }

    assert invocation(span(attributes=attributes, scope=SCOPE)).name == "support"
    assert session(span(attributes=attributes, scope=SCOPE)) == "s"


def test_a_tool_without_attributes_failed() -> None:
    found = call(span(name="execute_tool search", scope="gcp.vertex.agent"))
    assert (found.name, found.failed) == ("search", True)
    assert is_nothing(span(name="execute_tool (merged tools)", scope="gcp.vertex.agent"))


def test_a_word_in_the_place_of_an_id_identifies_no_call() -> None:
    """ADK for Go and Java write it where a call failed: two of them are no replay."""
    failed = {
        OPERATION: "execute_tool",
        "gen_ai.tool.name": "search",
        "gen_ai.tool.call.id": "<not specified>",
        "gcp.vertex.agent.tool_call_args": '{"q": 1}',
        "gcp.vertex.agent.tool_response": "<not specified>",
    }
    read = call(span(attributes=failed, scope=SCOPE))
    assert (read.call_id, read.arguments, read.result) == (None, hashed({"q": 1}), None)


def test_without_content_there_are_neither_arguments_nor_a_response() -> None:
    tool = {
        OPERATION: "execute_tool",
        "gen_ai.tool.name": "search",
        "gcp.vertex.agent.tool_call_args": "{}",
    }

    def found(response: str) -> tuple[bytes | None, bytes | None]:
        attributes = {**tool, "gcp.vertex.agent.tool_response": response}
        read = call(span(attributes=attributes, scope=SCOPE))
        return read.arguments, read.result

    assert found("{}") == (None, None)
    assert found('{"found": 2}') == (hashed({}), hashed({"found": 2}))
