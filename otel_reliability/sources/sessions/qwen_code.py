"""Session files of Qwen Code: `~/.qwen/projects/<folder>/chats/<session>.jsonl`.

One record a line, each with its own id, around messages in Gemini's form. Telemetry events among
them repeat what the records say, and are passed over. Sub-agents are files beside the chats.

Source: recordings of releases 0.5.2 to 0.24.4.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from otel_reliability.sources.chunks import Progress
from otel_reliability.sources.from_plain import time_ns
from otel_reliability.sources.otlp_json import items, record, text, whole
from otel_reliability.sources.sessions.reading import exit_code_of, is_attached, objects_of
from otel_reliability.sources.sessions.run import (
    CallStatus,
    Compaction,
    Seen,
    SessionPrompt,
    SessionTokens,
    resource_of,
)

AGENT: Final = "qwen-code"
_SHELL: Final = "run_shell_command"
_MID_TURN: Final = "mid_turn_user_message"
_NOTIFICATION: Final = "notification"
_OF_AGENT: Final = "task_execution"
"""The display of a call that is the work of a sub-agent."""
_API_ERROR: Final = "qwen-code.api_error"
_REFUSED: Final = re.compile(
    r"permission was declined|execution_denied|blocked by configuration|"
    r"was canceled by the user|denied by|requires approval"
)
_ABORTED: Final = re.compile(r"Request was aborted|[Cc]ommand was cancelled|aborted by user")
_CANCELLED: Final = re.compile(r"(?:<untrusted_context>\s*)?Command was cancelled")


def read(path: Path, seen: Seen, progress: Progress | None = None) -> Iterator[SessionPrompt]:
    """Read the runs of a session file."""
    run: SessionPrompt | None = None
    for line in objects_of(path, progress, seen.problems):
        at = time_ns(line.get("timestamp"))
        if line.get("type") == "user" and _begins(line):
            if run is not None:
                yield from _done(run, path, seen)
            key = text(line.get("uuid"))
            sender = resource_of(AGENT, text(line.get("version")), text(line.get("cwd")))
            run = SessionPrompt(
                AGENT, text(line.get("sessionId")) or path.stem, key, at, sender, at
            )
            run.repeats = not seen.add("prompt", key)
            if line.get("subtype") != _NOTIFICATION:  # which nobody typed
                run.says(record(line.get("message")).get("parts"))
        elif run is not None:
            _take(run, line, at, seen)
            run.failed = _has_failed(run, line)
    if run is not None:
        yield from _done(run, path, seen)


def is_part(path: Path) -> bool:
    """Return whether a file is a sub-agent's: the reader of its session reads it."""
    return "subagents" in path.parts


def _begins(line: Mapping[str, Any]) -> bool:
    if line.get("subtype") == _MID_TURN:  # the turn that goes on has it
        return False
    parts = [record(part) for part in items(record(line.get("message")).get("parts"))]
    return any(text(part.get("text")).strip() or is_attached(part) for part in parts)


def _has_failed(run: SessionPrompt, line: Mapping[str, Any]) -> bool:
    """Return whether the newest request of a run failed: each attempt at one is reported."""
    event = record(record(line.get("systemPayload")).get("uiEvent"))
    prompt_id = text(event.get("prompt_id"))
    if event.get("event.name") == _API_ERROR and prompt_id.startswith(f"{run.session_id}####"):
        return True  # those of sub-agents have the name of the agent there
    return run.failed and line.get("type") != "assistant"


