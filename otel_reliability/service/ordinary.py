"""Requests without any agent's work, told apart by a look at their bytes.

A body that holds none of the markers below, under no scope of a convention and without a name of an operation, cannot hold a
span that any convention recognises, nor a session, an evaluation or a user's note. It is read for ids, parents and times only,
at a third of the cost; it is never skipped, since chains of parents run through its spans. A test holds this to the reader.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from otel_reliability.config import Settings
from otel_reliability.conventions.by_name import BEGINNINGS
from otel_reliability.conventions.reader import Reader
from otel_reliability.sources import otlp_guard, otlp_places
from otel_reliability.sources.markers import Markers

MARKERS: Final[Mapping[str, tuple[bytes, ...]]] = {
    "OpenInference": (b"openinference.span.kind",),
    "OpenLLMetry": (b"traceloop.span.kind", b"llm.request.type"),
    "Vercel AI SDK": (b"ai.operationId",),
    "OTel GenAI": (b"gen_ai.",),
    "MCP": (b"mcp.method.name",),
    "Claude Code": (),
    "span name": (),
}
"""What a span of each convention that is keyed on attributes must hold, beside what its name tells."""
SHARED: Final = (b"session.id", b"reliability.", b"evaluation.", b"annotation.")
"""What any span may hold that is needed of it: sessions, users' notes, judgements."""


class Ordinary:
    """Reads such requests."""

    def __init__(self, settings: Settings, reader: Reader) -> None:
        self._scope = reader.ordinary_scope
        mapped = settings.mapping
        keys = (*mapped.agent, *mapped.session, *mapped.task, *mapped.outcome, *mapped.confidence, *mapped.cost)
        own = (key for key in (*keys, settings.assembly.run_key) if key is not None)
        self._markers = Markers((*(one for found in MARKERS.values() for one in found), *SHARED, *map(str.encode, own)))
        self._is_possible = not settings.agent_key

    def passes(self, scope: str, keys: tuple[str, ...]) -> bool:
        """Whether spans of these keys are places, as long as their names, events and links tell nothing else."""
        return (
            self._is_possible
            and self._scope(scope) is not None
            and not self._markers.stand_in("\n".join(keys).encode())
        )

    def read(self, body: bytes) -> otlp_places.Places | None:
        """The spans of a request in protobuf, and which are malformed; None: it may hold an agent's work."""
        if not self._is_possible or self._markers.stand_in(body):
            return None
        otlp_guard.check(body)
        return otlp_places.decode(body, self._scope, BEGINNINGS)
