"""OTel GenAI."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace

from otel_reliability.conventions.requests import of_invocation
from otel_reliability.model.run import Outcome, Tools
from otel_reliability.model.span import (
    KIND_CLIENT,
    KIND_SERVER,
    STATUS_ERROR,
    Kind,
    RawLog,
    RejectionFacts,
    Resource,
    Tokens,
)
from otel_reliability.sources.batch import Batch, take_log
from otel_reliability.testing import at, span
from tests.conventions.reading import (
    call,
    hashed,
    invocation,
    is_nothing,
    model,
    read,
    rebuilt,
    run,
    runs,
    tool,
)

OPERATION = "gen_ai.operation.name"
AGENT = {OPERATION: "invoke_agent", "gen_ai.agent.name": "support"}
CHAT = {OPERATION: "chat", "gen_ai.request.model": "gpt-4o-mini"}
TOOL = {OPERATION: "execute_tool", "gen_ai.tool.name": "search", "gen_ai.tool.call.id": "call_1"}


@pytest.mark.parametrize(
    ("operation", "kind"),
    [
        ("invoke_agent", Kind.AGENT),
        ("invoke_workflow", Kind.WORKFLOW),
        ("invoke_swarm", Kind.WORKFLOW),
        ("chat", Kind.MODEL),
        ("text_completion", Kind.MODEL),
        ("execute_tool", Kind.TOOL),
        ("retrieval", Kind.RETRIEVAL),
        ("search_memory", Kind.RETRIEVAL),
        ("upsert_memory", Kind.TOOL),
        ("delete_memory_store", Kind.TOOL),
        ("execute_code", Kind.TOOL),
        ("evaluation", Kind.EVALUATION),
        ("apply_guardrail", Kind.EVALUATION),
        ("create_agent", Kind.OTHER),
        ("embeddings", Kind.OTHER),
        ("plan", Kind.OTHER),
        ("something_new", Kind.OTHER),
    ],
)
def test_an_operation_is_a_kind(operation: str, kind: Kind) -> None:
    assert read(span(attributes={OPERATION: operation})).kind is kind


def test_a_model_call_tells_model_tokens_and_reasons() -> None:
    facts = model(
        span(
            attributes={
                **CHAT,
                "gen_ai.response.model": "gpt-4o-mini-2024-07-18",
                "gen_ai.response.id": "resp-1",
                "gen_ai.response.finish_reasons": ("tool_calls",),
                "gen_ai.usage.input_tokens": 100,
                "gen_ai.usage.output_tokens": 10,
                "gen_ai.context.window_size": 128_000,
                "operation.cost": 0.002,
            }
        )
    )

    assert (facts.model, facts.request_model) == ("gpt-4o-mini-2024-07-18", "gpt-4o-mini")
    assert facts.tokens == Tokens(100, 10)
    assert (facts.response_id, facts.context_limit, facts.cost) == ("resp-1", 128_000, 0.002)
    assert facts.asked_for_tools


OLD = {"gen_ai.usage.prompt_tokens": 100, "gen_ai.usage.completion_tokens": 10}
NEW = {"gen_ai.usage.input_tokens": 100, "gen_ai.usage.output_tokens": 10}


@pytest.mark.parametrize("given", [OLD, NEW, {**OLD, **NEW}])
@pytest.mark.parametrize("cached", [None, "cache_write", "cache_creation", "cache_read"])
def test_tokens_under_several_names_are_never_added(
    given: dict[str, int], cached: str | None
) -> None:
    """The same number under the old name and the new is one; what was cached is part
    of the input.
    """
    more = {} if cached is None else {f"gen_ai.usage.{cached}.input_tokens": 60}

    assert model(span(attributes={**CHAT, **given, **more})).tokens == Tokens(100, 10)
    assert model(span(attributes=CHAT)).tokens == Tokens(None, None)


@pytest.mark.parametrize(
    "reasons", [("tool_calls",), ["tool_calls"], '["tool_calls"]', "tool_calls", "TOOL_CALLS"]
)
def test_finish_reasons_come_in_every_shape(reasons: object) -> None:
    """An array, a JSON text of one (Microsoft Agent Framework), a single value."""
    assert model(
        span(attributes={**CHAT, "gen_ai.response.finish_reasons": reasons})
    ).asked_for_tools


def test_a_finish_reason_can_say_that_a_model_call_failed() -> None:
    """`error` as finish reason is a failure although the status is not ERROR; a limit word on a
    model call is none.
    """
    assert read(span(attributes={**CHAT, "gen_ai.response.finish_reasons": ("error",)})).failed
    assert not read(span(attributes={**CHAT, "gen_ai.response.finish_reasons": ("length",)})).failed


def test_an_agent_tells_its_name_totals_and_limit() -> None:
    facts = invocation(
        span(
            attributes={
                **AGENT,
                "gen_ai.usage.input_tokens": 7,
                "gen_ai.response.finish_reasons": ["max_steps"],
            }
        )
    )

    assert (facts.name, facts.tokens, facts.limit_reached) == ("support", Tokens(7, None), True)
    assert invocation(span(attributes=AGENT)).tokens is None


def test_a_random_id_is_no_name() -> None:
    """A UUID in place of a name names nobody (Microsoft Agent Framework)."""
    assert (
        invocation(
            span(attributes={**AGENT, "gen_ai.agent.name": "171105b7-59dd-49c0-9677-0b95395aa46a"})
        ).name
        is None
    )


def test_aggregated_usage_is_the_agents_total() -> None:
    """pydantic-ai keeps the totals of a run apart from usage of its own."""
    aggregated = {
        "gen_ai.aggregated_usage.input_tokens": 30,
        "gen_ai.aggregated_usage.output_tokens": 3,
    }

    assert invocation(span(attributes={**AGENT, **aggregated})).tokens == Tokens(30, 3)


def test_a_tool_call_tells_arguments_and_result_as_hashes() -> None:
    full = call(
        span(
            attributes={
                **TOOL,
                "gen_ai.tool.call.arguments": '{"q": 1}',
                "gen_ai.tool.call.result": "found",
            }
        )
    )
    bare = call(span(attributes=TOOL))

    assert (full.name, full.call_id) == (bare.name, bare.call_id) == ("search", "call_1")
    assert (full.arguments, full.result) == (hashed({"q": 1}), hashed("found"))
    assert (bare.arguments, bare.result) == (None, None)


@pytest.mark.parametrize("mark", [{"error.type": "tool_error"}, {"gen_ai.tool.status": "error"}])
def test_a_tool_can_fail_without_the_status(mark: dict[str, Any]) -> None:
    """`error.type` (MCP's isError, ADK's TOOL_ERROR) is a failure."""
    assert call(span(attributes={**TOOL, **mark})).failed
    assert read(span(attributes={**TOOL, **mark})).failed
    assert call(span(attributes=TOOL, status=STATUS_ERROR)).failed
    assert not call(span(attributes=TOOL)).failed


def test_a_tool_without_a_name_attribute_is_named_by_its_span() -> None:
    attributes = {OPERATION: "execute_tool"}

    assert call(span(name="execute_tool search", attributes=attributes)).name == "search"
    assert call(span(name="tool", attributes=attributes)).name is None


def test_message_parts_tell_the_calls_a_model_asked_for() -> None:
    """With content on, `gen_ai.output.messages` holds the calls: the last resort where no tool span
    does.
    """
    messages = '[{"role":"assistant","parts":[{"type":"tool_call","id":"c1","name":"search","arguments":{"q":1}}]}]'
    facts = model(span(attributes={**CHAT, "gen_ai.output.messages": messages}))

    assert facts.messages
    assert facts.asked_for_tools
    assert [(one.name, one.call_id, one.arguments) for one in facts.calls] == [
        ("search", "c1", hashed({"q": 1}))
    ]

    answer = model(
        span(
            attributes={
                **CHAT,
                "gen_ai.output.messages": '[{"parts":[{"type":"text","content":"done"}]}]',
            }
        )
    )
    assert (answer.messages, answer.calls, answer.asked_for_tools) == (True, (), False)


@pytest.mark.parametrize("name", ["(merged tools)", "(merged)"])
def test_q09_a_span_that_merges_parallel_tools_is_no_call(name: str) -> None:
    """Google ADK adds `execute_tool (merged tools)` (1.x: `(merged)`) after parallel calls."""
    assert is_nothing(
        span(
            name=f"execute_tool {name}",
            attributes={OPERATION: "execute_tool", "gen_ai.tool.name": name},
        )
    )


def test_q09_final_answer_is_a_finish_mark_of_smolagents_alone() -> None:
    """The tool `final_answer` ends a run of smolagents; elsewhere a tool of that name is a tool."""
    attributes = {OPERATION: "execute_tool", "gen_ai.tool.name": "final_answer"}
    smolagents = "opentelemetry.instrumentation.genai.smolagents"

    assert tool(span(attributes=attributes, scope=smolagents)).finish
    assert call(span(attributes=attributes)).name == "final_answer"


def test_q15_a_tool_without_an_operation() -> None:
    """Older pydantic-ai and koog: `gen_ai.tool.name` alone, arguments under keys of their own;
    any-agent: under another.
    """
    old = {"gen_ai.tool.name": "search", "tool_arguments": '{"q": 1}', "tool_response": "found"}
    one = call(span(name="running tool", attributes=old))

    assert (one.name, one.arguments, one.result) == ("search", hashed({"q": 1}), hashed("found"))
    koog = call(
        span(
            name="tool.search", attributes={"gen_ai.tool.name": "search", "input.value": '{"q": 1}'}
        )
    )

    assert (koog.name, koog.arguments) == ("search", hashed({"q": 1}))
    agent365 = {"gen_ai.tool.arguments": '{"q": 1}', "gen_ai.tool.result": "found"}
    read_call = call(span(attributes={**TOOL, **agent365}))
    assert (read_call.arguments, read_call.result) == (hashed({"q": 1}), hashed("found"))
    assert call(span(attributes={**TOOL, "gen_ai.tool.args": '{"q": 1}'})).arguments == hashed(
        {"q": 1}
    )


def test_q15_an_agent_without_an_operation() -> None:
    """Older pydantic-ai: `agent_name` on a span named `X run`. On any other span that key is
    anybody's.
    """
    assert invocation(span(name="joker run", attributes={"agent_name": "joker"})).name == "joker"
    assert is_nothing(span(name="GET /agents", attributes={"agent_name": "joker"}))


def test_q15_a_model_call_without_an_operation() -> None:
    """Older instrumentations: `gen_ai.system` and a model. any-agent: the operation `call_llm`."""
    assert (
        model(
            span(attributes={"gen_ai.system": "openai", "gen_ai.request.model": "m"})
        ).request_model
        == "m"
    )
    assert model(span(attributes={OPERATION: "call_llm"})).model is None


def test_an_output_tool_of_pydantic_ai_is_no_tool() -> None:
    """An agent with an output type ends with the finish reason `tool_call` and no tool span: its
    path is empty.
    """
    agent = span(
        1,
        attributes={OPERATION: "invoke_agent", "gen_ai.agent.name": "judge"},
        scope="pydantic-ai",
        end=9,
    )
    parts = '[{"parts":[{"type":"tool_call","id":"c1","name":"final_result","arguments":{"quality":"good"}}]}]'
    chat = {
        OPERATION: "chat",
        "gen_ai.response.finish_reasons": ("tool_call",),
        "gen_ai.usage.input_tokens": 5,
    }
    for attributes in (chat, {**chat, "gen_ai.output.messages": parts}):
        found = run(agent, span(2, 1, attributes=attributes, scope="pydantic-ai"))

        assert (found.tools, found.path, found.input_tokens) == (Tools.OBSERVED, (), 5)
    assert run(agent, span(2, 1, attributes=chat, scope="another")).tools is Tools.UNOBSERVABLE


def test_q17_generate_content_is_a_model_call() -> None:
    """Google ADK's operation for a model call is not `chat`."""
    assert (
        model(
            span(attributes={OPERATION: "generate_content", "gen_ai.usage.input_tokens": 5})
        ).tokens.input
        == 5
    )


