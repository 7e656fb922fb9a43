"""Session files of Codex: `~/.codex/sessions/YYYY/MM/DD/rollout-<time>-<id>.jsonl`.

Lines are `{timestamp, type, payload}`; in the first releases the file is one document of items. How
a call ended is in its item where the release writes items, else in the text of its output. A
sub-agent is a rollout of its own; older releases copy the whole history into a forked one, with the
same turn and call ids.

Source: recordings of releases 0.27 to 0.171.
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
from otel_reliability.sources.sessions.reading import objects_of
from otel_reliability.sources.sessions.run import (
    CallStatus,
    Compaction,
    Seen,
    SessionPrompt,
    SessionTokens,
    resource_of,
)

AGENT: Final = "codex"
_CALLS: Final = frozenset({"function_call", "custom_tool_call", "local_shell_call"})
_OUTPUTS: Final = frozenset({"function_call_output", "custom_tool_call_output"})
_WRAPPER: Final = "exec"
"""In code mode the model calls `exec` with a program that calls the tools: these count, not it."""
_INNER: Final = "exec-"
"""Begins the ids of items of calls that a program in code mode made."""
_NAMES: Final = {"CommandExecution": "exec_command", "FileChange": "apply_patch"}
_SERVED: Final = {"web_search_call": "web_search", "image_generation_call": "image_generation"}
"""Calls that the provider of the model executes: they have no output."""
_TOOL_ITEMS: Final = frozenset({*_NAMES, "McpToolCall", "DynamicToolCall"})
_EXIT_CODE: Final = re.compile(r"^(?:Process exited with code|Exit code:)\s+(-?\d+)", re.MULTILINE)
_HEADER: Final = re.compile(r"^Output:$", re.MULTILINE)
"""Ends what Codex says of a command, before what the command itself printed."""
_REJECTED: Final = re.compile(
    r"(?:Script (?:error|failed).{0,200})?"
    r"(?:\S+ failed.{0,4000}CreateProcess \{ message: \W{0,3})?Rejected\("
    r"|`.{1,4000}` rejected: |(?:exec command |patch )?rejected by user|patch rejected: "
    r"|(?:err: \W)?user (?:rejected|cancelled) MCP tool call"
    r"|[\w ]{1,40} blocked by PreToolUse hook",
    re.DOTALL,
)
_ERROR: Final = re.compile(
    r"^(?:err: |error|failed|apply_patch verification failed|.{0,80}\bfailed:|unsupported call)",
    re.IGNORECASE,
)
_CANCELLED: Final = re.compile(r"(?:Wall time: [\d.]+ seconds\s+)?aborted by user|aborted\Z")
_ABORTED: Final = "turn_aborted"
_REVIEWED: Final = "review_ended"
"""Why a turn is aborted that no user stopped."""
_COPY_NS: Final = 2_000_000_000
"""A session that is forked begins with all records of the other one, written at once."""
_FACTS: Final = frozenset({"session_meta", "turn_context"})
"""Records of a rollout that hold no work."""
_BEGINS: Final = frozenset({"task_started", "turn_started"})
_ENDS: Final = frozenset({"task_complete", "turn_complete", _ABORTED})
_CALL_ENDS: Final = frozenset({"exec_command_end", "mcp_tool_call_end", "patch_apply_end"})
"""Events that some releases write of calls beside their outputs."""
_INNER_NAME: Final = re.compile(r"tools\.(\w+)")
_LOOK: Final = 1_000
_CONTEXT: Final = ("<environment_context>", "<user_instructions>", "# AGENTS.md", "<turn_aborted>")
_ADDED: Final = frozenset({"environment_context", "user_instructions"})
"""Kinds of user messages that no user typed."""
_ID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


def read(path: Path, seen: Seen, progress: Progress | None = None) -> Iterator[SessionPrompt]:
    """Read the runs of a session file."""
    reader = _Reader(path, seen)
    for line in objects_of(path, progress, seen.problems):
        for each in _of_document(line) if "session" in line and "items" in line else (line,):
            yield from reader.take(each)
    yield from reader.end()


def _of_document(document: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the lines that a document of the first releases would be now."""
    yield record(document.get("session"))
    yield from map(record, items(document.get("items")))


