"""What the captures do not hold, and the few runs of which a field is not exact: each with its
reason.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import pytest

from tests.corpora.compare import FIELDS, Pair
from tests.corpora.recordings import ALL_CAPTURES, TrueRun, Truth

RAW: Final = frozenset(
    {
        "anthropic_raw-openinference",
        "litellm_raw-native_otel",
        "mcp_server-native",
        "openai_raw-genai_content",
    }
)
"""Model loops without any agent span, and the far end of another service's tool calls: nothing to
rebuild.
"""
every_agent_capture: Final = pytest.mark.parametrize(
    "capture", [name for name in ALL_CAPTURES if name not in RAW]
)

_NO_TOKENS: Final = "no span has token counts"
_NO_SESSION: Final = "no span has the conversation"
_NO_TOOLS: Final = "neither spans nor messages have tool calls; the path is unobservable, not empty"
UNTIL_USING_SESSION: Final = (
    "the conversation is emitted only under OpenInference's `using_session`"
)
_CLASS_ONLY: Final = "the agent's name is in texts only; the run is named after the class"
_MESSAGES_ONLY: Final = "calls are in messages only, which do not say how they ended"
_ROOT_NEVER_EXPORTED: Final = (
    "the root of a run that dies is never exported, and only it has the name"
)
_RUNS_ON: Final = (
    "totals run on over the turns of one agent object, so those of later turns are absent"
)
_NAMED_BY_ITS_TOOL: Final = (
    "a sub-agent has the name of the tool that calls it; its own is in that tool's arguments"
)
_PLAIN_CHAIN: Final = "below a tool, the module that takes the steps is a plain chain"
_TOOLS_OF_PARALLEL_AGENT: Final = (
    "the tools of a ParallelAgent hang under it, not under their agents"
)
_SUB_AGENT_A_TASK: Final = (
    "a sub-agent is a transparent task: its steps have the name of the agent above"
)

NOT_HELD: Final[dict[tuple[str, str], str]] = {
    ("autogen-native", "session"): _NO_SESSION,
    ("autogen-native", "tokens"): _NO_TOKENS,
    ("autogen-openinference", "session"): UNTIL_USING_SESSION,
    ("crewai-openllmetry", "agents of steps"): _MESSAGES_ONLY,
    ("crewai-openllmetry", "failed calls"): _MESSAGES_ONLY,
    ("crewai-openllmetry", "retries"): _MESSAGES_ONLY,
    ("crewai-openllmetry", "session"): _NO_SESSION,
    ("crewai177-openlit", "agents of steps"): _NO_TOOLS,
    ("crewai177-openlit", "failed calls"): _NO_TOOLS,
    ("crewai177-openlit", "path"): _NO_TOOLS,
    ("crewai177-openlit", "retries"): _NO_TOOLS,
    ("dspy-openinference", "tokens"): _NO_TOKENS,
    ("llama_index-openinference", "agent"): _CLASS_ONLY,
    ("llama_index-openinference", "agents of steps"): _CLASS_ONLY,
    ("llama_index-otel", "agent"): _CLASS_ONLY,
    ("llama_index-otel", "agents of steps"): _CLASS_ONLY,
    ("llama_index-otel", "tokens"): _NO_TOKENS,
    ("mcp_client-native", "tokens"): _NO_TOKENS,
    ("ms_agent_framework-native", "session"): _NO_SESSION,
    ("openai_agents-openinference_nocontent", "session"): UNTIL_USING_SESSION,
    ("openai_agents-openllmetry_pluschat", "session"): _NO_SESSION,
    (
        "openai_agents-otelgenai",
        "hand-offs",
    ): "there is no span of a hand-off; the agents are siblings",
    ("smolagents-openinference", "session"): UNTIL_USING_SESSION,
    ("smolagents-otelgenai", "agents of steps"): _NO_TOOLS,
    ("smolagents-otelgenai", "failed calls"): _NO_TOOLS,
    ("smolagents-otelgenai", "path"): _NO_TOOLS,
    ("smolagents-otelgenai", "retries"): _NO_TOOLS,
    ("smolagents-otelgenai", "session"): _NO_SESSION,
    ("smolagents-otelgenai", "tokens"): _NO_TOKENS,
    ("smolagents117-openinference", "agent"): _CLASS_ONLY,
    ("smolagents117-openinference", "agents of steps"): _CLASS_ONLY,
    ("vercel_ai7-telemetry", "session"): _NO_SESSION,
}
"""Fields of which a capture holds nothing, beside what its truth file names itself."""

EXCEPTIONS: Final[dict[tuple[str, str, str], str]] = {
    ("claude_agent_sdk-openinference", "handoff-06", "agents of steps"): _NAMED_BY_ITS_TOOL,
    (
        "claude_agent_sdk-openinference",
        "handoff-06",
        "tokens",
    ): "the tokens of a sub-agent's turns are in no span",
    ("dspy-openinference", "handoff-11", "agents of steps"): _PLAIN_CHAIN,
    ("google_adk15-native", "workflow-13", "agents of steps"): _TOOLS_OF_PARALLEL_AGENT,
    (
        "haystack218-native",
        "handoff-12",
        "agents of steps",
    ): "an agent called from a tool has no name",
    ("langgraph-openllmetry_nocontent", "graph-14", "agents of steps"): _SUB_AGENT_A_TASK,
    ("langgraph-openllmetry_nocontent", "handoff-13", "agents of steps"): _SUB_AGENT_A_TASK,
    ("langgraph04-openllmetry", "graph-13", "agents of steps"): _SUB_AGENT_A_TASK,
    ("langgraph04-openllmetry", "handoff-12", "agents of steps"): _SUB_AGENT_A_TASK,
    ("mastra-otel_exporter", "llm_error-14", "agent"): _ROOT_NEVER_EXPORTED,
    ("mastra-otel_exporter", "llm_error-14", "agents of steps"): _ROOT_NEVER_EXPORTED,
    (
        "ms_agent_framework-native",
        "workflow-13",
        "agent",
    ): "a workflow has no name; its first agent names the run",
    ("smolagents117-openinference", "llm_error-14", "tokens"): "a run that dies has no totals",
    ("smolagents117-openinference", "turn2-10", "tokens"): _RUNS_ON,
    ("smolagents117-openinference", "turn2-18", "tokens"): _RUNS_ON,
    ("smolagents117-openinference", "turn3-11", "tokens"): _RUNS_ON,
    ("smolagents117-openinference", "turn3-19", "tokens"): _RUNS_ON,
}
"""Runs of which a field is not exact although the capture holds it elsewhere. None is a fault of
assembly.
"""

_SESSION_VIA: Final = "using_session"


def why_not_held(truth: Truth, field: str) -> str | None:
    """Why a capture does not hold a field; None where it does."""
    if field == "session" and "session" in truth.not_held:
        return _NO_SESSION
    return NOT_HELD.get((truth.name, field))


def is_held(truth: Truth, field: str, true: TrueRun) -> bool:
    """Whether the telemetry of a run holds a field, of those that the run has at all."""
    if not FIELDS[field].concerns(true):
        return False
    why = why_not_held(truth, field)
    return why is None or (why == UNTIL_USING_SESSION and true.session_via == _SESSION_VIA)


def misses(truth: Truth, field: str, pairs: Iterable[Pair]) -> list[str]:
    """The true runs whose telemetry holds a field that is not exact, by id."""
    exact = FIELDS[field].is_exact
    return [
        true.id
        for true, run in pairs
        if is_held(truth, field, true) and (run is None or not exact(true, run))
    ]
