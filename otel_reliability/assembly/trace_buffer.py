"""The buffer of a trace: its spans as they arrive, and what was emitted of them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Container, Sequence
from operator import itemgetter
from typing import Final

from otel_reliability.assembly.closed_traces import ClosedIds
from otel_reliability.assembly.span_tree import is_kept
from otel_reliability.model.run import Run
from otel_reliability.model.span import AgentSpan, Evaluation, SpanRef, TraceId

_INDEX: Final = itemgetter(1)


class TraceBuffer:
    """The spans of one trace, or of several that messaging links join.

    - `spans`: as they arrived, duplicates included. `others`: how many of them only connect others.
    - `marks`: (time, index of the first span that arrived then), where not all arrived when it was `born`.
    - `last_seen`: the last arrival. `closed_at`: None while it grows.
    - `planned`: when its parts are to be checked next.
    - `next_check`, `check_interval`: when a trace that never falls quiet is assembled all the same.
    - `emitted`: runs of it that can still change; `emitted_at`: when those were emitted last that did not close with the whole
      trace. `checks`: when it was assembled before, where it did not end there.
    - `anchors`: trace and span ids that stand in for roots of its runs. `counted`: how its spans are accounted for.
    - `closed`: by trace, what is remembered of its final runs. `full_at`: number of spans at which the span limit is checked.
    - `evaluations`: those that arrived apart from spans.
    - `lent`: run keys to whose buffers it lends spans. `lenders`: of the buffer of a run key, the spans it is lent.
    """

    __slots__ = ("anchors", "born", "check_interval", "checks", "closed", "closed_at", "counted", "emitted", "emitted_at",
                 "evaluations", "full_at", "joined", "last_seen", "lenders", "lent", "marks", "next_check", "others", "planned",
                 "spans", "traces")  # fmt: skip

    def __init__(self, trace_id: TraceId, now: float, check_interval: float, full_at: int) -> None:
        self.traces: tuple[TraceId, ...] = (trace_id,)
        self.spans: list[AgentSpan] = []
        self.others = 0
        self.marks: list[tuple[float, int]] | None = None
        self.born = self.last_seen = now
        self.closed_at: float | None = None
        self.planned: float | None = None
        self.check_interval = check_interval
        self.next_check = now + check_interval
        self.emitted: dict[str, Run] = {}
        self.emitted_at: dict[str, float] = {}
        self.checks: tuple[float, ...] = ()
        self.anchors: Sequence[SpanRef] = ()
        self.counted: tuple[tuple[tuple[str, str], int], ...] | None = None
        self.closed: dict[TraceId, ClosedIds] | None = None
        self.full_at = full_at
        self.joined = False
        self.evaluations: tuple[Evaluation, ...] = ()
        self.lent: frozenset[bytes] | None = None
        self.lenders: dict[TraceBuffer, list[AgentSpan]] | None = None

    @property
    def weight(self) -> int:
        """Number of agent spans, duplicates included."""
        return len(self.spans) - self.others

    def arrived_at(self, index: int) -> float:
        """Return when the span at this index of `spans` arrived."""
        if self.marks is None:
            return self.born
        at = bisect_right(self.marks, index, key=_INDEX)
        return self.marks[at - 1][0] if at else self.born

    def mark(self, now: float) -> None:
        """Note that what arrives from here on arrives now."""
        if not self.spans:
            self.born = now
        elif self.marks is None:
            self.marks = [(now, len(self.spans))]
        else:
            self.marks.append((now, len(self.spans)))
        self.last_seen = now

    def take_out(self, refs: Container[SpanRef]) -> list[AgentSpan]:
        """Remove spans, with their duplicates, and return them."""
        kept, taken = list[AgentSpan](), list[AgentSpan]()
        marks: list[tuple[float, int]] = []
        for index, span in enumerate(self.spans):
            if (span[0], span[1]) in refs:
                taken.append(span)
                continue
            at = self.arrived_at(index)
            if not kept:
                self.born = at
            elif at != (marks[-1][0] if marks else self.born):
                marks.append((at, len(kept)))
            kept.append(span)
        self.spans, self.marks = kept, marks or None
        self.others -= sum(not is_kept(span) for span in taken)
        return taken

    def absorb(self, other: TraceBuffer) -> None:
        """Add all that another buffer holds, which is empty then."""
        begin = len(self.spans)
        marks = [*(self.marks or ()), (other.born, begin)]
        self.marks = [*marks, *((at, begin + index) for at, index in other.marks or ())]
        self.spans += other.spans
        self.others += other.others
        self.traces += other.traces
        self.emitted.update(other.emitted)
        self.emitted_at.update(other.emitted_at)
        self.checks = tuple(sorted((*self.checks, *other.checks)))
        if other.closed:
            self.closed = {**(self.closed or {}), **other.closed}
        self.evaluations += other.evaluations
        other.spans, other.traces, other.closed_at = [], (), None