def test_q40_a_raw_loop_is_no_run() -> None:
    """A client loop without an agent: two model spans a call, in a trace of their own or below a
    request: no ghost.
    """
    request = span(1, name="POST /chat", kind=KIND_SERVER)
    outer = span(
        2, 1, attributes=CHAT, kind=KIND_CLIENT, scope="openinference.instrumentation.anthropic"
    )
    inner = span(3, 2, attributes=CHAT, kind=KIND_CLIENT, scope="com.anthropic.sdk.python")
    lone = span(4, trace=2, attributes=CHAT, kind=KIND_CLIENT)
    agent = span(5, trace=3, attributes=AGENT)

    assert run(request, outer, inner, lone, agent).key.agent == "support"


def test_changes_of_a_memory_are_effects() -> None:
    """They are steps named after the operation, told apart by store and record; searching a memory
    is no step.
    """
    ids = {"gen_ai.memory.store.id": "s1", "gen_ai.memory.record.id": "r1"}
    found = run(
        span(1, attributes=AGENT, start=0, end=9),
        span(2, 1, attributes={OPERATION: "search_memory"}, start=1),
        span(3, 1, attributes={OPERATION: "update_memory", **ids}, start=2),
        span(
            4, 1, attributes={OPERATION: "delete_memory", **ids, "error.type": "timeout"}, start=4
        ),
    )

    assert found.path == ("update_memory", "delete_memory")
    assert [(one.ok, one.has_effect) for one in found.tool_calls or ()] == [
        (True, True),
        (False, False),
    ]
    assert [one.arguments for one in found.tool_calls or ()] == [
        hashed({"store": "s1", "record": "r1"})
    ] * 2


