"""From agent spans to runs, as they arrive: a buffer per trace, assembled when it is due; the difference is emitted.

A span costs one look-up and one append. When no span has arrived for `linger`, one pure function assembles the runs of the trace.
There is no clock and no lock here: time is an argument, and there is one caller at a time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Final

from otel_reliability.assembly import late
from otel_reliability.assembly.assemble import DUPLICATE, NO_CONVENTION
from otel_reliability.assembly.buffers import Buffers, TraceBuffer
from otel_reliability.assembly.closed_traces import ClosedIds, Record, record_of
from otel_reliability.assembly.closing import Closing, OpenSpans
from otel_reliability.assembly.evaluations import MAX_PER_TRACE, FinalRuns, WaitingEvaluations
from otel_reliability.config import Settings
from otel_reliability.model.limit import Limit
from otel_reliability.model.run import CloseReason, Run, RunChange, RunEvent
from otel_reliability.model.span import AgentSpan, Evaluation, Kind, SpanId, TraceId

SPAN_BYTES: Final = 900
"""Estimated bytes of an agent span with its facts."""
_SHARE: Final = 32
"""Above a limit, one 32nd more than needed is closed, so that not every span exceeds it again."""
_OTHER: Final = Kind.OTHER


class Assembler:
    """Rebuilds runs from agent spans.

    `accounts` counts spans by (what became of them, why): `used`, `other` (no_convention, beside_agent, no_agent, no_run),
    `late`, `duplicate`, `refused`; runs `closed`, by reason; evaluations that were lost; what hit a limit (`limit`).
    """

    def __init__(self, settings: Settings) -> None:
        self.accounts: Counter[tuple[str, str]] = Counter()
        self._times, self._limits = settings.assembly, settings.limits
        self._opened = OpenSpans()
        self._final = FinalRuns(settings.outcome)
        self._buffers = Buffers(settings)
        self._closing = Closing(settings, self._buffers, self._opened, self._final, self.accounts)
        self._evaluations = WaitingEvaluations(self._limits.evaluations, self.accounts, self._give, self.spans)

    @property
    def open_runs(self) -> int:
        """Traces with agent spans that are not closed."""
        return len(self._buffers.growing)

    @property
    def growing(self) -> Collection[TraceBuffer]:
        """The buffers of these traces."""
        return self._buffers.growing.keys()

    def open_runs_of(self, buffer: TraceBuffer) -> list[Run]:
        """Return the runs of a growing buffer that have not closed, as its spans show them now. Nothing changes."""
        return [run for run in self._closing.assemble_spans(buffer).runs if run.run_id not in buffer.emitted]

    @property
    def remembered(self) -> int:
        """Traces of which anything is remembered."""
        return len(self._buffers) + len(self._buffers.closed)

    @property
    def limits(self) -> tuple[Limit, ...]:
        """Every limit of this stage."""
        limits, buffers, accounts = self._limits, self._buffers, self.accounts
        open_bytes, reopenable_bytes = buffers.open_spans * SPAN_BYTES, buffers.reopenable_spans * SPAN_BYTES
        other_spans, waiting = buffers.other_spans + buffers.closed.spans, self._evaluations.count
        return (
            Limit("open_runs", len(buffers.growing), limits.open_runs, accounts["closed", CloseReason.OPEN_RUNS.value]),
            Limit("open_bytes", open_bytes, limits.open_bytes, accounts["closed", CloseReason.MEMORY.value]),
            Limit("reopenable_bytes", reopenable_bytes, limits.reopenable_bytes, accounts["limit", "reopenable_bytes"]),
            Limit("other_spans", other_spans, limits.other_spans, accounts["limit", "other_spans"]),
            Limit("closed_ids", buffers.closed.ids, limits.closed_ids, accounts["limit", "remembered_ids"]),
            Limit("waiting_evaluations", waiting, limits.evaluations, accounts["evaluation_refused", "limit"]),
            Limit("run_spans", None, limits.span_limit, accounts["closed", CloseReason.SPAN_LIMIT.value]),
        )

    def spans(self) -> Iterator[AgentSpan]:
        """All spans of traces with runs that are not final."""
        for buffer in self._buffers:
            yield from buffer.spans

    # --- Receiving ----------------------------------------------------------------------------------------------------

    def add(self, span: AgentSpan, now: float) -> None:
        """Receive one span."""
        self.add_all((span,), now)

    def add_all(self, spans: Sequence[AgentSpan], now: float) -> None:  # noqa: C901, PLR0912 (one loop, no call per span)
        """Receive spans."""
        buffers, last = self._buffers, None
        buffer: TraceBuffer | None = None
        weight = 0
        try:
            for span in spans:
                trace_id = span[0]
                if buffer is None or trace_id != last:
                    if buffer is not None:
                        self._weigh(buffer, weight, now)
                    last, buffer = trace_id, buffers.get(trace_id)
                    if buffer is None:
                        buffer = buffers.begin(trace_id, now)
                    elif buffer.last_seen != now or buffer.closed_at is not None:
                        buffers.touch(buffer, now)
                    weight = len(buffer.spans) - buffer.others
                link = span[15]
                if link is not None:
                    self._weigh(buffer, weight, now)
                    buffer = buffers.join(buffer, link[0], now)
                    weight = buffer.weight
                if buffer.closed is not None and self._belongs_to_closed(buffer.closed, span):
                    continue
                if span[7] is _OTHER and span[13] is None and not span[14]:
                    if buffers.other_spans + buffers.closed.spans >= self._limits.other_spans:
                        self.accounts[NO_CONVENTION] += 1
                        self.accounts["limit", "other_spans"] += 1
                        continue
                    buffer.others += 1
                    buffers.other_spans += 1
                buffer.spans.append(span)
        finally:
            if buffer is not None:
                self._weigh(buffer, weight, now)
        if self._opened:
            self._opened.end_all(spans)
        if self._evaluations.listens:
            self._evaluations.see(spans, now)

    def opened(self, trace_id: TraceId, span_id: SpanId, parent_id: SpanId | None, now: float) -> None:
        """Note that a span has started (known in process only): what it belongs to stays open until it ends."""
        self._opened.open(trace_id, span_id, parent_id, now)

    def ended(self, trace_id: TraceId, span_id: SpanId) -> None:
        """Note that an open span has ended and will not arrive."""
        self._opened.end(trace_id, span_id)

    def _weigh(self, buffer: TraceBuffer, before: int, now: float) -> None:
        """Count the spans that a buffer received."""
        weight = len(buffer.spans) - buffer.others
        if weight != before:
            self._buffers.open_spans += weight - before
            if not before:
                self._buffers.growing[buffer] = None
            if weight >= buffer.full_at:
                self._closing.hold_span_limit(buffer, now)

    def _belongs_to_closed(self, closed: dict[TraceId, ClosedIds], span: AgentSpan) -> bool:
        """Return whether a span is one of a final run or connected with it; it is counted."""
        account = late.account_of(closed, span)
        if account is None:
            return False
        if account != DUPLICATE:
            self._buffers.closed.ids += late.add(closed, span, account)
        self.accounts[account] += 1
        return True

    # --- Evaluations --------------------------------------------------------------------------------------------------

    def evaluate(self, evaluation: Evaluation, now: float) -> None:
        """Receive an evaluation that arrived apart from its span. It waits until its run is here."""
        self._evaluations.add(evaluation, now)

    def _give(self, evaluation: Evaluation, now: float) -> bool:
        """Give an evaluation to the buffer of its trace, or to a final run. False: neither is known."""
        trace_id = evaluation.trace_id or b""
        buffer = self._buffers.get(trace_id)
        if buffer is None:
            is_known = self._buffers.closed.has_ids(trace_id)
            if is_known:
                self._evaluate_final(evaluation, trace_id)
            return is_known
        closed = None if buffer.closed is None else buffer.closed.get(trace_id)
        if closed is not None and closed.ids and (not buffer.weight or evaluation.span_id in closed.ids):
            self._evaluate_final(evaluation, trace_id)
        elif evaluation not in buffer.evaluations:
            if len(buffer.evaluations) >= MAX_PER_TRACE:
                self.accounts["evaluation_refused", "limit"] += 1
                return True
            if buffer.last_seen != now or buffer.closed_at is not None:
                self._buffers.touch(buffer, now)
            buffer.evaluations += (evaluation,)
        return True

    def _evaluate_final(self, evaluation: Evaluation, trace_id: TraceId) -> None:
        """Change what windows hold of a final run; what counters have recorded stays."""
        found = self._final.evaluate(evaluation, trace_id)
        if found is None:
            self.accounts["evaluation_late", ""] += 1
        elif found[0] is not found[1]:
            self._closing.events.append(RunEvent(RunChange.REVISED, found[1], found[0]))

    # --- Time ---------------------------------------------------------------------------------------------------------

    def tick(self, now: float) -> list[RunEvent]:
        """Close what is due, hold the limits, finalize what can no longer change, forget what is too old."""
        for buffer in self._buffers.due(now):
            self._closing.check(buffer, now)
        self._hold_limits(now)
        self._closing.finalize_due(now)
        self._forget(now)
        return self._take_events(now)

    def close_all(self, reason: CloseReason, now: float) -> list[RunEvent]:
        """Close and finalize everything."""
        buffers, closing = self._buffers, self._closing
        while buffers.growing:
            closing.close(next(iter(buffers.growing)), reason, now)
        for buffer in list(buffers):
            if buffer.closed_at is None:
                closing.put_aside(buffer, now)
        while buffers.reopenable:
            closing.finalize(next(iter(buffers.reopenable)), now)
        return self._take_events(now)

    def complete(self, traces: Iterable[TraceId], reason: CloseReason, now: float) -> list[RunEvent]:
        """Close, finalize and forget traces of which nothing more arrives: no span, no evaluation, no link to them.

        A trace that shares a run with others, by a link or a run key, stays as it is.
        """
        closing, growing = self._closing, self._buffers.growing
        for trace_id in traces:
            buffer = self._buffers.get(trace_id)
            if buffer is not None:
                if buffer in growing and not buffer.joined:
                    closing.close(buffer, reason, now)
                if buffer.joined:
                    continue
                if buffer.closed_at is None:
                    closing.put_aside(buffer, now)
                else:
                    closing.finalize(buffer, now)
            self._buffers.closed.take(trace_id)
            self._final.forget(trace_id)
            self._opened.forget(trace_id)
        return self._take_events(now)

    def _take_events(self, now: float) -> list[RunEvent]:
        closing = self._closing
        unclaimed, closing.unclaimed = closing.unclaimed, []
        for evaluation in unclaimed:
            self._evaluations.add(evaluation, now)
        events, closing.events = closing.events, []
        return events

    # --- Limits -------------------------------------------------------------------------------------------------------

    def _hold_limits(self, now: float) -> None:
        """Above a limit the heaviest traces are closed, of equals the oldest."""
        limits, buffers = self._limits, self._buffers
        if len(buffers.growing) > limits.open_runs:
            number = len(buffers.growing) - limits.open_runs + limits.open_runs // _SHARE
            self._close_heaviest(number, 0, CloseReason.OPEN_RUNS, now)
        size = buffers.open_spans * SPAN_BYTES
        if size > limits.open_bytes:
            self._close_heaviest(0, size - limits.open_bytes + limits.open_bytes // _SHARE, CloseReason.MEMORY, now)
        while buffers.reopenable and buffers.reopenable_spans * SPAN_BYTES > limits.reopenable_bytes:
            self._closing.finalize(next(iter(buffers.reopenable)), now)
            self.accounts["limit", "reopenable_bytes"] += 1

    def _close_heaviest(self, number: int, size: int, reason: CloseReason, now: float) -> None:
        growing = self._buffers.growing
        for buffer in sorted(growing, key=lambda buffer: (-buffer.weight, buffer.born)):
            if number <= 0 and size <= 0:
                return
            if buffer in growing:
                number, size = number - 1, size - buffer.weight * SPAN_BYTES
                self._closing.close(buffer, reason, now)

    def _forget(self, now: float) -> None:
        """Forget traces in time, and the oldest where too many ids are remembered; evaluations that waited too long too."""
        limits, buffers, closed = self._limits, self._buffers, self._buffers.closed
        horizon = now - self._times.remember
        while (trace_id := closed.take_oldest(horizon)) is not None:
            self._final.forget(trace_id)
        if buffers.other_spans + closed.spans >= limits.other_spans:
            self._forget_oldest(lambda: buffers.other_spans + closed.spans < limits.other_spans * (1 - 1 / _SHARE))
        if closed.ids > limits.closed_ids:
            self._forget_oldest(lambda: closed.ids <= limits.closed_ids * (1 - 1 / _SHARE))
            self._forget_live_ids(closed.ids - limits.closed_ids)
        if self._evaluations.count:
            self._evaluations.expire(now)
        if self._opened:
            self._opened.expire(horizon, now, self._is_growing)

    def _forget_oldest(self, is_enough: Callable[[], bool]) -> None:
        while not is_enough() and (trace_id := self._buffers.closed.take_oldest()) is not None:
            self._final.forget(trace_id)
            self.accounts["limit", "remembered_ids"] += 1

    def _forget_live_ids(self, number: int) -> None:
        """Forget ids of final runs of traces of which spans still arrive, the most numerous first."""
        if number <= 0:
            return
        self.accounts["limit", "remembered_ids"] += 1
        live = [one for buffer in self._buffers if buffer.closed for one in buffer.closed.values()]
        for closed in sorted(live, key=len, reverse=True):
            for ids in (closed.ids, closed.anchors):
                while ids and number > 0:
                    ids.pop()
                    number -= 1
                    self._buffers.closed.ids -= 1

    def _is_growing(self, trace_id: TraceId) -> bool:
        return self._buffers.get(trace_id) in self._buffers.growing

    # --- Over a restart -----------------------------------------------------------------------------------------------

    def holds(self, trace_id: TraceId) -> bool:
        """Return whether a trace has spans that are still needed to assemble it."""
        return trace_id in self._buffers

    def closed_record(self, trace_id: TraceId, now: float) -> Record | None:
        """Return what is remembered of the final runs of a trace; None: nothing of it is final."""
        buffer = self._buffers.get(trace_id)
        if buffer is None:
            return self._buffers.closed.get(trace_id)
        closed = None if buffer.closed is None else buffer.closed.get(trace_id)
        return None if closed is None else record_of(now, closed)

    def restore_closed(self, records: Iterable[tuple[TraceId, Record]]) -> None:
        """Remember what `closed_record` returned, before any span of these traces is added again."""
        for trace_id, record in records:
            self._buffers.closed.put(trace_id, record)

    def restore_final(self, runs: Iterable[Run]) -> None:
        """Remember the latest final runs, the latest at the end: evaluations of them may still arrive."""
        for run in runs:
            self._final.remember(run)
