"""Session files of Claude Code: `~/.claude/projects/<folder>/<session>.jsonl`.

One JSON object a line. An answer of the model is written as one line per block, each with the same
`message.id` and usage; some releases write the true output tokens only on the last of them, or on
none. Sub-agents are files below the session, or beside it, or lines inside it, by release.

Source: recordings of releases 1.0.68 to 2.1.332.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

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

AGENT: Final = "claude-code"
_NOT_TYPED: Final = (
    "<command-name>",
    "<command-message>",
    "<local-command-stdout>",
    "<local-command-stderr>",
    "<local-command-caveat>",
    "<bash-input>",
    "<bash-stdout>",
    "<bash-stderr>",
    "<user-memory-input>",
    "<task-notification>",
    "<system-reminder>",
    "<ide_opened_file>",
    "<ide_selection>",
    "[Request interrupted by user",
    "Caveat:",
    "This session is being continued from a previous conversation",
)
"""Beginnings of user records that no person typed as a prompt."""
_COMMAND: Final = ("<command-name>", "<command-message>")
"""Beginnings of a slash command: a prompt where the model answers, none where the program does."""
_ANSWERED: Final = ("<local-command-stdout>", "<local-command-stderr>")
_INTERRUPTED: Final = "[Request interrupted by user"
_KILLED: Final = "Exit code 137"
"""The result of a command that a user stopped, in some releases; also of one that took too much
memory.
"""
_REFUSED: Final = (
    "The user doesn't want to proceed",
    "The user doesn't want to take this action",
    "Permission to use ",
    "Permission for this action has been denied",
    "Claude requested permissions",
    "This command requires approval",
)
"""Beginnings of results of calls that were not permitted, before the release that marks them."""
_DENIED: Final = re.compile(
    r"PreToolUse:\S{1,200} hook |\S{1,200} operation blocked by hook|"
    r"Hook PreToolUse:\S{1,200} denied this tool|Execution stopped by PreToolUse hook|"
    r"(?:<tool_use_error>)?(?:Agent type '[^']{1,200}' has been denied by permission rule|"
    r"File is in a directory that is denied by your permission settings)"
)
"""Begins the result of a call that a hook or a rule of the settings did not let pass."""
_NOT_EXECUTED: Final = re.compile(
    r"<tool_use_error>(?:Sibling tool call errored|Cancelled: parallel tool call|"
    r"Error: Streaming fallback)|\[Tool result missing"
)
"""Begins the result of a call that was dropped, since one beside it failed or the answer broke."""
_TURN_LIMIT: Final = "max_turns_reached"
_SYNTHETIC: Final = "<synthetic>"
"""The model of what the program itself says."""
_STARTS_AGENT: Final = frozenset({"Task", "Agent", "Skill"})
"""Tools whose work may be that of a sub-agent: a skill may have a context of its own."""
_REPORTED: Final = "completed"
"""The status of a call whose sub-agent is done; one in the background goes on."""
_AGENT_ID: Final = re.compile(r"[\w-]{1,100}")
_LOOK: Final = 2_000
"""Characters of a result that hold how the call ended."""


def read(path: Path, seen: Seen, progress: Progress | None = None) -> Iterator[SessionPrompt]:
    """Read the runs of a session file, each when its prompt is done."""
    reader = _Reader(path, seen)
    for line in objects_of(path, progress, seen.problems):
        done = reader.take(line)
        if done is not None:
            yield from reader.finished(done)
    if reader.run is not None:
        yield from reader.finished(reader.run)


def is_part(path: Path) -> bool:
    """Return whether a file belongs to a sub-agent: the reader of its session reads it."""
    return path.name.startswith("agent-")


class _Reader:
    def __init__(self, path: Path, seen: Seen) -> None:
        self.run: SessionPrompt | None = None
        self._seen = seen
        self._path = path
        self._agents: dict[str, str] = {}
        """The sub-agent that each call started, by the id of the call."""
        self._files = _files_of_agents(path)
        self._reported: dict[str, int] = {}
        """When the sub-agent of each call reported."""
        self._cut_short: set[str] = set()
        """Calls whose result says what a cancelled call's and a refused or failed one's say."""
        self._command: Mapping[str, Any] | None = None
        """A slash command that nothing has answered."""

    def take(self, line: Mapping[str, Any]) -> SessionPrompt | None:
        """Take a line; return the run that ends with it."""
        at = time_ns(line.get("timestamp"))
        kind = line.get("type")
        if kind == "user":
            content = record(line.get("message")).get("content")
            if _is_prompt(line, content):
                if _said(content).startswith(_INTERRUPTED):
                    self._interrupted()  # the next prompt stands in the same record
                return self._begin(line, content, at)
            self._commanded(line, content)
            self._results(line, content, at)
        elif kind == "assistant":
            return self._answer(line, at)
        elif kind == "attachment" and self.run is not None:
            ended = record(line.get("attachment")).get("type") == _TURN_LIMIT
            self.run.failed = self.run.failed or (ended and line.get("isSidechain") is not True)
        elif kind == "system" and line.get("subtype") == "compact_boundary":
            return self._compacted(line, at)
        return None

    def _begin(self, line: Mapping[str, Any], content: object, at: int) -> SessionPrompt | None:
        done = self.run
        self._command = None
        session = text(line.get("sessionId")) or self._path.stem
        key = text(line.get("uuid")) or str(at)
        sender = resource_of(AGENT, text(line.get("version")), text(line.get("cwd")))
        self.run = SessionPrompt(AGENT, session, key, at, sender, at)
        self.run.repeats = not self._seen.add("prompt", key)
        if record(line.get("origin")).get("kind") != "task-notification":  # which nobody typed
            self.run.says(_typed(content) or content)
        return done

    def _results(self, line: Mapping[str, Any], content: object, at: int) -> None:
        run = self.run
        if run is None:
            return
        blocks = [record(block) for block in items(content)]
        is_inner = line.get("isSidechain") is True
        if _said(content).startswith(_INTERRUPTED) and not is_inner:
            self._interrupted()
        for block in blocks:
            if block.get("type") != "tool_result":
                continue
            call_id = text(block.get("tool_use_id"))
            result = _text_of(block.get("content"))
            status = _status(line, block, result)
            is_sure = "permissionDecision" in line or line.get("toolDenialBeforeRun") is True
            is_killed = status is CallStatus.FAILED and result.startswith(_KILLED)
            outcome = record(line.get("toolUseResult"))
            is_cut = outcome.get("interrupted") is True and status is not CallStatus.REJECTED
            if (status is CallStatus.REJECTED and not is_sure) or is_killed or is_cut:
                self._cut_short.add(call_id)
            if status is CallStatus.FAILED and _INTERRUPTED in result[-_LOOK:]:
                status = CallStatus.CANCELLED
            run.answered(call_id, at, status, result)
            agent = text(outcome.get("agentId"))
            if agent:
                self._agents[call_id] = agent
            if outcome.get("status") == _REPORTED:
                self._reported[call_id] = at

    def _interrupted(self) -> None:
        if self.run is not None:
            self.run.stopped = True
        calls = {} if self.run is None else self.run.calls
        for call_id in self._cut_short & calls.keys():
            calls[call_id].status = CallStatus.CANCELLED
        self._cut_short.clear()

    def _commanded(self, line: Mapping[str, Any], content: object) -> None:
        """Note a slash command, or that the program itself answered it."""
        said = _said(content).lstrip()
        if said.startswith(_COMMAND) and line.get("isSidechain") is not True:
            self._command = line
        elif said.startswith(_ANSWERED):
            self._command = None

    def _answer(self, line: Mapping[str, Any], at: int) -> SessionPrompt | None:
        """Add an answer; the answer to a slash command begins its run."""
        done: SessionPrompt | None = None
        command = self._command
        is_own = line.get("isSidechain") is not True
        if command is not None and is_own and _model_of(line) != _SYNTHETIC:
            asked_at = time_ns(command.get("timestamp"))
            done = self._begin(command, record(command.get("message")).get("content"), asked_at)
        if self.run is not None:
            add_answer(self.run, line, at, self._seen)
        return done

    def _compacted(self, line: Mapping[str, Any], at: int) -> SessionPrompt | None:
        """A compaction belongs to its run; one that was asked for is a run of its own."""
        facts = record(line.get("compactMetadata"))
        trigger = text(facts.get("trigger"))
        done = self._begin(line, None, at) if trigger == "manual" else None
        if self.run is not None:
            before, after = whole(facts.get("preTokens")), whole(facts.get("postTokens"))
            self.run.compactions.append(Compaction(at, before, after, trigger or None))
        return done

    def finished(self, run: SessionPrompt) -> Iterator[SessionPrompt]:
        """Yield a run with the work of its sub-agents, unless all of it was copied."""
        pending = [*run.calls]
        while pending:
            call_id = pending.pop()
            call = run.calls.get(call_id)
            agent = self._agents.get(call_id, "")
            path = self._files.get(call_id) or self._files.get(agent) or _beside(self._path, agent)
            if call is None or call.name not in _STARTS_AGENT:
                continue
            if path is not None:
                known = {*run.calls}
                end_ns = self._reported.get(call_id)
                _add_agent(run, path, self._seen, self._agents, end_ns)
                pending.extend(run.calls.keys() - known)
            elif agent:  # its file was left behind, or removed
                run.lacks_tools = run.lacks_models = True
        if not (run.repeats and run.is_empty):
            yield run


def add_answer(run: SessionPrompt, line: Mapping[str, Any], at: int, seen: Seen) -> None:
    """Add a line of an answer of the model: its usage, and the calls that it asks for."""
    message = record(line.get("message"))
    model = text(message.get("model"))
    is_inner = line.get("isSidechain") is True
    if model == _SYNTHETIC:
        run.failed = run.failed or (line.get("isApiErrorMessage") is True and not is_inner)
        return
    run.failed = run.failed and is_inner  # it went on after an error
    key = text(message.get("id")) or text(line.get("requestId")) or text(line.get("uuid"))
    if key in run.models or seen.add("answer", key):
        run.model_call(key, at, model, _tokens(message))
    else:
        run.repeats = True
    for block in map(record, items(message.get("content"))):
        call_id = text(block.get("id"))
        # some providers number the calls of each answer anew
        if block.get("type") == "tool_use" and seen.add("call", f"{key}\0{call_id}"):
            run.asked(call_id, text(block.get("name")), block.get("input"), at, inner=is_inner)


def _tokens(message: Mapping[str, Any]) -> SessionTokens:
    """Input and output tokens; where a line has no stop reason its output is not yet known."""
    usage = record(message.get("usage"))
    parts = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
    counts = [whole(usage.get(part)) for part in parts]
    given = None if counts == [None] * len(parts) else sum(count or 0 for count in counts)
    output = whole(usage.get("output_tokens")) if message.get("stop_reason") is not None else None
    return SessionTokens(given, output, cached=counts[2], cache_written=counts[1])


def _is_prompt(line: Mapping[str, Any], content: object) -> bool:
    if any(line.get(mark) is True for mark in ("isMeta", "isCompactSummary", "isSidechain")):
        return False
    if record(line.get("origin")).get("kind") == "task-notification":
        return True  # nobody typed it, but it begins a turn as a prompt does
    blocks = [record(block) for block in items(content)]
    if any(block.get("type") == "tool_result" for block in blocks):
        return False
    return bool(_typed(content))


def _typed(content: object) -> list[Any]:
    """Return what a person typed or attached: blocks that are not the program's own, or a text."""
    given = items(content) or [{"type": "text", "text": content}]
    blocks = map(record, given)
    return [block for block in blocks if block and not _is_own(text(block.get("text")), block)]