@pytest.mark.parametrize(
    ("mode", "path"),
    [
        ("pass_control", ("→billing",)),
        ("return_to_caller", ("ask_billing",)),
        ("something_new", ("ask_billing",)),
    ],
)
def test_a_tool_that_passes_control_is_a_hand_off(mode: str, path: tuple[str, ...]) -> None:
    """`gen_ai.transfer.*` on a tool span: an agent that returns to its caller was called
    as a tool.
    """
    transfer = {"gen_ai.transfer.mode": mode, "gen_ai.transfer.target.name": "billing"}
    tool = {OPERATION: "execute_tool", "gen_ai.tool.name": "ask_billing", **transfer}

    assert (
        run(span(1, attributes=AGENT, start=0, end=9), span(2, 1, attributes=tool, start=1)).path
        == path
    )


DETAILS = "gen_ai.client.inference.operation.details"
ASKED = [
    {
        "role": "assistant",
        "parts": [{"type": "tool_call", "id": "c1", "name": "search", "arguments": {"q": 1}}],
    }
]


def details(span_id: int, **given: Any) -> RawLog:
    context = span(span_id)
    attributes = {f"gen_ai.{key.replace('__', '.')}": value for key, value in given.items()}
    return RawLog(
        DETAILS, context.end_ns, context.trace_id, context.span_id, attributes, "app", Resource()
    )


