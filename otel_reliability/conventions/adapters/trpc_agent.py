"""tRPC-Agent for Python: the operations of Google's ADK, of which it is a descendant, under names
of its own.

Source: trpc-agent-python of August 2026, scope `trpc.python.agent`.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from otel_reliability.conventions import values
from otel_reliability.conventions.adapters import genai
from otel_reliability.conventions.base import Answer, Convention, SpanView, own, own_value
from otel_reliability.model.span import CANCELLED, InvocationFacts, Kind

AGENT_NAME: Final = "trpc.python.agent.agent.name"
ARGUMENTS: Final = "trpc.python.agent.tool_call_args"
RESPONSE: Final = "trpc.python.agent.tool_response"
SESSIONS: Final = (
    "trpc.python.agent.agent.session_id",
    "trpc.python.agent.runner.session_id",
    "trpc.python.agent.session_id",
)
CANCELLED_RUN: Final = "run_runner_cancelled"


class TrpcAgent(Convention):
    """Agents and tools of tRPC-Agent; the rest is OTel GenAI."""

    name = "tRPC-Agent"
    scopes = ("trpc.python.agent",)
    plain = (AGENT_NAME, *SESSIONS)
    content = (ARGUMENTS, RESPONSE)
    needs = (genai.OPERATION,)

    def read(self, span: SpanView) -> Answer | None:
        """Read by operation. The runner contains its agents, and ends in an error where a person
        cancelled it.
        """
        operation = span.get(genai.OPERATION)
        session = own(values.identifier, *SESSIONS)
        if operation == "run_agent":
            facts = InvocationFacts(name=values.name(span.get(AGENT_NAME)))
            return Answer(Kind.AGENT, facts, session=session)
        if operation == "run_runner":
            return Answer(Kind.WORKFLOW, InvocationFacts(), session=session)
        if operation == CANCELLED_RUN:
            facts = InvocationFacts(stopped=CANCELLED)
            return Answer(Kind.WORKFLOW, facts, failed=False, session=session)
        if operation == "execute_tool":
            given = own_value(ARGUMENTS)
            told = genai.tool(span, arguments=given, result=own_value(RESPONSE))
            return replace(told, fails_with_call=False)
        if operation == "call_llm":
            return replace(genai.model(span), session=session)
        return None
