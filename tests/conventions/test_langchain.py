"""LangChain and LangGraph, in every dialect."""

from __future__ import annotations

import pytest

from otel_reliability.model.span import Kind, RawSpan
from otel_reliability.testing import span
from tests.conventions.reading import invocation, model, read, run, session

GENAI = "opentelemetry.instrumentation.genai.langchain"
OPENINFERENCE = "openinference.instrumentation.langchain"
OPERATION = "gen_ai.operation.name"


def chat(number: int, parent: int) -> RawSpan:
    return span(number, parent, start=0.2, end=0.4, attributes={OPERATION: "chat"})


def test_q01_a_root_graph_is_the_agent_in_otel_genai() -> None:
    """`invoke_workflow support_graph` with nothing above it is the agent; its routing call lies
    outside any agent.
    """
    graph = span(
        1,
        attributes={OPERATION: "invoke_workflow", "gen_ai.workflow.name": "support_graph"},
        scope=GENAI,
    )
    inner = span(
        3, 1, attributes={OPERATION: "invoke_agent", "gen_ai.agent.name": "billing"}, scope=GENAI
    )

    assert invocation(graph, Kind.WORKFLOW).agent_if_root
    assert run(graph, chat(2, 1), inner, chat(4, 3)).key.agent == "support_graph"


@pytest.mark.parametrize("name", ["LangGraph", "RunnableSequence"])
def test_q01_a_graph_that_nobody_named_is_not(name: str) -> None:
    """LangChain's own names for graphs name no agent: the first named agent below does."""
    graph = span(
        1, attributes={OPERATION: "invoke_workflow", "gen_ai.workflow.name": name}, scope=GENAI
    )
    inner = span(
        3, 1, attributes={OPERATION: "invoke_agent", "gen_ai.agent.name": "billing"}, scope=GENAI
    )

    facts = invocation(graph, Kind.WORKFLOW)
    assert (facts.name, facts.fallback_name, facts.agent_if_root) == (None, None, False)
    assert run(graph, inner, chat(4, 3)).key.agent == "billing"


def test_q01_in_openinference_the_graph_is_a_chain() -> None:
    """OpenInference over LangChain: a root CHAIN is the graph, hence the agent; a node below it is
    transparent.
    """
    graph = span(
        1,
        name="support_graph",
        attributes={"openinference.span.kind": "CHAIN"},
        scope=OPENINFERENCE,
    )
    node = span(
        2, 1, name="model", attributes={"openinference.span.kind": "CHAIN"}, scope=OPENINFERENCE
    )
    found = run(graph, node, chat(3, 2))

    assert (found.key.agent, found.path) == ("support_graph", ())


def test_q04_a_langsmith_chain_is_an_agent_where_it_bears_the_name() -> None:
    """LangSmith marks no agents: a chain is one if its name is its `lc_agent_name`, or if nothing
    stands above it.
    """
    kind = {"langsmith.span.kind": "chain"}
    root = span(1, name="support_agent", attributes=kind, scope="langsmith")
    named = {**kind, "langsmith.metadata.lc_agent_name": "billing_agent"}
    inner = span(2, 1, name="billing_agent", attributes=named, scope="langsmith")
    node = span(3, 2, name="model", attributes=named, scope="langsmith")

    assert invocation(root, Kind.CHAIN).agent_if_root
    assert invocation(inner).name == "billing_agent"
    assert read(node).kind is Kind.CHAIN
    assert run(root, inner, node, chat(4, 3)).key.agent == "support_agent"


def test_q19_a_chain_that_bears_its_agents_name_is_an_agent() -> None:
    """LangChain JS never says AGENT: `metadata` (JSON) names whose callback it is; a node has
    another name.
    """
    attributes = {
        "openinference.span.kind": "CHAIN",
        "metadata": '{"lc_agent_name":"billing","thread_id":"conv-7"}',
    }
    named = span(name="billing", attributes=attributes, scope=OPENINFERENCE)
    node = span(name="model_request", attributes=attributes, scope=OPENINFERENCE)

    assert (read(named).kind, read(node).kind) == (Kind.AGENT, Kind.CHAIN)
    assert session(named) == "conv-7"


def test_q20_a_langfuse_chain_that_langchain_told_is_a_graph() -> None:
    """Under Langfuse `ls_integration` separates the callbacks' chains from the user's own
    observations.
    """
    attributes = {
        "langfuse.observation.type": "chain",
        "langfuse.observation.metadata.ls_integration": "langgraph",
        "langfuse.observation.metadata.lc_agent_name": "billing",
    }
    graph = span(name="support_graph", attributes=attributes, scope="langfuse-sdk")
    inner = span(name="billing", attributes=attributes, scope="langfuse-sdk")
    own = span(
        name="pipeline", attributes={"langfuse.observation.type": "chain"}, scope="langfuse-sdk"
    )

    assert invocation(graph, Kind.CHAIN).agent_if_root
    assert invocation(inner).name == "billing"
    assert not invocation(own, Kind.CHAIN).agent_if_root


def test_q20_an_mlflow_chain_is_a_graph() -> None:
    """MLflow's chains over LangGraph follow the same rule, their names and marks in JSON."""
    metadata = '{"ls_integration":"langgraph","lc_agent_name":"billing","thread_id":"conv-7"}'
    attributes = {"mlflow.spanType": '"CHAIN"', "metadata": metadata}

    assert invocation(
        span(name="support", attributes=attributes, scope="mlflow.tracing.provider"), Kind.CHAIN
    ).agent_if_root
    assert (
        invocation(
            span(name="billing", attributes=attributes, scope="mlflow.tracing.provider")
        ).name
        == "billing"
    )


def test_q20_an_openlit_workflow_is_a_graph() -> None:
    """The `invoke_workflow` of openlit over LangGraph is the graph; its usage, the last call's, is
    no total.
    """
    attributes = {
        OPERATION: "invoke_workflow",
        "gen_ai.workflow.name": "support",
        "gen_ai.usage.input_tokens": 9,
    }
    facts = invocation(
        span(attributes=attributes, scope="openlit.instrumentation.langgraph"), Kind.WORKFLOW
    )

    assert (facts.name, facts.agent_if_root, facts.tokens) == ("support", True, None)


def test_other_work_of_the_scope_is_otel_genai() -> None:
    assert (
        model(
            span(attributes={OPERATION: "chat", "gen_ai.request.model": "m"}, scope=GENAI)
        ).request_model
        == "m"
    )