def test_the_event_of_a_model_call_adds_what_its_span_leaves_out() -> None:
    usage = {"gen_ai.usage.input_tokens": 5}
    event = details(2, usage__input_tokens=100, usage__output_tokens=10, output__messages=ASKED)
    (found,) = rebuilt(
        span(1, attributes=AGENT, end=9), span(2, 1, attributes={**CHAT, **usage}, start=1), event
    )

    assert (found.input_tokens, found.output_tokens, len(found.model_calls)) == (5, 10, 1)
    assert (found.path, found.tools) == (("search",), Tools.MESSAGES)


def test_the_event_of_a_model_call_opens_no_run() -> None:
    events = (
        details(span_id, output__messages=ASKED, usage__input_tokens=7) for span_id in (1, 99)
    )
    (found,) = rebuilt(span(1, attributes=AGENT, end=9), *events)

    assert (found.path, found.input_tokens, found.model_calls) == ((), None, ())


def test_the_event_of_a_model_call_holds_the_request_of_its_run() -> None:
    asked = [{"role": "user", "parts": [{"type": "text", "content": "Cancel the order of today"}]}]
    (found,) = rebuilt(
        span(1, attributes=AGENT, end=9),
        span(2, 1, attributes=CHAT, start=1),
        details(2, input__messages=asked),
    )

    assert found.request == of_invocation(asked)
    assert found.request is not None


def message(name: str, span_id: int, body: dict[str, Any]) -> RawLog:
    """A log event of one message, as it is read from a record with a body."""
    context = span(span_id)
    batch = Batch()
    take_log(
        batch,
        RawLog(name, at(1), context.trace_id, context.span_id, {}, "app", Resource()),
        body,
    )
    return batch.logs[0]


def test_events_of_single_messages_hold_the_request_and_the_calls() -> None:
    function = {"name": "search", "arguments": '{"q": 1}'}
    answer = {"role": "assistant", "tool_calls": [{"id": "c1", "function": function}]}
    (found,) = rebuilt(
        span(1, attributes=AGENT, end=9),
        span(2, 1, attributes=CHAT, start=1),
        span(3, 1, attributes=CHAT, start=5),
        message("gen_ai.user.message", 2, {"content": "Cancel the order of today"}),
        message("gen_ai.choice", 2, {"finish_reason": "tool_calls", "message": answer}),
        message("gen_ai.choice", 3, {"finish_reason": "stop", "message": {"content": "Done."}}),
    )

    assert found.request == of_invocation("Cancel the order of today")
    assert (found.path, found.tools) == (("search",), Tools.MESSAGES)


