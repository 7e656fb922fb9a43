"""Compressions of the context of coding agents: events and spans in, steps of runs out; in any
order, and doubled (`rebuilt`).
"""

from __future__ import annotations

import functools
from typing import Any, Final

import pytest
from msgspec.structs import replace

from otel_reliability.config import Settings
from otel_reliability.engine import Engine
from otel_reliability.model.run import Compression
from otel_reliability.model.span import RawEvent, RawLog, RawSpan
from otel_reliability.testing import FakeClock, at
from tests.conventions.reading import READER, rebuilt
from tests.conventions.reading import read as read_span
from tests.conventions.test_coding_agents import SESSION, claude, codex, log, part

gemini = functools.partial(log, "gemini-cli", session__id=SESSION)
qwen = functools.partial(log, "qwen-code", session__id=SESSION)
USAGE: Final[dict[str, Any]] = {"input_token_count": 9, "output_token_count": 1}
SIZES: Final[dict[str, Any]] = {"tokens_before": 900, "tokens_after": "100"}
PROMPT: Final = f"{SESSION}########0"


def read(at_s: float, **facts: Any) -> RawLog:
    return claude(
        "tool_result", at_s, tool_name="Read", tool_use_id=f"t{at_s}", success="true", **facts
    )


def compaction(at_s: float, **facts: Any) -> RawLog:
    given = {
        "trigger": "auto",
        "success": "true",
        "pre_tokens": "900",
        "post_tokens": 100,
        "duration_ms": "500",
    }
    return claude("compaction", at_s, **{**given, **facts})


