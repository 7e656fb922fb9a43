"""Session files of a coding agent, in the form of Claude Code's, as large as wanted."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

MB: Final = 1_000_000
PROMPTS: Final = 20
"""Prompts of a session."""
TOOLS: Final = ("Grep", "Read", "Read", "Edit", "Bash")
"""The calls of a prompt."""
RESULT: Final = "def total(prices):\n    return sum(prices)\n" * 64
"""The result of a call, written twice: so a session has 3 kB for each span that comes of it. Those
that were recorded have 7, with files of a few lines.
"""


def write(folder: Path, megabytes: int) -> Path:
    """Write sessions of so many megabytes below a folder; return it."""
    project = folder / ".claude" / "projects" / "-home-me-shop"
    project.mkdir(parents=True)
    written = number = 0
    while written < megabytes * MB:
        text = "".join(map(_line, _session(number)))
        (project / f"{number:08x}-0000-4000-8000-000000000000.jsonl").write_text(text)
        written += len(text)
        number += 1
    return folder


def _line(record: dict[str, Any]) -> str:
    return json.dumps(record, separators=(",", ":")) + "\n"


def _session(number: int) -> Iterator[dict[str, Any]]:
    """Yield the records of a session."""
    session = f"{number:08x}-0000-4000-8000-000000000000"
    moment = datetime(2026, 1, 1, tzinfo=UTC) + number * timedelta(hours=1)
    for position, (kind, message) in enumerate(_messages(session)):
        at = moment + position * timedelta(seconds=5)
        yield {
            "parentUuid": f"{session}:{position - 1}",
            "isSidechain": False,
            "userType": "external",
            "cwd": "/home/me/shop",
            "sessionId": session,
            "version": "2.1.332",
            "gitBranch": "main",
            "type": "user" if kind == "result" else kind,
            "message": message,
            "uuid": f"{session}:{position}",
            "timestamp": at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            **({"toolUseResult": {"stdout": RESULT}} if kind == "result" else {}),
        }


def _messages(session: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for prompt in range(PROMPTS):
        yield "user", {"role": "user", "content": "Make the report faster, and run the tests."}
        for at, tool in enumerate(TOOLS):
            call = f"toolu_{session}_{prompt}_{at}"
            given = {"command": "npm test"} if tool == "Bash" else {"file_path": f"src/{at}.py"}
            used = {"type": "tool_use", "id": call, "name": tool, "input": given}
            yield "assistant", _answer(f"msg_{call}", used, "tool_use")
            result = {"type": "tool_result", "tool_use_id": call, "content": RESULT}
            yield "result", {"role": "user", "content": [result]}
        text = {"type": "text", "text": "It is faster now, and the tests pass."}
        yield "assistant", _answer(f"msg_{session}_{prompt}", text, "end_turn")


def _answer(name: str, block: dict[str, Any], reason: str) -> dict[str, Any]:
    usage = {"input_tokens": 90, "cache_read_input_tokens": 9_000, "output_tokens": 40}
    return {
        "id": name,
        "role": "assistant",
        "model": "claude-opus-4-6",
        "content": [block],
        "stop_reason": reason,
        "usage": usage,
    }
