"""`DELETE /api/v1/agents/{service}/{agent}`: remove an agent and everything that is kept of it."""

from __future__ import annotations

import asyncio
from concurrent.futures import Executor

from aiohttp import web

from otel_reliability.service.api import Agents, UnknownAgent
from otel_reliability.service.decoded import Decoded
from otel_reliability.service.state_changes import StateChanges


class AgentRemoval:
    """Removes the agents of a service and a name; the query may name a namespace and an
    environment. Runs that end later make such an agent again.
    """

    def __init__(self, agents: Agents, threads: Executor, changes: StateChanges) -> None:
        self._agents = agents
        self._threads = threads
        self._changes = changes

    def routes(self) -> list[web.RouteDef]:
        return [web.delete("/api/v1/agents/{service:[^/]+}/{agent:[^/]+}", self._remove)]

    async def _remove(self, request: web.Request) -> web.Response:
        self._changes.check(request)
        loop = asyncio.get_running_loop()
        try:
            keys = await loop.run_in_executor(self._threads, self._agents.keys, request)
        except UnknownAgent as error:
            raise web.HTTPNotFound(reason=str(error)) from None
        await self._changes.commit(Decoded(removed=tuple(keys)))
        return web.json_response({"removed": len(keys)})
