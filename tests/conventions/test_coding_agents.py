"""Log events and spans of coding agents, put together in small: what the recordings of
`tests/corpora` show at large.
"""

from __future__ import annotations

import functools
from typing import Any, Final

import pytest
from google.protobuf import json_format
from msgspec.structs import replace
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

from otel_reliability.model.run import Outcome
from otel_reliability.model.span import STATUS_ERROR, RawLog, RawSpan, Resource
from otel_reliability.service.answers import Encoding, OtlpSignal
from otel_reliability.service.decoded import Decoder
from otel_reliability.sources.otlp_json import decode_request, parse
from otel_reliability.sources.otlp_protobuf import decode_logs
from otel_reliability.testing import at, span, span_id, trace_id
from tests.conventions.reading import READER, read, rebuilt

CLAUDE: Final = "com.anthropic.claude_code.events"
CODEX: Final = "codex_otel.log_only"
SESSION: Final = "01a208b9-4ef4-7290-ba03-1b6b199ceedf"
CHILD: Final = "01a208b9-519e-7f21-9aeb-a709ff5cbc91"


def log(scope: str, name: str, at_s: float, **attributes: Any) -> RawLog:
    """A log event; in names of attributes `__` stands for a dot."""
    given = {key.replace("__", "."): value for key, value in attributes.items()}
    return RawLog(name, at(at_s), b"", b"", given, scope, Resource())


def claude(name: str, at_s: float, **attributes: Any) -> RawLog:
    return log(CLAUDE, name, at_s, session__id=SESSION, **{"prompt__id": "p1", **attributes})


def codex(name: str, at_s: float, **attributes: Any) -> RawLog:
    return log(CODEX, f"codex.{name}", at_s, **{"conversation__id": SESSION, **attributes})


def part(
    scope: str,
    trace: int,
    own: dict[str, Any],
    number: int,
    parent: int | None,
    name: str,
    start: float,
    end: float,
    status: Any = 0,
    links: Any = (),
    **attributes: Any,
) -> RawSpan:
    """A span of a coding agent, with attributes of its own beside those that it
    shares with others.
    """
    given = {**own, **{key.replace("__", "."): value for key, value in attributes.items()}}
    return span(
        number,
        parent,
        name=name,
        scope=scope,
        trace=trace,
        start=start,
        end=end,
        status=status,
        links=links,
        attributes=given,
    )


def test_events_of_claude_code_are_a_run() -> None:
    usage = {
        "input_tokens": 100,
        "cache_read_tokens": "20",
        "cache_creation_tokens": 3,
        "output_tokens": 10,
    }
    bash = {"tool_name": "Bash", "tool_input": '{"command": "make"}', "duration_ms": "500"}
    (run,) = rebuilt(
        claude("user_prompt", 10),
        claude(
            "api_request", 12, **usage, duration_ms=1000, cost_usd=0.25, model="m", request_id="r1"
        ),
        claude("tool_result", 13, **bash, tool_use_id="t1", success="false"),
        claude("tool_result", 14, **bash, tool_use_id="t2", success="true"),
        claude("tool_decision", 15, tool_name="Bash", tool_use_id="t3", decision="reject"),
    )

    assert (run.key.agent, run.session_id, run.path) == ("claude-code", SESSION, ("Bash", "Bash"))
    assert [(call.ok, call.retry) for call in run.tool_calls or ()] == [
        (False, False),
        (True, True),
    ]
    assert (run.input_tokens, run.output_tokens, run.cost) == (123, 10, 0.25)
    assert (run.start_ns, run.end_ns, run.incomplete) == (at(10), at(14), False)
    assert [call.start_ns for call in run.tool_calls or ()] == [at(12.5), at(13.5)]


def test_prompts_of_claude_code_are_runs_of_one_session() -> None:
    """A subagent's events belong to the prompt that started it, whatever prompt they name later."""
    done = {"duration_ms": 100, "success": "true", "agent_id": "a1"}
    first, second = rebuilt(
        claude("user_prompt", 10),
        claude("tool_result", 11, tool_name="Read", tool_use_id="t1", **done),
        claude("user_prompt", 20, prompt__id="p2"),
        claude("tool_result", 21, prompt__id="p2", tool_name="Grep", tool_use_id="t2", **done),
        claude("api_request", 22, prompt__id="p2", input_tokens=1, output_tokens=1),
    )

    assert (first.path, second.path) == (("Read", "Grep"), ())


def test_a_prompt_that_nothing_followed_is_no_run() -> None:
    """A command of the program itself asks no model."""
    assert rebuilt(claude("user_prompt", 10)) == []


