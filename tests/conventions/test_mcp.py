"""MCP."""

from __future__ import annotations

from typing import Any

import pytest

from otel_reliability.model.span import KIND_CLIENT, KIND_SERVER, RawSpan
from otel_reliability.testing import span
from tests.conventions.reading import call, is_nothing, run

OPERATION = "gen_ai.operation.name"


def mcp(
    number: int,
    parent: int | None,
    name: str,
    kind: int,
    method: str = "tools/call",
    **attributes: Any,
) -> RawSpan:
    facts = {key.replace("__", "."): value for key, value in attributes.items()}
    return span(
        number, parent, name=name, attributes={"mcp.method.name": method, **facts}, kind=kind
    )


def test_mcp_tells_one_call_up_to_four_times() -> None:
    """The agent's tool span, two client spans and the server's, in another service: one call,
    failed if any says so.
    """
    agent = span(1, attributes={OPERATION: "invoke_agent", "gen_ai.agent.name": "support"}, end=9)
    tool = span(2, 1, attributes={OPERATION: "execute_tool", "gen_ai.tool.name": "search"}, end=8)
    server = mcp(5, 4, "tools/call search", KIND_SERVER, error__type="tool_error")
    found = run(
        agent,
        tool,
        mcp(3, 2, "tools/call search", KIND_CLIENT),
        mcp(4, 3, "MCP send tools/call search", KIND_CLIENT),
        server,
    )

    assert found.path == ("search",)
    assert [one.ok for one in found.tool_calls or ()] == [False]


def test_mcp_methods_that_are_no_step() -> None:
    assert is_nothing(mcp(1, None, "tools/list", KIND_CLIENT, "tools/list"))
    assert is_nothing(mcp(1, None, "send", KIND_CLIENT))
    assert call(mcp(1, None, "send", KIND_CLIENT, gen_ai__tool__name="search")).name == "search"


@pytest.mark.parametrize("key", ["mcp.tool.result.is_error", "mcp.result.is_error"])
def test_a_result_that_is_an_error_fails_a_call_whose_spans_end_ok(key: str) -> None:
    agent = span(1, attributes={OPERATION: "invoke_agent", "gen_ai.agent.name": "support"}, end=9)
    tool = span(2, 1, attributes={OPERATION: "execute_tool", "gen_ai.tool.name": "search"}, end=8)

    def ok(told: bool) -> list[bool]:
        facts: dict[str, Any] = {key.replace(".", "__"): told}
        server = mcp(3, 2, "tools/call search", KIND_SERVER, **facts)
        return [one.ok for one in run(agent, tool, server).tool_calls or ()]

    assert (ok(told=True), ok(told=False)) == ([False], [True])
