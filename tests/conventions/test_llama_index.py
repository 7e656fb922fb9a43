"""LlamaIndex."""

from __future__ import annotations

from otel_reliability.model.run import Tools
from otel_reliability.model.span import STATUS_ERROR, Kind, RawSpan
from otel_reliability.testing import span
from tests.conventions.reading import call, hashed, invocation, is_nothing, model, run

SCOPE = "llamaindex.opentelemetry.tracer"
SUMMARY = "ToolCall(tool_name='search', tool_kwargs={'q': 1}, tool_id='c1')"


def seen(
    name: str, event: str | None = "ToolCall", summary: str | None = SUMMARY, status: int = 0
) -> RawSpan:
    attributes = {"llamaindex.step.input_event": event, "llamaindex.step.input_summary": summary}
    told = {key: value for key, value in attributes.items() if value is not None}
    return span(2, 1, name=name, attributes=told, scope=SCOPE, status=status)


def test_q31_kinds_stand_only_in_names() -> None:
    """`X.run` is a container of that class, `.achat` of no engine a model call, anything else
    nothing.
    """
    assert (
        invocation(span(name="FunctionAgent.run", scope=SCOPE), Kind.WORKFLOW).fallback_name
        == "FunctionAgent"
    )
    assert model(seen("OpenAI.astream_chat")).model is None
    assert is_nothing(seen("ContextChatEngine.achat", event=None))
    assert is_nothing(seen("FunctionAgent.setup_agent"))


def test_q31_a_tool_call_is_read_from_its_summary() -> None:
    """The summary is the repr of the step's event: name, arguments and id. The inner span has the
    status.
    """
    one = call(seen("FunctionAgent.call_tool"))
    inner = call(seen("FunctionTool.acall", status=STATUS_ERROR))

    assert (one.name, one.call_id, one.arguments, one.failed) == (
        "search",
        "c1",
        hashed({"q": 1}),
        False,
    )
    assert (inner.name, inner.failed) == ("search", True)


def test_q31_inherited_attributes_make_no_tools() -> None:
    """Spans inherit the attributes of their step: a tool is one only where its own step was a tool
    call.
    """
    assert is_nothing(seen("FunctionTool.acall", event="AgentInput"))
    assert model(seen("OpenAI.achat")).model is None


def test_q31_a_summary_cut_short_loses_arguments_first() -> None:
    """Summaries end at 200 characters: the name remains, arguments and id are unknown."""
    one = call(
        seen(
            "FunctionAgent.call_tool",
            summary="ToolCall(tool_name='search', tool_kwargs={'q': 'very lo",
        )
    )

    assert (one.name, one.arguments, one.call_id) == ("search", None, None)


def test_q31_without_a_summary_the_tools_are_unobservable() -> None:
    """With content off the call has no name, and the path is unobservable, not empty."""
    found = run(
        span(1, name="FunctionAgent.run", scope=SCOPE),
        seen("FunctionAgent.call_tool", summary=None),
    )

    assert (found.tools, found.path) == (Tools.UNOBSERVABLE, None)
