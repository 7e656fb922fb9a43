"""Session files of Gemini CLI: `~/.gemini/tmp/<project>/chats/session-*.jsonl`, or `.json` before.

The lines are the log of a document that changes: a message is written again under its id when tool
calls are added, and `$set` repeats whole histories. Older releases rewrite one document. Sub-agents
are files below the session's id; in documents no call names them.

Source: recordings of releases 0.6.1 to 0.61.0; the source of releases 0.37 to 0.56.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, pairwise
from pathlib import Path
from typing import Any, Final, NamedTuple

from otel_reliability.sources.chunks import Progress
from otel_reliability.sources.from_plain import time_ns
from otel_reliability.sources.otlp_json import items, record, text, whole
from otel_reliability.sources.sessions.reading import exit_code_of, is_attached, objects_of
from otel_reliability.sources.sessions.run import (
    NO_TOKENS,
    CallStatus,
    Seen,
    SessionPrompt,
    SessionTokens,
    resource_of,
)

AGENT: Final = "gemini-cli"
FORK: Final = "qwen-code"
"""Its first releases wrote the same files, below a folder of their own."""
_ANSWERS: Final = frozenset({"gemini", "qwen"})
_NOT_TYPED: Final = (
    "<session_context>",
    "<state_snapshot>",
    "I ran the following shell command:\n```sh\n",
    "Here is the user's editor context as a JSON object.",
    "Here is a summary of changes in the user's editor context",
    "User has manually exited Plan Mode. Switching to ",
    "- **Workspace Directories:**\n",
)
"""Beginnings of what the program adds, or of a command that the user executes."""
_OF_HOOK: Final = re.compile(
    r"\s*<hook_context>(?:(?!</hook_context>).)*</hook_context>", re.DOTALL
)
"""The text of a hook, which a prompt may follow."""
_SHELL: Final = "run_shell_command"
_DENIED: Final = re.compile(
    r"denied by policy|is blocked by configuration|^Command rejected because"
)
_REFUSED: Final = re.compile(
    r"\[Operation Cancelled\] Reason: "
    r"(?:User denied execution|User did not allow tool call|User cancelled operation)"
)
"""Begins the result of a call that a person did not permit, or of one that waited behind it."""
_HASHED: Final = re.compile(r"[0-9a-f]{64}")
"""The folder of a project, before releases that name it after the project."""
_ID: Final = re.compile(r"[\w-]{1,100}")
_BATCH_NS: Final = 20_000_000
"""The calls of one answer are recorded together, within this time."""
_CANCELLED: Final = re.compile(r"(?:<untrusted_context>\s*)?Command was cancelled by user")


def read(path: Path, seen: Seen, progress: Progress | None = None) -> Iterator[SessionPrompt]:
    """Read the runs of a session file."""
    run: SessionPrompt | None = None
    session = ""
    is_document = may_lack_calls = False
    agents: list[_AgentFile] = []
    agent = FORK if ".qwen" in path.parts else AGENT
    for message in _messages(path, seen, progress):
        session = text(message.get("sessionId")) or session
        if message.get("kind") == "subagent":
            return
        if "messages" in message:
            is_document = True
            may_lack_calls = _may_lack_calls(path, message)
            agents = _agents_below(path, session)
        at = time_ns(message.get("timestamp"))
        key = text(message.get("id"))
        if message.get("type") == "user" and _is_prompt(message):
            if run is not None:
                yield from _done(run, agents, at, seen)
            sender = resource_of(agent, "", _project(path))
            run = SessionPrompt(agent, session or path.stem, key, at, sender, at)
            run.repeats = not seen.add("prompt", key)
            run.lacks_tools = run.lacks_models = may_lack_calls
            run.says(_typed(message))
        elif message.get("type") == "user" and run is not None:
            _refused(run, message, at, seen)
        elif text(message.get("type")) in _ANSWERS and run is not None:
            _add(run, message, at, seen, path)
            if is_document:
                _add_merged(run, message)
    if run is not None:
        yield from _done(run, agents, None, seen)


def is_part(_: Path) -> bool:
    """Return False: a sub-agent's file says so at its beginning, and is read no further."""
    return False


def _is_whole(message: Mapping[str, Any]) -> bool:
    """Return whether an answer says something, or has its calls: one with neither asked for calls
    that are recorded when they end.
    """
    return bool(_said(message).strip() or message.get("toolCalls"))


def _done(
    run: SessionPrompt, agents: Sequence[_AgentFile], end_ns: int | None, seen: Seen
) -> Iterator[SessionPrompt]:
    """Yield a run, which the next prompt ended, with the sub-agents that began in it. What its last
    answer asked for stands in another message, or, where the program was killed meanwhile, nowhere.
    """
    for agent in agents:
        if run.start_ns <= agent.start_ns and (end_ns is None or agent.start_ns < end_ns):
            _add_agent(run, agent.path, seen)
    is_found = any(call.end_ns >= run.unnamed_ns for call in run.calls.values())
    run.lacks_tools = run.lacks_tools or (run.unnamed_ns > 0 and not is_found)
    if not (run.repeats and run.is_empty):
        yield run


def _messages(path: Path, seen: Seen, progress: Progress | None) -> Iterator[dict[str, Any]]:
    """The messages of a session, after a header with its id; of either form of file."""
    for line in objects_of(path, progress, seen.problems):
        yield line
        yield from map(record, items(line.get("messages")))


def _project(path: Path) -> str:
    root = path.parent.parent / ".project_root"
    return root.read_text().strip() if root.is_file() else path.parent.parent.name


