"""Intake: what arrives goes to the buffer of its trace. A span costs one look-up and one append."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

from otel_reliability.assembly.accounts import (
    EXCESS_EVALUATION,
    EXCESS_OTHERS,
    LATE,
    NO_CONVENTION,
)
from otel_reliability.assembly.buffers import Buffers, TraceBuffer
from otel_reliability.assembly.emission import Emitter
from otel_reliability.assembly.evaluations import MAX_PER_TRACE, WaitingEvaluations
from otel_reliability.assembly.final_ids import account_of
from otel_reliability.config import LimitSettings
from otel_reliability.model.span import AgentSpan, Evaluation, Kind, SpanId, TraceId

MAX_OPEN_PER_TRACE: Final = 10_000
Opened: TypeAlias = tuple[TraceId, SpanId, SpanId | None]
"""A span that has started, and its parent."""
_OTHER: Final = Kind.OTHER


class OpenedInTrace(NamedTuple):
    """The open spans of a trace with their parents, and when the last of them started (seconds)."""

    last: float
    parents: dict[SpanId, SpanId | None]


class OpenedByTrace(OrderedDict[TraceId, OpenedInTrace]):
    """Open spans by trace, those first of which the last started first."""

    def open(
        self, trace_id: TraceId, span_id: SpanId, parent_id: SpanId | None, now: float
    ) -> None:
        known = self.pop(trace_id, None)
        parents: dict[SpanId, SpanId | None] = {} if known is None else known.parents
        if len(parents) < MAX_OPEN_PER_TRACE:
            parents[span_id] = parent_id
        self[trace_id] = OpenedInTrace(now, parents)

    def end(self, trace_id: TraceId, span_id: SpanId) -> None:
        if trace_id in self:
            parents = self[trace_id].parents
            parents.pop(span_id, None)
            if not parents:
                del self[trace_id]

    def of(self, traces: Iterable[TraceId]) -> Mapping[TraceId, Mapping[SpanId, SpanId | None]]:
        """Return the open spans of some traces, with their parents; traces without any are left
        out.
        """
        return {trace_id: self[trace_id].parents for trace_id in traces if trace_id in self}

    def expire(self, horizon: float, now: float, growing: Callable[[TraceId], bool]) -> None:
        """Forget the open spans of traces in which none has started since the horizon; those of
        traces that are growing count from now on again.
        """
        while self:
            trace_id, oldest = next(iter(self.items()))
            if oldest.last > horizon:
                return
            del self[trace_id]
            if growing(trace_id):
                self[trace_id] = OpenedInTrace(now, oldest.parents)


class Intake:
    """Receives spans and evaluations.

    `opened` are spans known to have started; `waiting` are evaluations whose run is not here.
    `on_full` is called with a buffer that has reached the number of spans at which its units are
    measured, and the time.
    """

    def __init__(
        self,
        limits: LimitSettings,
        buffers: Buffers,
        emitter: Emitter,
        on_full: Callable[[TraceBuffer, float], None],
    ) -> None:
        self.opened = OpenedByTrace()
        self._max_others = limits.other_spans
        self._buffers = buffers
        self._memory = buffers.memory
        self._emitter = emitter
        self._accounts = emitter.accounts
        self._on_full = on_full
        self.waiting = WaitingEvaluations(
            limits.evaluations, self._accounts.losses, self._give, buffers.spans
        )

    # one loop, no call per span
    def add_all(self, spans: Sequence[AgentSpan], now: float) -> None:  # noqa: C901, PLR0912
        """Receive spans. A span of a run that is final is counted at once, and left out."""
        buffers = self._buffers
        last = None
        buffer: TraceBuffer | None = None
        agent_spans = 0
        try:
            for span in spans:
                trace_id = span.trace_id
                if buffer is None or trace_id != last:
                    if buffer is not None:
                        self._count_received(buffer, agent_spans, now)
                    last = trace_id
                    buffer = buffers.get(trace_id)
                    if buffer is None:
                        buffer = buffers.begin(trace_id, now)
                    elif buffer.last_seen != now or buffer.closed_at is not None:
                        buffers.touch(buffer, now)
                    agent_spans = len(buffer.spans) - buffer.others
                link = span.link
                if link is not None:
                    self._count_received(buffer, agent_spans, now)
                    buffer = buffers.join(buffer, link[0], now)
                    agent_spans = buffer.agent_spans
                if buffer.final_ids and (account := account_of(buffer.final_ids, span)) is not None:
                    if account == LATE:
                        self._emitter.complete_final(buffer, span)
                    self._emitter.count_late(buffer.final_ids, span, account)
                    continue
                if span.kind is _OTHER and span.notes is None and not span.evaluations:
                    if buffers.other_spans + self._memory.spans >= self._max_others:
                        self._accounts.spans[NO_CONVENTION] += 1
                        self._accounts.losses[EXCESS_OTHERS] += 1
                        continue
                    buffer.others += 1
                    buffers.other_spans += 1
                buffer.spans.append(span)
        finally:
            if buffer is not None:
                self._count_received(buffer, agent_spans, now)
        if self.opened:
            for span in spans:
                self.opened.end(span.trace_id, span.span_id)
        if self.waiting.count or self.waiting.responses is not None:
            self.waiting.see(spans, now)

    def _count_received(self, buffer: TraceBuffer, before: int, now: float) -> None:
        """Count the spans that a buffer received."""
        agent_spans = len(buffer.spans) - buffer.others
        if agent_spans != before:
            self._buffers.open_spans += agent_spans - before
            if not before:
                self._buffers.growing[buffer] = None
            if agent_spans >= buffer.full_at:
                self._on_full(buffer, now)

    # --- Evaluations ------------------------------------------------------------------------------

    def evaluate(self, evaluations: Iterable[Evaluation], now: float) -> None:
        """Receive evaluations that arrived apart from their spans. They wait until their runs are
        here.
        """
        for evaluation in evaluations:
            self.waiting.add(evaluation, now)

    def _give(self, evaluation: Evaluation, now: float) -> bool:
        """Give an evaluation to the buffer of its trace, or to a final run. False: neither is
        known.
        """
        trace_id = evaluation.trace_id or b""
        buffer = self._buffers.get(trace_id)
        if buffer is None:
            is_known = self._memory.has_ids(trace_id)
            if is_known:
                self._emitter.evaluate_final(evaluation, trace_id)
            return is_known
        final = buffer.final_ids.get(trace_id)
        if (
            final is not None
            and final.ids
            and (not buffer.agent_spans or evaluation.span_id in final.ids)
        ):
            self._emitter.evaluate_final(evaluation, trace_id)
        elif evaluation not in buffer.evaluations:
            if len(buffer.evaluations) >= MAX_PER_TRACE:
                self._accounts.losses[EXCESS_EVALUATION] += 1
                return True
            if buffer.last_seen != now or buffer.closed_at is not None:
                self._buffers.touch(buffer, now)
            buffer.evaluations += (evaluation,)
        return True
