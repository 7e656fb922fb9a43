"""Log events and spans of coding agents, put together in small: what the recordings of `tests/corpora` show at large."""

from __future__ import annotations

from typing import Any, Final

import pytest
from google.protobuf import json_format
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

from otel_reliability.config import Settings
from otel_reliability.engine import Engine
from otel_reliability.model.run import CloseReason, Outcome, Run
from otel_reliability.model.span import STATUS_ERROR, RawLog, RawSpan, Resource
from otel_reliability.service.answers import Encoding, OtlpSignal
from otel_reliability.service.decoded import Decoder
from otel_reliability.sources.otlp_json import decode_json
from otel_reliability.sources.otlp_protobuf import decode_logs
from otel_reliability.testing import at, span, span_id, trace_id
from tests.conventions.reading import READER, reader

CLAUDE: Final = "com.anthropic.claude_code.events"
CODEX: Final = "codex_otel.log_only"
SESSION: Final = "01a208b9-4ef4-7290-ba03-1b6b199ceedf"
CHILD: Final = "01a208b9-519e-7f21-9aeb-a709ff5cbc91"


def log(scope: str, name: str, at_s: float, **attributes: Any) -> RawLog:
    """A log event; in names of attributes `__` stands for a dot."""
    given = {key.replace("__", "."): value for key, value in attributes.items()}
    return RawLog(name, at(at_s), b"", b"", given, scope, Resource())


def claude(name: str, at_s: float, **attributes: Any) -> RawLog:
    """An event of Claude Code, in one session."""
    return log(CLAUDE, name, at_s, session__id=SESSION, **{"prompt__id": "p1", **attributes})


def codex(name: str, at_s: float, **attributes: Any) -> RawLog:
    """An event of Codex, in one conversation."""
    return log(CODEX, f"codex.{name}", at_s, **{"conversation__id": SESSION, **attributes})


def rebuilt(*received: RawSpan | RawLog, **settings: Any) -> list[Run]:
    """The runs of spans and events, the outermost first; the same in any order, and doubled."""
    found: list[list[Run]] = []
    for order in (received, received[::-1], [*received, *received]):
        engine = Engine(Settings.from_mapping(settings), clock=lambda: 0.0, wall=None, reader=reader(**settings))
        for one in order:
            if isinstance(one, RawLog):
                engine.receive_logs([one])
            else:
                engine.receive([one])
        engine.flush(CloseReason.END_OF_INPUT)
        found.append(sorted(engine.take_final(), key=lambda run: (run.nested, run.start_ns, run.run_id)))
    assert found[0] == found[1] == found[2]
    return found[0]


def test_events_of_claude_code_are_a_run() -> None:
    """Tools with their failures and retries, tokens with the cached part, cost; a refused call is no step."""
    usage = {"input_tokens": 100, "cache_read_tokens": "20", "cache_creation_tokens": 3, "output_tokens": 10}
    bash = {"tool_name": "Bash", "tool_input": '{"command": "make"}', "duration_ms": "500"}
    (run,) = rebuilt(
        claude("user_prompt", 10),
        claude("api_request", 12, **usage, duration_ms=1000, cost_usd=0.25, model="m", request_id="r1"),
        claude("tool_result", 13, **bash, tool_use_id="t1", success="false"),
        claude("tool_result", 14, **bash, tool_use_id="t2", success="true"),
        claude("tool_decision", 15, tool_name="Bash", tool_use_id="t3", decision="reject"),
    )

    assert (run.key.agent, run.session_id, run.path) == ("claude-code", SESSION, ("Bash", "Bash"))
    assert [(call.ok, call.retry) for call in run.tool_calls or ()] == [(False, False), (True, True)]
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
    """As work whose root never arrived."""
    (run,) = rebuilt(
        claude("tool_result", 13, tool_name="Read", tool_use_id="t1", success=True, duration_ms=5),
        claude("api_request", 14, input_tokens=1, output_tokens=1),
    )

    assert (run.path, run.incomplete, run.session_id) == (("Read",), True, SESSION)