def test_an_unknown_operation_falls_back_on_keys() -> None:
    usage = {"gen_ai.usage.input_tokens": 80, "gen_ai.usage.output_tokens": 12}
    asked = {"gen_ai.operation.name": "chat.completions", "gen_ai.request.model": "gpt", **usage}
    assert model(span(attributes=asked)).tokens == Tokens(80, 12)
    named = {"gen_ai.operation.name": "call_tool", "gen_ai.tool.name": "search"}
    assert call(span(attributes=named)).name == "search"


@pytest.mark.parametrize("operation", ["embeddings", "create_agent", "something"])
def test_what_only_counts_input_is_no_model_call(operation: str) -> None:
    attributes = {
        "gen_ai.operation.name": operation,
        "gen_ai.request.model": "text-embedding",
        "gen_ai.usage.input_tokens": 80,
    }
    assert is_nothing(span(attributes=attributes))


def test_a_model_call_without_an_operation() -> None:
    asked = {"gen_ai.request.model": "gpt", "gen_ai.usage.completion_tokens": 12}
    assert model(span(attributes=asked)).tokens.output == 12
    record = {"gen_ai.response.model": "gpt", "gen_ai.usage.output_tokens": 12}
    assert is_nothing(span(attributes=record))


@pytest.mark.parametrize(
    ("status", "kind", "failed"),
    [
        ("completed", Kind.MODEL, False),
        ("failed", Kind.MODEL, True),
        ("in_progress", Kind.OTHER, False),
        ("queued", Kind.OTHER, False),
    ],
)
def test_a_fetched_response_is_a_model_call_once_it_is_finished(
    status: str, kind: Kind, failed: bool
) -> None:
    attributes = {
        "gen_ai.operation.name": "fetch_response",
        "gen_ai.response.status": status,
        "gen_ai.response.model": "m",
        "gen_ai.usage.output_tokens": 7,
    }

    found = read(span(1, name="fetch_response m", attributes=attributes))

    assert (found.kind, found.failed) == (kind, failed)


def test_a_compacted_conversation_is_a_compression_before_the_call() -> None:
    agent = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "a"}
    chat = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}
    compacted = {**chat, "gen_ai.conversation.compacted": True}

    [run] = runs(
        span(1, name="invoke_agent a", end=9, attributes=agent),
        span(2, 1, name="chat m", start=1, end=2, attributes=chat),
        span(3, 1, name="chat m", start=3, end=4, attributes=compacted),
    )

    assert [(one.ok, one.end_ns, one.tokens_before) for one in run.compressions] == [
        (True, at(3), None)
    ]


def test_an_exception_of_the_client_operation_can_be_control_flow() -> None:
    event = "gen_ai.client.operation.exception", {"exception.type": "asyncio.CancelledError"}
    chat = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}

    found = read(span(1, name="chat m", status=STATUS_ERROR, events=(event,), attributes=chat))

    assert not found.failed


def test_what_the_sender_dropped_is_counted_on_spans_of_agents() -> None:
    chat = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}

    found = read(replace(span(1, name="chat m", attributes=chat), dropped=3))
    other = read(replace(span(1, name="GET /"), dropped=3))

    assert found.notes is not None
    assert (found.notes.dropped, other.notes) == (3, None)


@pytest.mark.parametrize(
    "key", ["gen_ai.request.reasoning.level", "gen_ai.openai.request.reasoning_effort"]
)
def test_the_level_of_reasoning_is_a_fingerprint(key: str) -> None:
    asked = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m", key: "high"}
    root = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "a"}
    found = run(span(1, attributes=root), span(2, 1, attributes=asked))

    assert ("reasoning", "high") in found.fingerprints


@pytest.mark.parametrize(
    ("operation", "kind"),
    [("agent", Kind.AGENT), ("agent.run_it", Kind.OTHER), ("run-agent", Kind.AGENT)],
)
def test_an_unknown_operation_of_a_named_agent(operation: str, kind: Kind) -> None:
    named = {"gen_ai.operation.name": operation, "gen_ai.agent.name": "desk"}
    assert read(span(attributes=named)).kind is kind
    assert read(span(attributes={"gen_ai.operation.name": operation})).kind is Kind.OTHER


def test_the_loop_over_tools_of_dotnet_is_a_run_without_an_agent() -> None:
    loop = span(1, attributes={OPERATION: "orchestrate_tools"}, end=9)
    found = run(loop, span(2, 1, attributes=CHAT, start=1), span(3, 1, attributes=TOOL, start=3))

    assert (found.path, found.implicit, found.outcome.value) == (("search",), False, "completed")
    agent = span(9, attributes=AGENT, end=10)
    assert run(agent, replace(loop, parent_id=agent.span_id)).key.agent == "support"


