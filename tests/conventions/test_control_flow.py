"""Errors that are control flow."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace

from otel_reliability.conventions.control_flow import ControlFlow, signal_of
from otel_reliability.conventions.plans import Plan, Scope
from otel_reliability.conventions.templates import Template
from otel_reliability.model.run import Outcome, Run
from otel_reliability.model.span import STATUS_ERROR, Kind, RawSpan, RejectionFacts
from otel_reliability.testing import span
from tests.conventions.reading import read, reader, rebuilt, run

PAUSES = (
    "langgraph.errors.GraphInterrupt",
    "pydantic_ai.exceptions.ApprovalRequired",
    "pydantic_ai.exceptions.CallDeferred",
    "ToolInterruptError",
    "InterruptError",
    "workflows.errors.WaitingForEvent",
    "WorkflowSuspended",
    "UserInputRequiredException",
    "mcp.shared.exceptions.UrlElicitationRequiredError",
    "haystack.core.errors.BreakpointException",
    "PendingApprovalError",
    "*ai.toolInterruptError",
    "PauseRun",
    "PendingHumanApproval",
    "NeedsApproval",
    "InterruptSignal",
)
CANCELLATIONS = (
    "asyncio.exceptions.CancelledError",
    "KeyboardInterrupt",
    "AbortError",
    "APIUserAbortError",
    "System.Threading.Tasks.TaskCanceledException",
    "java.util.concurrent.CancellationException",
    "java.lang.InterruptedException",
    "cancelled",
    "kotlinx.coroutines.JobCancellationException",
    "Microsoft.SemanticKernel.KernelFunctionCanceledException",
    "dbos._error.DBOSWorkflowCancelledError",
    "prefect.exceptions.CancelledRun",
    "WorkflowCancelledByUser",
    "CanceledFailure",
    "ABORT_ERR",
    "ERR_CANCELED",
    "operation_cancelled",
    "context canceled",
    "starlette.requests.ClientDisconnect",
    "UserAbort",
)
REJECTIONS = (
    "UserRejectedError",
    "pydantic_ai.ToolDenied",
    "ApprovalDeniedException",
    "HumanFeedbackRejected",
    "ToolCallDeclinedByUser",
)
ERRORS = (
    "PermissionDeniedError",
    "AccessDeniedException",
    "PaymentDeclined",
    "RequestRejected",
    "ValueError",
    "ConnectionAbortedError",
    "OrderCancelledError",
    "InputRequiredError",
    "builtins.PermissionError",
    "timeout",
    "ABORTED",
    "ECONNABORTED",
    "order_cancelled",
    "context deadline exceeded",
    "500",
    "",
    None,
)


@pytest.mark.parametrize("name", PAUSES)
def test_pauses(name: str) -> None:
    assert signal_of(name) is ControlFlow.PAUSED


@pytest.mark.parametrize("name", CANCELLATIONS)
def test_cancellations(name: str) -> None:
    assert signal_of(name) is ControlFlow.CANCELLED


@pytest.mark.parametrize("name", ["langgraph.errors.ParentCommand", "agno.StopAgentRun"])
def test_control_that_went_on_elsewhere(name: str) -> None:
    assert signal_of(name) is ControlFlow.PASSED


@pytest.mark.parametrize("name", REJECTIONS)
def test_rejections(name: str) -> None:
    """A call that was rejected was not executed: no step. Other spans of that type failed."""
    assert signal_of(name) is ControlFlow.REJECTED
    found = rebuilt_run(None, name)
    assert (found.path, found.outcome) == ((), Outcome.COMPLETED)
    assert rebuilt_run(name, None).outcome is Outcome.FAILURE


@pytest.mark.parametrize("name", ERRORS)
def test_errors_stay_errors(name: str | None) -> None:
    assert signal_of(name) is None


def step(
    operation: str, number: int, parent: int | None, error: str | None = None, **place: Any
) -> RawSpan:
    """A step that ended with an exception of that type, if any."""
    named = {"chat": {"gen_ai.request.model": "gpt"}, "execute_tool": {"gen_ai.tool.name": "pay"}}
    attributes = {
        "gen_ai.operation.name": operation,
        "gen_ai.agent.name": "desk",
        **named.get(operation, {}),
    }
    events = [("exception", {"exception.type": error})] if error else []
    status = STATUS_ERROR if error else 0
    return span(number, parent, attributes=attributes, events=events, status=status, **place)


def rebuilt_run(
    of_root: str | None, of_tool: str | None, *others: RawSpan, in_attribute: bool = False
) -> Run:
    root = step("invoke_agent", 1, None, of_root, start=0.0, end=9.0)
    tool = step("execute_tool", 2, 1, of_tool, start=1.0, end=2.0)
    if in_attribute:
        tool = replace(tool, attributes={**tool.attributes, "error.type": of_tool}, events=())
    (found,) = rebuilt(root, tool, *others)
    return found


@pytest.mark.parametrize("in_attribute", [False, True])
def test_a_paused_call_was_not_executed_and_pauses_its_run(in_attribute: bool) -> None:
    found = rebuilt_run(None, "GraphInterrupt", in_attribute=in_attribute)
    assert (found.path, found.outcome, found.success) == ((), Outcome.PAUSED, None)
    assert found.ended_in_error is None


def test_a_run_that_went_on_is_not_paused() -> None:
    again = step("execute_tool", 3, 1, start=4.0, end=5.0)
    found = rebuilt_run(None, "GraphInterrupt", again)
    assert (found.path, found.outcome) == (("pay",), Outcome.COMPLETED)


def test_a_cancelled_run_has_no_failed_call_and_is_no_failure() -> None:
    found = rebuilt_run("CancelledError", "CancelledError")
    assert (found.path, found.outcome, found.success) == (("pay",), Outcome.CANCELLED, None)
    assert [one.ok for one in found.tool_calls or ()] == [True]


@pytest.mark.parametrize(
    ("kind", "message", "outcome"),
    [
        ("*errors.errorString", "context canceled", Outcome.CANCELLED),
        ("*fmt.wrapError", "call model: context canceled", Outcome.CANCELLED),
        ("20", "This operation was aborted", Outcome.CANCELLED),
        ("*fmt.wrapError", "tool pay: tool execution interrupted", Outcome.PAUSED),
        ("FiberFailure", "All fibers interrupted without errors.", Outcome.CANCELLED),
        (
            "java.util.concurrent.CompletionException",
            "java.util.concurrent.CancellationException",
            Outcome.CANCELLED,
        ),
        ("Error", "1 CANCELLED: Call cancelled", Outcome.CANCELLED),
        ("io.grpc.StatusRuntimeException", "CANCELLED: client cancelled", Outcome.CANCELLED),
        ("io.grpc.StatusRuntimeException", "DEADLINE_EXCEEDED: after 9.9s", Outcome.FAILURE),
        ("ValueError", "Cancelled: the order was sent", Outcome.FAILURE),
        (
            "Grpc.Core.RpcException",
            'Status(StatusCode="Cancelled", Detail="Call canceled by the client.")',
            Outcome.CANCELLED,
        ),
        (
            "grpc.aio._call.AioRpcError",
            "<AioRpcError of RPC that terminated with:\n\tstatus = StatusCode.CANCELLED\n>",
            Outcome.CANCELLED,
        ),
        (
            "temporalio.exceptions.ApplicationError",
            "CancelledError: Workflow cancelled",
            Outcome.CANCELLED,
        ),
        ("tokio::task::JoinError", "task 12 was cancelled", Outcome.CANCELLED),
        ("RuntimeError", "Waiting for human approval of pay", Outcome.PAUSED),
        ("ValueError", "GraphInterrupt: no such node", Outcome.FAILURE),
        ("Exception", "ValueError: the order was cancelled", Outcome.FAILURE),
        ("*errors.errorString", "context deadline exceeded", Outcome.FAILURE),
        ("Error", "the order was cancelled", Outcome.FAILURE),
        (
            "System.Threading.Tasks.TaskCanceledException",
            "The request was canceled due to the configured HttpClient.Timeout of 100 seconds.",
            Outcome.FAILURE,
        ),
    ],
)
def test_the_message_of_an_exception_whose_class_says_too_little(
    kind: str, message: str, outcome: Outcome
) -> None:
    root = step("invoke_agent", 1, None, "x")
    event = ("exception", {"exception.type": kind, "exception.message": message})
    failed = span(1, attributes=root.attributes, events=[event], status=STATUS_ERROR)
    assert run(failed, step("chat", 2, 1)).outcome is outcome


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("uvicorn.protocols.utils.ClientDisconnected", ""),
        ("ClientClosedRequest", ""),
        ("Error", "client_disconnect"),
        ("Error", "499 Client Closed Request"),
        ("DOMException", "The connection was closed by the client"),
        ("HTTPException", "Client disconnected before the response was complete"),
    ],
)
def test_a_client_that_left_cancels_its_run_but_not_the_call_of_a_tool(
    kind: str, message: str
) -> None:
    event = ("exception", {"exception.type": kind, "exception.message": message})
    root, tool = [
        span(number, parent, attributes=one.attributes, events=[event], status=STATUS_ERROR)
        for number, parent, one in (
            (1, None, step("invoke_agent", 1, None)),
            (2, 1, step("execute_tool", 2, 1)),
        )
    ]
    found = run(root, tool)
    assert found.outcome is Outcome.CANCELLED
    assert [call.ok for call in found.tool_calls or ()] == [False]


@pytest.mark.parametrize(
    "message",
    [
        *("The client was disconnected by the server", "Client has disconnected from the broker"),
        *("redis client closed", "no such client"),
        "Client network socket disconnected before secure TLS connection was established",
    ],
)
def test_other_messages_about_clients_are_errors(message: str) -> None:
    event = ("exception", {"exception.type": "Error", "exception.message": message})
    root = step("invoke_agent", 1, None)
    failed = span(1, attributes=root.attributes, events=[event], status=STATUS_ERROR)
    assert run(failed, step("chat", 2, 1)).outcome is Outcome.FAILURE


def test_a_hand_off_ends_nothing() -> None:
    assert rebuilt_run("langgraph.errors.ParentCommand", None).outcome is Outcome.COMPLETED


def test_an_error_after_others_of_the_same_keys_is_an_error() -> None:
    cancelled = step("execute_tool", 2, 1, "CancelledError", start=1.0)
    failed = step("execute_tool", 3, 1, "ValueError", start=3.0)
    found = rebuilt_run(None, "CancelledError", failed)
    assert [one.ok for one in found.tool_calls or ()] == [True, False]
    assert [read(one).failed for one in (failed, cancelled, failed)] == [True, False, True]


@pytest.mark.parametrize(
    ("reason", "outcome"),
    [
        ("interrupt", Outcome.PAUSED),
        ("aborted", Outcome.CANCELLED),
        ("stop", Outcome.COMPLETED),
    ],
)
def test_the_finish_reason_of_an_agent(reason: str, outcome: Outcome) -> None:
    root = step("invoke_agent", 1, None)
    attributes = {**root.attributes, "gen_ai.response.finish_reasons": (reason,)}
    assert run(replace(root, attributes=attributes), step("chat", 2, 1)).outcome is outcome


def test_google_adk_tells_by_the_response_that_a_call_was_not_executed() -> None:
    def call(error: str) -> RawSpan:
        attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "pay",
            "gcp.vertex.agent.tool_call_args": "{}",
            "gcp.vertex.agent.tool_response": json.dumps({"error": error}),
        }
        return span(attributes=attributes, scope="gcp.vertex.agent")

    waiting = "This tool call requires confirmation, please approve or reject."
    assert read(call(waiting)).facts == RejectionFacts(pending=True)
    assert read(call("This tool call is rejected.")).facts == RejectionFacts()
    assert read(call("no such order")).kind is Kind.TOOL


def test_strands_for_javascript() -> None:
    scope = "strands-agents"
    asked = ("gen_ai.tool.message", {"content": "{}", "id": "c1"})
    root = span(
        attributes={"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "desk"},
        events=[("gen_ai.choice", {"finish_reason": "interrupt"})],
        scope=scope,
    )
    tool = span(
        2,
        1,
        attributes={"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "pay"},
        events=[asked],
        scope=scope,
    )
    found = run(root, tool)
    assert (found.path, found.outcome) == ((), Outcome.PAUSED)
    answered = replace(
        tool,
        attributes={**tool.attributes, "gen_ai.tool.status": "success"},
    )
    assert run(replace(root, events=()), answered).path == ("pay",)


def test_conventions_are_asked_once_for_each_exception(monkeypatch: pytest.MonkeyPatch) -> None:
    fresh = reader()
    ask = fresh.ask
    asked: list[RawSpan] = []

    def counted(scope: Scope, plan: Plan, span: RawSpan) -> tuple[Template, bool]:
        asked.append(span)
        return ask(scope, plan, span)

    monkeypatch.setattr(fresh, "ask", counted)
    errors = ("asyncio.CancelledError", None, "ValueError") * 20
    ended = [
        replace(step("execute_tool", number, None, error), status=STATUS_ERROR)
        for number, error in enumerate(errors)
    ]

    assert [fresh.read(span).failed for span in ended] == [False, True, True] * 20
    assert len(asked) < 10


def test_a_run_whose_last_answer_was_aborted_is_cancelled_though_its_root_says_nothing() -> None:
    root = step("invoke_agent", 1, None, start=0.0, end=9.0)
    aborted = step("chat", 3, 1, "AbortError", start=4.0)
    assert run(root, step("chat", 2, 1, start=1.0), aborted).outcome is Outcome.CANCELLED
    later = step("chat", 4, 1, start=6.0)
    assert run(root, aborted, later).outcome is Outcome.COMPLETED


@pytest.mark.parametrize(
    ("message", "is_refused"),
    [
        ("User rejected tool call", True),
        ("The operator has denied this action.", True),
        ("Permission denied: the user may not call this", False),
        ("The user rejected 3 items of the cart", False),
    ],
)
def test_a_message_may_say_that_a_person_refused(message: str, is_refused: bool) -> None:
    event = ("exception", {"exception.type": "PermissionError", "exception.message": message})
    attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "pay"}
    found = read(span(attributes=attributes, status=STATUS_ERROR, events=[event]))
    assert (found.facts == RejectionFacts()) is is_refused
