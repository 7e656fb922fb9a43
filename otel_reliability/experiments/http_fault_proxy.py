"""A proxy for an MCP server over HTTP, which makes calls of its tools fail where an experiment asks
for it (`faults`). Everything else passes unchanged, streams of events as they come.

Source: Model Context Protocol, streamable HTTP transport: one JSON-RPC message, or a list of them,
in the body of a POST.
"""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Mapping, Sequence
from typing import Final

import aiohttp
from aiohttp import web

from otel_reliability.experiments.fault_proxy import answer, call_id
from otel_reliability.experiments.faults import SLOW_S, draw
from otel_reliability.service.addresses import HostPort

MAX_BODY: Final = 64 * 1024 * 1024
_HOP_BY_HOP: Final = frozenset(
    {
        "connection",
        "content-encoding",
        "content-length",
        "host",
        "keep-alive",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
"""Headers of one connection, which no proxy passes on (RFC 9110, 7.6.1), and those that this one
changes.
"""


class HttpFaultProxy:
    """Listens at an address for the messages of an agent, and passes them to the server at a URL,
    while the agent runs.
    """

    def __init__(self, url: str, listen: HostPort) -> None:
        self._url = url
        self._listen = listen

    async def run(self, agent: Sequence[str]) -> int:
        """Start the agent, and return its exit status. Raises `OSError` if it cannot be started, or
        if the address is in use.
        """
        app = web.Application(client_max_size=MAX_BODY)
        app.router.add_route("*", "/{path:.*}", self._pass)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        timeout = aiohttp.ClientTimeout(total=None)
        try:
            async with aiohttp.ClientSession(timeout=timeout, auto_decompress=True) as session:
                self._session = session
                await web.TCPSite(runner, *self._listen).start()
                process = await asyncio.create_subprocess_exec(*agent)
                return await _ended(process)
        finally:
            await runner.cleanup()

    async def _pass(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        id_ = call_id(body) if request.method == "POST" else None
        kind = None if id_ is None else draw()
        if kind == "slow":
            await asyncio.sleep(SLOW_S)
        elif kind is not None:
            return web.json_response(answer(id_, kind))
        headers = passed_on(request.headers)
        try:
            async with self._session.request(
                request.method, self._url, params=request.query, data=body, headers=headers
            ) as found:
                response = web.StreamResponse(status=found.status, headers=passed_on(found.headers))
                await response.prepare(request)
                async for part in found.content.iter_any():
                    await response.write(part)
                return response
        except aiohttp.ClientConnectionError as error:
            return web.Response(status=502, text=f"the MCP server cannot be reached: {error}")


def passed_on(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers that a proxy passes on.

    >>> passed_on({"Host": "a", "Mcp-Session-Id": "7"})
    {'Mcp-Session-Id': '7'}
    """
    return {key: value for key, value in headers.items() if key.lower() not in _HOP_BY_HOP}


async def _ended(process: asyncio.subprocess.Process) -> int:
    """Wait for a process; end it where this is cancelled."""
    try:
        return await process.wait()
    finally:
        if process.returncode is None:
            process.terminate()
            try:
                await asyncio.wait_for(process.wait(), SLOW_S)
            except (TimeoutError, subprocess.SubprocessError):
                process.kill()