def test_the_token_keys_of_semantic_kernel() -> None:
    found = model(
        span(
            attributes={
                "gen_ai.operation.name": "chat.completions",
                "gen_ai.system": "openai",
                "gen_ai.request.model": "gpt-x",
                "gen_ai.response.prompt_tokens": 50,
                "gen_ai.response.completion_tokens": 5,
            }
        )
    )
    assert found.tokens == Tokens(50, 5)


def test_a_run_of_an_agent_that_azure_keeps() -> None:
    """The agent, the thread and the message are made in spans of their own, which are no runs."""
    made = span(
        1,
        trace=2,
        attributes={"gen_ai.operation.name": "create_agent", "gen_ai.agent.name": "desk"},
        scope="azure.ai.agents",
    )
    asked = span(
        1,
        trace=3,
        end=9.0,
        attributes={
            "gen_ai.operation.name": "process_thread_run",
            "gen_ai.agent.name": "desk",
            "gen_ai.usage.input_tokens": 100,
            "gen_ai.usage.output_tokens": 7,
        },
        scope="azure.ai.agents",
    )
    called = span(
        2,
        1,
        trace=3,
        attributes={"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "lookup"},
        scope="azure.ai.agents",
    )
    (found,) = rebuilt(made, asked, called)
    assert (found.key.agent, found.path, found.tokens) == ("desk", ("lookup",), 107)


@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        ("completed", Outcome.COMPLETED),
        ("failed", Outcome.FAILURE),
        ("expired", Outcome.FAILURE),
        ("incomplete", Outcome.FAILURE),
        ("requires_action", Outcome.PAUSED),
        ("cancelled", Outcome.CANCELLED),
    ],
)
def test_a_run_that_azure_keeps_says_how_it_stands(status: str, outcome: Outcome) -> None:
    """Its span only asked for it, and ended well."""
    asked = span(
        attributes={
            "gen_ai.operation.name": "process_thread_run",
            "gen_ai.agent.name": "desk",
            "gen_ai.thread.run.status": status,
        }
    )
    (found,) = rebuilt(asked)
    assert found.outcome is outcome


@pytest.mark.parametrize("said", ["undefined", "unknown", "00000000-0000-0000-0000-000000000000"])
def test_an_id_that_says_that_there_is_none_is_no_conversation(said: str) -> None:
    attributes = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "desk",
        "gen_ai.conversation.id": said,
    }
    called = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "lookup"}
    (found,) = rebuilt(span(1, attributes=attributes), span(2, 1, attributes=called))
    assert found.session_id is None


def test_an_agent_of_agentscope_says_that_tools_wait() -> None:
    """The call that its model asked for was not executed: the path is empty."""
    asked = '[{"parts": [{"type": "tool_call", "id": "c1", "name": "pay", "arguments": {}}]}]'
    waits = {"agentscope.agent.hitl_pending_tools": '["pay"]', "gen_ai.agent.name": "friday"}
    found = run(
        span(1, attributes={"gen_ai.operation.name": "invoke_agent", **waits}, end=9),
        span(
            2,
            1,
            attributes={
                "gen_ai.operation.name": "chat",
                "gen_ai.output.messages": asked,
            },
        ),
    )
    assert (found.path, found.outcome) == ((), Outcome.PAUSED)


@pytest.mark.parametrize(
    "mark",
    [{"error": True}, {"gen_ai.tool.is_error": "true"}, {"gen_ai.tool.call.status": "error"}],
)
def test_a_failed_call_may_say_so_by_an_attribute_only(mark: dict[str, Any]) -> None:
    assert call(span(attributes={**TOOL, **mark})).failed
    assert not call(span(attributes={**TOOL, "error": "none"})).failed


def test_the_error_of_a_provider_is_a_model_call_whatever_its_operation() -> None:
    """It answered no tokens. What names an agent is none."""
    asked = {OPERATION: "llm_call", "gen_ai.request.model": "m", "gen_ai.provider.name": "openai"}
    assert model(span(attributes=asked, status=STATUS_ERROR)).request_model == "m"
    assert is_nothing(span(attributes=asked))
    assert is_nothing(span(attributes={**asked, "gen_ai.agent.name": "a"}, status=STATUS_ERROR))