@pytest.mark.parametrize(("settings", "outcome"), [({}, Outcome.COMPLETED), (None, Outcome.SUCCESS)])
def test_a_commit_decides_the_outcome_only_where_configured(settings: dict[str, Any] | None, outcome: Outcome) -> None:
    """It is an evaluation of the run in any case."""
    given = {"outcome": {"evaluations": ["git_commit"]}} if settings is None else settings
    (run,) = rebuilt(
        claude("user_prompt", 10),
        claude("tool_result", 11, tool_name="Bash", success="true", tool_parameters='{"git_commit_id": "34abb26"}'),
        **given,
    )

    assert [evaluation.name for evaluation in run.evaluations] == ["git_commit"]
    assert run.outcome is outcome


def test_spans_and_events_of_claude_code_count_once() -> None:
    """The span has the call, the event its arguments; a refused call of a span is no step."""
    place: dict[str, Any] = {"scope": "com.anthropic.claude_code.tracing", "trace": 7}
    own = {"session.id": SESSION}
    (run,) = rebuilt(
        span(1, None, name="claude_code.interaction", start=9, end=30, attributes=own, **place),
        span(
            2,
            1,
            name="claude_code.tool",
            start=12,
            end=14,
            attributes={**own, "tool_name": "mcp__ops__restart", "tool_use_id": "t1"},
            **place,
        ),
        span(
            3,
            2,
            name="claude_code.tool.execution",
            start=12,
            end=14,
            status=STATUS_ERROR,
            attributes={**own, "tool_use_id": "t1"},
            **place,
        ),
        span(
            4,
            1,
            name="claude_code.llm_request",
            start=10,
            end=12,
            attributes={**own, "input_tokens": 5, "output_tokens": 2, "request_id": "r1"},
            **place,
        ),
        span(
            5,
            1,
            name="claude_code.tool",
            start=15,
            end=16,
            attributes={**own, "tool_name": "Bash", "tool_use_id": "t2"},
            **place,
        ),
        span(
            6,
            5,
            name="claude_code.tool.blocked_on_user",
            start=15,
            end=16,
            attributes={**own, "decision": "reject"},
            **place,
        ),
        claude("user_prompt", 10),
        claude("tool_result", 14, tool_name="mcp_tool", tool_use_id="t1", success="false", duration_ms=1990),
        claude("api_request", 12, input_tokens=5, output_tokens=2, request_id="r1", cost_usd=0.5),
    )

    assert (run.path, [call.ok for call in run.tool_calls or ()]) == (("mcp__ops__restart",), [False])
    assert (run.input_tokens, run.output_tokens, run.cost) == (5, 2, 0.5)
    assert (run.trace_id, run.root_span_id) == (trace_id(7), span_id(1))


