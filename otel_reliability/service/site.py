"""The pages: `/` for all agents, `/agents/{service}/{agent}` for one and its runs below it,
`/alerts` is the runbook.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from concurrent.futures import Executor
from functools import partial
from typing import Final, Generic, TypeVar
from urllib.parse import urlsplit

from aiohttp import web

from otel_reliability.config import WindowSettings
from otel_reliability.engine import Engine
from otel_reliability.model.run import AgentKey
from otel_reliability.read_view import ReadView
from otel_reliability.report.proposal import UnknownSpans
from otel_reliability.report.text import seconds
from otel_reliability.report.view import AgentView
from otel_reliability.service.health import RECOVERING, Readiness
from otel_reliability.service.proxy import BasePath, prefixed
from otel_reliability.ui import rendering
from otel_reliability.ui.agent_list import (
    UNNAMED,
    AgentLine,
    TableChoice,
    address,
    id_of,
    line_of,
    list_of,
)
from otel_reliability.ui.known_groups import KnownGroups
from otel_reliability.ui.live import Histories, live_view, snapshot
from otel_reliability.ui.rendering import Endpoints
from otel_reliability.ui.runs import MAX_COMPARED, RunChoice, RunStore

T = TypeVar("T")

CHUNK: Final = 10
"""Agents that are read in one turn of the engine: then others may have theirs."""
LEAST_AGE: Final = 1.0
"""Seconds for which a value is valid, however many clients read it."""
SHARE: Final = 4.0
"""A value is valid for so many times as long as it took to make: pages never take more than a fifth
of a processor.
"""
MOST_KEPT: Final = 64
"""Agents whose page is kept for a moment."""
AGENT: Final = "/agents/{service:[^/]+}/{agent:[^/]+}"

POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
"""Nothing runs or is fetched but the files that pages bring along, whatever a name may say."""
_RECOVERING: Final = "State is being loaded after a restart. This page reloads by itself."
HEADERS: Final[Mapping[str, str]] = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-cache",
}


class TimedCache(Generic[T]):
    """Keeps what is costly to make for a moment; one thread at a time uses it."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._made: OrderedDict[Hashable, tuple[T, float]] = OrderedDict()
        """Each value, and the time until which it is valid."""

    def of(self, name: Hashable, make: Callable[[], T]) -> T:
        """Return the value of that name; make it if it is absent or no longer valid."""
        begun = time.monotonic()
        if name in self._made:
            known, until = self._made[name]
            if begun < until:
                return known
        found = make()
        now = time.monotonic()
        self._made[name] = found, now + max(LEAST_AGE, SHARE * (now - begun))
        self._made.move_to_end(name)
        while len(self._made) > self._most:
            self._made.popitem(last=False)
        return found

    def clear(self) -> None:
        self._made.clear()


