"""Parent chains: from a span up to the unit it belongs to, to a gap, or to a top."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from otel_reliability.assembly.bundle import Traces
from otel_reliability.assembly.unit import LONG, Place, Unit
from otel_reliability.model.span import AgentSpan, SpanRef


class Above(NamedTuple):
    """What stands above a span: a `unit` (by its span `member`), or a `missing` parent, or nothing: the span is a top.

    `anchor` is what stands for the place: the missing span where one is, else the topmost span known.
    """

    unit: Unit | None
    member: SpanRef | None
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

    def __init__(self, traces: Traces) -> None:
        self._traces = traces

    def above(self, span: AgentSpan) -> Above:
        """What stands above a span."""
        return self.climb(parent_of(span), span.parent_remote, (span.trace_id, span.span_id))

    def climb(self, parent: SpanRef | None, remote: bool | None, anchor: SpanRef) -> Above:
        """What stands at or above a parent. A cycle of parents ends at its least span, as at a gap."""
        walked: list[SpanRef] = []
        seen: set[SpanRef] = set()
        while parent is not None:
            trace = self._traces.find(parent[0])
            unit = trace.homes.get(parent[1]) if trace is not None else None
            if unit is not None:
                self._remember(walked, anchor)
                return Above(unit.current(), parent, None, False, anchor)
            place = trace.places.get(parent[1]) if trace is not None else None
            if trace is None or place is None or parent[1] in trace.cut:
                self._remember(walked, anchor)
                is_remote = remote is True and place is None  # a cycle is cut at a span that is here
                return Above(None, None, parent, is_remote, parent)
            if parent in seen:
                if self._cut_cycle(parent):
                    return self.climb(walked[0], remote, anchor)
                return Above(None, None, parent, False, parent)
            walked.append(parent)
            if len(walked) > LONG:
                seen.add(parent)
            anchor = trace.shortcuts.get(parent[1], parent)
            if anchor is not parent:
                end = self._traces.find(anchor[0])
                place = end.places.get(anchor[1], place) if end is not None else place
            parent, remote = place.parent, place.parent_remote
        self._remember(walked, anchor)
        return Above(None, None, None, False, anchor)

    def _cut_cycle(self, start: SpanRef) -> bool:
        """A walk has come back to a place: the least span of its cycle is where it is cut from now on."""
        least = here = start
        while (here := self._parent_place(here)) != start:
            if here is None:
                return False
            least = min(least, here)
        self._traces[least[0]].cut |= {least[1]}
        return True

    def _parent_place(self, ref: SpanRef) -> SpanRef | None:
        """The other span above another span, None where there is none."""
        trace = self._traces.find(ref[0])
        place = trace.places.get(ref[1]) if trace is not None and ref[1] not in trace.cut else None
        above = place.parent if place is not None else None
        over = self._traces.find(above[0]) if above is not None else None
        return above if over is not None and above is not None and above[1] in over.places else None

    def places_above(self, span: AgentSpan) -> Iterator[tuple[SpanRef, Place]]:
        """The nearest other spans above a span, in one stretch, bottom up."""
        parent = parent_of(span)
        for _ in range(LONG):
            trace = self._traces.find(parent[0]) if parent is not None else None
            place = trace.places.get(parent[1]) if trace is not None and parent is not None else None
            if place is None or parent is None:
                return
            yield parent, place
            parent = place.parent

    def _remember(self, walked: list[SpanRef], last: SpanRef) -> None:
        """Where a long walk led, noted along the way, so that none is made twice."""
        if len(walked) > LONG:
            for ref in walked[: -LONG // 2 : LONG // 2]:
                if ref != last:
                    self._traces[ref[0]].shortcuts[ref[1]] = last