def test_events_without_their_prompt_are_one_incomplete_run() -> None:
    (run,) = rebuilt(
        claude("tool_result", 13, tool_name="Read", tool_use_id="t1", success=True, duration_ms=5),
        claude("api_request", 14, input_tokens=1, output_tokens=1),
    )

    assert (run.path, run.incomplete, run.session_id) == (("Read",), True, SESSION)


@pytest.mark.parametrize(
    ("settings", "outcome"), [({}, Outcome.COMPLETED), (None, Outcome.SUCCESS)]
)
def test_a_commit_decides_the_outcome_only_where_configured(
    settings: dict[str, Any] | None, outcome: Outcome
) -> None:
    given = {"outcome": {"evaluations": ["git_commit"]}} if settings is None else settings
    (run,) = rebuilt(
        claude("user_prompt", 10),
        claude(
            "tool_result",
            11,
            tool_name="Bash",
            success="true",
            tool_parameters='{"git_commit_id": "34abb26"}',
        ),
        **given,
    )

    assert [evaluation.name for evaluation in run.evaluations] == ["git_commit"]
    assert run.outcome is outcome


def test_spans_and_events_of_claude_code_count_once() -> None:
    """The span has the call, the event its arguments; a refused call of a span is no step."""
    own = {"session.id": SESSION}
    one = functools.partial(part, "com.anthropic.claude_code.tracing", 7, own)
    (run,) = rebuilt(
        one(1, None, "claude_code.interaction", 9, 30),
        one(2, 1, "claude_code.tool", 12, 14, tool_name="mcp__ops__restart", tool_use_id="t1"),
        one(3, 2, "claude_code.tool.execution", 12, 14, STATUS_ERROR, tool_use_id="t1"),
        one(
            4,
            1,
            "claude_code.llm_request",
            10,
            12,
            input_tokens=5,
            output_tokens=2,
            request_id="r1",
        ),
        one(5, 1, "claude_code.tool", 15, 16, tool_name="Bash", tool_use_id="t2"),
        one(6, 5, "claude_code.tool.blocked_on_user", 15, 16, decision="reject"),
        claude("user_prompt", 10),
        claude(
            "tool_result",
            14,
            tool_name="mcp_tool",
            tool_use_id="t1",
            success="false",
            duration_ms=1990,
        ),
        claude("api_request", 12, input_tokens=5, output_tokens=2, request_id="r1", cost_usd=0.5),
    )

    assert (run.path, [call.ok for call in run.tool_calls or ()]) == (
        ("mcp__ops__restart",),
        [False],
    )
    assert (run.input_tokens, run.output_tokens, run.cost) == (5, 2, 0.5)
    assert (run.trace_id, run.root_span_id) == (trace_id(7), span_id(1))


def test_a_conversation_of_codex_has_a_run_for_each_prompt() -> None:
    """By time; the exit code stands in the output; a call that a rule forbade, and a wrapper, are
    no steps.
    """
    done = {
        "tool_name": "exec_command",
        "tool_namespace": "functions",
        "success": "true",
        "duration_ms": 10,
    }
    first, second = rebuilt(
        codex("user_prompt", 10),
        codex(
            "tool_result",
            11,
            **done,
            call_id="c1",
            output="Chunk ID: a\nProcess exited with code 1\nOutput:\nno",
        ),
        codex(
            "tool_result",
            12,
            **{**done, "tool_name": "exec"},
            call_id="c2",
            output="Script completed",
        ),
        codex("sse_event", 13, event__kind="response.completed"),
        codex(
            "sse_event",
            13,
            event__kind="response.completed",
            input_token_count=7,
            output_token_count=2,
        ),
        codex("user_prompt", 20),
        codex(
            "tool_result",
            21,
            **{**done, "success": "false"},
            call_id="c3",
            output='exec_command failed: Rejected("no")',
        ),
        codex(
            "tool_result",
            22,
            **{**done, "tool_namespace": "mcp__ops", "tool_name": "restart"},
            call_id="c4",
            output="ok",
        ),
    )

    assert [(call.name, call.ok) for call in first.tool_calls or ()] == [("exec_command", False)]
    assert (first.input_tokens, first.output_tokens, second.path) == (7, 2, ("mcp__ops__restart",))


