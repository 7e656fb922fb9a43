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


FIRST_CHECK_S: Final = 30.0
"""Seconds after which a trace that does not fall quiet is assembled all the same."""
MAX_CHECK_S: Final = 300.0
"""Upper limit of the interval between two such checks, which doubles."""


class TraceBuffer:
    """The spans of one trace, or of several that messaging links or run keys join.

    - `traces`: the ids that lead to it; a run key has an id too.
    - `spans`: as they arrived, duplicates included. `others`: how many of them only connect others.
    - `marks`: (time, index of the first span that arrived then), where not all arrived when it was `born`.
    - `last_seen`: the last arrival. `closed_at`: None while it grows. `due`: when it is to be checked or finalized next.
    - `next_check`, `check_interval`: when a trace that never falls quiet is assembled all the same.
    - `emitted`: runs of it that can still change; `emitted_at`: when those were emitted last that did not close with the whole
      trace. `checks`: when it was assembled before, where it did not end there.
    - `anchors`: trace and span ids that stand in for roots of its runs. `counted`: how its spans are accounted for.
    - `closed`: by trace, what is remembered of its final runs. `full_at`: number of spans at which the span limit is checked.
    - `evaluations`: those that arrived apart from spans.
    """

    __slots__ = ("anchors", "born", "check_interval", "checks", "closed", "closed_at", "counted", "due", "emitted",
                 "emitted_at", "evaluations", "full_at", "joined", "last_seen", "marks", "next_check", "others", "spans",
                 "traces")  # fmt: skip

    def __init__(self, trace_id: TraceId, now: float, full_at: int) -> None:
        self.traces: tuple[TraceId, ...] = (trace_id,)
        self.spans: list[AgentSpan] = []
        self.others = 0
        self.marks: list[tuple[float, int]] | None = None
        self.born = self.last_seen = now
        self.closed_at: float | None = None
        self.due: float | None = None
        self.check_interval = FIRST_CHECK_S
        self.next_check = now + FIRST_CHECK_S
        self.emitted: dict[str, Run] = {}
        self.emitted_at: dict[str, float] = {}
        self.checks: tuple[float, ...] = ()
        self.anchors: Sequence[SpanRef] = ()
        self.counted: Sequence[tuple[tuple[str, str], int]] = ()
        self.closed: dict[TraceId, ClosedIds] | None = None
        self.full_at = full_at
        self.joined = False
        self.evaluations: tuple[Evaluation, ...] = ()

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

    def reopen(self, now: float) -> None:
        """Let a closed buffer grow again."""
        if self.closed_at is not None:
            self.checks = (*self.checks, self.closed_at)
        self.closed_at = None
        self.check_interval = FIRST_CHECK_S
        self.next_check = now + FIRST_CHECK_S

    def checked(self, now: float) -> None:
        """Plan the next check of a trace that never falls quiet."""
        self.next_check = now + self.check_interval
        self.check_interval = min(2 * self.check_interval, MAX_CHECK_S)

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
        self.last_seen = max(self.last_seen, other.last_seen)
        self.spans += other.spans
        self.others += other.others
        self.traces += other.traces
        self.emitted.update(other.emitted)
        self.emitted_at.update(other.emitted_at)
        self.checks = tuple(sorted((*self.checks, *other.checks)))
        self.counted = (*self.counted, *other.counted)
        if other.closed:
            self.closed = {**(self.closed or {}), **other.closed}
        self.evaluations += other.evaluations
        self.joined = True
        other.clear()

    def clear(self) -> None:
        """Drop everything: no trace leads here any more."""
        self.traces, self.spans, self.others, self.evaluations, self.counted, self.closed = (), [], 0, (), (), None
        self.emitted, self.emitted_at = {}, {}
        self.closed_at = self.due = None