def is_part(path: Path) -> bool:
    """Return whether a file is a sub-agent's: the session that started it has its work."""
    for line in objects_of(path):
        meta = record(line.get("payload"))
        source = record(meta.get("source"))
        return line.get("type") == "session_meta" and bool(
            meta.get("parent_thread_id") or "subagent" in source
        )
    return False


class _Reader:
    """Reads one rollout; `into` is the run that a sub-agent's rollout belongs to."""

    def __init__(self, path: Path, seen: Seen, into: SessionPrompt | None = None) -> None:
        self._path = path
        self._seen = seen
        self._into = into
        self._session = ""
        self._meta: Mapping[str, Any] = {}
        self._model = ""
        self._turn = ""
        self._runs: dict[str, SessionPrompt] = {}
        """The runs that are not done, by their turn, in order."""
        self._typed: set[str] = set()
        """The turns that began with a prompt; others count where a compaction was asked for."""
        self._agents: dict[str, set[str]] = {}
        """The sub-agents that each turn started, or gave more work."""
        self._heard: dict[str, int] = {}
        """The time up to which the rollout of each sub-agent was read."""
        self._has_usage = False
        """True where the file has usage records, beside which token counts only repeat."""
        self._total: object = None
        self._began = 0
        self._copied: set[str] = set()
        """The turns that hold records of another session."""
        self._told: set[str] = set()
        """Calls whose item said how they ended, better than the text of their output."""
        self._programs: dict[str, str] = {}
        """Programs of code mode that have made no call so far, by the id of their call."""
        self._clock = 0
        self._count = 0

    def take(self, line: Mapping[str, Any]) -> Iterator[SessionPrompt]:
        """Take a line; yield the runs that are done."""
        kind = text(line.get("type"))
        payload = record(line.get("payload"))
        at = time_ns(line.get("timestamp"))
        self._clock = max(at, self._clock + (0 if at else 1_000_000))  # some lines have no time
        self._began = self._began or at
        if kind in _CALLS or kind in _OUTPUTS or kind == "message":  # bare items: 0.27
            yield from self._response(line, self._clock, bare=True)
        elif kind == "session_meta" or (not kind and "id" in line and at):
            self._begin(payload or line)
        elif kind == "turn_context":
            self._model = text(payload.get("model")) or self._model
        elif kind == "token_usage_record":
            self._has_usage = True
            response, turn = text(payload.get("response_id")), text(payload.get("turn_id"))
            self._add_usage(turn, response, self._clock, payload.get("usage"))
        elif kind == "compacted":
            run = self._run_of("")
            if run is not None:
                run.compactions.append(Compaction(self._clock))
        elif kind == "response_item":
            yield from self._response(payload, self._clock, bare=False)
        elif kind == "event_msg":
            yield from self._event(payload, self._clock)

    def end(self, keep: int = 0) -> Iterator[SessionPrompt]:
        """Yield the runs that are done: all but the newest ones, of which more may follow."""
        for turn in [*self._runs][: max(len(self._runs) - keep, 0)]:
            run = self._runs.pop(turn)
            end_ns = next((later.start_ns for later in self._runs.values()), None)
            for agent in sorted(self._agents.pop(turn, ())):
                _add_agent(run, self._path, agent, self._seen, self._heard, end_ns)
            is_copy = run.repeats or (turn in self._copied and run.is_empty)
            if (turn in self._typed or run.compactions) and not is_copy:
                yield run

    def started(self) -> list[str]:
        """Return the sub-agents that were started."""
        return sorted({agent for agents in self._agents.values() for agent in agents})

    def _begin(self, meta: Mapping[str, Any]) -> None:
        if not self._session:  # a fork holds that of the session that it was copied from, too
            self._session = text(meta.get("id")) or self._path.stem
            self._meta = meta

    def _start(self, turn: str, at: int) -> Iterator[SessionPrompt]:
        """A turn begins: those before the last one are done."""
        self._turn = turn
        if self._into is None and turn not in self._runs:
            yield from self.end(keep=1)
            version, cwd = text(self._meta.get("cli_version")), text(self._meta.get("cwd"))
            sender = resource_of(AGENT, version, cwd)
            run = self._runs[turn] = SessionPrompt(AGENT, self._session, turn, at, sender, at)
            run.repeats = not self._seen.add("turn", turn)

    def _prompt(self, said: str, at: int) -> Iterator[SessionPrompt]:
        """A prompt begins a turn where the release writes no beginning of turns."""
        if self._into is None and (self._turn in self._typed or not self._turn):
            self._count += 1
            yield from self._start(f"{self._session}:{self._count}", at)
        self._typed.add(self._turn)
        self._says(self._turn, said)

    def _says(self, turn: str, content: object) -> None:
        run = self._runs.get(turn)
        if run is not None and self._into is None:
            run.says(content)

    def _run_of(self, turn: str) -> SessionPrompt | None:
        return self._into or self._runs.get(turn) or self._runs.get(self._turn)

    def _event(self, payload: Mapping[str, Any], at: int) -> Iterator[SessionPrompt]:
        kind = text(payload.get("type"))
        turn = text(payload.get("turn_id"))
        if kind in _BEGINS and turn:
            yield from self._start(turn, at)
        elif kind == "user_message" and _is_typed(payload):
            if self._turn.startswith(f"{self._session}:") or self._turn not in self._typed:
                yield from self._prompt(text(payload.get("message")), at)
        elif kind == "token_count" and not self._has_usage:
            self._counted(record(payload.get("info")), at)
        elif kind in _ENDS:
            self._ended(self._run_of(turn), payload)
        elif kind in _CALL_ENDS:
            self._call_ended(self._run_of(turn), payload, at)
        elif kind == "item_completed":
            item = record(payload.get("item"))
            if item.get("type") == "UserMessage":
                self._typed.add(turn)
                self._says(turn, item.get("content"))
            else:
                self._item(self._run_of(turn), item, turn or self._turn, at)

    def _counted(self, info: Mapping[str, Any], at: int) -> None:
        """Add the tokens of an answer, unless the count repeats one."""
        total = info.get("total_token_usage")
        if total is None or total == self._total:
            return
        self._total = total
        self._count += 1
        is_new = self._seen.add("total", repr(info))
        if is_new or at - self._began > _COPY_NS:
            key = f"{self._session}:usage:{self._count}:{at}"
            self._add_usage("", key, at, info.get("last_token_usage"))
        else:
            self._copied.add(self._turn)

    def _ended(self, run: SessionPrompt | None, payload: Mapping[str, Any]) -> None:
        if run is not None:
            is_own = self._into is None  # a sub-agent that is stopped does not stop the run
            is_aborted = payload.get("type") == _ABORTED and payload.get("reason") != _REVIEWED
            run.stopped = run.stopped or (is_own and is_aborted)
            run.failed = run.failed or (is_own and payload.get("error") is not None)

    def _call_ended(self, run: SessionPrompt | None, payload: Mapping[str, Any], at: int) -> None:
        """Note how a call ended, which the text of its output may not say."""
        call_id = text(payload.get("call_id"))
        call = None if run is None else run.calls.get(call_id)
        result = record(payload.get("result"))
        inner = record(result.get("Ok"))
        is_error = inner.get("isError") is True or inner.get("is_error") is True
        failed = "Err" in result or is_error or payload.get("success") is False
        if run is None or call is None or call.status is CallStatus.CANCELLED:
            return
        is_refused = payload.get("status") == "declined" or _REJECTED.match(text(result.get("Err")))
        if is_refused or failed or whole(payload.get("exit_code")):
            self._told.add(call_id)
            status = CallStatus.REJECTED if is_refused else CallStatus.FAILED
            run.answered(call_id, at, status, call.result)

    def _item(self, run: SessionPrompt | None, item: Mapping[str, Any], turn: str, at: int) -> None:
        call_id = text(item.get("id"))
        kind = text(item.get("type"))
        receivers = {text(each) for each in items(item.get("receiver_thread_ids"))}
        if item.get("kind") == "started":
            receivers.add(text(item.get("agent_thread_id")))
        self._agents.setdefault(turn, set()).update(receivers - {""})
        if run is None or kind not in _TOOL_ITEMS:
            return
        if call_id.startswith(_INNER) and call_id not in run.calls:
            if not self._seen.add("call", call_id):
                return
            self._programs.clear()
            server, tool = text(item.get("server")), text(item.get("tool"))
            name = _NAMES.get(kind) or (f"mcp__{server}__{tool}" if server else tool)
            arguments = item.get("command") or item.get("arguments") or item.get("changes")
            run.asked(call_id, name, arguments, at, inner=self._into is not None)
        call = run.calls.get(call_id)
        if call is None or call.status is CallStatus.CANCELLED:
            return
        result = record(item.get("result"))
        code = whole(item.get("exit_code"))
        error = text(record(item.get("error")).get("message"))
        if item.get("status") == "declined" or _REJECTED.match(error):
            status = CallStatus.REJECTED
        elif item.get("status") == "failed" or code or result.get("isError") is True:
            status = CallStatus.FAILED
        else:
            status = CallStatus.OK
        self._told.add(call_id)
        run.answered(call_id, at, status, text(item.get("aggregated_output")) or None)

    def _response(self, item: Mapping[str, Any], at: int, *, bare: bool) -> Iterator[SessionPrompt]:
        kind = text(item.get("type"))
        if kind == "message" and bare and item.get("role") == "user":
            said = "".join(text(record(part).get("text")) for part in items(item.get("content")))
            if said and not said.lstrip().startswith(_CONTEXT):
                yield from self._prompt(said, at)
        run = self._run_of("")
        if run is not None and kind in _SERVED:
            self._served(run, item, _SERVED[kind], at)
        call_id = text(item.get("call_id"))
        if run is None or not call_id:
            return
        if kind in _CALLS:
            name = text(item.get("name")) or "local_shell"
            if kind == "custom_tool_call" and name == _WRAPPER:
                self._programs[call_id] = text(item.get("input"))
                return
            space = text(item.get("namespace"))
            name = f"{space}__{name}" if space.startswith("mcp__") else name
            given = item.get("arguments") or item.get("input") or item.get("action")
            self._asked_agents(text(given))
            # some providers number the calls of each session or answer anew
            is_new = self._seen.add("call", f"{call_id}\0{name}\0{given}")
            known = run.calls.get(call_id)
            is_open = known is not None and known.status is CallStatus.UNFINISHED
            if is_new or (at - self._began > _COPY_NS and not is_open):
                run.asked(call_id, name, given, at, inner=self._into is not None)
            elif call_id not in run.calls:
                self._copied.add(self._turn)
        elif kind in _OUTPUTS:
            self._output(run, call_id, item.get("output"), at)

    def _asked_agents(self, arguments: str) -> None:
        """Note the sub-agents of earlier turns that a call names."""
        known = {*self._heard}.union(*self._agents.values())
        if known:
            named = {text(value) for value in _object(arguments).values()}
            self._agents.setdefault(self._turn, set()).update(named & known)

    def _served(self, run: SessionPrompt, item: Mapping[str, Any], name: str, at: int) -> None:
        """Add a call that the provider executed; some releases write no id of it."""
        self._count += 1
        named = text(item.get("id"))
        call_id = named or f"{self._session}:{name}:{self._count}"
        is_new = self._seen.add("call", named or repr(item))
        if not is_new and (named or at - self._began <= _COPY_NS):
            self._copied.add(self._turn)
            return
        run.asked(call_id, name, item.get("action"), at, inner=self._into is not None)
        is_failed = item.get("status") == "failed"
        run.answered(call_id, at, CallStatus.FAILED if is_failed else CallStatus.OK)

    def _output(self, run: SessionPrompt, call_id: str, given: object, at: int) -> None:
        program = self._programs.pop(call_id, None)
        output = _text_of(given)
        status = _status(output)
        if status is CallStatus.OK and record(given).get("success") is False:
            status = CallStatus.FAILED
        if program is not None and status in (CallStatus.REJECTED, CallStatus.CANCELLED):
            found = _INNER_NAME.search(program)
            name = found[1] if found else _WRAPPER
            run.asked(call_id, name, program, at, inner=self._into is not None)
        call = run.calls.get(call_id)
        if call is None:
            return
        if call.name == "spawn_agent":
            agent = text(_object(output).get("agent_id"))
            self._agents.setdefault(self._turn, set()).update({agent} - {""})
        if call_id not in self._told or status is CallStatus.CANCELLED:
            run.answered(call_id, at, status, output)

    def _add_usage(self, turn: str, key: str, at: int, usage: object) -> None:
        run = self._run_of(turn)
        if run is not None and (run.repeats or self._seen.add("answer", key)):
            given = record(usage)
            tokens = SessionTokens(
                whole(given.get("input_tokens")),
                whole(given.get("output_tokens")),
                whole(given.get("cached_input_tokens")),
                whole(given.get("cache_write_input_tokens")),
            )
            run.model_call(key, at, self._model, tokens)


