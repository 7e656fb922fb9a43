"""Twins: an event and a span that report the same call of a coding agent.

Pure: a function of the set of spans, not of their order.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

from msgspec.structs import replace

from otel_reliability.assembly.span_tree import REF
from otel_reliability.model.span import (
    AgentSpan,
    Kind,
    ModelFacts,
    RejectionFacts,
    SpanRef,
    Tokens,
    ToolFacts,
)

MAX_GAP_NS: Final = 1_000_000_000
"""Nanoseconds between a span and the event of the same call: events have the time at which they
were written.
"""
MAX_NEAR: Final = 16
"""Spans that began before an event, and as many that began after it, that are compared with it."""
REPORTED_TWICE: Final = frozenset({Kind.TOOL, Kind.MODEL, Kind.COMPRESSION})
"""Kinds that a span and an event may both report."""
_Likeness: TypeAlias = tuple[SpanRef | None, Kind, str | None]
"""Turn, kind and name: what two reports of one call without a common id have in common."""


class CallReport(NamedTuple):
    """A span or an event, and the turn that its call belongs to."""

    span: AgentSpan
    turn: SpanRef | None


def find_twins(events: Sequence[CallReport], spans: Sequence[CallReport]) -> dict[SpanRef, SpanRef]:
    """Return the span of each event that has one: of the same id, else the nearest that is like it
    and the nearest to no other event.

    `spans`: those of kinds that are `REPORTED_TWICE`, by their start.
    """
    by_id: dict[str, SpanRef] = {}
    alike: defaultdict[_Likeness, list[AgentSpan]] = defaultdict(list)
    for report in spans:
        call_id = _call_id(report.span)
        if call_id is not None:
            by_id.setdefault(call_id, REF(report.span))
        alike[_likeness(report)].append(report.span)
    twins: dict[SpanRef, SpanRef] = {}
    pairs: list[tuple[int, SpanRef, SpanRef]] = []
    for report in events:
        ref = REF(report.span)
        call_id = _call_id(report.span)
        if call_id is not None and call_id in by_id:
            twins[ref] = by_id[call_id]
        else:
            near = _near(report.span, alike.get(_likeness(report), []))
            pairs += ((distance, ref, REF(span)) for distance, span in near)
    paired: set[SpanRef] = set()
    for _, event, span in sorted(pairs):
        if event not in twins and span not in paired:
            twins[event] = span
            paired.add(span)
    return twins


def with_common_names(
    twins: Mapping[SpanRef, SpanRef], spans: Mapping[SpanRef, AgentSpan]
) -> dict[SpanRef, AgentSpan]:
    """Return the twins whose names differ, under the longer one: the other leaves something out."""
    named: dict[SpanRef, AgentSpan] = {}
    for pair in twins.items():
        one, two = (_call_name(spans[ref]) for ref in pair)
        if one is None or two is None or one == two:
            continue
        name = max(one, two, key=lambda name: (len(name), name))
        for ref in pair:
            facts = spans[ref].facts
            if isinstance(facts, ToolFacts):
                calls = (replace(facts.calls[0], name=name),)
                named[ref] = replace(spans[ref], facts=replace(facts, calls=calls))
    return named


def _near(event: AgentSpan, spans: Sequence[AgentSpan]) -> Iterator[tuple[int, AgentSpan]]:
    """Yield the spans that may be of the same call, with their distance."""
    at = bisect_right(spans, event.start_ns, key=lambda span: span.start_ns)
    for span in spans[max(at - MAX_NEAR, 0) : at + MAX_NEAR]:
        gap_ns = max(span.start_ns - event.end_ns, event.start_ns - span.end_ns)
        if gap_ns <= MAX_GAP_NS and _agree(event, span):
            yield abs(span.start_ns - event.start_ns) + abs(span.end_ns - event.end_ns), span


def _agree(event: AgentSpan, span: AgentSpan) -> bool:
    """Return whether nothing that both report differs: ids, which are not equal here, or tokens."""
    if _call_id(event) is not None and _call_id(span) is not None:
        return False
    if isinstance(event.facts, ModelFacts) and isinstance(span.facts, ModelFacts):
        tokens = {event.facts.tokens, span.facts.tokens} - {Tokens()}
        return len(tokens) <= 1
    return True


def _likeness(report: CallReport) -> _Likeness:
    return report.turn, report.span.kind, _call_name(report.span)


def _call_id(span: AgentSpan) -> str | None:
    """Return the id of a tool call, or of the response of a model call."""
    facts = span.facts
    if isinstance(facts, ToolFacts):
        return facts.calls[0].call_id if len(facts.calls) == 1 else None
    if isinstance(facts, RejectionFacts):
        return facts.call_id
    return facts.response_id if isinstance(facts, ModelFacts) else None


def _call_name(span: AgentSpan) -> str | None:
    facts = span.facts
    return facts.calls[0].name if isinstance(facts, ToolFacts) and len(facts.calls) == 1 else None