def _is_prompt(message: Mapping[str, Any]) -> bool:
    parts = [record(part) for part in items(message.get("content"))]
    if any("functionResponse" in part for part in parts):
        return False
    return bool(_typed(message)) or any(map(is_attached, parts))


def _typed(message: Mapping[str, Any]) -> str:
    """Return what a person typed: the texts of a message that are not the program's own."""
    content = message.get("content")
    said = [text(content), *(text(record(part).get("text")) for part in items(content))]
    given = (_OF_HOOK.sub("", part).strip() for part in said)
    return "\n".join(part for part in given if part and not part.startswith(_NOT_TYPED))


def _said(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    return text(content) or "".join(text(record(part).get("text")) for part in items(content))


def _refused(run: SessionPrompt, message: Mapping[str, Any], at: int, seen: Seen) -> None:
    """Add calls that a person refused: only their answers say so, no list of calls has them."""
    for part in map(record, items(message.get("content"))):
        answer = record(part.get("functionResponse"))
        call_id = text(answer.get("id"))
        if call_id and "error" in record(answer.get("response")) and seen.add("call", call_id):
            run.asked(call_id, text(answer.get("name")), None, at)
            run.answered(call_id, at, CallStatus.REJECTED)


def _add(
    run: SessionPrompt,
    message: Mapping[str, Any],
    at: int,
    seen: Seen,
    path: Path,
    *,
    inner: bool = False,
) -> None:
    key = text(message.get("id"))
    tokens = record(message.get("tokens"))
    if tokens and not inner:
        run.unnamed_ns = 0 if _is_whole(message) else at
    if tokens and seen.add("answer", key):
        output, thoughts = whole(tokens.get("output")), whole(tokens.get("thoughts"))
        total = None if output is None else output + (thoughts or 0)
        spent = SessionTokens(whole(tokens.get("input")), total, whole(tokens.get("cached")))
        run.model_call(key, at, text(message.get("model")), spent)
    elif key not in run.models:
        run.repeats = True
    for call in map(record, items(message.get("toolCalls"))):
        call_id, name = text(call.get("id")), text(call.get("name"))
        ended = time_ns(call.get("timestamp")) or at
        if seen.add("call", call_id):
            run.asked(call_id, name, call.get("args"), at, inner=inner)
        if call_id in run.calls:
            result = _result(call)
            run.answered(call_id, ended, _status(call, result), result)
        agent = text(call.get("agentId"))
        if agent and seen.add("agent", agent):
            _add_agent_of_call(run, path, agent, seen)


def _may_lack_calls(path: Path, document: Mapping[str, Any]) -> bool:
    """Return whether a document without a tool call may have lost them: the first releases recorded
    calls, and answers without a text, in their terminal only.
    """
    if not _HASHED.fullmatch(path.parent.parent.name):
        return False
    return not any(message.get("toolCalls") for message in map(record, items(document["messages"])))


def _add_merged(run: SessionPrompt, message: Mapping[str, Any]) -> None:
    """Add the answers that are lost in a message: releases around 0.22 add the calls of an answer
    without a text to the message before, and drop its tokens. What is recorded later than the calls
    before was asked for by another answer.
    """
    key = text(message.get("id"))
    if key not in run.models or not message.get("tokens"):
        return
    times = sorted(
        time_ns(record(call).get("timestamp")) for call in items(message.get("toolCalls"))
    )
    for number, (before, after) in enumerate(pairwise(times)):
        if before and after - before > _BATCH_NS:
            run.model_call(
                f"{key}:{number}", (before + after) // 2, text(message.get("model")), NO_TOKENS
            )
            run.lacks_models = True


def _result(call: Mapping[str, Any]) -> str:
    found: list[str] = []
    for part in map(record, items(call.get("result"))):
        response = record(record(part.get("functionResponse")).get("response"))
        found.append(text(response.get("output")) or text(response.get("error")))
    return "".join(found)


def _status(call: Mapping[str, Any], result: str) -> CallStatus:
    status = call.get("status")
    if status == "error" and _DENIED.search(result):
        return CallStatus.REJECTED
    if status == "cancelled" and _REFUSED.match(result):
        return CallStatus.REJECTED
    is_shell = call.get("name") == _SHELL
    if status == "cancelled" or (is_shell and _CANCELLED.match(result)):
        return CallStatus.CANCELLED
    if status == "error" or (is_shell and exit_code_of(result)):
        return CallStatus.FAILED
    return CallStatus.OK


class _AgentFile(NamedTuple):
    """The document of a sub-agent, and when it began."""

    path: Path
    start_ns: int


def _agents_below(path: Path, session: str) -> list[_AgentFile]:
    """Return the documents of the sub-agents of a session, which lie below its id."""
    if not _ID.fullmatch(session):
        return []
    return [
        _AgentFile(file, time_ns(document.get("startTime")))
        for file in sorted(path.parent.glob(f"{session}/*.json"))
        for document in islice(objects_of(file), 1)
    ]


def _add_agent_of_call(run: SessionPrompt, path: Path, agent: str, seen: Seen) -> None:
    """Add the work of a sub-agent that a call names, whose file lies below the session's id."""
    found = sorted(path.parent.glob(f"*/{agent}.jsonl*")) if _ID.fullmatch(agent) else []
    for file in found:
        _add_agent(run, file, seen)
    if not found:
        run.lacks_tools = run.lacks_models = True


def _add_agent(run: SessionPrompt, file: Path, seen: Seen) -> None:
    for message in _messages(file, seen, None):
        if text(message.get("type")) in _ANSWERS:
            at = time_ns(message.get("timestamp"))
            _add(run, message, at, seen, file.parent, inner=True)
