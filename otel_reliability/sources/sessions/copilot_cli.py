"""Session files of GitHub Copilot CLI: `~/.copilot/session-state/<session>/events.jsonl`.

Events `{type, id, timestamp, data}`; a sub-agent's have its `agentId`, in the same file. Releases
without usage records write the output tokens of an answer beside it, and those of its input not.

Source: recordings of release 1.0.102; the event types of its SDK.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from otel_reliability.sources.chunks import Progress
from otel_reliability.sources.from_plain import time_ns
from otel_reliability.sources.otlp_json import items, record, text, whole
from otel_reliability.sources.sessions.reading import objects_of
from otel_reliability.sources.sessions.run import (
    CallStatus,
    Compaction,
    Seen,
    SessionPrompt,
    SessionTokens,
    resource_of,
)

AGENT: Final = "copilot-cli"
_EXIT_CODE: Final = re.compile(r"<exited with exit code (?!0\b)-?\d+>")
_REJECTED: Final = frozenset({"rejected", "denied"})
_TYPED: Final = frozenset({"", "user"})
"""Sources of messages that a user typed; those of skills, agents and the program name these."""
_ANSWER: Final = "assistant.message"
_OF_ANSWER: Final = "message:"
"""Begins the keys of model calls of which an answer is known, and no usage record so far."""
_ASKS: Final = frozenset({_ANSWER, "tool.execution_start"})
"""Events that name calls: an answer all of its own, the beginning of a call itself."""
_OWN_CALL: Final = "read_agent"
"""Made by the program itself when a background agent ends: it names no model then."""


def read(path: Path, seen: Seen, progress: Progress | None = None) -> Iterator[SessionPrompt]:
    """Read the runs of a session file."""
    run: SessionPrompt | None = None
    is_flat = not path.name.startswith("events.")  # as the first releases write it
    session, version, cwd = path.name.partition(".")[0] if is_flat else path.parent.name, "", ""
    model = ""
    for line in objects_of(path, progress, seen.problems):
        data = record(line.get("data"))
        kind = line.get("type")
        at = time_ns(line.get("timestamp"))
        key = text(line.get("id"))
        if kind == "session.start":
            session = text(data.get("sessionId")) or session
            version = text(data.get("copilotVersion"))
            cwd = text(record(data.get("context")).get("cwd"))
            model = text(data.get("selectedModel"))
        elif kind == "session.model_change":
            model = text(data.get("newModel")) or model
        elif kind == "user.message" and _is_typed(line, data):
            if run is not None and not (run.repeats and run.is_empty):
                yield run
            sender = resource_of(AGENT, version, cwd)
            run = SessionPrompt(AGENT, session, key, at, sender, at)
            run.repeats = not seen.add("prompt", key)
            run.says(data.get("content"))
        elif run is not None:
            if kind == _ANSWER:
                _answered(run, data, model, key, at, seen)
            _take(run, text(kind), data, key, at, seen, inner=bool(line.get("agentId")))
    if run is not None and not (run.repeats and run.is_empty):
        yield run


def is_part(_: Path) -> bool:
    """Return False: sub-agents have no file of their own."""
    return False


def _is_typed(line: Mapping[str, Any], data: Mapping[str, Any]) -> bool:
    if data.get("isAutopilotContinuation") is True or data.get("delivery") == "steering":
        return False  # the turn that goes on has it
    return not line.get("agentId") and text(data.get("source")) in _TYPED


def _answered(
    run: SessionPrompt, data: Mapping[str, Any], model: str, key: str, at: int, seen: Seen
) -> None:
    """Add the model call of an answer, which may be several messages, where no usage record of the
    prompt has come: one that has replaces it.
    """
    if _is_by_itself(data):
        return
    name = _OF_ANSWER + (text(data.get("apiCallId")) or text(data.get("messageId")) or key)
    is_new = seen.add("answer", name)
    has_usage = any(not each.startswith(_OF_ANSWER) for each in run.models)
    if name in run.models or (is_new and not has_usage):
        tokens = SessionTokens(output=whole(data.get("outputTokens")))
        run.model_call(name, at, text(data.get("model")) or model, tokens)


def _is_by_itself(data: Mapping[str, Any]) -> bool:
    """Return whether the program itself made the calls of a message, so no model wrote it."""
    names = [record(call).get("name") for call in items(data.get("toolRequests"))]
    return _OWN_CALL in names and not data.get("model")


def _take(
    run: SessionPrompt,
    kind: str,
    data: Mapping[str, Any],
    key: str,
    at: int,
    seen: Seen,
    *,
    inner: bool,
) -> None:
    call_id = text(data.get("toolCallId"))
    if kind == "session.usage_record":
        if seen.add("answer", key):
            _used(run, record(data.get("usage")), key, at)
    elif kind == "tool.user_requested":
        seen.add("call", f"\0{call_id}")  # a user's own command is no call of the agent
    elif kind in _ASKS:
        run.failed = run.failed and inner  # it went on after an error
        message = text(data.get("apiCallId")) or text(data.get("messageId"))
        for call in map(record, items(data.get("toolRequests")) or [data]):
            name = text(call.get("name")) or text(call.get("toolName"))
            asked = text(call.get("toolCallId"))
            by_itself = name == _OWN_CALL and not data.get("model")
            # some providers number the calls of each answer anew
            is_new = seen.add("call", f"{message}\0{asked}") and (message or asked not in run.calls)
            if asked and not by_itself and is_new:
                run.asked(asked, name, call.get("arguments"), at, inner=inner)
    elif kind == "tool.execution_complete":
        result = text(record(data.get("result")).get("content"))
        run.answered(call_id, at, _status(data, result), result or None)
    elif kind in ("abort", "session.error"):
        _stopped(run, kind, at)
    elif kind == "session.compaction_complete":
        run.compactions.append(Compaction(at, whole(data.get("preCompactionTokens"))))


def _used(run: SessionPrompt, usage: Mapping[str, Any], key: str, at: int) -> None:
    """Add the model call of a usage record, which stands for the answers that came before."""
    for name in [each for each in run.models if each.startswith(_OF_ANSWER)]:
        del run.models[name]
    tokens = SessionTokens(
        whole(usage.get("inputTokens")),
        whole(usage.get("outputTokens")),
        whole(usage.get("cacheReadTokens")),
        whole(usage.get("cacheWriteTokens")),
    )
    run.model_call(key, at, text(usage.get("model")), tokens)


def _stopped(run: SessionPrompt, kind: str, at: int) -> None:
    """A user stopped the turn, which cancels what runs; or it ended in an error. A turn is aborted
    after a refusal too.
    """
    last = max(run.calls.values(), key=lambda call: call.end_ns, default=None)
    is_refusal = last is not None and last.status is CallStatus.REJECTED
    run.failed = run.failed or kind == "session.error"
    run.stopped = run.stopped or (kind == "abort" and not is_refusal)
    for call in run.calls.values() if kind == "abort" else ():
        if call.status is CallStatus.UNFINISHED:
            call.status = CallStatus.CANCELLED
            call.end_ns = max(call.start_ns, at)


def _status(data: Mapping[str, Any], result: str) -> CallStatus:
    if text(record(data.get("error")).get("code")) in _REJECTED:
        return CallStatus.REJECTED
    code = whole(record(data.get("shellExecution")).get("exitCode"))
    failed = data.get("success") is False or code or _EXIT_CODE.search(result[-200:])
    return CallStatus.FAILED if failed else CallStatus.OK