def _is_typed(message: Mapping[str, Any]) -> bool:
    """Return whether a user typed a message: the first releases with events wrote one of the
    context that the program adds, too.
    """
    said = text(message.get("message")).lstrip()
    return text(message.get("kind")) not in _ADDED and not said.startswith(_CONTEXT)


def _status(output: str) -> CallStatus:
    """The end of a call, by what Codex says before the output of the command, or beside it."""
    code = _exit_code(output)
    if code is not None:
        return CallStatus.FAILED if code else CallStatus.OK
    if _REJECTED.match(output):
        return CallStatus.REJECTED
    if _CANCELLED.match(output):
        return CallStatus.CANCELLED
    is_error = _ERROR.match(output) or _is_error_of_mcp(output)
    return CallStatus.FAILED if is_error else CallStatus.OK


def _is_error_of_mcp(output: str) -> bool:
    """Return whether the output is the result of an MCP server that says that it is an error: the
    first releases write it whole, as JSON.
    """
    result = _object(output) if output.startswith('{"content":') else {}
    return result.get("isError") is True or result.get("is_error") is True


def _exit_code(output: str) -> int | None:
    if output.startswith('{"'):
        return whole(record(_object(output).get("metadata")).get("exit_code"))
    code = _EXIT_CODE.search(_HEADER.split(output[:_LOOK], 1)[0])
    return None if code is None else int(code[1])


