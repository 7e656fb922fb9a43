"""Langfuse."""

from __future__ import annotations

from otel_reliability.conventions.adapters.langfuse import usage
from otel_reliability.model.span import Kind, Tokens
from otel_reliability.testing import span
from tests.conventions.reading import call, hashed, invocation, is_nothing, model, read

TYPE = "langfuse.observation.type"
SDK = "langfuse-sdk"


def test_observations_are_named_by_their_spans() -> None:
    given = {
        TYPE: "tool",
        "langfuse.observation.input": '{"args":[],"kwargs":{"q":1}}',
        "langfuse.observation.output": "ok",
    }
    one = call(span(name="search", attributes=given, scope=SDK))

    assert invocation(span(name="support", attributes={TYPE: "agent"}, scope=SDK)).name == "support"
    assert (
        invocation(span(name="refunds", attributes={TYPE: "chain"}, scope=SDK), Kind.CHAIN).name
        == "refunds"
    )
    assert (one.name, one.arguments, one.result) == ("search", hashed({"q": 1}), hashed("ok"))
    assert read(span(attributes={TYPE: "retriever"}, scope=SDK)).kind is Kind.RETRIEVAL
    for judge in ("evaluator", "guardrail"):
        assert read(span(attributes={TYPE: judge}, scope=SDK)).kind is Kind.EVALUATION
    assert is_nothing(span(attributes={TYPE: "span"}, scope=SDK))


def test_a_generation_tells_model_tokens_and_cost() -> None:
    attributes = {
        TYPE: "generation",
        "langfuse.observation.model.name": "gpt-4o-mini",
        "langfuse.observation.usage_details": '{"input":100,"output":10}',
        "langfuse.observation.cost_details": '{"total":0.5}',
    }
    facts = model(span(attributes=attributes, scope=SDK))

    assert (facts.model, facts.tokens, facts.cost) == ("gpt-4o-mini", Tokens(100, 10), 0.5)


def test_the_level_error_is_a_failure() -> None:
    attributes = {TYPE: "tool", "langfuse.observation.level": "ERROR"}

    assert call(span(attributes=attributes, scope=SDK)).failed
    assert read(span(attributes=attributes, scope=SDK)).failed


def test_a_call_id_of_langchains_handler_is_json() -> None:
    """The handler keeps LangChain's call id in its metadata, as JSON text."""
    attributes = {TYPE: "tool", "langfuse.observation.metadata.tool_call_id": '"call_1"'}

    assert call(span(attributes=attributes, scope=SDK)).call_id == "call_1"


def test_q14_only_its_own_sdk_is_read_by_observation_type() -> None:
    """Langfuse's export stamps a type, in upper case, on everybody's spans: whose span it is,
    decides.
    """
    stamped = {TYPE: "AGENT", "gen_ai.operation.name": "chat"}

    assert (
        read(span(attributes=stamped, scope="opentelemetry.instrumentation.openai")).kind
        is Kind.MODEL
    )
    assert is_nothing(span(attributes={TYPE: "AGENT"}, scope="opentelemetry.instrumentation.httpx"))


def test_q22_with_a_total_the_input_lacks_its_cached_part() -> None:
    """LangChain's handler subtracts cached tokens from the input; written by hand, it includes
    them.
    """
    handler = {"input": 203, "output": 16, "total": 347, "input_cache_read": 128}
    by_hand = {"input": 331, "output": 16, "input_cached_tokens": 128}

    assert usage(handler) == usage(by_hand) == Tokens(331, 16)
    assert usage({"input": 5, "output": 3, "output_reasoning": 2, "total": 10}) == Tokens(5, 5)
    assert usage({"total": 3, "output": 5}) == Tokens(0, 5)