def _is_own(said: str, block: Mapping[str, Any]) -> bool:
    """Return whether a block is the program's: an empty text, or one with a mark of its own."""
    is_text = block.get("type") == "text"
    return is_text and (not said.strip() or said.lstrip().startswith(_NOT_TYPED))


def _said(content: object) -> str:
    return text(content) or "".join(text(record(block).get("text")) for block in items(content))


def _model_of(line: Mapping[str, Any]) -> str:
    return text(record(line.get("message")).get("model"))


def _status(line: Mapping[str, Any], block: Mapping[str, Any], result: str) -> CallStatus:
    if block.get("is_error") is not True:
        return CallStatus.OK
    decision = record(line.get("permissionDecision")).get("decision")
    if decision == "reject" or "toolDenialKind" in line or result.startswith(_REFUSED):
        return CallStatus.REJECTED
    if _DENIED.match(result):
        return CallStatus.REJECTED
    return CallStatus.UNFINISHED if _NOT_EXECUTED.match(result) else CallStatus.FAILED


def _text_of(content: object) -> str:
    if isinstance(content, str):
        return content
    return "".join(text(record(block).get("text")) for block in items(content))


# --- Sub-agents -----------------------------------------------------------------------------------


def _files_of_agents(path: Path) -> dict[str, Path]:
    """The files of sub-agents, by the id of the call that started each, and by the agent's id."""
    found: dict[str, Path] = {}
    below = path.with_suffix("") if path.suffix == ".jsonl" else path.parent / path.name[:36]
    for file in below.glob("subagents/**/agent-*.jsonl*"):
        agent = file.name.removeprefix("agent-").partition(".")[0]
        found[agent] = file
        meta = file.with_name(f"agent-{agent}.meta.json")
        if meta.is_file():
            with contextlib.suppress(msgspec.DecodeError):
                facts = record(msgspec.json.decode(meta.read_bytes()))
                found[text(facts.get("toolUseId"))] = file
    found.pop("", None)
    return found