def _done(run: SessionPrompt, path: Path, seen: Seen) -> Iterator[SessionPrompt]:
    is_command = run.prompt.startswith("/") and not run.compactions  # such as /model
    is_notification = not run.prompt  # it is written before its turn, too
    if run.is_empty and (run.repeats or is_command or is_notification):
        return
    below = path.parent.parent / "subagents" / run.session_id
    files = {_call_of(meta): meta for meta in below.glob("*.meta.json")}
    pending = [*run.calls]
    while pending:
        call_id = pending.pop()
        meta = files.get(call_id)
        if meta is None and run.calls[call_id].of_agent:  # older releases write no file of it
            run.lacks_tools = run.lacks_models = True
        if meta is not None:
            known = {*run.calls}
            file = meta.with_name(meta.name.replace(".meta.json", ".jsonl"))
            for line in objects_of(file, None, seen.problems):
                if not (line.get("type") == "user" and _begins(line)):
                    _take(run, line, time_ns(line.get("timestamp")), seen, inner=True)
            pending.extend(run.calls.keys() - known)
    yield run


def _call_of(meta: Path) -> str:
    """The id of the call that started a sub-agent, which its file of facts names."""
    try:
        return text(record(msgspec.json.decode(meta.read_bytes())).get("toolUseId"))
    except (OSError, msgspec.DecodeError):
        return ""


def _take(
    run: SessionPrompt, line: Mapping[str, Any], at: int, seen: Seen, *, inner: bool = False
) -> None:
    kind = line.get("type")
    key = text(line.get("uuid"))
    if kind == "assistant":
        usage = record(line.get("usageMetadata"))
        if usage and seen.add("answer", key):
            tokens = SessionTokens(
                whole(usage.get("promptTokenCount")),
                whole(usage.get("candidatesTokenCount")),
                whole(usage.get("cachedContentTokenCount")),
            )
            run.model_call(key, at, text(line.get("model")), tokens)
        for part in map(record, items(record(line.get("message")).get("parts"))):
            call = record(part.get("functionCall"))
            call_id = text(call.get("id"))
            # some providers number the calls of each answer anew
            if call and seen.add("call", f"{key}\0{call_id}"):
                run.asked(call_id, text(call.get("name")), call.get("args"), at, inner=inner)
    elif kind == "tool_result":
        facts = record(line.get("toolCallResult"))
        result = _result(line)
        asked = run.calls.get(text(facts.get("callId")))
        status = _status(facts, result, is_shell=asked is not None and asked.name == _SHELL)
        if status is CallStatus.OK and _has_error(line):
            status = CallStatus.FAILED
        run.answered(text(facts.get("callId")), at, status, result)
        if asked is not None:
            asked.of_agent = record(facts.get("resultDisplay")).get("type") == _OF_AGENT
    elif kind == "system" and line.get("subtype") == "chat_compression":
        info = record(record(line.get("systemPayload")).get("info"))
        before, after = whole(info.get("originalTokenCount")), whole(info.get("newTokenCount"))
        run.compactions.append(Compaction(at, before, after))


def _has_error(line: Mapping[str, Any]) -> bool:
    parts = items(record(line.get("message")).get("parts"))
    answers = [record(record(part).get("functionResponse")) for part in parts]
    return any("error" in record(answer.get("response")) for answer in answers)


def _result(line: Mapping[str, Any]) -> str:
    found: list[str] = []
    for part in map(record, items(record(line.get("message")).get("parts"))):
        response = record(record(part.get("functionResponse")).get("response"))
        found.append(text(response.get("output")) or text(response.get("error")))
    return "".join(found)


def _status(facts: Mapping[str, Any], result: str, *, is_shell: bool) -> CallStatus:
    status = facts.get("status")
    said = f"{facts.get('errorType')} {result[:1_000]} {facts.get('resultDisplay')}"[:3_000]
    code = whole(record(facts.get("resultDisplay")).get("exitCode"))
    has_ended = status == "success"  # then what it says is the tool's, not the program's
    if (is_shell and _CANCELLED.match(result)) if has_ended else _ABORTED.search(said):
        return CallStatus.CANCELLED
    if facts.get("executionStatus") == "not_started" or (not has_ended and _REFUSED.search(said)):
        return CallStatus.REJECTED
    if status == "cancelled":
        return CallStatus.CANCELLED
    if status == "error" or code or (is_shell and exit_code_of(result)):
        return CallStatus.FAILED
    return CallStatus.OK
