"""Trace buffers: the spans of each trace, deadlines, limits."""

from __future__ import annotations

import heapq
from collections import OrderedDict
from collections.abc import Collection, Container, Iterator, Sequence
from itertools import compress, count
from math import inf
from typing import Final, NamedTuple

from otel_reliability.assembly.accounts import NO_CONVENTION, Account
from otel_reliability.assembly.final_ids import RUN_KEYS, FinalIds
from otel_reliability.assembly.memory import Memory
from otel_reliability.assembly.span_tree import is_kept
from otel_reliability.config import Settings
from otel_reliability.model.run import Run
from otel_reliability.model.span import AgentSpan, Evaluation, SpanRef, TraceId

FIRST_CHECK_S: Final = 30.0
"""Seconds after which a trace that does not fall quiet is assembled all the same."""
MAX_CHECK_S: Final = 300.0
"""Upper limit of the interval between two such checks, which doubles."""


class TraceBuffer:
    """The spans of one trace, or of several that messaging links or run keys join.

    - `traces`: the ids that lead to it; a run key has an id too.
    - `spans`: as they arrived, duplicates included. `others`: how many of them only connect others.
    - `arrived`: when each of the first of them arrived; those that it leaves out arrived last, at
      `last_seen`.
    - `last_seen`: the last arrival. `closed_at`: None while it grows. `due`: when it is to be
      checked or finalized next.
    - `next_check`, `check_interval`: when a trace that never falls quiet is assembled all the same.
    - `emitted`: runs of it that can still change; `emitted_at`: when those were emitted last that
      did not close with the whole trace. `checks`: when it was assembled before, where it did not
      end there.
    - `anchors`: trace and span ids that stand in for roots of its runs, `connecting` those of its
      spans that lie in no run and connect others, when it closed. `counted`: how its spans are
      accounted for; `lost_annotations`: how many of them have annotations that joined no run.
    - `final_ids`: by trace, what is remembered of its final runs. `full_at`: number of agent spans
      at which the span limit is checked.
    - `evaluations`: those that arrived apart from spans.
    """

    __slots__ = (
        "anchors",
        "arrived",
        "check_interval",
        "checks",
        "closed_at",
        "connecting",
        "counted",
        "due",
        "emitted",
        "emitted_at",
        "evaluations",
        "final_ids",
        "full_at",
        "joined",
        "last_seen",
        "lost_annotations",
        "next_check",
        "others",
        "spans",
        "traces",
    )

    def __init__(self, trace_id: TraceId, now: float, full_at: int) -> None:
        self.traces: tuple[TraceId, ...] = (trace_id,)
        self.spans: list[AgentSpan] = []
        self.others = 0
        self.arrived: list[float] = []
        self.last_seen = now
        self.closed_at: float | None = None
        self.due: float | None = None
        self.check_interval = FIRST_CHECK_S
        self.next_check = now + FIRST_CHECK_S
        self.emitted: dict[str, Run] = {}
        self.emitted_at: dict[str, float] = {}
        self.checks: tuple[float, ...] = ()
        self.anchors: Collection[SpanRef] = ()
        self.connecting: Collection[SpanRef] = ()
        self.counted: Sequence[tuple[Account, int]] = ()
        self.lost_annotations = 0
        self.final_ids: dict[TraceId, FinalIds] = {}
        self.full_at = full_at
        self.joined = False
        self.evaluations: tuple[Evaluation, ...] = ()

    @property
    def agent_spans(self) -> int:
        """Number of its spans that do more than connect others."""
        return len(self.spans) - self.others

    @property
    def born(self) -> float:
        """When the first of the spans arrived."""
        return self.arrived[0] if self.arrived else self.last_seen

    def arrivals(self) -> list[float]:
        """Return when each span arrived."""
        self.arrived += [self.last_seen] * (len(self.spans) - len(self.arrived))
        return self.arrived

    def mark(self, now: float) -> None:
        """Note that what arrives from here on arrives now."""
        self.arrivals()
        self.last_seen = now

    def reopen(self, now: float) -> None:
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
        stays = [(span.trace_id, span.span_id) not in refs for span in self.spans]
        taken = [span for span, is_staying in zip(self.spans, stays, strict=True) if not is_staying]
        self.arrived = list(compress(self.arrivals(), stays))
        self.spans = list(compress(self.spans, stays))
        self.others -= sum(not is_kept(span) for span in taken)
        return taken

    def absorb(self, other: TraceBuffer) -> None:
        """Add all that another buffer holds, which is empty then."""
        self.arrivals().extend(other.arrivals())
        self.last_seen = max(self.last_seen, other.last_seen)
        self.spans += other.spans
        self.others += other.others
        self.traces += other.traces
        self.emitted.update(other.emitted)
        self.emitted_at.update(other.emitted_at)
        self.checks = tuple(sorted((*self.checks, *other.checks)))
        self.counted = (*self.counted, *other.counted)
        self.lost_annotations += other.lost_annotations
        self.final_ids.update(other.final_ids)
        self.evaluations += other.evaluations
        self.joined = True
        other.clear()

    def clear(self) -> None:
        """Drop everything: no trace leads here any more."""
        self.traces = ()
        self.spans = []
        self.arrived = []
        self.others = 0
        self.evaluations = ()
        self.counted = ()
        self.lost_annotations = 0
        self.final_ids = {}
        self.emitted = {}
        self.emitted_at = {}
        self.closed_at = self.due = None