def copilot(*events: tuple[str, float, dict[str, Any]]) -> list[RawSpan]:
    one = functools.partial(part, "github.copilot", 1)
    own = {"gen_ai.conversation.id": SESSION}
    named = {**own, "gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "copilot"}
    agent = one(named, 1, None, "invoke_agent", 10, 20)
    model = one({**own, "gen_ai.operation.name": "chat"}, 2, 1, "chat gpt-5", 11, 14)
    made = (
        RawEvent(f"github.copilot.session.{name}", at(at_s), facts) for name, at_s, facts in events
    )
    return [agent, replace(model, events=tuple(made))]


DONE: Final = {
    "github.copilot.success": True,
    "github.copilot.pre_tokens": 900,
    "github.copilot.post_tokens": 100,
}
ENDED: Final[dict[str, Any]] = {"event__kind": "response.completed", **USAGE}
CASES: Final[dict[str, tuple[list[RawLog | RawSpan], list[RawLog | RawSpan], Compression]]] = {
    "claude-code": (
        [
            claude("user_prompt", 10),
            read(11),
            claude("api_request", 14, input_tokens=9, output_tokens=1),
        ],
        [compaction(12)],
        Compression(True, "claude-code", at(11.5), at(12), 900, 100, "auto"),
    ),
    "codex": (
        [codex("user_prompt", 10), codex("sse_event", 14, **ENDED)],
        [codex("api_request", 12, endpoint="/responses/compact", attempt=0, duration_ms=500)],
        Compression(True, "codex", at(11.5), at(12), None, None, None),
    ),
    "gemini-cli": (
        [gemini("gemini_cli.user_prompt", 10), gemini("gemini_cli.api_response", 14, **USAGE)],
        [gemini("gemini_cli.chat_compression", 12, **SIZES)],
        Compression(True, "gemini-cli", at(12), at(12), 900, 100, None),
    ),
    "qwen-code": (
        [
            qwen("qwen-code.user_prompt", 10, prompt_id=PROMPT),
            qwen("qwen-code.api_response", 14, prompt_id=PROMPT),
        ],
        [qwen("qwen-code.chat_compression", 12, **SIZES)],
        Compression(True, "qwen-code", at(12), at(12), 900, 100, None),
    ),
    "codex with spans": (
        [codex("user_prompt", 10), codex("sse_event", 14, **ENDED)],
        [
            part("codex_exec", 1, {"thread.id": SESSION}, 1, None, "session_task.compact", 11, 13),
            codex("api_request", 12.5, endpoint="/responses/compact", attempt=0, duration_ms=500),
        ],
        Compression(True, "codex", at(11), at(13), None, None, "manual"),
    ),
}
"""For each agent a run, what reports a compression in it, and that compression."""


@pytest.mark.parametrize("agent", CASES)
def test_compression_is_step_and_changes_nothing_else(agent: str) -> None:
    run, reported, compression = CASES[agent]
    (plain,), (found,) = rebuilt(*run), rebuilt(*run, *reported)

    assert (plain.compressions, found.compressions) == ((), (compression,))
    assert replace(found, compressions=(), span_count=plain.span_count) == plain


def test_compression_of_copilot_is_event_of_span() -> None:
    none: dict[str, Any] = {}
    start = ("compaction_start", 11.5, none)
    end = ("compaction_complete", 12.5, DONE)
    failed = ("compaction_complete", 13, {"github.copilot.success": "false"})
    (plain,), (found,) = (
        rebuilt(*copilot(("truncation", 12, DONE))),
        rebuilt(*copilot(failed, end, start)),
    )

    assert all(read_span(each).kind.value != "other" for each in copilot(failed, end, start))
    assert found.compressions == (
        Compression(True, "copilot", at(11.5), at(12.5), 900, 100, None),
        Compression(False, "copilot", at(13), at(13), None, None, None),
    )
    assert replace(found, compressions=()) == plain


@pytest.mark.parametrize(
    ("prompt", "event"),
    [
        (claude("user_prompt", 10), compaction(11, success="false", error="no")),
        (
            gemini("gemini_cli.user_prompt", 10),
            gemini("gemini_cli.chat_compression", 11, **{**SIZES, "tokens_after": 901}),
        ),
        (
            codex("user_prompt", 10),
            codex("api_request", 11, endpoint="/responses/compact", error__message="http 500"),
        ),
    ],
)
def test_failed_compression_is_marked(prompt: RawLog, event: RawLog) -> None:
    """Its event says so; Gemini CLI discards one that is longer than what it replaces."""
    work = {
        "com.anthropic.claude_code.events": read(12),
        "gemini-cli": gemini("gemini_cli.api_response", 12, **USAGE),
        "codex_otel.log_only": codex("sse_event", 12, **ENDED),
    }
    (run,) = rebuilt(prompt, event, work[event.scope])

    assert [one.ok for one in run.compressions] == [False]
    assert not any(call.failed for call in run.model_calls)


@pytest.mark.parametrize("prompt", ["p1", "p2", "p3", None])
def test_compression_between_two_prompts_is_step_of_following_run(prompt: str | None) -> None:
    """Whichever prompt its event names, a command of the program among them: no work of that prompt
    follows it.
    """
    event = compaction(15, prompt__id=prompt)
    first, second = rebuilt(
        claude("user_prompt", 10),
        read(11),
        claude("user_prompt", 14, prompt__id="p2", command_name="compact"),
        event,
        claude("user_prompt", 20, prompt__id="p3"),
        read(21, prompt__id="p3"),
    )

    assert (first.compressions, [one.end_ns for one in second.compressions]) == ((), [at(15)])
    assert (first.end_ns, second.start_ns) == (at(11), at(20))


@pytest.mark.parametrize("pause", [30, 700])
def test_compression_between_two_prompts_of_running_agent_is_step_of_following_run(
    pause: float,
) -> None:
    clock = FakeClock()
    engine = Engine(Settings(), clock=clock, wall=clock.wall, reader=READER)
    arrivals: list[tuple[float, list[RawLog]]] = [
        (0, [claude("user_prompt", 1), read(2)]),
        (pause, [compaction(pause + 1)]),
        (
            30,
            [claude("user_prompt", pause + 31, prompt__id="p2"), read(pause + 32, prompt__id="p2")],
        ),
        (3_000, []),
    ]
    for seconds, logs in arrivals:
        for _ in range(round(seconds / 5)):
            clock.advance(5)
            engine.tick()
        engine.receive_logs(logs)

    found = sorted(engine.take_final(), key=lambda run: run.start_ns)
    assert [len(run.compressions) for run in found] == [0, 1]


def test_compression_before_first_prompt_is_step_of_its_run() -> None:
    (run,) = rebuilt(compaction(9, prompt__id=None), claude("user_prompt", 10), read(11))

    assert len(run.compressions) == 1


@pytest.mark.parametrize("prompt", ["p1", "p2", None])
def test_compression_after_all_work_is_step_of_last_run(prompt: str | None) -> None:
    (run,) = rebuilt(
        claude("user_prompt", 10),
        read(11),
        claude("user_prompt", 14, prompt__id="p2"),
        compaction(15, prompt__id=prompt),
    )

    assert (len(run.compressions), run.end_ns) == (1, at(11))


def test_compression_alone_is_no_run() -> None:
    assert rebuilt(compaction(12)) == rebuilt(claude("user_prompt", 10), compaction(12)) == []


def test_compression_below_agent_span_belongs_to_its_run() -> None:
    """The event was written in a span of the prompt, which lasts longer than all work."""
    own = {"session.id": SESSION}
    span = part(
        "com.anthropic.claude_code.tracing", 7, own, 1, None, "claude_code.interaction", 9, 30
    )
    event = replace(compaction(25), trace_id=span.trace_id, span_id=span.span_id)
    (run,) = rebuilt(span, claude("user_prompt", 10), read(12), event)

    assert len(run.compressions) == 1
    assert run.root_span_id == span.span_id
