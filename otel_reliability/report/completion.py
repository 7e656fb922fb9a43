"""The traces that are complete at a line of a recording, since no later line names them."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import Final

from otel_reliability.model.span import RawSpan, TraceId
from otel_reliability.sources.mentions import Mentions

MOST_LINKED: Final = 100_000
"""Traces with links between them that are remembered; beyond, no trace counts as complete any more."""


class Completion:
    """The traces that have begun, by the line that names them last.

    A trace that a link may join to another is never complete: its linked spans can be on any line.
    """

    def __init__(self, mentions: Mentions) -> None:
        self._mentions = mentions
        self._ends: list[tuple[int, TraceId]] = []
        self._begun: set[TraceId] = set()
        self._linked: set[TraceId] = set()
        self._is_sound = True

    def before(self, line: int) -> list[TraceId]:
        """Return the traces that are complete when this line begins, each once."""
        found: list[TraceId] = []
        while self._ends and self._ends[0][0] < line and self._is_sound:
            trace_id = heapq.heappop(self._ends)[1]
            self._begun.discard(trace_id)
            if trace_id not in self._linked:
                found.append(trace_id)
        return found

    def see(self, line: int, spans: Sequence[RawSpan]) -> None:
        """Record the spans of this line."""
        for span in spans:
            if span.links and span.parent_id is None and len(span.links) == 1:
                self._linked.update((span.trace_id, span.links[0][0]))
        fresh = list({span.trace_id for span in spans} - self._begun)
        ends = self._mentions.last(fresh) if fresh else ()
        if min(ends, default=line) < line or len(self._linked) > MOST_LINKED:
            self._is_sound = False  # the file has changed since it was scanned, or hangs together all over
            self._ends, self._begun, self._linked = [], set(), set()
        if self._is_sound:
            self._begun.update(fresh)
            for end, trace_id in zip(ends, fresh, strict=True):
                heapq.heappush(self._ends, (end, trace_id))
