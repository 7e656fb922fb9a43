"""Haystack."""

from __future__ import annotations

import json
from typing import Any

from otel_reliability.model.run import Tools
from otel_reliability.model.span import STATUS_ERROR, Kind, RawSpan, Tokens
from otel_reliability.testing import span
from tests.conventions.reading import hashed, invocation, is_nothing, model, read, run, tool


def component(
    kind: str, number: int = 1, parent: int | None = None, status: int = 0, **attributes: Any
) -> RawSpan:
    """A component of that type; input and output are written as JSON."""
    facts = {
        f"haystack.component.{key}": json.dumps(value)
        for key, value in attributes.items()
        if key != "name"
    }
    named = {"haystack.component.name": attributes["name"]} if "name" in attributes else {}
    told = {"haystack.component.type": kind, **facts, **named}
    return span(
        number,
        parent,
        name="haystack.component.run",
        attributes=told,
        scope="haystack",
        status=status,
    )


def result(name: str, *, error: bool = False) -> dict[str, Any]:
    """A tool message: the result of one call, and which call it was."""
    origin = {"tool_name": name, "arguments": {"q": 1}, "id": "c-" + name}
    return {
        "role": "tool",
        "content": [{"tool_call_result": {"result": "found", "origin": origin, "error": error}}],
    }


def asked(name: str) -> dict[str, Any]:
    return {"tool_call": {"tool_name": name, "arguments": {"q": 1}, "id": "c-" + name}}


def test_containers_and_agents() -> None:
    for name in ("haystack.pipeline.run", "haystack.async_pipeline.run"):
        assert invocation(span(name=name, scope="haystack"), Kind.WORKFLOW).name is None
    assert invocation(span(name="haystack.agent.run", scope="haystack")).name is None
    assert invocation(component("Agent", name="support_agent")).name == "support_agent"
    assert read(component("InMemoryBM25Retriever")).kind is Kind.RETRIEVAL
    assert is_nothing(component("PromptBuilder"))
    assert is_nothing(span(name="haystack.component.run", scope="haystack"))


def test_a_generator_tells_its_replies() -> None:
    meta = {
        "model": "gpt-4o-mini",
        "usage": {"prompt_tokens": 100, "completion_tokens": 10},
        "finish_reason": "tool_calls",
    }
    facts = model(
        component("OpenAIChatGenerator", output={"replies": [{"meta": meta}, {"meta": meta}]})
    )

    assert (facts.model, facts.tokens, facts.asked_for_tools) == (
        "gpt-4o-mini",
        Tokens(200, 20),
        True,
    )
    assert model(component("OpenAIChatGenerator")).tokens == Tokens()


def test_q30_one_span_makes_all_calls_of_a_turn() -> None:
    """The ToolInvoker's output holds each call with its result and whether it failed."""
    calls = tool(
        component(
            "ToolInvoker", output={"tool_messages": [result("search"), result("book", error=True)]}
        )
    ).calls

    assert [(one.name, one.call_id, one.failed) for one in calls] == [
        ("search", "c-search", False),
        ("book", "c-book", True),
    ]
    assert {one.arguments for one in calls} == {hashed({"q": 1})}
    assert {one.result for one in calls} == {hashed("found")}


def test_q30_a_span_that_died_tells_what_it_was_asked() -> None:
    """Without an output the last message of the input names the calls; they failed
    with the span.
    """
    given: dict[str, Any] = {
        "messages": [{"content": []}, {"content": [asked("search"), asked("book")]}]
    }
    calls = tool(component("ToolInvoker", status=STATUS_ERROR, input=given)).calls

    assert [(one.name, one.failed) for one in calls] == [("search", True), ("book", True)]


def test_q30_without_content_the_tools_are_unobservable() -> None:
    """A call without a name happened, so the path is unobservable, not empty."""
    found = run(component("Agent", name="support_agent"), component("ToolInvoker", 2, 1))

    assert (found.tools, found.path) == (Tools.UNOBSERVABLE, None)


def step(name: str, number: int, parent: int | None, **facts: Any) -> RawSpan:
    """A span of an agent of Haystack 3; `__` in a name stands for a dot."""
    told = {f"haystack.{key.replace('__', '.')}": value for key, value in facts.items()}
    return span(number, parent, name=name, attributes=told, scope="haystack", start=float(number))


def test_steps_of_an_agent_have_a_span_for_each_call() -> None:
    replies = {"replies": [{"meta": {"model": "gpt", "usage": {"prompt_tokens": 90}}}]}
    asked_for = {"tool__name": "search", "agent__step__tool__input": '{"q": 1}'}
    found = run(
        step("haystack.agent.run", 1, None),
        step("haystack.agent.step", 2, 1, agent__step=0),
        step("haystack.agent.step.llm", 3, 2, agent__step__llm__output=json.dumps(replies)),
        step(
            "haystack.agent.step.tool",
            4,
            2,
            agent__step__tool__output='{"error": "no such order"}',
            **asked_for,
        ),
        step("haystack.agent.step.tool", 5, 2, agent__step__tool__output='"found"', **asked_for),
    )
    failed = step("haystack.agent.step.tool", 4, 2, agent__step__tool__output='{"error": "no"}')
    assert read(failed).failed
    assert (found.path, found.tools) == (("search", "search"), Tools.OBSERVED)
    assert [(one.ok, one.retry) for one in found.tool_calls or ()] == [(False, False), (True, True)]
    assert (found.input_tokens, [one.model for one in found.model_calls]) == (90, ["gpt"])
