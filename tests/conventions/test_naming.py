"""The user's rules on tool names."""

from __future__ import annotations

from otel_reliability.model.run import Tools
from otel_reliability.model.span import Call, Kind, RawSpan, ToolFacts
from otel_reliability.testing import span
from tests.conventions.reading import read, run

OPERATION = "gen_ai.operation.name"
AGENT = span(1, attributes={OPERATION: "invoke_agent", "gen_ai.agent.name": "support"}, end=99)


def tool(number: int, name: str) -> RawSpan:
    attributes = {OPERATION: "execute_tool", "gen_ai.tool.name": name}
    return span(number, 1, attributes=attributes, start=2 * number, end=2 * number + 1)


def test_variants_of_a_name_are_one_tool() -> None:
    rules = {"rename": {"fetch_page_*": "fetch_page", "fetch_*": "fetch"}}
    spans = [
        tool(number, name)
        for number, name in enumerate(("fetch_page_1", "fetch_page_22", "fetch_url", "search"), 2)
    ]

    assert run(AGENT, *spans, tools=rules).path == ("fetch_page", "fetch_page", "fetch", "search")


def test_an_ignored_tool_is_no_step() -> None:
    rules = {"ignore": ["log_*"], "rename": {"log_*": "log"}}

    assert run(
        AGENT, tool(2, "search"), tool(3, "log_step"), tool(4, "book"), tools=rules
    ).path == ("search", "book")


def test_a_run_of_ignored_tools_only_has_an_empty_path() -> None:
    chat = span(
        2,
        1,
        attributes={OPERATION: "chat", "gen_ai.response.finish_reasons": ("tool_calls",)},
        start=1,
        end=2,
    )
    found = run(AGENT, chat, tool(3, "log_step"), tools={"ignore": ["log_*"]})

    assert (found.tools, found.path, found.tool_calls) == (Tools.OBSERVED, (), ())


def test_calls_told_by_messages_follow_the_same_rules() -> None:
    parts = ",".join(
        f'{{"type":"tool_call","name":"{name}"}}' for name in ("fetch_page_1", "log_step")
    )
    attributes = {OPERATION: "chat", "gen_ai.output.messages": f'[{{"parts":[{parts}]}}]'}
    chat = span(2, 1, attributes=attributes, start=1, end=2)
    rules = {"ignore": ["log_*"], "rename": {"fetch_page_*": "fetch_page"}}
    found = run(AGENT, chat, tools=rules)
    silent = run(AGENT, chat, tools={"ignore": ["*"]})

    assert (found.tools, found.path) == (Tools.MESSAGES, ("fetch_page",))
    assert (silent.tools, silent.path) == (Tools.OBSERVED, ())


def test_an_agent_that_stands_for_its_call_is_renamed() -> None:
    managed = span(
        name="billing_2.run",
        attributes={"openinference.span.kind": "AGENT"},
        scope="openinference.instrumentation.smolagents",
    )
    facts = read(managed, tools={"rename": {"billing_*": "billing"}}).facts
    ignored = read(managed, tools={"ignore": ["billing_*"]}).facts

    assert getattr(facts, "call", None) == Call("billing")
    assert getattr(ignored, "call", "there") is None


def test_a_tool_nobody_can_name_stays_unnamed() -> None:
    found = read(span(name="tool", attributes={OPERATION: "execute_tool"}), tools={"ignore": ["*"]})

    assert (found.kind, found.facts) == (Kind.TOOL, ToolFacts((Call(None),)))


def test_long_names_are_cut() -> None:
    for name, expected in [("x" * 256, "x" * 256), ("x" * 10_000, "x" * 255 + "…")]:
        facts = {"openinference.span.kind": "TOOL"}
        found = read(
            span(
                name=f"{name}.start-1",
                attributes=facts,
                scope="openinference.instrumentation.beeai",
            )
        )
        assert found.facts == ToolFacts((Call(expected),))
