"""`POST /api/v1/outcomes`: outcomes that became known after their runs."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final, cast

from aiohttp import web

from otel_reliability.model.outcomes import BadOutcome, read_outcome
from otel_reliability.model.span import Evaluation
from otel_reliability.service.decoded import Decoded
from otel_reliability.service.state_changes import StateChanges

PATH: Final = "/api/v1/outcomes"
MAX_OUTCOMES: Final = 10_000
"""Outcomes of one request."""


class OutcomeReports:
    """Receives outcomes: one object, or `{"outcomes": [...]}`. All are accepted, or none; the
    answer says of each how many runs it has reached.

    `without_key` hashes business keys; `wall` gives the Unix time in nanoseconds.
    """

    def __init__(
        self,
        changes: StateChanges,
        without_key: Callable[[Evaluation], Evaluation],
        wall: Callable[[], int],
    ) -> None:
        self._changes = changes
        self._without_key = without_key
        self._wall = wall

    def routes(self) -> list[web.RouteDef]:
        return [web.post(PATH, self._receive)]

    async def _receive(self, request: web.Request) -> web.Response:
        self._changes.check(request)
        if request.content_type != "application/json":
            raise web.HTTPUnsupportedMediaType(reason="send application/json")
        evaluations = self._read(await request.read())
        ack = await self._changes.commit(Decoded(evaluations=evaluations))
        states = [{"state": "reached" if runs else "unknown", "runs": runs} for runs in ack.reached]
        unknown = sum(not runs for runs in ack.reached)
        return web.json_response(
            {"reached": len(states) - unknown, "unknown": unknown, "outcomes": states}
        )

    def _read(self, body: bytes) -> tuple[Evaluation, ...]:
        """Return the outcomes of a body."""
        now_ns = self._wall()
        found: list[Evaluation] = []
        for at, report in enumerate(_reports(body)):
            try:
                found.append(self._without_key(read_outcome(report, now_ns)))
            except BadOutcome as error:
                reason = f"outcome {at}: {error}; none was accepted"
                raise web.HTTPBadRequest(reason=reason) from None
        return tuple(found)


def _reports(body: bytes) -> list[Mapping[str, Any]]:
    """Return the reports of a body: those in `outcomes`, or the object itself."""
    try:
        parsed: object = json.loads(body)
    except ValueError:
        raise web.HTTPBadRequest(reason="the body is no JSON") from None
    listed: object = parsed
    if isinstance(parsed, dict):
        whole = cast("dict[str, object]", parsed)
        listed = whole.get("outcomes", [whole])
    if not isinstance(parsed, dict) or not isinstance(listed, list):
        raise web.HTTPBadRequest(reason="send an object, or a list of objects in outcomes")
    found = cast("list[object]", listed)
    if not all(isinstance(each, dict) for each in found):
        raise web.HTTPBadRequest(reason="send an object, or a list of objects in outcomes")
    if len(found) > MAX_OUTCOMES:
        raise web.HTTPBadRequest(reason=f"send at most {MAX_OUTCOMES:,} outcomes at once")
    return cast("list[Mapping[str, Any]]", found)