def test_a_subagent_of_codex_is_part_of_the_run_that_spawned_it() -> None:
    """It is a conversation of its own, which the output of the call names."""
    done = {"success": "true", "duration_ms": 5}
    child = {"conversation__id": CHILD}
    usage = {"event__kind": "response.completed", "input_token_count": 7, "output_token_count": 2}
    spawned = f'{{"agent_id": "{CHILD}"}}'
    (run,) = rebuilt(
        codex("user_prompt", 10),
        codex(
            "tool_result",
            12,
            tool_name="spawn_agent",
            call_id="c1",
            **{**done, "duration_ms": 900},
            output=spawned,
        ),
        codex("user_prompt", 11.5, **child),
        codex(
            "tool_result", 13, tool_name="exec_command", call_id="c2", output="", **done, **child
        ),
        codex("sse_event", 14, **usage, **child),
    )

    assert (run.key.agent, run.path, run.input_tokens) == (
        "codex",
        ("spawn_agent", "exec_command"),
        7,
    )


def test_spans_of_gemini_cli_join_the_prompt_of_their_conversation() -> None:
    """Each is a trace of its own; an event without an id is the call of the same name at the same
    time.
    """
    result = '{"functionResponse": {"response": {"output": "Exit Code: 2"}}}'
    failed = f'{{"status": "success", "response": {{"responseParts": [{result}]}}}}'
    call = {
        "gen_ai__tool__name": "run_shell_command",
        "gen_ai__tool__call_id": "c1",
        "gen_ai__output__messages": failed,
    }
    gemini = functools.partial(
        log, "gemini-cli", session__id=SESSION, prompt_id=SESSION, duration_ms=1000
    )
    shell = {"function_name": "run_shell_command", "function_args": '{"command": "x"}'}
    refused = {"function_name": "replace", "error_type": "policy_violation"}
    own = {"gen_ai.conversation.id": SESSION}
    (run,) = rebuilt(
        gemini("gemini_cli.user_prompt", 10),
        gemini("gemini_cli.tool_call", 13, **shell, success=True),
        gemini("gemini_cli.tool_call", 14, **refused, success=False),
        gemini("gemini_cli.api_response", 12, input_token_count=9, output_token_count=3),
        part("gemini-cli", 1, own, 1, None, "llm_call", 11, 12, gen_ai__operation__name="llm_call"),
        part(
            "gemini-cli",
            2,
            own,
            2,
            None,
            "tool_call",
            12,
            13,
            gen_ai__operation__name="tool_call",
            **call,
        ),
    )

    assert [(call.name, call.ok, call.arguments is not None) for call in run.tool_calls or ()] == [
        ("run_shell_command", False, True)
    ]
    assert (run.input_tokens, run.output_tokens) == (9, 3)


def test_a_background_subagent_of_qwen_code_lies_below_the_call_that_its_link_names() -> None:
    """It is a trace of its own; a request that serves no prompt is nothing."""
    own = {"session.id": SESSION}
    agent = {**own, "gen_ai.operation.name": "invoke_agent"}
    tool = {**own, "gen_ai.operation.name": "execute_tool"}
    one = functools.partial(part, "qwen-code")
    denied = {"tool__failure_kind": "permission_denied"}
    alone = {"gen_ai__operation__name": "chat", "llm_request__context": "standalone"}
    top, inner = rebuilt(
        one(1, agent, 1, None, "qwen-code.interaction", 9, 20, gen_ai__agent__name="qwen-code"),
        one(1, tool, 2, 1, "qwen-code.tool", 10, 11, gen_ai__tool__name="agent"),
        one(
            2,
            agent,
            3,
            None,
            "qwen-code.subagent",
            10,
            30,
            links=((1, 2),),
            gen_ai__agent__name="Explore",
        ),
        one(2, tool, 4, 3, "qwen-code.tool", 12, 13, gen_ai__tool__name="read_file"),
        one(3, own, 5, None, "qwen-code.llm_request", 25, 26, **alone),
        one(
            1,
            tool,
            6,
            1,
            "qwen-code.tool",
            15,
            16,
            STATUS_ERROR,
            gen_ai__tool__name="edit",
            **denied,
        ),
    )

    assert (top.key.agent, top.path) == ("qwen-code", ("agent", "read_file"))
    assert (inner.key.agent, inner.nested, inner.path) == ("Explore", True, ("read_file",))


def test_totals_of_copilot_are_those_of_the_session_and_its_users_evaluate_runs() -> None:
    own = {"gen_ai.conversation.id": SESSION, "gen_ai.operation.name": "invoke_agent"}
    totals = {"gen_ai__agent__name": "copilot", "gen_ai__usage__input_tokens": 900}
    feedback = {"conversation_id": SESSION, "rating": "positive", "request_id": "r"}
    (run,) = rebuilt(
        part("copilot-chat", 1, own, 1, None, "invoke_agent copilot", 9, 20, **totals),
        log("copilot-chat", "copilot_chat.user.feedback", 30, **feedback),
        outcome={"evaluations": ["user_feedback"]},
    )

    assert (run.key.agent, run.input_tokens, run.outcome) == ("copilot", None, Outcome.SUCCESS)


