"""One attempt by a process: start it, give it the input, wait, and end what it leaves behind."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final, NamedTuple

from otel_reliability.experiments.tasks import Task

MAX_OUTPUT: Final = 16 * 1024 * 1024
"""Bytes of standard output that are kept; the rest is read and dropped."""
MAX_ERRORS: Final = 4 * 1024
"""Last bytes of standard error that are kept."""
CHUNK: Final = 64 * 1024
GRACE_S: Final = 5.0
"""Seconds that a process has to end after SIGTERM."""


class Ended(NamedTuple):
    """End of a process. `exit_code` is None where it ran into the time limit."""

    exit_code: int | None
    output: str
    errors: str
    start_ns: int
    end_ns: int

    @property
    def seconds(self) -> float:
        return (self.end_ns - self.start_ns) / 1e9


def arguments_of(command: Sequence[str], task: Task) -> tuple[list[str], bytes | None]:
    """Return the arguments with `{input}` and `{id}` replaced, and what standard input holds: the
    input, where no argument has it.

    >>> arguments_of(["agent", "--id={id}"], Task("7", "hello"))
    (['agent', '--id=7'], b'hello')
    """
    named = any("{input}" in part for part in command)
    parts = [part.replace("{id}", task.id).replace("{input}", task.input) for part in command]
    return parts, None if named else task.input.encode()


async def run_process(
    arguments: Sequence[str], given: bytes | None, env: Mapping[str, str], limit: float
) -> Ended:
    """Run a process to its end, or for `limit` seconds. It has a process group of its own, which
    is ended with it, also where this is cancelled. Raises `OSError` if it cannot be started.
    """
    start_ns = time.time_ns()
    process = await asyncio.create_subprocess_exec(
        *arguments,
        stdin=asyncio.subprocess.DEVNULL if given is None else asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=env,
        start_new_session=True,
    )
    outputs = asyncio.gather(_first(process.stdout, MAX_OUTPUT), _last(process.stderr, MAX_ERRORS))
    feeding = asyncio.create_task(_feed(process.stdin, given))
    exit_code: int | None = None
    try:
        async with asyncio.timeout(limit):
            exit_code = await process.wait()
    except TimeoutError:
        await _end(process)
    finally:
        feeding.cancel()
        _signal(process.pid, signal.SIGKILL)
    output, errors = await outputs
    end_ns = time.time_ns()
    return Ended(exit_code, _text(output), _text(errors), start_ns, end_ns)


async def _end(process: asyncio.subprocess.Process) -> None:
    """Ask a process to end, so that it may export its last spans; kill it if it does not."""
    _signal(process.pid, signal.SIGTERM)
    with suppress(TimeoutError):
        async with asyncio.timeout(GRACE_S):
            await process.wait()


def _signal(group: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


async def _feed(stream: asyncio.StreamWriter | None, given: bytes | None) -> None:
    if stream is None or given is None:
        return
    with suppress(BrokenPipeError, ConnectionResetError):
        stream.write(given)
        await stream.drain()
        stream.close()


async def _first(stream: asyncio.StreamReader | None, most: int) -> bytes:
    kept = bytearray()
    while stream is not None and (part := await stream.read(CHUNK)):
        kept += part[: most - len(kept)]
    return bytes(kept)


async def _last(stream: asyncio.StreamReader | None, most: int) -> bytes:
    kept = b""
    while stream is not None and (part := await stream.read(CHUNK)):
        kept = (kept + part)[-most:]
    return kept


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")