def _text_of(output: object) -> str:
    content = record(output).get("content")
    if isinstance(output, str) or isinstance(content, str):
        return text(output) or text(content)
    parts = items(output) or items(content)
    return "".join(text(record(part).get("text")) for part in parts)


def _object(output: str) -> dict[str, Any]:
    try:
        return record(msgspec.json.decode(output))
    except (msgspec.DecodeError, RecursionError):
        return {}


def _folders_of_agents(path: Path) -> Iterator[tuple[Path, str]]:
    """The folders that may hold the rollouts of sub-agents, with the pattern before their names."""
    yield path.parent, ""
    archive = "archived_sessions"
    home = path.parents[min(1 if path.parent.name == archive else 4, len(path.parents) - 1)]
    yield home / "sessions", "*/*/*/"
    yield home / archive, ""


def _begins_turn(line: Mapping[str, Any]) -> bool:
    kind = text(record(line.get("payload")).get("type"))
    return line.get("type") == "event_msg" and (kind in _BEGINS or kind == "user_message")


def _add_agent(
    run: SessionPrompt,
    path: Path,
    agent: str,
    seen: Seen,
    heard: dict[str, int],
    end_ns: int | None,
) -> None:
    """Add the work of a sub-agent: its rollout lies in the same folder, or another day's, or it was
    archived. What it is asked from `end_ns` on belongs to a later run, and what was `heard` to an
    earlier one.
    """
    if not _ID.fullmatch(agent):
        return
    for folder, pattern in _folders_of_agents(path):
        file = next(iter(sorted(folder.glob(f"{pattern}*{agent}.jsonl*"))), None)
        if file is not None:
            reader = _Reader(file, seen, into=run)
            start_ns = heard.get(agent, 0)
            for line in objects_of(file, None, seen.problems):
                at = time_ns(line.get("timestamp"))
                if end_ns is not None and at >= end_ns and _begins_turn(line):
                    break
                if at >= start_ns or text(line.get("type")) in _FACTS:
                    heard[agent] = max(heard.get(agent, 0), at + 1)
                    for _ in reader.take(line):
                        pass
            for inner in reader.started():
                _add_agent(run, file, inner, seen, heard, end_ns)
            return
    run.lacks_tools = run.lacks_models = True