def _beside(path: Path, agent: str) -> Path | None:
    """The file of a sub-agent beside that of its session, as some releases write it. The folder is
    not listed for it: it may hold thousands.
    """
    if not _AGENT_ID.fullmatch(agent):
        return None
    files = (path.with_name(f"agent-{agent}.jsonl{packing}") for packing in ("", ".gz", ".zst"))
    return next(filter(Path.is_file, files), None)


def _add_agent(
    run: SessionPrompt, path: Path, seen: Seen, agents: dict[str, str], end_ns: int | None
) -> None:
    """Add the work of a sub-agent; `end_ns`: when it reported, if it did. What it is asked after
    that, another call asked.
    """
    for line in objects_of(path, None, seen.problems):
        at = time_ns(line.get("timestamp"))
        content = record(line.get("message")).get("content")
        if end_ns is not None and at > end_ns and line.get("type") == "user" and _said(content):
            return
        if line.get("type") == "assistant":
            add_answer(run, line, at, seen)
        elif line.get("type") == "user":
            for block in map(record, items(content)):
                if block.get("type") == "tool_result":
                    call_id = text(block.get("tool_use_id"))
                    result = _text_of(block.get("content"))
                    run.answered(call_id, at, _status(line, block, result), result)
                    agents.setdefault(
                        call_id, text(record(line.get("toolUseResult")).get("agentId"))
                    )
