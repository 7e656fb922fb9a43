"""Parent chains: from a span up to the unit it belongs to, to a gap, or to a top (DESIGN §3.2a, §3.7)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from otel_reliability.assembly.unit import Place, Trace, Unit
from otel_reliability.model.span import AgentSpan, SpanId, SpanRef, TraceId

LONG: Final = 32
"""Steps from which a chain of other spans is remembered, and walked with an eye on cycles."""


class Above(NamedTuple):
    """What stands above a span: a `unit` (by its span `member`), or a `missing` parent, or nothing: the span is a top.

    `anchor` is what stands for the place: the missing span where one is, else the topmost span known.
    """

    unit: Unit | None
    member: SpanId | None
    missing: SpanRef | None
    remote: bool
    anchor: SpanRef


def parent_of(span: AgentSpan) -> SpanRef | None:
    """What a span hangs on: its parent, or the link of a messaging hop."""
    if span.parent_id is not None:
        return (span.trace_id, span.parent_id)
    return span.link


class Chains:
    """Walks up through the places of other spans. Long chains are remembered, so that no walk is made twice."""

    def __init__(self, traces: dict[TraceId, Trace]) -> None:
        self._traces = traces

    def above(self, span: AgentSpan) -> Above:
        """What stands above a span."""
        return self.climb(parent_of(span), span.parent_remote, (span.trace_id, span.span_id))

    def climb(self, parent: SpanRef | None, remote: bool | None, anchor: SpanRef) -> Above:
        """What stands at or above a parent. A cycle of parents ends where it closes, as a gap."""
        start, steps = parent, 0
        seen: set[SpanRef] = set()
        while parent is not None:
            trace = self._traces.get(parent[0])
            unit = trace.homes.get(parent[1]) if trace is not None else None
            if unit is not None:
                self._remember(start, anchor, steps)
                return Above(unit.current(), parent[1], None, False, anchor)
            place = trace.places.get(parent[1]) if trace is not None else None
            if trace is None or place is None or parent in seen:
                self._remember(start, anchor, steps)
                return Above(None, None, parent, remote is True, parent)
            anchor, steps = parent, steps + 1
            if steps > LONG:
                seen.add(parent)
            further = self._further(trace, parent, seen)
            if further is not None:
                anchor, place = further
                seen.add(anchor)
            parent, remote = place.parent, place.parent_remote
        self._remember(start, anchor, steps)
        return Above(None, None, None, False, anchor)

    def places_above(self, span: AgentSpan) -> Iterator[tuple[SpanRef, Place]]:
        """The nearest other spans above a span, in one stretch, bottom up."""
        parent = parent_of(span)
        for _ in range(LONG):
            trace = self._traces.get(parent[0]) if parent is not None else None
            place = trace.places.get(parent[1]) if trace is not None and parent is not None else None
            if place is None or parent is None:
                return
            yield parent, place
            parent = place.parent

    def _further(self, trace: Trace, parent: SpanRef, seen: set[SpanRef]) -> tuple[SpanRef, Place] | None:
        """Where a walk that passed here before ended."""
        shortcut = trace.shortcuts.get(parent[1])
        if shortcut is None or shortcut in seen:
            return None
        end = self._traces.get(shortcut[0])
        place = end.places.get(shortcut[1]) if end is not None else None
        return None if place is None else (shortcut, place)

    def _remember(self, start: SpanRef | None, last: SpanRef, steps: int) -> None:
        trace = self._traces.get(start[0]) if steps > LONG and start is not None and start != last else None
        if trace is not None and start is not None:
            trace.shortcuts[start[1]] = last
