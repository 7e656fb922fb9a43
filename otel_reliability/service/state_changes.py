"""Requests of the API that change state: who may send them, and how they reach the writer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from urllib.parse import urlsplit

from aiohttp import web

from otel_reliability.service.answers import overload
from otel_reliability.service.decoded import Decoded
from otel_reliability.service.health import Readiness
from otel_reliability.service.writer import Ack


class StateChanges:
    """Hands requests to the writer, which answers within `patience` seconds.

    A page of another origin can make a browser send a request, so such requests are refused; the
    token and the host are checked for every request.
    """

    def __init__(
        self, commit: Callable[[Decoded], Future[Ack]], readiness: Readiness, patience: float
    ) -> None:
        self._commit = commit
        self._readiness = readiness
        self._patience = patience

    def check(self, request: web.Request) -> None:
        """Raise the refusal of a request of another origin, or while the service is not ready."""
        origin = request.headers.get("Origin")
        if origin is not None and urlsplit(origin).netloc != request.host:
            raise web.HTTPForbidden(reason="only a page of this service may do this")
        self._readiness.check()

    async def commit(self, request: Decoded) -> Ack:
        """Have a request committed, and return the answer. Raise `Refused`."""
        committed = self._commit(request)
        try:
            async with asyncio.timeout(self._patience):
                return await asyncio.wrap_future(committed)
        except TimeoutError:
            committed.cancel()
            raise overload("commit_timeout", f"not committed within {self._patience:g} s") from None
