"""A proxy for an MCP server on standard input and output, which makes calls of its tools fail where
an experiment asks for it (`faults`). Everything else passes unchanged.

Source: Model Context Protocol, stdio transport: JSON-RPC messages, one a line.
"""

from __future__ import annotations

import json
import subprocess
import threading
import time
from collections.abc import Sequence
from typing import IO, Any, Final, cast

from otel_reliability.experiments.faults import MALFORMED, SLOW_S, draw

CALL: Final = "tools/call"
TIMED_OUT: Final = -32001
"""Code of a request that was not answered in time."""


class FaultProxy:
    """Starts a server and passes messages between it and a client, until either ends."""

    def __init__(self, command: Sequence[str], given: IO[bytes], out: IO[bytes]) -> None:
        self._command = command
        self._given = given
        self._out = out
        self._lock = threading.Lock()

    def run(self) -> int:
        """Return the exit status of the server. Raises `OSError` if it cannot be started."""
        with subprocess.Popen(  # noqa: S603  the command is the user's
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as server:
            assert server.stdin is not None  # noqa: S101  both are pipes
            assert server.stdout is not None  # noqa: S101
            threading.Thread(target=self._forward, args=(server.stdin,), daemon=True).start()
            for line in server.stdout:
                self._write(line)
            return server.wait()

    def _forward(self, server: IO[bytes]) -> None:
        """Pass the client's messages to the server, but for calls that fail here."""
        for line in self._given:
            id_ = call_id(line)
            kind = None if id_ is None else draw()
            if kind == "slow":
                time.sleep(SLOW_S)
            elif kind is not None:
                self._write(json.dumps(answer(id_, kind)).encode() + b"\n")
                continue
            server.write(line)
            server.flush()
        server.close()

    def _write(self, line: bytes) -> None:
        with self._lock:
            self._out.write(line)
            self._out.flush()


def call_id(line: bytes) -> int | str | None:
    """Return the id of a request that calls a tool; None for any other message.

    >>> call_id(b'{"jsonrpc": "2.0", "id": 3, "method": "tools/call"}')
    3
    """
    try:
        message: object = json.loads(line)
    except ValueError:
        return None
    if not isinstance(message, dict):
        return None
    fields = cast("dict[str, Any]", message)
    return fields.get("id") if fields.get("method") == CALL else None


def answer(id_: int | str | None, kind: str) -> dict[str, Any]:
    """Return the answer to a call with a fault.

    >>> answer(3, "empty")
    {'jsonrpc': '2.0', 'id': 3, 'result': {'content': []}}
    """
    head: dict[str, Any] = {"jsonrpc": "2.0", "id": id_}
    if kind == "timeout":
        return {**head, "error": {"code": TIMED_OUT, "message": "Request timed out"}}
    if kind == "empty":
        return {**head, "result": {"content": []}}
    text = MALFORMED if kind == "malformed" else "the tool failed (injected by an experiment)"
    content = [{"type": "text", "text": text}]
    return {**head, "result": {"content": content, "isError": kind == "error"}}
