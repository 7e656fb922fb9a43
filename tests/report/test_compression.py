"""Compressions of the context in reports: OTLP-JSON lines in, sentences and numbers out."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from otel_reliability.recording import REPORT_SETTINGS, Recording
from otel_reliability.report import json as json_report
from otel_reliability.report import markdown
from otel_reliability.report.build import report_of
from otel_reliability.report.run_fields import record_of
from otel_reliability.report.view import ReportView
from otel_reliability.testing import at
from otel_reliability.ui import report_file
from otel_reliability.ui.runs import steps_of
from tests.report.build import printed
from tests.report.schema import faults


class Events(NamedTuple):
    """The log events of a coding agent: scope, attribute of the session, and name and attributes of
    each kind of event.
    """

    scope: str
    session: str
    kinds: Mapping[str, tuple[str, dict[str, Any]]]


ENDED: Final = {"input_token_count": 9, "output_token_count": 1, "event.kind": "response.completed"}
AGENTS: Final = {
    "claude-code": Events(
        "com.anthropic.claude_code.events",
        "session.id",
        {
            "prompt": ("user_prompt", {}),
            "call": ("tool_result", {"tool_name": "Read"}),
            "model": ("api_request", {"input_tokens": 9, "output_tokens": 1}),
            "compression": (
                "compaction",
                {"pre_tokens": 900, "post_tokens": 100, "success": "true"},
            ),
        },
    ),
    "codex": Events(
        "codex_otel.log_only",
        "conversation.id",
        {
            "prompt": ("codex.user_prompt", {}),
            "call": ("codex.tool_result", {"tool_name": "exec_command"}),
            "model": ("codex.sse_event", ENDED),
            "compression": ("codex.api_request", {"endpoint": "/responses/compact"}),
        },
    ),
}


def event(of: Events, session: int, second: float, kind: str, prompt: int = 0, **facts: Any) -> str:
    """A line with one event of a session, which has one prompt unless another is named."""
    name, given = of.kinds[kind]
    identity = f"session-{session:08}-of-an-agent"
    of_call = (
        {"tool_use_id": f"{session}-{second}", "call_id": f"{session}-{second}"}
        if kind == "call"
        else {}
    )
    own = {
        "event.name": name,
        of.session: identity,
        "prompt.id": f"{identity}-{prompt}",
        **of_call,
        **given,
        **facts,
    }
    attributes = [{"key": key, "value": _value(value)} for key, value in own.items()]
    record = {"timeUnixNano": str(at(1000 * session + second)), "attributes": attributes}
    return json.dumps(
        {"resourceLogs": [{"scopeLogs": [{"scope": {"name": of.scope}, "logRecords": [record]}]}]}
    )


def _value(value: Any) -> dict[str, Any]:
    return {"intValue": str(value)} if isinstance(value, int) else {"stringValue": str(value)}


def calls(
    of: Events, session: int, first: float, outcomes: Sequence[bool], **facts: Any
) -> list[str]:
    """Tool calls of different arguments, one a second; those that are False fail."""
    lines: list[str] = []
    for number, ok in enumerate(outcomes):
        arguments = json.dumps({"path": f"{first}-{number}"})
        told = {
            "tool_input": arguments,
            "arguments": arguments,
            "success": "true" if ok else "false",
        }
        lines.append(event(of, session, first + number, "call", **told, **facts))
    return lines


def session(of: Events, number: int, before: Sequence[bool], after: Sequence[bool]) -> list[str]:
    return [
        event(of, number, 0, "prompt"),
        *calls(of, number, 1, before),
        event(of, number, 50, "compression"),
        *calls(of, number, 51, after),
        event(of, number, 99, "model"),
    ]


def reported(tmp_path: Path, lines: Sequence[str]) -> ReportView:
    return report_of(recorded(tmp_path, lines), for_people=True)


def recorded(tmp_path: Path, lines: Sequence[str]) -> Recording:
    file = tmp_path / "events.jsonl"
    file.write_text("\n".join(lines), "utf-8")
    recording = Recording(REPORT_SETTINGS)
    recording.read(file)
    return recording.close()


@pytest.mark.parametrize("agent", AGENTS)
def test_behaviour_before_and_after_compressions_is_compared(tmp_path: Path, agent: str) -> None:
    of = AGENTS[agent]
    lines = [
        each for n in range(8) for each in session(of, n, [True] * 6, [True, False, True, False])
    ]
    lines += [event(of, 9, 0, "prompt"), *calls(of, 9, 1, [True]), event(of, 9, 99, "model")]
    shuffled = [*lines, *lines]
    random.Random(0).shuffle(shuffled)
    found = reported(tmp_path, lines)
    again = reported(tmp_path, shuffled)
    [view] = found.agents

    assert json_report.plain(found.agents) == json_report.plain(again.agents)
    assert not list(faults(json_report.plain(found)))
    compression = view.compression
    assert compression is not None
    assert (compression.compressions, compression.failed, compression.runs, compression.of) == (
        8,
        0,
        8,
        9,
    )
    assert (compression.tokens_before, compression.tokens_after) == (
        (0, 0) if agent == "codex" else (7_200, 800)
    )
    failed, retries, repeats = compression.effects
    assert (failed.before, failed.calls_before, failed.after, failed.calls_after) == (0, 48, 16, 32)
    assert failed.more_than_chance
    assert (retries.p, repeats.p, retries.more_than_chance, repeats.more_than_chance) == (
        1.0,
        1.0,
        False,
        False,
    )
    tokens = "" if agent == "codex" else ", from 7,200 to 800 tokens in all"
    sentences = (
        f"The context was compressed 8 times in 8 of 9 runs{tokens}.",
        (
            "After a compression 16 of 32 calls failed, before 0 of 48 (50 % and 0 %, 8 "
            "runs; more than chance, p = 0.0"
        ),
        (
            "After a compression 0 of 32 calls were retries, before 0 of 48 (0 % and 0 %, 8 "
            "runs; no more than chance)"
        ),
    )
    pages = printed(found, 200), markdown.render(found).replace("\\", ""), report_file.render(found)
    for text in (" ".join(page.split()) for page in pages):
        assert all(sentence in text for sentence in sentences)


def test_few_runs_are_not_compared(tmp_path: Path) -> None:
    of = AGENTS["claude-code"]
    lines = [each for n in range(4) for each in session(of, n, [True], [False])]
    [view] = reported(tmp_path, lines).agents

    assert view.compression is not None
    assert (view.compression.compressions, view.compression.compared, view.compression.effects) == (
        4,
        4,
        (),
    )
    [reason] = [each for each in view.findings.reasons if each.title == "Context compression"]
    assert reason.details == (
        "Before and after are compared from 5 runs with calls on both sides; here 4.",
    )


def test_compression_between_two_runs_compares_them(tmp_path: Path) -> None:
    of = AGENTS["claude-code"]
    lines: list[str] = []
    for n in range(6):
        lines += [event(of, n, 0, "prompt"), *calls(of, n, 1, [True, True, True])]
        lines += [event(of, n, 50, "compression"), event(of, n, 60, "prompt", 1)]
        lines += calls(of, n, 61, [False, True], prompt=1)
    [view] = reported(tmp_path, lines).agents

    assert view.compression is not None
    assert (view.runs, view.compression.runs, view.compression.compared) == (12, 6, 6)
    failed = view.compression.effects[0]
    assert (failed.before, failed.calls_before, failed.after, failed.calls_after) == (0, 18, 6, 12)


def test_agent_without_compressions_has_no_word_of_them(tmp_path: Path) -> None:
    of = AGENTS["claude-code"]
    found = reported(tmp_path, [event(of, 0, 0, "prompt"), *calls(of, 0, 1, [True])])

    assert "ompression" not in json.dumps(json_report.plain(found)) + printed(found)


def test_compression_is_step_of_run(tmp_path: Path) -> None:
    [view] = reported(tmp_path, session(AGENTS["claude-code"], 1, [True], [True])).agents
    [run] = view.recent

    assert [(step.kind, step.name, step.result, step.tokens) for step in steps_of(run)] == [
        ("tool", "Read", "ok", ""),
        ("compression", "context compression", "ok", "900 → 100"),
        ("tool", "Read", "ok", ""),
        ("model", "unknown model", "ok", "9 in, 1 out"),
    ]
    sizes = {"tokens_before": 900, "tokens_after": 100, "trigger": None, "agent": "claude-code"}
    [compression] = record_of(run)["compressions"]
    assert {**sizes, "ok": True, "time": "2023-11-14T22:30:50.000000000Z"} == compression


def test_failed_compressions_alone_are_named(tmp_path: Path) -> None:
    """They divide nothing, so nothing is compared."""
    of = AGENTS["claude-code"]
    lines = [
        event(of, 0, 0, "prompt"),
        *calls(of, 0, 1, [True]),
        event(of, 0, 9, "compression", success="false"),
    ]
    [view] = reported(tmp_path, lines).agents

    [reason] = [each for each in view.findings.reasons if each.title == "Context compression"]
    assert reason.sentence == "The context was compressed 0 times in 0 of 1 run; 1 attempt failed."
    assert reason.details == (
        "Before and after are compared from 5 runs with calls on both sides; here 0.",
    )
