"""Writers of small session files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from otel_reliability.model.run import Run
from tests.corpora.session_files import runs_in

SESSION = "11111111-1111-4111-8111-111111111111"


def at(second: float) -> str:
    return f"2026-03-01T10:{int(second) // 60:02}:{second % 60:06.3f}Z"


def in_order(*folders: Path) -> list[Run]:
    return sorted(runs_in(*folders), key=lambda run: run.start_ns)


def write(path: Path, records: Sequence[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(each) + "\n" for each in records))


class Claude:
    """Writes a session file of Claude Code, a record a second."""

    def __init__(self, home: Path, session: str = SESSION) -> None:
        self.path = home / ".claude/projects/-home-me-shop" / f"{session}.jsonl"
        self.records: list[dict[str, Any]] = []
        self.session = session

    def record(self, kind: str, **more: object) -> Claude:
        number = len(self.records)
        self.records.append(
            {
                "type": kind,
                "uuid": f"{self.session[:8]}-{number}",
                "sessionId": self.session,
                "timestamp": at(number),
                "cwd": "/home/me/shop",
                "version": "2.1.332",
                **more,
            }
        )
        write(self.path, self.records)
        return self

    def user(self, content: object, **more: object) -> Claude:
        return self.record("user", message={"role": "user", "content": content}, **more)

    def answer(self, *blocks: dict[str, Any], name: str | None = None, **more: object) -> Claude:
        message = {
            "id": name or f"msg_{self.session[:8]}_{len(self.records)}",
            "role": "assistant",
            "model": "claude-opus-4-6",
            "content": list(blocks) or [{"type": "text", "text": "Done."}],
            "stop_reason": "end_turn",
            "usage": {"input_tokens": 100, "output_tokens": 10},
        }
        return self.record("assistant", message={**message, **more})

    def call(self, call_id: str, result: str, *, name: str = "Bash", error: bool = True) -> Claude:
        used = {"type": "tool_use", "id": call_id, "name": name, "input": {"command": call_id}}
        self.answer(used)
        return self.result(call_id, result, error=error)

    def result(self, call_id: str, result: str, *, error: bool = True) -> Claude:
        block = {"type": "tool_result", "tool_use_id": call_id, "content": result}
        return self.user([block | ({"is_error": True} if error else {})])


class Codex:
    """Writes a rollout of Codex before turns had ids, a line a second."""

    def __init__(self, home: Path, session: str, begin: float = 0) -> None:
        name = f"rollout-2026-03-01T10-00-00-{session}.jsonl"
        self.path = home / ".codex/sessions/2026/03/01" / name
        self.records: list[dict[str, Any]] = []
        self.begin = begin
        self.line("session_meta", id=session, cwd="/home/me/shop", cli_version="0.98.0")

    def line(self, kind: str, **payload: object) -> Codex:
        moment = at(self.begin + len(self.records))
        self.records.append({"timestamp": moment, "type": kind, "payload": payload})
        write(self.path, self.records)
        return self

    def prompt(self, said: str) -> Codex:
        return self.line("event_msg", type="user_message", message=said)

    def call(self, call_id: str, output: str) -> Codex:
        self.line("response_item", type="function_call", name="shell", call_id=call_id)
        return self.line(
            "response_item", type="function_call_output", call_id=call_id, output=output
        )

    def tokens(self, total: int) -> Codex:
        usage = {"input_tokens": 100, "output_tokens": 10}
        totals = {"input_tokens": 100 * total, "output_tokens": 10 * total}
        info = {"last_token_usage": usage, "total_token_usage": totals}
        return self.line("event_msg", type="token_count", info=info)


def gemini(home: Path, messages: Sequence[dict[str, Any]]) -> None:
    header = {"sessionId": SESSION, "projectHash": "p", "startTime": at(0), "kind": "main"}
    timed = [
        {"id": f"m{number}", "timestamp": at(number + 1), **each}
        for number, each in enumerate(messages)
    ]
    write(home / ".gemini/tmp/shop/chats/session-2026-03-01T10-00-11111111.jsonl", [header, *timed])


GEMINI_PROMPT = {"type": "user", "content": [{"text": "Run it."}]}


TOKENS = {"input": 90, "output": 10, "total": 100}


def gemini_call(name: str, output: str, **more: object) -> dict[str, Any]:
    response = {"functionResponse": {"response": {"output": output}}}
    given = {"id": "c1", "name": name, "status": "success", "timestamp": at(2), **more}
    return {"type": "gemini", "content": "", "tokens": TOKENS, "model": "m"} | {
        "toolCalls": [{**given, "result": [response]}]
    }


def qwen(
    home: Path,
    calls: Sequence[tuple[str, str]],
    prompt: str = "Run it.",
    session: str = SESSION,
) -> None:
    records: list[dict[str, Any]] = [
        {"type": "user", "message": {"role": "user", "parts": [{"text": prompt}]}}
    ]
    for name, output in calls:
        asked: dict[str, object] = {"id": "call_0", "name": name, "args": {}}
        called = {"functionCall": asked}
        usage = {"promptTokenCount": 90, "candidatesTokenCount": 10}
        response = {"functionResponse": {"id": "call_0", "response": {"output": output}}}
        records += [
            {"type": "assistant", "message": {"parts": [called]}, "usageMetadata": usage},
            {
                "type": "tool_result",
                "message": {"parts": [response]},
                "toolCallResult": {"callId": "call_0", "status": "success"},
            },
        ]
    common = {"sessionId": session, "cwd": "/home/me/shop", "version": "0.15.0"}
    timed = [
        {"uuid": f"{session[0]}{number}", "timestamp": at(number), **common, **each}
        for number, each in enumerate(records)
    ]
    write(home / ".qwen/projects/-home-me-shop/chats" / f"{session}.jsonl", timed)


def opencode(home: Path, sessions: int, started: int) -> None:
    """Sessions as files, with calls that all have one id."""
    storage = home / ".local/share/opencode/storage"

    def put(path: str, value: dict[str, Any]) -> None:
        file = storage / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(value))

    for number in range(sessions):
        name = f"ses_{number}"
        begin = started + number * 60_000
        facts = {"id": name, "projectID": "p", "directory": "/home/me/shop", "version": "1.1.11"}
        put(f"session/p/{name}.json", {**facts, "time": {"created": begin}})
        times = {"created": begin}
        put(f"message/{name}/msg_1.json", {"id": f"{name}_1", "role": "user", "time": times})
        put(f"part/{name}_1/prt_1.json", {"type": "file", "filename": "a.png"})
        answer = {"id": f"{name}_2", "role": "assistant", "modelID": "m"}
        put(f"message/{name}/msg_2.json", {**answer, "time": {"created": begin + 1}})
        state: dict[str, object] = {
            "status": "completed",
            "output": "it says: User aborted the command",
            "time": {"start": begin + 2, "end": begin + 3},
        }
        called: dict[str, object] = {
            "type": "tool",
            "callID": "call_0",
            "tool": "read",
            "state": state,
        }
        put(f"part/{name}_2/prt_1.json", called)
        spent = {"input": 90, "output": 10}
        put(f"part/{name}_2/prt_2.json", {"type": "step-finish", "tokens": spent, "id": "f"})