@pytest.mark.parametrize(
    ("name", "agent"),
    [
        ("invoke_agent trip-planner", "trip-planner"),
        ("invoke_agent 0d27ee01-4866-4a9b-989c-3ecf31ed47aa", None),
        ("invoke_agent gpt-4o-mini", None),
        ("POST /chat", None),
    ],
)
def test_a_span_may_name_its_agent_only_by_its_own_name(name: str, agent: str | None) -> None:
    """As Koog does, whose agents have ids: one of the user's, or a UUID."""
    attributes = {OPERATION: "invoke_agent", "gen_ai.request.model": "gpt-4o-mini"}
    assert invocation(span(name=name, attributes=attributes)).fallback_name == agent


@pytest.mark.parametrize(
    ("agent_id", "agent"),
    [
        ("trip-planner", "trip-planner"),
        ("asst_9x7Kd2", None),
        ("0d27ee01-4866-4a9b-989c-3ecf31ed47aa", None),
        ("VkyRtbWqLsPzmXcNdJfGhTaEu", None),
    ],
)
def test_an_id_made_of_words_names_an_agent_that_has_no_name(
    agent_id: str, agent: str | None
) -> None:
    """As older releases of Koog give it, whose spans are named after the run."""
    attributes = {OPERATION: "invoke_agent", "gen_ai.agent.id": agent_id}
    found = run(span(name="run.7", attributes=attributes))
    assert found.key.agent == (agent or found.key.service_name)


def test_the_question_whether_to_call_a_tool_is_no_call() -> None:
    """Cloudflare's agents give it the span of a tool, and another one below for its state."""
    asks = {**TOOL, "cloudflare.agents.operation.name": "tool.approval"}
    state = "cloudflare.agents.tool.approval.state"
    assert is_nothing(span(attributes=asks))
    assert is_nothing(span(attributes={**asks, state: "approved"}))
    waits = read(span(attributes={**asks, state: "requested"}))
    assert (waits.facts, waits.failed) == (RejectionFacts(pending=True), False)
    assert read(span(attributes={**asks, state: "denied"})).facts == RejectionFacts()
    assert call(span(attributes={**TOOL, "cloudflare.agents.operation.name": "tool.execute"}))


@pytest.mark.parametrize("operation", ["embed", "embedContent", "reranking"])
def test_an_embedding_is_no_model_call_though_it_tells_tokens(operation: str) -> None:
    usage = {"gen_ai.usage.input_tokens": 4, "gen_ai.usage.output_tokens": 0}
    attributes = {OPERATION: operation, "gen_ai.request.model": "embedder", **usage}
    assert is_nothing(span(attributes=attributes))


def test_code_that_is_executed_is_a_call_named_by_its_operation() -> None:
    executed = {OPERATION: "execute_code", "gen_ai.agent.name": "user_proxy"}
    failed = {**executed, "ag2.code_execution.exit_code": 1, "error.type": "CodeExecutionError"}
    assert [call(span(attributes=one)).failed for one in (executed, failed)] == [False, True]
    found = run(
        span(1, attributes=AGENT, end=9.0),
        span(2, 1, attributes=failed, start=1.0),
        span(3, 1, attributes=executed, start=3.0),
    )
    assert found.path == ("execute_code", "execute_code")


def test_the_agents_that_reply_in_a_conversation_of_ag2_are_one_run() -> None:
    conversation = {OPERATION: "conversation", "ag2.span.type": "conversation"}
    coder = {OPERATION: "invoke_agent", "gen_ai.agent.name": "coder"}
    proxy = {OPERATION: "invoke_agent", "gen_ai.agent.name": "user_proxy"}
    code = {OPERATION: "execute_code", "gen_ai.agent.name": "user_proxy"}
    usage = {"gen_ai.usage.input_tokens": 10, "gen_ai.usage.output_tokens": 1}
    spans = [
        span(2, 1, attributes=coder, start=1.0, end=3.0),
        span(3, 2, attributes={**CHAT, **usage}, start=1.5, end=2.0),
        span(4, 1, attributes=proxy, start=4.0, end=6.0),
        span(5, 4, attributes=code, start=4.5, end=5.0),
        span(6, 1, attributes=coder, start=7.0, end=9.0),
        span(7, 6, attributes={**CHAT, **usage}, start=7.5, end=8.0),
    ]
    found = rebuilt(span(1, attributes=conversation, end=9.0), *spans)
    (whole,) = [one for one in found if not one.nested]
    assert (whole.key.agent, whole.path) == ("coder", ("execute_code",))
    assert whole.input_tokens == 20
    other = span(1, attributes={OPERATION: "conversation"}, end=9.0)
    assert len([one for one in rebuilt(other, *spans) if not one.nested]) == 3


