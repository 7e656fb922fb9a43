"""The spans of one unit as a tree: who stands above whom, and which of them are invocations.

A unit is what is built at once: spans joined by parents. Its spans stand in one order, (start, end, span id), whatever order
they came in, so everything computed here is a function of the set of spans.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from otel_reliability.assembly.unit import SpanKey
from otel_reliability.model.span import (
    KIND_CONSUMER,
    KIND_SERVER,
    AgentSpan,
    InvocationFacts,
    Kind,
)

NONE: Final = -1
"""The index that stands for no span."""

WORK: Final = frozenset({Kind.MODEL, Kind.TOOL, Kind.AGENT, Kind.HANDOFF, Kind.RETRIEVAL})
_NO_FACTS: Final = InvocationFacts()


def span_order(span: AgentSpan) -> tuple[int, int, bytes, bytes]:
    """The one order of spans: start, end, span id; across traces that are joined, trace id."""
    return (span.start_ns, span.end_ns, span.span_id, span.trace_id)


class Tree:
    """Spans in order, with what stands above each. All lists are indexed like `spans`.

    - `parent`: the nearest span of the unit above, through any span that is not kept; NONE for a top.
    - `invocation`: the nearest invocation above; `encloser` is the same, for invocations only.
    - `tool`: the nearest tool span above with no invocation between.
    - `model`: the nearest model span above with no invocation and no tool between.
    - `below_tool`: whether a tool stands between the span and its nearest invocation.
    - `is_invocation`: agents, workflows, and chains that are containers. Below a parent that never came (`has_gap`) no chain
      is one: what is missing may have been the invocation.
    - `down`: indices so that parents come before their children.
    """

    def __init__(
        self, spans: Mapping[SpanKey, AgentSpan], parents: Mapping[SpanKey, SpanKey | None], *, has_gap: bool = False
    ) -> None:
        ordered = sorted(spans, key=lambda key: span_order(spans[key]))
        self.spans = [spans[key] for key in ordered]
        self.index = {key: i for i, key in enumerate(ordered)}
        self.parent = [self.index.get(above, NONE) if (above := parents[key]) else NONE for key in ordered]
        self.down = self._top_down()
        self._mark(may_promote=not has_gap)

    def facts(self, i: int) -> InvocationFacts:
        """The invocation's facts; a chain that tells none is unnamed."""
        found = self.spans[i].facts
        return found if isinstance(found, InvocationFacts) else _NO_FACTS

    def _top_down(self) -> list[int]:
        """Parents before children. A cycle of parents is cut where its earliest span stands."""
        children: list[list[int]] = [[] for _ in self.spans]
        tops: list[int] = []
        for i, above in enumerate(self.parent):
            (tops if above == NONE else children[above]).append(i)
        order: list[int] = []
        seen = bytearray(len(self.spans))
        pending = tops[::-1]
        start = 0
        while True:
            while pending:
                i = pending.pop()
                if seen[i]:
                    continue
                seen[i] = 1
                order.append(i)
                pending.extend(reversed(children[i]))
            while start < len(seen) and seen[start]:
                start += 1
            if start == len(seen):
                return order
            self.parent[start] = NONE
            pending.append(start)

    def _mark(self, *, may_promote: bool) -> None:
        count = len(self.spans)
        self.invocation = [NONE] * count
        self.tool = [NONE] * count
        self.model = [NONE] * count
        self.below_tool = bytearray(count)
        self.is_invocation = bytearray(count)
        below_chain = bytearray(count)
        has_work = self._has_work()
        for i in self.down:
            above = self.parent[i]
            if above != NONE:
                self._inherit(i, above)
                below_chain[i] = below_chain[above] or _is_chain(self.spans[above])
            kind = self.spans[i].kind
            if (
                kind is Kind.AGENT
                or kind is Kind.WORKFLOW
                or (
                    may_promote
                    and _is_chain(self.spans[i])
                    and self.invocation[i] == NONE
                    and not below_chain[i]
                    and has_work[i]
                )
            ):
                self.is_invocation[i] = 1

    def _inherit(self, i: int, above: int) -> None:
        """Take over what stands above the parent, or the parent itself."""
        if self.is_invocation[above]:
            self.invocation[i] = above
            return
        self.invocation[i] = self.invocation[above]
        kind = self.spans[above].kind
        is_tool, is_model = kind is Kind.TOOL, kind is Kind.MODEL
        self.tool[i] = above if is_tool else self.tool[above]
        self.below_tool[i] = 1 if is_tool else self.below_tool[above]
        self.model[i] = above if is_model else NONE if is_tool else self.model[above]

    def _has_work(self) -> bytearray:
        """Whether agent, model or tool work stands below each span."""
        found = bytearray(len(self.spans))
        for i in reversed(self.down):
            above = self.parent[i]
            if above != NONE and (found[i] or self.spans[i].kind in WORK):
                found[above] = 1
        return found


def _is_chain(span: AgentSpan) -> bool:
    """A container by its convention; a SERVER or CONSUMER chain is the user's own transport span, relabelled."""
    return span.kind is Kind.CHAIN and span.span_kind not in (KIND_SERVER, KIND_CONSUMER)
