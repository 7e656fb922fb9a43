"""An agent with a known behaviour leaves its spans: `python behaviours.py FRAMEWORK BEHAVIOUR
RUNS`, into spans.jsonl.

Behaviours: `random` draws up to four calls of four tools, `steady` makes the same three calls,
`chat` is one conversation whose context grows by 15,000 tokens a turn, from 20,000, `crash` draws up
to three calls, and from run 81 on its model raises. Frameworks: `by_hand` (the OpenTelemetry API)
and `pydantic_ai`.
"""

# pyright: basic, reportMissingImports=false
# (the framework is in an environment of its own)
from __future__ import annotations

import contextlib
import random
import sys
from collections.abc import Callable, Sequence
from typing import Any

from opentelemetry import trace
from opentelemetry.trace import SpanKind

import otel_reliability

TOOLS = ("search", "read", "write", "mail")
MODEL = "house-model-1"
SEED = 6
"""One with which 20 random runs have the 60 transitions that `step_predictability` needs; about
every second seed does.
"""

CRASH = "crash"
"""In place of a tool: there the model raises."""
RUNS_BEFORE_CRASH = 80

Turn = Callable[[Sequence[str], int, str | None], None]
"""One run: the tools that it calls, the tokens of each model call, and its conversation."""


class ModelError(Exception):
    """The model does not answer."""


def by_hand() -> Turn:
    tracer = trace.get_tracer("by hand")

    def turn(path: Sequence[str], tokens: int, conversation: str | None) -> None:
        facts: dict[str, Any] = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": "worker",
        }
        chat = {
            "gen_ai.operation.name": "chat",
            "gen_ai.request.model": MODEL,
            "gen_ai.usage.input_tokens": tokens,
        }
        if conversation is not None:
            facts["gen_ai.conversation.id"] = conversation
        with tracer.start_as_current_span("invoke_agent worker", attributes=facts):
            for tool in (*path, None):
                with tracer.start_as_current_span(
                    f"chat {MODEL}", kind=SpanKind.CLIENT, attributes=chat
                ):
                    if tool == CRASH:
                        raise ModelError
                if tool is not None:
                    call = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": tool}
                    with tracer.start_as_current_span(f"execute_tool {tool}", attributes=call):
                        pass

    return turn


def pydantic_ai() -> Turn:
    """Return runs of pydantic-ai, whose model is a script."""
    from pydantic_ai import Agent  # noqa: PLC0415
    from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart  # noqa: PLC0415
    from pydantic_ai.models.function import AgentInfo, FunctionModel  # noqa: PLC0415
    from pydantic_ai.usage import RequestUsage  # noqa: PLC0415

    plan: list[str] = []
    used = 0

    def script(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        if plan[:1] == [CRASH]:
            raise ModelError
        part = ToolCallPart(plan.pop(0), {}) if plan else TextPart("done")
        return ModelResponse([part], usage=RequestUsage(input_tokens=used, output_tokens=10))

    Agent.instrument_all()
    agent = Agent(FunctionModel(script, model_name=MODEL), name="worker")
    for name in TOOLS:
        agent.tool_plain(lambda: "ok", name=name)

    def turn(path: Sequence[str], tokens: int, conversation: str | None) -> None:
        nonlocal used
        plan[:], used = path, tokens
        agent.run_sync("go on", conversation_id=conversation)

    return turn


def main(framework: str, behaviour: str, runs: int) -> None:
    otel_reliability.record("spans.jsonl")
    turn = {"by_hand": by_hand, "pydantic_ai": pydantic_ai}[framework]()
    dice = random.Random(SEED)
    for number in range(runs):
        if behaviour == "chat":
            turn((), 20_000 + 15_000 * number, "chat-1")
        elif behaviour == "crash":
            path = dice.choices(TOOLS, k=dice.randint(0, 3))
            with contextlib.suppress(ModelError):
                turn(path if number < RUNS_BEFORE_CRASH else [*path, CRASH], 1_000, None)
        else:
            path = dice.choices(TOOLS, k=dice.randint(0, 4)) if behaviour == "random" else TOOLS[:3]
            turn(path, 1_000, None)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
