"""Bundles of several runs: agents that call agents, all beneath one. They are one unit, whatever order their spans came in."""

from __future__ import annotations

from typing import Final, NamedTuple

from otel_reliability.assembly.build import Unit
from otel_reliability.assembly.bundle import Bundle
from otel_reliability.model.span import AgentSpan, Kind, SpanId

_AGENT, _WORKFLOW = Kind.AGENT, Kind.WORKFLOW
_MOST_PLACES: Final = 1_000
"""Other spans beyond which chains of them may be long, which `chains` walks once."""


class OneTree(NamedTuple):
    """All spans of a bundle that holds every span once, and the one invocation above them."""

    unit: Unit
    top: AgentSpan


def tree_of(bundle: Bundle) -> OneTree | None:
    """The tree that a bundle is; None where it is several, or something of this process is missing above, or a session stands
    there.
    """
    if not any(span.kind is _AGENT or span.kind is _WORKFLOW for span in bundle.others):
        return None
    places = bundle.places or {}
    if len(places) > _MOST_PLACES or any(place.session is not None for place in places.values()):
        return None
    spans = {span.span_id: span for span in bundle.spans()}
    parents: dict[SpanId, SpanId | None] = {}
    tops: list[AgentSpan] = []
    for span_id, span in spans.items():
        above, remote = span.parent_id, span.parent_remote
        if above is not None and above not in spans:
            above, remote = bundle.above(above, remote)
        if above is None or above not in spans:
            if above is not None and remote is not True:
                return None
            tops.append(span)
            above = None
        parents[span_id] = above
    if len(tops) != 1 or tops[0].kind not in (_AGENT, _WORKFLOW) or not _are_beneath(parents):
        return None
    return OneTree(Unit(spans, parents), tops[0])


def _are_beneath(parents: dict[SpanId, SpanId | None]) -> bool:
    """Whether every chain of parents ends: none goes in a circle."""
    known: set[SpanId | None] = {None}
    for span_id in parents:
        here: SpanId | None = span_id
        walked: list[SpanId | None] = []
        while here not in known:
            walked.append(here)
            known.add(here)
            here = parents[here] if here is not None else None
        if here in walked:
            return False
    return True