def test_a_conversation_of_codex_has_a_run_for_each_prompt() -> None:
    """By time; the exit code stands in the output; a call that a rule forbade, and a wrapper, are no steps."""
    done = {"tool_name": "exec_command", "tool_namespace": "functions", "success": "true", "duration_ms": 10}
    first, second = rebuilt(
        codex("user_prompt", 10),
        codex("tool_result", 11, **done, call_id="c1", output="Chunk ID: a\nProcess exited with code 1\nOutput:\nno"),
        codex("tool_result", 12, **{**done, "tool_name": "exec"}, call_id="c2", output="Script completed"),
        codex("sse_event", 13, event__kind="response.completed"),
        codex("sse_event", 13, event__kind="response.completed", input_token_count=7, output_token_count=2),
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
    (run,) = rebuilt(
        codex("user_prompt", 10),
        codex(
            "tool_result",
            12,
            tool_name="spawn_agent",
            call_id="c1",
            success="true",
            duration_ms=900,
            output=f'{{"agent_id": "{CHILD}"}}',
        ),
        codex("user_prompt", 11.5, conversation__id=CHILD),
        codex(
            "tool_result",
            13,
            conversation__id=CHILD,
            tool_name="exec_command",
            call_id="c2",
            success="true",
            duration_ms=5,
            output="",
        ),
        codex(
            "sse_event",
            14,
            conversation__id=CHILD,
            event__kind="response.completed",
            input_token_count=7,
            output_token_count=2,
        ),
    )

    assert (run.key.agent, run.path, run.input_tokens) == ("codex", ("spawn_agent", "exec_command"), 7)


def test_spans_of_gemini_cli_join_the_prompt_of_their_conversation() -> None:
    """Each is a trace of its own; an event without an id is the call of the same name at the same time."""
    own = {"gen_ai.conversation.id": SESSION}
    tool = {
        **own,
        "gen_ai.operation.name": "tool_call",
        "gen_ai.tool.name": "run_shell_command",
        "gen_ai.tool.call_id": "c1",
    }
    failed = (
        '{"status": "success", "response": {"responseParts":'
        ' [{"functionResponse": {"response": {"output": "Exit Code: 2"}}}]}}'
    )
    events = {"session__id": SESSION, "prompt_id": SESSION, "duration_ms": 1000}
    (run,) = rebuilt(
        log("gemini-cli", "gemini_cli.user_prompt", 10, **events),
        log(
            "gemini-cli",
            "gemini_cli.tool_call",
            13,
            **events,
            function_name="run_shell_command",
            success=True,
            function_args='{"command": "x"}',
        ),
        log(
            "gemini-cli",
            "gemini_cli.tool_call",
            14,
            **events,
            function_name="replace",
            success=False,
            error_type="policy_violation",
        ),
        log("gemini-cli", "gemini_cli.api_response", 12, **events, input_token_count=9, output_token_count=3),
        span(
            1,
            None,
            name="llm_call",
            trace=1,
            scope="gemini-cli",
            start=11,
            end=12,
            attributes={**own, "gen_ai.operation.name": "llm_call"},
        ),
        span(
            2,
            None,
            name="tool_call",
            trace=2,
            scope="gemini-cli",
            start=12,
            end=13,
            attributes={**tool, "gen_ai.output.messages": failed},
        ),
    )

    assert [(call.name, call.ok, call.arguments is not None) for call in run.tool_calls or ()] == [
        ("run_shell_command", False, True)
    ]
    assert (run.input_tokens, run.output_tokens) == (9, 3)


def test_a_background_subagent_of_qwen_code_lies_below_the_call_that_its_link_names() -> None:
    """It is a trace of its own; a request that serves no prompt is nothing."""
    own, scope = {"session.id": SESSION}, "qwen-code"
    agent, tool = {**own, "gen_ai.operation.name": "invoke_agent"}, {**own, "gen_ai.operation.name": "execute_tool"}
    top, inner = rebuilt(
        span(
            1,
            None,
            name="qwen-code.interaction",
            trace=1,
            scope=scope,
            start=9,
            end=20,
            attributes={**agent, "gen_ai.agent.name": "qwen-code"},
        ),
        span(
            2,
            1,
            name="qwen-code.tool",
            trace=1,
            scope=scope,
            start=10,
            end=11,
            attributes={**tool, "gen_ai.tool.name": "agent"},
        ),
        span(
            3,
            None,
            name="qwen-code.subagent",
            trace=2,
            scope=scope,
            start=10,
            end=30,
            links=((1, 2),),
            attributes={**agent, "gen_ai.agent.name": "Explore"},
        ),
        span(
            4,
            3,
            name="qwen-code.tool",
            trace=2,
            scope=scope,
            start=12,
            end=13,
            attributes={**tool, "gen_ai.tool.name": "read_file"},
        ),
        span(
            5,
            None,
            name="qwen-code.llm_request",
            trace=3,
            scope=scope,
            start=25,
            end=26,
            attributes={**own, "gen_ai.operation.name": "chat", "llm_request.context": "standalone"},
        ),
        span(
            6,
            1,
            name="qwen-code.tool",
            trace=1,
            scope=scope,
            start=15,
            end=16,
            status=STATUS_ERROR,
            attributes={**tool, "gen_ai.tool.name": "edit", "tool.failure_kind": "permission_denied"},
        ),
    )

    assert (top.key.agent, top.path) == ("qwen-code", ("agent", "read_file"))
    assert (inner.key.agent, inner.nested, inner.path) == ("Explore", True, ("read_file",))


def test_totals_of_copilot_are_those_of_the_session_and_its_users_evaluate_runs() -> None:
    """Feedback reaches the run of its conversation that came before it."""
    own = {"gen_ai.conversation.id": SESSION, "gen_ai.operation.name": "invoke_agent"}
    (run,) = rebuilt(
        span(
            1,
            None,
            name="invoke_agent copilot",
            scope="copilot-chat",
            start=9,
            end=20,
            attributes={**own, "gen_ai.agent.name": "copilot", "gen_ai.usage.input_tokens": 900},
        ),
        log(
            "copilot-chat", "copilot_chat.user.feedback", 30, conversation_id=SESSION, rating="positive", request_id="r"
        ),
        outcome={"evaluations": ["user_feedback"]},
    )

    assert (run.key.agent, run.input_tokens, run.outcome) == ("copilot", None, Outcome.SUCCESS)


@pytest.mark.parametrize("wrong", [None, b"x", [], {"a": 1}, float("nan"), "9" * 5_000, "\ud800", True, -1])
@pytest.mark.parametrize(
    "event",
    [
        claude(
            "tool_result",
            13,
            tool_name="Read",
            tool_use_id="t",
            success="true",
            duration_ms=5,
            tool_input="{}",
            tool_parameters="{}",
            agent_id="a",
        ),
        claude("api_request", 13, input_tokens=1, output_tokens=1, cost_usd=1, request_id="r", model="m"),
        codex(
            "tool_result",
            13,
            tool_name="spawn_agent",
            tool_namespace="f",
            call_id="c",
            output="{}",
            arguments="{}",
            success="true",
            duration_ms=1,
        ),
        codex("sse_event", 13, event__kind="response.completed", input_token_count=1, output_token_count=1),
        log(
            "gemini-cli",
            "gemini_cli.tool_call",
            13,
            session__id=SESSION,
            prompt_id="p",
            function_name="x",
            success=True,
            duration_ms=1,
        ),
        log(
            "gemini-cli", "gemini_cli.api_response", 13, session__id=SESSION, input_token_count=1, output_token_count=1
        ),
        log(
            "qwen-code",
            "qwen-code.tool_call",
            13,
            session__id=SESSION,
            prompt_id="p",
            function_name="x",
            success=True,
            call_id="c",
        ),
        log("copilot-chat", "copilot_chat.user.feedback", 30, conversation_id=SESSION, rating="positive"),
    ],
    ids=lambda event: event.name if isinstance(event, RawLog) else None,
)
def test_a_value_of_a_wrong_type_harms_nothing(event: RawLog, wrong: Any) -> None:
    """Whatever stands in an attribute, reading goes on."""
    for key in event.attributes:
        changed = event._replace(attributes={**event.attributes, key: wrong})
        for found in READER.read_logs([changed, event]):
            assert (len(found.trace_id), len(found.span_id)) == (16, 8)


def test_a_log_event_is_the_same_from_json_and_protobuf() -> None:
    """Times, scope, resource, attributes; the service reads both into the same spans."""
    body = (
        '{"resourceLogs": [{"resource": {"attributes": [{"key": "service.name", "value": {"stringValue": "codex_exec"}}]},'
        ' "scopeLogs": [{"scope": {"name": "codex_otel.log_only"}, "logRecords": [{"observedTimeUnixNano": "11000000000",'
        ' "attributes": [{"key": "event.name", "value": {"stringValue": "codex.user_prompt"}},'
        ' {"key": "conversation.id", "value": {"stringValue": "'
        + SESSION
        + '"}}]}, {"body": {"stringValue": "text"}}]}]}]}'
    )
    protobuf, json = decode_logs(_protobuf(body)), decode_json(body.encode())

    assert protobuf.logs == json.logs
    assert (protobuf.other_logs, json.other_logs) == (1, 1)
    decoder = Decoder(READER, native=False)
    spans = decoder(OtlpSignal.LOGS, Encoding.JSON, body.encode()).spans
    assert spans == decoder(OtlpSignal.LOGS, Encoding.PROTOBUF, _protobuf(body)).spans
    assert [one.resource.service_name for one in spans] == ["codex_exec"]


def _protobuf(body: str) -> bytes:
    """The request in protobuf."""
    return json_format.Parse(body, ExportLogsServiceRequest()).SerializeToString()