CALL: dict[str, Any] = {"success": "true", "duration_ms": 5}
GEMINI: dict[str, Any] = {"session__id": SESSION, "prompt_id": "p", **CALL}
EVENTS = [
    claude(
        "tool_result",
        13,
        tool_name="Read",
        tool_use_id="t",
        tool_input="{}",
        tool_parameters="{}",
        agent_id="a",
        **CALL,
    ),
    claude(
        "api_request", 13, input_tokens=1, output_tokens=1, cost_usd=1, request_id="r", model="m"
    ),
    codex(
        "tool_result",
        13,
        tool_name="spawn_agent",
        tool_namespace="f",
        call_id="c",
        output="{}",
        arguments="{}",
        **CALL,
    ),
    codex(
        "sse_event", 13, event__kind="response.completed", input_token_count=1, output_token_count=1
    ),
    log("gemini-cli", "gemini_cli.tool_call", 13, function_name="x", **GEMINI),
    log(
        "gemini-cli",
        "gemini_cli.api_response",
        13,
        session__id=SESSION,
        input_token_count=1,
        output_token_count=1,
    ),
    log("qwen-code", "qwen-code.tool_call", 13, function_name="x", call_id="c", **GEMINI),
    log(
        "copilot-chat", "copilot_chat.user.feedback", 30, conversation_id=SESSION, rating="positive"
    ),
    claude(
        "compaction", 13, pre_tokens=9, post_tokens=1, trigger="auto", success="true", duration_ms=5
    ),
    codex("api_request", 13, endpoint="/responses/compact", attempt=0, duration_ms=5),
    log(
        "gemini-cli",
        "gemini_cli.chat_compression",
        13,
        session__id=SESSION,
        tokens_before=9,
        tokens_after=1,
    ),
    log(
        "qwen-code",
        "qwen-code.chat_compression",
        13,
        session__id=SESSION,
        tokens_before=9,
        tokens_after=1,
    ),
]


@pytest.mark.parametrize(
    "wrong", [None, b"x", [], {"a": 1}, float("nan"), "9" * 5_000, "\ud800", True, -1]
)
@pytest.mark.parametrize(
    "event", EVENTS, ids=lambda event: event.name if isinstance(event, RawLog) else None
)
def test_a_value_of_a_wrong_type_harms_nothing(event: RawLog, wrong: Any) -> None:
    for key in event.attributes:
        changed = replace(event, attributes={**event.attributes, key: wrong})
        for found in READER.read_logs([changed, event]):
            assert (len(found.trace_id), len(found.span_id)) == (16, 8)


def test_a_log_event_is_the_same_from_json_and_protobuf() -> None:
    body = (
        '{"resourceLogs": [{"resource": {"attributes": [{"key": "service.name", "value": '
        '{"stringValue": "codex_exec"}}]},'
        ' "scopeLogs": [{"scope": {"name": "codex_otel.log_only"}, "logRecords": '
        '[{"observedTimeUnixNano": "11000000000",'
        ' "attributes": [{"key": "event.name", "value": {"stringValue": "codex.user_prompt"}},'
        ' {"key": "conversation.id", "value": {"stringValue": "'
        + SESSION
        + '"}}]}, {"body": {"stringValue": "text"}}]}]}]}'
    )
    protobuf = decode_logs(_protobuf(body))
    json = decode_request(parse(body.encode()))

    assert protobuf.logs == json.logs
    assert (protobuf.other_logs, json.other_logs) == (1, 1)
    decoder = Decoder(READER, native=False)
    spans = decoder(OtlpSignal.LOGS, Encoding.JSON, body.encode()).spans
    assert spans == decoder(OtlpSignal.LOGS, Encoding.PROTOBUF, _protobuf(body)).spans
    assert [one.resource.service_name for one in spans] == ["codex_exec"]


def _protobuf(body: str) -> bytes:
    return json_format.Parse(body, ExportLogsServiceRequest()).SerializeToString()


def test_a_tool_span_of_gemini_cli_reads_the_same_from_the_wire() -> None:
    """What an answer is made of has a length: a text."""
    attributes = {
        "gen_ai.operation.name": "tool_call",
        "gen_ai.tool.name": "run_shell_command",
        "gen_ai.output.messages": '{"status": "error"}',
    }
    assert read(span(name="tool_call", scope="gemini-cli", attributes=attributes)).failed
