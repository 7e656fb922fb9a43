"""Spans as they are where content is not captured: without prompts, answers, arguments, results and
what quotes them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec.structs import replace

from otel_reliability.model.span import RawSpan

EXACT: Final = frozenset(
    {
        "ai.response.text",
        "ai.response.toolCalls",
        "ai.toolCall.args",
        "ai.toolCall.result",
        "all_messages_events",
        "body",
        "crewai.crew.result",
        "crewai.crew.tasks",
        "crewai.crew.tasks_output",
        "crewai.task.description",
        "events",
        "final_result",
        "gcp.vertex.agent.data",
        "gcp.vertex.agent.llm_request",
        "gcp.vertex.agent.llm_response",
        "gcp.vertex.agent.tool_call_args",
        "gcp.vertex.agent.tool_response",
        "gen_ai.completion",
        "gen_ai.input.messages",
        "gen_ai.output.messages",
        "gen_ai.prompt",
        "gen_ai.system_instructions",
        "gen_ai.task.description",
        "gen_ai.tool.arguments",
        "gen_ai.tool.call.arguments",
        "gen_ai.tool.call.result",
        "gen_ai.tool.input",
        "gen_ai.tool.output",
        "gen_ai.tool.result",
        "gen_ai.workflow.input",
        "gen_ai.workflow.output",
        "haystack.agent.input",
        "haystack.agent.output",
        "haystack.component.input",
        "haystack.component.output",
        "haystack.pipeline.input_data",
        "haystack.pipeline.output_data",
        "input",
        "input.value",
        "invocation_params",
        "langfuse.observation.input",
        "langfuse.observation.output",
        "llamaindex.step.input_summary",
        "llm.invocation_parameters",
        "llm.openai.choices",
        "llm.openai.messages",
        "message",
        "mlflow.spanInputs",
        "mlflow.spanOutputs",
        "output",
        "output.value",
        "pydantic_ai.all_messages",
        "raw_input",
        "request_data",
        "response",
        "response_data",
        "smolagents.task",
        "tool.parameters",
        "tool_arguments",
        "tool_response",
        "traceloop.entity.input",
        "traceloop.entity.output",
    }
)
PREFIXES: Final = (
    "ai.prompt",
    "gen_ai.completion.",
    "gen_ai.prompt.",
    "langfuse.trace.",
    "llm.input_messages.",
    "llm.output_messages.",
    "llm.prompts",
)
MARKS: Final = ("[scenario:", "[run:")
"""What stands in every prompt of the captures."""


def is_content(key: str) -> bool:
    """Whether an attribute of this key quotes a prompt, an answer, arguments or a result."""
    return key in EXACT or key.startswith(PREFIXES)


def without_content(span: RawSpan) -> RawSpan:
    """The span as it would be with content off. Of its events only the names remain."""
    attributes = {key: value for key, value in span.attributes.items() if not is_content(key)}
    return replace(
        span,
        attributes=attributes,
        events=tuple(replace(event, attributes={}) for event in span.events),
    )


def quotes_a_prompt(attributes: Mapping[str, Any]) -> list[str]:
    """The keys whose values quote a prompt of the captures."""
    return [key for key, value in attributes.items() if any(mark in str(value) for mark in MARKS)]