class Site:
    """Makes pages. `histories` hold scores over time; `runs` finds whole runs; `thread` makes
    pages, one at a time; `endpoints` returns where spans can be sent, for a client that knows this
    machine by a name; `changed` is called when something is to be stored.
    """

    def __init__(
        self,
        engine: Engine,
        histories: Histories,
        groups: KnownGroups,
        runs: RunStore,
        unknown: UnknownSpans,
        thread: Executor,
        readiness: Readiness,
        endpoints: Callable[[str], Endpoints],
        changed: Callable[[], None],
        base: BasePath,
        arrived: Callable[[], Sequence[str]],
    ) -> None:
        self._base = base
        self._arrived = arrived
        self._engine = engine
        self._histories = histories
        self._groups = groups
        self._runs = runs
        self._unknown = unknown
        self._thread = thread
        self._readiness = readiness
        self._endpoints = endpoints
        self._changed = changed
        self._lines: TimedCache[list[AgentLine]] = TimedCache(1)
        self._views: TimedCache[AgentView | None] = TimedCache(MOST_KEPT)
        self._compared: TimedCache[str] = TimedCache(MOST_KEPT)
        self._window = window_words(engine.settings.windows[0])
        self._trace_url = engine.settings.ui.trace_url

    def routes(self) -> list[web.RouteDef]:
        pages: dict[str, Callable[[web.Request], str | None]] = {
            "/": self._fleet_page,
            "/alerts": lambda _: rendering.alerts_page(),
            AGENT: partial(self._of_agent, self._agent_page),
            f"{AGENT}/runs": partial(self._of_agent, self._runs_page),
            f"{AGENT}/runs/{{run}}": partial(self._of_agent, self._run_page),
            f"{AGENT}/compare": partial(self._of_agent, self._compare_page),
        }
        return [
            *(web.get(path, partial(self._answer, page)) for path, page in pages.items()),
            web.post(f"{AGENT}/acknowledge", self._acknowledge),
            web.post(f"{AGENT}/group", self._name_group),
            web.get("/static/{name:[a-zA-Z0-9./]+}", self._asset),
        ]

    async def _acknowledge(self, request: web.Request) -> web.Response:
        """Note that a reader has seen the last change."""
        return await self._changing(request, self._histories.acknowledge)

    async def _name_group(self, request: web.Request) -> web.Response:
        """Give a kind of request a name."""
        form = await request.post()
        group, name = (str(form.get(field, "")) for field in ("group", "name"))
        return await self._changing(request, lambda key: self._groups.rename(key, group, name))

    async def _changing(
        self, request: web.Request, change: Callable[[AgentKey], object]
    ) -> web.Response:
        """Change something about an agent, and show its page. Only pages of this service may ask
        for it.
        """
        if urlsplit(request.headers.get("Origin", "")).netloc != request.host:
            raise web.HTTPForbidden(reason="only a page of this service may do this")
        loop = asyncio.get_running_loop()
        key = await loop.run_in_executor(self._thread, self._meant, request)
        if key is None:
            raise web.HTTPNotFound

        def note(_: ReadView) -> None:
            change(key)

        await loop.run_in_executor(self._thread, self._engine.read, note)
        self._changed()
        self._views.clear()
        where = self._base.of(request) + address(key)
        return web.Response(status=303, headers={**HEADERS, "Location": where})

    async def _asset(self, request: web.Request) -> web.Response:
        asset = rendering.assets().get(request.match_info["name"])
        if asset is None:
            raise web.HTTPNotFound
        named = request.query_string == asset.digest
        kept = f"public, max-age={365 * 86_400}, immutable" if named else "no-cache"
        headers = {**HEADERS, "Content-Type": asset.kind, "Cache-Control": kept}
        return web.Response(body=asset.body, headers=headers)

    async def _answer(
        self, page: Callable[[web.Request], str | None], request: web.Request
    ) -> web.Response:
        """Answer with a page; `page` returns None where what the request names is not there."""
        status = 200
        if RECOVERING in self._readiness.reasons:
            status = 503
            text = rendering.message_page("Not yet", _RECOVERING, poll=rendering.POLL)
        else:
            text = await asyncio.get_running_loop().run_in_executor(self._thread, page, request)
        if text is None:
            status = 404
            text = rendering.message_page("Not found", "No such agent or run is kept here.")
        body = prefixed(text, self._base.of(request)).encode("utf-8", "replace")
        tag = f'"{hashlib.blake2b(body, digest_size=10).hexdigest()}"'
        headers = {**HEADERS, "ETag": tag}
        if status == 200 and request.headers.get("If-None-Match") == tag:
            return web.Response(status=304, headers=headers)
        response = web.Response(
            status=status,
            body=body,
            headers={**headers, "Content-Type": "text/html; charset=utf-8"},
        )
        response.enable_compression()
        return response

    # --- On the thread of its own -----------------------------------------------------------------

    def _fleet_page(self, request: web.Request) -> str:
        agents = list_of(self._lines.of("", self._read_lines), TableChoice.of(request.query))
        endpoints = self._endpoints(request.url.host or "")
        unknown = self._unknown.lines()
        arrived = () if agents.total else self._arrived()
        return rendering.agents_page(
            agents, endpoints, window=self._window, unknown=unknown, arrived=arrived
        )

    def _of_agent(
        self, page: Callable[[AgentView, web.Request], str | None], request: web.Request
    ) -> str | None:
        key = self._meant(request)
        view = None if key is None else self._views.of(key, partial(self._read_view, key))
        return None if view is None else page(view, request)

    def _agent_page(self, agent: AgentView, request: web.Request) -> str:
        return rendering.agent_page(agent, window=self._window, trace_url=self._trace_url)

    def _runs_page(self, agent: AgentView, request: web.Request) -> str:
        choice = RunChoice.of(request.query)
        runs = self._runs.last(agent.key, RunChoice(group=choice.group))
        return rendering.runs_page(agent, runs, choice, trace_url=self._trace_url)

    def _run_page(self, agent: AgentView, request: web.Request) -> str | None:
        wanted = request.match_info["run"]
        run = next(
            (run for run in self._runs.last(agent.key, most=MAX_COMPARED) if run.run_id == wanted),
            None,
        )
        return None if run is None else rendering.run_page(agent, run, trace_url=self._trace_url)

    def _compare_page(self, agent: AgentView, request: web.Request) -> str:
        make = partial(
            rendering.compare_page, agent, self._runs, request.query, self._engine.settings
        )
        return self._compared.of((agent.key, request.query_string), make)

    def _meant(self, request: web.Request) -> AgentKey | None:
        """The agent with that id; else the first of that service and name. A name that no address
        can hold has its id alone.
        """
        service, agent, id_ = (
            *map(request.match_info.get, ("service", "agent")),
            request.query.get("id", ""),
        )
        keys = self._keys()
        named = [
            key
            for key in keys
            if (service, agent) == (key.service_name or UNNAMED, key.agent or UNNAMED)
        ]
        chosen = (key for key in (*named, *keys) if id_of(key) == id_) if id_ else iter(())
        return next(chosen, None) or next(iter(named), None)

    def _keys(self) -> list[AgentKey]:
        return self._engine.read(lambda view: view.keys()) or []

    def _read_lines(self) -> list[AgentLine]:
        """The line of every agent, some at a time."""
        keys = self._keys()
        found = list[AgentLine]()
        for key in keys:
            self._engine.load_agent(key)
        for start in range(0, len(keys), CHUNK):
            found += self._engine.read(partial(self._some_lines, keys[start : start + CHUNK])) or []
        return found

    def _some_lines(self, keys: list[AgentKey], view: ReadView) -> list[AgentLine]:
        states = ((key, view.agent(key)) for key in keys)
        return [
            line_of(state, self._histories.of(key), changed=self._histories.is_changed(key))
            for key, state in states
            if state is not None
        ]

    def _read_view(self, key: AgentKey) -> AgentView | None:
        self._engine.load_agent(key)
        found = self._engine.read(lambda view: snapshot(view, key, self._histories, self._groups))
        if found is None:
            return None
        source = found._replace(left_out=0, samples=self._runs.samples(key))
        return live_view(source, self._engine.settings)


def window_words(window: WindowSettings) -> str:
    """Which runs count, in words.

    >>> window_words(WindowSettings(last=100)), window_words(WindowSettings(period=3600.0, last=5))
    ('last 100 runs', 'last 5 runs of the last 1 h')
    """
    runs = "" if window.last is None else f"last {window.last:,} runs"
    time_ = "" if not window.period else f"last {seconds(window.period)}"
    return f"{runs} of the {time_}" if runs and time_ else runs or f"runs of the {time_}"
