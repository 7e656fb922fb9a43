"""Genkit for JavaScript and Go: kinds in `genkit:type` and its subtype, all counts in the JSON of
inputs and outputs.

Source: genkit 1.42 (scope `genkit-tracer`), Genkit Go 1.4 and its successors, where only the span
that an error came from has a status. A flow that nothing stands above is an agent's run. Each turn
nests in the one before (`generate` below `generate`).
"""

from __future__ import annotations

from typing import Any, Final

from otel_reliability.conventions import values
from otel_reliability.conventions.adapters import genai
from otel_reliability.conventions.base import (
    NOTHING,
    Answer,
    Convention,
    SpanView,
    own,
    own_value,
    reported_call,
)
from otel_reliability.model.span import Call, InvocationFacts, Kind, ModelFacts, Tokens

TYPE: Final = "genkit:type"
SUBTYPE: Final = "genkit:metadata:subtype"
NAME: Final = "genkit:name"
INPUT: Final = "genkit:input"
OUTPUT: Final = "genkit:output"
STATE: Final = "genkit:state"
SESSIONS: Final = ("genkit:metadata:agent:sessionId", "genkit:sessionId")

MODELS: Final = frozenset({"model", "background-model"})
WRAPPING_TOOL: Final = "tool.v2"
"""A tool whose result is wrapped in an object."""
TOOLS: Final = frozenset({"tool", WRAPPING_TOOL})


class Genkit(Convention):
    """Spans of Genkit's actions."""

    name = "Genkit"
    request = (INPUT,)
    plain = (SUBTYPE, NAME, STATE, *SESSIONS)
    tool_content = (INPUT, OUTPUT)
    tool_mark = (SUBTYPE, *sorted(TOOLS))
    needs = (TYPE,)

    def read(self, span: SpanView) -> Answer | None:
        """Read by the subtype of an action; utilities, steps and templates are nothing."""
        subtype = values.text(span.get(SUBTYPE)) or values.text(span.get(TYPE))
        name = values.text(span.get(NAME))
        session = own(values.identifier, *SESSIONS)
        failed = True if span.get(STATE) == "error" else None
        if subtype == "agent":
            return Answer(Kind.AGENT, InvocationFacts(name=name), failed, session)
        if subtype == "flow":
            facts = InvocationFacts(name=name, agent_if_root=True)
            return Answer(Kind.WORKFLOW, facts, failed, session)
        if subtype in MODELS:
            return Answer(Kind.MODEL, _model(name), failed)
        if subtype in TOOLS:
            result = own(_unwrapped, OUTPUT) if subtype == WRAPPING_TOOL else own_value(OUTPUT)
            return genai.tool_answer(
                span, name, arguments=own_value(INPUT), result=result, failed=failed is True
            )
        return Answer(Kind.RETRIEVAL) if subtype == "retriever" else NOTHING


def _model(name: str | None) -> ModelFacts:
    return ModelFacts(
        request_model=name, tokens=own(_tokens, OUTPUT), messages=True, calls=own(_calls, OUTPUT)
    )


def _tokens(output: object) -> Tokens:
    usage = values.mapping(values.mapping(output).get("usage"))
    return genai.tokens(usage, ("inputTokens",), ("outputTokens",))


def _calls(output: object) -> tuple[Call, ...]:
    """The calls that a response asks for: `{message: {content: [{toolRequest: {…}}]}}`."""
    message = values.mapping(values.mapping(output).get("message"))
    asked = [
        values.mapping(part.get("toolRequest")) for part in values.objects(message.get("content"))
    ]
    return tuple(
        reported_call(
            values.text(one.get("name")), values.identifier(one.get("ref")), one.get("input")
        )
        for one in asked
        if one
    )


def _unwrapped(output: object) -> Any:
    found = values.mapping(output)
    return found.get("output", output)
