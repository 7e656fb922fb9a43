"""Steps that name the agent they belong to, below another one or none."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from otel_reliability.model.span import (
    AgentSpan,
    InvocationFacts,
    Kind,
    ModelFacts,
    RawSpan,
    Tokens,
    ToolFacts,
)
from otel_reliability.testing import agent, agent_span, model, span, tool
from tests.assembly.rebuilding import invocation, names_of, rebuilt, run_of
from tests.conventions import reading


def of(owner: str | None, span: AgentSpan, invocation_id: str | None = None) -> AgentSpan:
    """The span, which names its agent, and the agent's invocation."""
    facts = span.facts
    assert isinstance(facts, ModelFacts | ToolFacts)
    return replace(span, facts=replace(facts, agent=owner, invocation_id=invocation_id))


def nested(*steps: AgentSpan) -> list[AgentSpan]:
    """A main agent that calls a helper from second 10 to 40."""
    return [
        agent(1, called="main", end=60),
        tool(2, 1, "ask", start=9, end=41),
        agent(3, 2, called="helper", start=10, end=40),
        of("helper", model(4, 3, start=11, end=12)),
        *steps,
    ]


@pytest.mark.parametrize(
    ("step", "path_of_helper"),
    [
        (of("helper", tool(5, 1, "search", start=20)), ("search",)),
        # it took all the time of the helper
        (of("helper", tool(5, 1, "search", start=10, end=40)), ("search",)),
        # the context was lost altogether
        (of("helper", tool(5, None, "search", start=20)), ("search",)),
        (of("helper", tool(5, 99, "search", start=20)), ("search",)),
        # it is the caller's own, names nobody, or somebody else
        (of("main", tool(5, 1, "search", start=20)), ()),
        (of(None, tool(5, 1, "search", start=20)), ()),
        (of("other", tool(5, 1, "search", start=20)), ()),
        # the helper was not at work
        (of("helper", tool(5, 1, "search", start=45)), ()),
        # the name comes from a context that instrumentations share
        (replace(of("helper", tool(5, 1, "search", start=20)), scope="other"), ()),
    ],
)
def test_a_step_belongs_to_the_agent_that_it_names_and_that_encloses_it(
    step: AgentSpan, path_of_helper: tuple[str, ...]
) -> None:
    main, helper, *rest = rebuilt(*nested(step))

    assert (main.key.agent, main.nested) == ("main", False)
    assert (helper.key.agent, helper.nested, helper.path) == ("helper", True, path_of_helper)
    assert not rest or path_of_helper == ()


def test_a_step_of_the_caller_below_the_agent_that_it_called_goes_back_to_it() -> None:
    main, helper = rebuilt(*nested(of("main", tool(5, 3, "note", start=20))))

    assert main.path == ("ask", "note")
    assert helper.path == ()


def test_a_call_of_an_agent_that_bears_its_name_stays_above_it() -> None:
    spans = [
        agent(1, called="main", end=60),
        of("helper", tool(2, 1, "ask", start=9, end=41)),
        agent(3, 2, called="helper", start=10, end=40),
        model(4, 3, start=11),
    ]

    assert names_of(*spans) == [("main", False), ("helper", True)]
    assert run_of(*spans).path == ("ask",)


def test_two_invocations_of_one_agent_are_distinguished_by_their_ids_only() -> None:
    spans = [
        agent(1, called="main", end=60),
        tool(2, 1, "ask", start=9, end=41),
        invocation(InvocationFacts("helper", invocation_id="a"), 3, 2, start=10, end=40),
        of("helper", model(4, 3, start=11), "a"),
        tool(5, 1, "ask", start=9, end=41),
        invocation(InvocationFacts("helper", invocation_id="b"), 6, 5, start=10, end=40),
        of("helper", model(7, 6, start=11), "b"),
    ]
    known = of("helper", tool(8, 1, "search", start=20), "b")
    unknown = of("helper", tool(9, 1, "read", start=30))
    paths = sorted((run.path or ()) for run in rebuilt(*spans, known, unknown) if run.nested)

    assert paths == [(), ("search",)]


def test_what_lies_in_a_step_goes_with_it() -> None:
    outer = of("helper", model(5, 1, (300, 30), start=20, end=22))
    inner = agent_span(
        Kind.MODEL,
        ModelFacts("model-1", tokens=Tokens(300, 30), agent="helper"),
        6,
        5,
        start=20.5,
        end=21,
    )
    _, helper = rebuilt(*nested(outer, inner))

    assert (helper.input_tokens, helper.output_tokens) == (400, 40)


@pytest.mark.parametrize("key", ["gen_ai.agent.name", "ai.telemetry.functionId"])
def test_owners_are_read_from_the_spans_of_models_and_tools(key: str) -> None:
    given = {key: "helper", "gen_ai.agent.call.id": "call-1"}
    chat = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}
    call = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search"}

    facts = reading.model(span(1, attributes=chat | given))
    assert (facts.agent, facts.invocation_id) == ("helper", "call-1")
    own = reading.tool(span(1, attributes=call | given))
    assert (own.agent, own.invocation_id, own.calls[0].name) == ("helper", "call-1", "search")


def test_functions_of_the_ai_sdk_that_escape_their_agent_belong_to_it() -> None:
    """As in vercel/ai#11720: spans of the inner agent are children of the outer one."""

    def sdk(
        number: int, parent: int | None, operation: str, owner: str, start: float, end: float
    ) -> RawSpan:
        given = {"ai.operationId": operation, "ai.telemetry.functionId": owner}
        given |= {"ai.toolCall.name": f"tool-{number}"} if operation == "ai.toolCall" else {}
        return span(number, parent, attributes=given, scope="ai", start=start, end=end)

    main, inner = reading.runs(
        sdk(1, None, "ai.generateText", "main", start=0, end=60),
        sdk(2, 1, "ai.toolCall", "main", start=5, end=50),
        sdk(3, 2, "ai.generateText", "inner", start=6, end=49),
        sdk(4, 3, "ai.toolCall", "inner", start=7, end=8),
        sdk(5, 1, "ai.toolCall", "inner", start=20, end=30),
    )

    assert main.path == ("tool-2", "tool-4", "tool-5")
    assert (inner.key.agent, inner.path) == ("inner", ("tool-4", "tool-5"))