def judged(number: int, start: float) -> list[Any]:
    """An evaluation below the agent, with the model that judged, and an agent that helped it."""
    usage = {"gen_ai.usage.input_tokens": 900, "gen_ai.usage.output_tokens": 90}
    helper = {OPERATION: "invoke_agent", "gen_ai.agent.name": "judge"}
    below = number + 1
    return [
        span(number, 1, attributes={OPERATION: "evaluation"}, start=start, end=start + 9),
        span(below, number, attributes={**CHAT, **usage}, start=start + 1, end=start + 2),
        span(number + 2, number, attributes=helper, start=start + 3, end=start + 8),
        span(number + 3, number + 2, attributes=TOOL, start=start + 4, end=start + 5),
    ]


def test_what_judges_a_run_after_its_end_is_none_of_its_work() -> None:
    usage = {"gen_ai.usage.input_tokens": 100, "gen_ai.usage.output_tokens": 10}
    work = [
        span(1, attributes=AGENT, end=20.0),
        span(2, 1, attributes={**CHAT, **usage}, start=1.0, end=2.0),
    ]
    (later,) = [one for one in rebuilt(*work, *judged(5, 3600.0)) if not one.nested]
    assert (later.key.agent, later.path, later.input_tokens) == ("support", (), 100)
    assert later.duration_s == 20
    (meanwhile,) = [one for one in rebuilt(*work, *judged(5, 5.0)) if not one.nested]
    assert (meanwhile.path, meanwhile.input_tokens) == (("search",), 1000)


def says(*parts: dict[str, Any]) -> dict[str, Any]:
    messages = json.dumps([{"role": "assistant", "parts": list(parts)}])
    return {**CHAT, "gen_ai.output.messages": messages}


SERVED: dict[str, Any] = {
    "type": "server_tool_call",
    "id": "s1",
    "name": "web_search",
    "server_tool_call": {},
}
BUILT_IN = {"type": "tool_call", "id": "s1", "name": "web_search", "builtin": True}
RETURNED = {"type": "tool_call_response", "id": "s1", "name": "web_search", "builtin": True}
TEXT = {"type": "text", "content": "done"}


@pytest.mark.parametrize("called", [SERVED, BUILT_IN])
def test_what_the_provider_called_itself_is_a_call(called: dict[str, Any]) -> None:
    root = span(1, attributes=AGENT, end=9.0)
    answer = span(2, 1, attributes=says(called, RETURNED, TEXT), start=1.0)
    found = run(root, answer)
    assert (found.path, found.tools) == (("web_search",), Tools.MESSAGES)
    own = span(3, 1, attributes=TOOL, start=4.0)
    assert run(root, answer, own).path == ("web_search", "search")
    spanned = {**TOOL, "gen_ai.tool.name": "web_search"}
    seen = run(root, answer, span(3, 1, attributes=spanned, start=1.2))
    assert (seen.path, seen.tools) == (("web_search",), Tools.OBSERVED)


@pytest.mark.parametrize(
    "key",
    [
        "gen_ai.usage.reasoning.output_tokens",
        "gen_ai.usage.details.reasoning_tokens",
        "gen_ai.usage.output_tokens.reasoning",
        "gen_ai.usage.experimental.reasoning_tokens",
    ],
)
def test_tokens_of_reasoning(key: str) -> None:
    assert model(span(attributes={**CHAT, key: 661})).reasoned == 661


@pytest.mark.parametrize(
    ("reason", "outcome"),
    [("approval_required", Outcome.PAUSED), ("max_steps", Outcome.FAILURE)],
)
def test_an_agent_of_riffer_that_was_interrupted(reason: str, outcome: Outcome) -> None:
    root = span(1, attributes={**AGENT, "riffer.interrupt.reason": reason}, end=9.0)
    assert run(root, span(2, 1, attributes=CHAT)).outcome is outcome


def test_a_tool_that_only_ends_the_loop_of_mellea_is_no_step() -> None:
    ends = {**TOOL, "gen_ai.tool.name": "final_answer", "mellea.tool.is_control_flow": True}
    own = {**TOOL, "mellea.tool.is_control_flow": False}
    spans = [span(2, 1, attributes=own, start=1.0), span(3, 1, attributes=ends, start=3.0)]
    assert run(span(1, attributes=AGENT, end=9.0), *spans).path == ("search",)