# --- All buffers ----------------------------------------------------------------------------------


_MAX_OUTDATED: Final = 4_096
"""Outdated due times that are kept, next to those of buffers."""


class _Due(NamedTuple):
    """The time at which a buffer is due, in the order in which it was planned."""

    at: float
    ticket: int
    buffer: TraceBuffer


class Buffers:
    """Buffers by trace, and what is remembered of other traces.

    - `growing`: buffers with agent spans that are not closed. `reopenable`: closed ones, the first
      to be closed first. `full`: those at the span limit that hurried callers left.
    - `open_spans`, `reopenable_spans`: numbers of agent spans in these. `other_spans`: number of
      spans that only connect others.
    - `memory`: what is remembered of traces without a buffer.
    """

    def __init__(self, settings: Settings, memory: Memory) -> None:
        self.memory = memory
        self.growing: dict[TraceBuffer, None] = {}
        self.reopenable: OrderedDict[TraceBuffer, None] = OrderedDict()
        self.full: dict[TraceBuffer, None] = {}
        self.open_spans = self.reopenable_spans = self.other_spans = 0
        self._linger = settings.assembly.linger
        self._span_limit = settings.limits.span_limit
        self._by_trace: dict[TraceId, TraceBuffer] = {}
        self._due: list[_Due] = []
        self._postponed: list[_Due] = []
        """Due buffers that were too large for a caller."""
        self._ticket = count()
        self.get = self._by_trace.get

    def __iter__(self) -> Iterator[TraceBuffer]:
        """Yield each buffer once."""
        yield from dict.fromkeys(self._by_trace.values())

    def spans(self) -> Iterator[AgentSpan]:
        """Yield all spans of traces with runs that are not final."""
        for buffer in self:
            yield from buffer.spans

    # --- Arrivals ---------------------------------------------------------------------------------

    def begin(self, trace_id: TraceId, now: float) -> TraceBuffer:
        """Return the buffer of a trace that has none. Its final runs are remembered, and spans that
        came to connect others.
        """
        buffer = self._by_trace[trace_id] = TraceBuffer(trace_id, now, self._span_limit)
        final = self.memory.take(trace_id)
        if final is not None:
            connecting = final.connecting
            known = FinalIds.unpacked(final.packed)
            if len(known):
                buffer.final_ids[trace_id] = known
                self.memory.ids += len(known)
            if connecting:
                buffer.spans.extend(connecting)
                buffer.others = len(connecting)
                buffer.counted = ((NO_CONVENTION, buffer.others),)
                self.other_spans += buffer.others
                for span in connecting:
                    if span.link is not None:
                        buffer = self.join(buffer, span.link[0], now)
        self.plan(buffer, now + self._linger)
        return buffer

    def touch(self, buffer: TraceBuffer, now: float) -> None:
        """Let a buffer linger again; open it if it was closed."""
        buffer.mark(now)
        if buffer.closed_at is not None:
            self._reopen(buffer, now)
        self.plan(buffer, now + self._linger)

    def join(self, buffer: TraceBuffer, trace_id: TraceId, now: float) -> TraceBuffer:
        """Join two traces that a messaging link connects: both ids lead to one buffer from now on,
        which is returned.
        """
        other = self.get(trace_id) or self.begin(trace_id, now)
        buffer.joined = True
        if other is buffer:
            return buffer
        for one in (buffer, other):
            if one.closed_at is not None or one.last_seen != now:
                self.touch(one, now)
        return self._absorb(buffer, other)

    def join_key(self, buffer: TraceBuffer, key: bytes, now: float) -> TraceBuffer:
        """Join a buffer with all others that have lone work with this run key. Returns the buffer
        that holds everything.
        """
        trace_id = RUN_KEYS + key
        other = self._by_trace.setdefault(trace_id, buffer)
        buffer.joined = True
        if other is buffer:
            buffer.traces += (trace_id,)
            return buffer
        if other.closed_at is not None:
            self._reopen(other, now)
        return self._absorb(buffer, other)

    def _absorb(self, buffer: TraceBuffer, other: TraceBuffer) -> TraceBuffer:
        """Put the smaller of two buffers into the larger one, and return that."""
        if len(other.spans) + len(other.traces) > len(buffer.spans) + len(buffer.traces):
            buffer, other = other, buffer
        self.growing.pop(other, None)
        if other in self.full:
            del self.full[other]
            self.full[buffer] = None
        self._by_trace.update(dict.fromkeys(other.traces, buffer))
        buffer.absorb(other)
        if buffer.agent_spans:
            self.growing[buffer] = None
        return buffer

    def _reopen(self, buffer: TraceBuffer, now: float) -> None:
        del self.reopenable[buffer]
        self.growing[buffer] = None
        self.reopenable_spans -= buffer.agent_spans
        self.open_spans += buffer.agent_spans
        buffer.reopen(now)

    # --- Due times --------------------------------------------------------------------------------

    def plan(self, buffer: TraceBuffer, at: float) -> None:
        """Let a buffer be due at this time at the latest."""
        if buffer.due is None or at < buffer.due:
            buffer.due = at
            heapq.heappush(self._due, _Due(at, next(self._ticket), buffer))

    def due(self, now: float, max_spans: float = inf) -> Iterator[TraceBuffer]:
        """Yield the buffers that are due, each once. It must be planned again, closed or removed
        then. Those that a caller does not ask for stay due, and those with more than `max_spans`.
        """
        due = self._due
        if max_spans == inf:
            for entry in self._postponed:
                heapq.heappush(due, entry)
            self._postponed.clear()
        if len(due) > 2 * len(self._by_trace) + _MAX_OUTDATED:
            due[:] = [entry for entry in due if entry.buffer.due == entry.at]
            heapq.heapify(due)
        begun = next(self._ticket)
        while due and due[0].at <= now and due[0].ticket < begun:  # not what is planned meanwhile
            entry = heapq.heappop(due)
            buffer = entry.buffer
            # It was planned earlier and checked, or another has absorbed it.
            if buffer.due != entry.at:
                continue
            if len(buffer.spans) > max_spans:
                self._postponed.append(entry)
                continue
            buffer.due = None
            yield buffer

    def postpone(self, buffer: TraceBuffer, now: float) -> None:
        """Let a buffer be due for the next caller that takes any number of spans."""
        buffer.due = now
        self._postponed.append(_Due(now, next(self._ticket), buffer))

    def is_due(self, now: float) -> bool:
        """Return whether a buffer may be due that was not postponed."""
        return bool(self._due) and self._due[0].at <= now

    def first_due(self) -> float:
        """Return when the first buffer is due, or has been; infinity without any."""
        first = self._due[0].at if self._due else inf
        return min(first, *[entry.at for entry in self._postponed]) if self._postponed else first

    # --- What leaves ------------------------------------------------------------------------------

    def take_out(self, buffer: TraceBuffer, refs: Container[SpanRef]) -> list[AgentSpan]:
        """Remove spans from an open buffer, with their duplicates, and return them."""
        agent_spans = buffer.agent_spans
        others = buffer.others
        taken = buffer.take_out(refs)
        self.open_spans -= agent_spans - buffer.agent_spans
        self.other_spans -= others - buffer.others
        return taken

    def close(self, buffer: TraceBuffer, now: float) -> None:
        """Let a buffer wait for `reopen` until it is final."""
        del self.growing[buffer]
        self.reopenable[buffer] = None
        agent_spans = buffer.agent_spans
        self.open_spans -= agent_spans
        self.reopenable_spans += agent_spans
        buffer.closed_at = now

    def remove(self, buffer: TraceBuffer) -> None:
        """Remove a buffer that does not grow."""
        if buffer.closed_at is not None:
            del self.reopenable[buffer]
            self.reopenable_spans -= buffer.agent_spans
        self.full.pop(buffer, None)
        self.other_spans -= buffer.others
        if buffer.final_ids:
            self.memory.ids -= sum(map(len, buffer.final_ids.values()))
        for trace_id in buffer.traces:
            del self._by_trace[trace_id]
        buffer.clear()
