"""Units: what closes together, and how a tree divides into them.

One buffer holds all that is assembled together, and within it there is one division:

    buffer          one trace, or several that a messaging link or a run key joins
    └─ unit         spans that are connected; closes, becomes final and is limited as a whole
       └─ run       an invocation with what it did, or loose work
          └─ nested run

A span belongs to the unit of its parent. One whose parent is not here, or only connects others,
begins a unit: an agent or workflow its own, all other work one for each missing parent, since it
may have been one run. Spans that only connect others and lie above all units belong to none.

A unit may contain spans of several traces; traces that share one are *connected*, and are one trace
to every rule. Pure: a function of a tree.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from operator import attrgetter
from typing import TypeAlias, cast

from otel_reliability.assembly.invocations import Invocation
from otel_reliability.assembly.span_tree import NONE, SpanTree, is_kept
from otel_reliability.model.span import INVOCATIONS, AgentSpan, Kind, Session, SpanRef, TraceId


class Unit:
    """Spans of a tree, by their indices, that close together.

    - `head`: one of its topmost spans. `spans`: all of them, in order. `tops`: those with no kept
      span above.
    - `kept`: how many of its spans are more than connections.
    - `start_ns`, `end_ns`: from when to when these last.
    - `has_gap`: a local parent above it is missing, and may still arrive.
    - `is_loose`: it is work that no agent or workflow heads, so that a run may enclose it.
    """

    __slots__ = (
        "end_ns",
        "has_gap",
        "head",
        "is_loose",
        "kept",
        "spans",
        "start_ns",
        "tops",
    )

    def __init__(self, head: int, span: AgentSpan) -> None:
        """`span`: the head itself."""
        self.head = head
        self.spans: list[int] = []
        self.tops: list[int] = []
        self.kept = 0
        self.start_ns = span.start_ns
        self.end_ns = span.end_ns
        self.has_gap = False
        self.is_loose = span.kind not in INVOCATIONS

    @classmethod
    def united(cls, units: Sequence[Unit]) -> Unit:
        """Return several units as one."""
        found = copy(units[0])
        found.spans = sorted(i for unit in units for i in unit.spans)
        found.tops = sorted(i for unit in units for i in unit.tops)
        found.kept = sum(unit.kept for unit in units)
        found.start_ns = min(unit.start_ns for unit in units)
        found.end_ns = max(unit.end_ns for unit in units)
        found.has_gap = any(unit.has_gap for unit in units)
        found.is_loose = any(unit.is_loose for unit in units)
        return found


Target: TypeAlias = int | Unit
"""Subject of an evaluation: a span, by its index, or the top-level runs of a unit."""


class Units:
    """The units of a tree. It is divided when a question is first asked: most traces are one unit,
    and most are never asked about.
    """

    __slots__ = ("_agents", "_of", "_sessions", "_tree")

    def __init__(self, tree: SpanTree) -> None:
        self._tree = tree
        self._of: list[Unit | None] | None = None
        self._agents: dict[Unit | None, list[Invocation]] | None = None
        self._sessions: dict[Unit, Session] | None = None

    def __iter__(self) -> Iterator[Unit]:
        """Yield each unit once, in the order of their first spans."""
        return iter(dict.fromkeys(unit for unit in self.of if unit is not None))

    @property
    def of(self) -> Sequence[Unit | None]:
        """The unit of each span; None for one in no unit."""
        if self._of is None:
            self._of = self._divided()
            self._describe(self._of)
        return self._of

    def holding(self, i: int) -> Unit:
        """Return the unit of a span that is more than a connection."""
        return cast("Unit", self.of[i])

    def _divided(self) -> list[Unit | None]:
        spans = self._tree.spans
        parent = self._tree.parent
        units: list[Unit | None] = [None] * len(spans)
        visited = bytearray(len(spans))
        by_anchor: dict[SpanRef, Unit] = {}
        for i in range(len(spans)):
            chain: list[int] = []
            here = i
            while here != NONE and not visited[here]:
                visited[here] = 1
                chain.append(here)
                here = parent[here]
            for j in reversed(chain):
                above = parent[j]
                unit = None if above == NONE else units[above]
                if unit is None and is_kept(spans[j]):
                    unit = Unit(j, spans[j])
                    if unit.is_loose:
                        anchor = self._tree.anchor(self._tree.top_of(j))
                        unit = by_anchor.setdefault(anchor, unit)
                units[j] = unit
        return units

    def _describe(self, units: Sequence[Unit | None]) -> None:
        """Give each unit what it consists of."""
        tree = self._tree
        for i, (span, unit) in enumerate(zip(tree.spans, units, strict=True)):
            if unit is None:
                continue
            unit.spans.append(i)
            if not is_kept(span):
                continue
            unit.kept += 1
            unit.start_ns = min(unit.start_ns, span.start_ns)
            unit.end_ns = max(unit.end_ns, span.end_ns)
            if tree.kept_above(i) == NONE:
                unit.tops.append(i)
                unit.has_gap = unit.has_gap or tree.has_gap(tree.top_of(i))

    # --- Questions --------------------------------------------------------------------------------

    def anchor(self, unit: Unit) -> SpanRef:
        """Return what stands in for the root of loose work: its missing parent, or its topmost
        span.
        """
        return self._tree.anchor(self._tree.top_of(unit.head))

    def connected_traces(self) -> Mapping[TraceId, frozenset[TraceId]]:
        """Return, for each trace, those that share a unit with it, directly or through others."""
        spans = self._tree.spans
        found = {trace_id: frozenset((trace_id,)) for trace_id in {span.trace_id for span in spans}}
        if len(found) > 1:
            for span, unit in zip(spans, self.of, strict=True):
                if unit is None:
                    continue
                own = found[span.trace_id]
                of_head = found[spans[unit.head].trace_id]
                if own is not of_head:
                    joined = own | of_head
                    found.update(dict.fromkeys(joined, joined))
        return found

    def next_agent(self, i: int) -> Invocation | None:
        """Return the first agent of a span's unit that starts with it or later."""
        if self._agents is None:
            self._agents = {}
            for node in sorted(self._tree.invocations, key=attrgetter("at")):
                if node.span.kind is Kind.AGENT:
                    self._agents.setdefault(self.of[node.at], []).append(node)
        agents = self._agents.get(self.of[i], [])
        start_ns = self._tree.spans[i].start_ns
        place = bisect_left(agents, start_ns, key=attrgetter("span.start_ns"))
        return agents[place] if place < len(agents) else None

    def session_above(self, i: int) -> Session | None:
        """Return the first session, by rank and id, of the connecting spans right above members of
        a span's unit.
        """
        if self._sessions is None:
            spans = self._tree.spans
            has_any = any(spans[j].session is not None for j in self._tree.others)
            self._sessions = self._sessions_above() if has_any else {}
        unit = self.of[i] if self._sessions else None
        return None if unit is None else self._sessions.get(unit)

    def _sessions_above(self) -> dict[Unit, Session]:
        spans = self._tree.spans
        parent = self._tree.parent
        found: dict[Unit, Session] = {}
        first: dict[int, Session | None] = {NONE: None}
        for i, unit in enumerate(self.of):
            if unit is None or not is_kept(spans[i]):
                continue
            above = parent[i]
            passed = list[int]()
            while above not in first and not is_kept(spans[above]):
                passed.append(above)
                above = parent[above]
            session = first.get(above)
            for j in reversed(passed):
                here = [one for one in (session, spans[j].session) if one is not None]
                session = first[j] = min(here, default=None)
            if session is not None:
                found[unit] = min(found.get(unit, session), session)
        return found
