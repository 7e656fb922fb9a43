"""From agent spans to runs, as they arrive: a buffer per trace, assembled when it is due; the difference is emitted.

A span costs one look-up and one append. When no span has arrived for `linger`, the runs of the trace are assembled by one pure
function, and what differs from what was emitted before is emitted: closed, revised, withdrawn. A late span needs no code of its
own. It has no clock and no lock: time is an argument, and one caller at a time.
"""

from __future__ import annotations

import heapq
from collections import Counter, deque
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from itertools import count
from math import inf
from typing import Final

from otel_reliability.assembly import late
from otel_reliability.assembly.assemble import DUPLICATE, NO_CONVENTION, Account, Assemble, Assembled
from otel_reliability.assembly.closed_traces import ClosedIds, ClosedTraces, Record, record_of, reopened
from otel_reliability.assembly.evaluations import MAX_PER_TRACE, NO_RUN, WaitingEvaluations
from otel_reliability.assembly.final_runs import FinalRuns
from otel_reliability.assembly.open_spans import OpenSpans
from otel_reliability.assembly.orphans import RUN_KEYS
from otel_reliability.assembly.parts import Part, accounts_of, divide
from otel_reliability.assembly.span_tree import is_kept
from otel_reliability.assembly.trace_buffer import TraceBuffer
from otel_reliability.config import Settings
from otel_reliability.model.event import RunChange, RunEvent, event_of
from otel_reliability.model.run import CloseReason, Run
from otel_reliability.model.span import AgentSpan, Evaluation, Kind, SpanId, SpanRef, TraceId

SPAN_BYTES: Final = 900
"""Estimated bytes of an agent span with its facts."""
FIRST_CHECK_S: Final = 30.0
"""Seconds after which a trace that does not fall quiet is assembled all the same."""
LONGEST_CHECK_S: Final = 300.0
"""Upper limit of the interval between two such checks, which doubles."""
_SHARE: Final = 32
"""Above a limit, one 32nd more than needed is closed, so that not every span exceeds it again."""
_OTHER: Final = Kind.OTHER
_ROOT: Final = CloseReason.ROOT
_CLOSED, _FINAL = RunChange.CLOSED, RunChange.SETTLED


class Assembler:
    """Rebuilds runs from agent spans.

    `accounts` counts spans by (what became of them, why): `used`, `other` (no_convention, beside_agent, no_agent, no_run),
    `late`, `duplicate`, `refused`; runs `closed`, by reason; evaluations that were lost; what hit a limit (`ceiling`).
    """

    def __init__(self, settings: Settings, assemble: Assemble | None = None) -> None:
        """`assemble`: one under the same settings, shared by many assemblers of few traces each."""
        self.accounts: Counter[tuple[str, str]] = Counter()
        self._times, self._limits = settings.assembly, settings.limits
        self._assemble = Assemble(settings) if assemble is None else assemble
        self._buffers: dict[TraceId, TraceBuffer] = {}
        self._growing: dict[TraceBuffer, None] = {}
        self._due: deque[tuple[float, list[TraceBuffer]]] = deque()
        self._later: list[tuple[float, int, TraceBuffer]] = []
        self._ticket = count()
        self._finished: deque[tuple[float, TraceBuffer]] = deque()
        self._closed = ClosedTraces()
        self._opened = OpenSpans()
        self._final = FinalRuns(settings.outcome)
        self._evaluations = WaitingEvaluations(self._limits.evaluations, self.accounts, self._give, self.spans)
        self._open_spans = self._reopenable_spans = self._other_spans = self._live_ids = 0
        self._events: list[RunEvent] = []

    @property
    def open_runs(self) -> int:
        """Traces with agent spans that are not closed."""
        return len(self._growing)

    @property
    def remembered(self) -> int:
        """Traces of which anything is remembered."""
        return len(self._buffers) + len(self._closed)

    @property
    def levels(self) -> dict[str, tuple[int, int]]:
        """Every limit of this stage: its use and its value."""
        limits = self._limits
        return {
            "open_runs": (len(self._growing), limits.open_runs),
            "open_bytes": (self._open_spans * SPAN_BYTES, limits.open_bytes),
            "reopenable_bytes": (self._reopenable_spans * SPAN_BYTES, limits.reopenable_bytes),
            "other_spans": (self._other_spans + self._closed.spans, limits.other_spans),
            "closed_ids": (self._live_ids + self._closed.ids, limits.closed_ids),
            "waiting_evaluations": (self._evaluations.count, self._limits.evaluations),
        }

    def spans(self) -> Iterator[AgentSpan]:
        """All spans of traces with runs that are not final."""
        for buffer in dict.fromkeys(self._buffers.values()):
            if buffer.lenders is None:
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
                        buffer = self._begin(trace_id, now)
                    elif buffer.last_seen != now or buffer.closed_at is not None:
                        self._touch(buffer, now)
                    weight = len(buffer.spans) - buffer.others
                link = span[15]
                if link is not None:
                    self._weigh(buffer, weight, now)
                    buffer = self._join(buffer, link[0], now)
                    weight = buffer.weight
                if buffer.closed is not None and self._belongs_to_closed(buffer.closed, span):
                    continue
                if span[7] is _OTHER and span[13] is None and not span[14]:
                    if self._other_spans + self._closed.spans >= self._limits.other_spans:
                        self.accounts[NO_CONVENTION] += 1
                        self.accounts["ceiling", "other_spans"] += 1
                        continue
                    buffer.others += 1
                    self._other_spans += 1
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

    def evaluate(self, evaluation: Evaluation, now: float) -> None:
        """Receive an evaluation that arrived apart from its span. It waits until its run is here."""
        self._evaluations.add(evaluation, now)

    def _begin(self, trace_id: TraceId, now: float) -> TraceBuffer:
        buffer = self._buffers[trace_id] = TraceBuffer(trace_id, now, FIRST_CHECK_S, self._limits.span_limit)
        record = self._closed.take(trace_id)
        if record is not None:
            closed = reopened(record)
            if closed is not None:
                buffer.closed = {trace_id: closed}
                self._live_ids += len(closed)
            if record[6]:
                buffer.spans.extend(record[6])
                buffer.others = len(record[6])
                buffer.counted = ((NO_CONVENTION, buffer.others),)
                self._other_spans += buffer.others
                for link in [span[15] for span in record[6]]:
                    if link is not None:
                        buffer = self._join(buffer, link[0], now)
        self._plan(buffer, now)
        return buffer

    def _touch(self, buffer: TraceBuffer, now: float) -> None:
        """Let a buffer linger again; open it if it was closed."""
        buffer.mark(now)
        if buffer.closed_at is not None:
            self._growing[buffer] = None
            buffer.checks = (*buffer.checks, buffer.closed_at)
            self._reopenable_spans -= buffer.weight
            self._open_spans += buffer.weight
            buffer.closed_at = None
            buffer.check_interval = FIRST_CHECK_S
            buffer.next_check = now + FIRST_CHECK_S
        self._plan(buffer, now)

    def _plan(self, buffer: TraceBuffer, now: float) -> None:
        due, at = self._due, now + self._times.linger
        if due and due[-1][0] >= at:
            due[-1][1].append(buffer)
        else:
            due.append((at, [buffer]))

    def _weigh(self, buffer: TraceBuffer, before: int, now: float) -> None:
        """Count the spans that a buffer received."""
        weight = len(buffer.spans) - buffer.others
        if weight != before:
            self._open_spans += weight - before
            if not before:
                self._growing[buffer] = None
            if weight >= buffer.full_at:
                self._hold_span_limit(buffer, now)

    def _belongs_to_closed(self, closed: dict[TraceId, ClosedIds], span: AgentSpan) -> bool:
        """Whether a span is, or hangs on, one of a final run; it is counted."""
        account = late.account_of(closed, span)
        if account is None:
            return False
        if account != DUPLICATE:
            self._live_ids += late.add(closed, span, account)
        self.accounts[account] += 1
        return True

    def _join(self, buffer: TraceBuffer, other_id: TraceId, now: float) -> TraceBuffer:
        """Join two traces that a messaging link connects: both ids lead to one buffer from now on."""
        other = self._buffers.get(other_id) or self._begin(other_id, now)
        if other is buffer:
            buffer.joined = True
            return buffer
        if other.weight > buffer.weight:
            buffer, other = other, buffer
        for one in (buffer, other):
            if one.closed_at is not None or one.last_seen != now:
                self._touch(one, now)
            self._uncount(one)
        self._growing.pop(other, None)
        if buffer.weight + other.weight:
            self._growing[buffer] = None
        buffer.joined = True
        buffer.absorb(other)
        for key in other.lent or ():
            self._lend_to(key, other, [], now)
        self._buffers.update(dict.fromkeys(buffer.traces, buffer))
        return buffer

    # --- Evaluations --------------------------------------------------------------------------------------------------

    def _give(self, evaluation: Evaluation, now: float) -> bool:
        """Give an evaluation to the buffer of its trace, or to a final run. False: neither is known."""
        trace_id = evaluation.trace_id or b""
        buffer = self._buffers.get(trace_id)
        closed = None if buffer is None or buffer.closed is None else buffer.closed.get(trace_id)
        if closed is not None and closed.ids and (not buffer.weight or evaluation.span_id in closed.ids):  # pyright: ignore[reportOptionalMemberAccess]
            self._evaluate_final(evaluation, trace_id)
        elif buffer is not None:
            if evaluation in buffer.evaluations:
                return True
            if len(buffer.evaluations) >= MAX_PER_TRACE:
                self.accounts["evaluation_refused", "ceiling"] += 1
                return True
            if buffer.last_seen != now or buffer.closed_at is not None:
                self._touch(buffer, now)
            buffer.evaluations += (evaluation,)
        elif self._closed.has_ids(trace_id):
            self._evaluate_final(evaluation, trace_id)
        else:
            return False
        return True

    def _evaluate_final(self, evaluation: Evaluation, trace_id: TraceId) -> None:
        """What windows hold of a final run changes, what counters have recorded does not."""
        found = self._final.evaluate(evaluation, trace_id)
        if found is None:
            self.accounts["evaluation_late", ""] += 1
        elif found[0] is not found[1]:
            self._events.append(RunEvent(RunChange.REVISED, found[1], found[0]))

    # --- Time ---------------------------------------------------------------------------------------------------------

    def tick(self, now: float) -> list[RunEvent]:
        """Close what is due, hold the limits, finalize what can no longer change, forget what is too old."""
        self._close_due(now)
        self._hold_limits(now)
        self._finalize_due(now)
        self._forget(now)
        return self._take_events()

    def close_all(self, reason: CloseReason, now: float) -> list[RunEvent]:
        """Close and finalize everything."""
        for buffer in list(self._buffers.values()):
            if buffer.closed_at is None and buffer not in self._growing:
                self._rest(buffer, now)
        while self._growing:  # closing one may lend spans to the buffer of a run key
            for buffer in list(self._growing):
                self._close(buffer, self._assembled(buffer), reason, now)
        while self._finished:
            self._finalize(*self._finished.popleft(), now)
        self._due.clear()
        self._later.clear()
        return self._take_events()

    def complete(self, traces: Iterable[TraceId], reason: CloseReason, now: float) -> list[RunEvent]:
        """Close, finalize and forget traces of which nothing more arrives: no span, no evaluation, no link to them.

        A trace that shares a run with others, by a link or a run key, stays as it is.
        """
        for trace_id in traces:
            buffer = self._buffers.get(trace_id)
            if buffer is not None:
                if buffer.closed_at is None and buffer not in self._growing:
                    self._rest(buffer, now)
                elif buffer.joined or len(buffer.traces) > 1:
                    continue
                else:
                    if buffer.closed_at is None:
                        self._close(buffer, self._assembled(buffer), reason, now)
                    if buffer.lent:
                        continue
                    self._finalize(buffer.closed_at or now, buffer, now)
            self._closed.take(trace_id)
            self._final.forget(trace_id)
            self._opened.forget(trace_id)
        if len(self._finished) > 2 * len(self._buffers) + 4_096:
            self._finished = deque(one for one in self._finished if one[1].closed_at == one[0])
        return self._take_events()

    def _close_due(self, now: float) -> None:
        due, linger = self._due, self._times.linger
        while due and due[0][0] <= now:
            for buffer in due.popleft()[1]:
                if buffer.closed_at is not None or not buffer.traces:
                    continue
                is_quiet = buffer.last_seen + linger <= now
                if buffer not in self._growing:
                    if is_quiet:
                        self._rest(buffer, now)
                elif is_quiet or now >= buffer.next_check:
                    self._check(buffer, now, is_quiet=is_quiet)
        while self._later and self._later[0][0] <= now:
            at, _, buffer = heapq.heappop(self._later)
            if buffer.planned == at:
                buffer.planned = None
            if buffer in self._growing:
                self._check(buffer, now, is_quiet=buffer.last_seen + linger <= now)

    def _check(self, buffer: TraceBuffer, now: float, *, is_quiet: bool) -> None:
        """Close a trace, or those of its parts that are finished."""
        opened = self._opened.of(buffer.traces)
        built = self._assembled(buffer)
        if buffer not in self._growing:
            return
        if buffer.lenders is not None:
            self._close(buffer, built, _ROOT, now)
            return
        is_old = bool(buffer.checks) and buffer.born + self._times.reopen <= now
        if is_quiet and not built.has_gap and not opened and not is_old:
            self._close(buffer, built, _ROOT, now)
        else:
            self._close_parts(buffer, built, divide(buffer, built, opened), now, is_quiet=is_quiet)

    def _assembled(self, buffer: TraceBuffer) -> Assembled:
        """The runs of a buffer, without the spans that turn out to hang on final runs."""
        if buffer.lenders is not None:
            return self._assemble.keyed(buffer.traces[0][len(RUN_KEYS) :], buffer.spans)
        closed = buffer.closed
        if closed is not None:
            self._drop(buffer, late.hanging_on_closed(closed, buffer.spans))
        while True:
            built = self._assemble_spans(buffer)
            ended = [key for key in built.keyed if self._closed.has_ids(RUN_KEYS + key)] if built.keyed else None
            if not ended:
                return built
            self._drop(buffer, {(span[0], span[1]): late.LATE for key in ended for span in built.keyed[key]})

    def _assemble_spans(self, buffer: TraceBuffer) -> Assembled:
        closed = buffer.closed
        if closed is None:
            return self._assemble(buffer.spans, buffer.evaluations, joined=buffer.joined)
        return self._assemble(buffer.spans, buffer.evaluations, joined=buffer.joined, closed=closed)

    def _drop(self, buffer: TraceBuffer, dropped: Mapping[SpanRef, tuple[str, str]]) -> None:
        """Take spans that belong to final runs out of a buffer; each is counted once, with its duplicates."""
        if not dropped:
            return
        self._uncount(buffer)
        closed = buffer.closed = buffer.closed or {}
        taken = self._take_out(buffer, dropped)
        for span in taken:
            account = dropped[span[0], span[1]]
            ids = closed.setdefault(span[0], ClosedIds())
            self.accounts[DUPLICATE if span[1] in ids.ids else account] += 1
            self._live_ids += late.add(closed, span, account)

    def _take_out(self, buffer: TraceBuffer, refs: Container[SpanRef]) -> list[AgentSpan]:
        """Remove spans from an open buffer, and return them."""
        weight, others = buffer.weight, buffer.others
        taken = buffer.take_out(refs)
        self._open_spans -= weight - buffer.weight
        self._other_spans -= others - buffer.others
        return taken

    def _close(self, buffer: TraceBuffer, built: Assembled, reason: CloseReason, now: float) -> None:
        """Close a whole trace: emit what differs from what was emitted before."""
        del self._growing[buffer]
        weight = buffer.weight
        self._open_spans -= weight
        self._reopenable_spans += weight
        buffer.closed_at = now
        self._finished.append((now, buffer))
        runs = built.runs
        if buffer.emitted:
            self._withdraw(buffer, built)
            for run in runs:
                self._emit(buffer, run, reason, now)
        elif runs:
            if reason is not _ROOT:
                runs = [run._replace(closed_by=reason) for run in runs]
            self._events.extend([event_of((_CLOSED, run, None)) for run in runs])
            self.accounts["closed", reason.value] += len(runs)
            buffer.emitted = {run[0]: run for run in runs}
        if buffer.counted is not None:
            self._uncount(buffer)
        for account, number in built.accounts:
            if number:
                self.accounts[account] += number
        buffer.counted, buffer.anchors = built.accounts, built.anchors
        if built.keyed or buffer.lent:
            self._lend(buffer, built, now)

    def _emit(self, buffer: TraceBuffer, run: Run, reason: CloseReason, now: float) -> None:
        """Emit a run unless it is what was emitted before."""
        run = run._replace(closed_by=reason)
        before = buffer.emitted.get(run.run_id)
        if before is None:
            self.accounts["closed", reason.value] += 1
            self._events.append(RunEvent(_CLOSED, run))
        elif before._replace(closed_by=reason) == run:
            return
        else:
            self._events.append(RunEvent(RunChange.REVISED, run, before))
        buffer.emitted[run.run_id] = run
        buffer.emitted_at[run.run_id] = now

    def _withdraw(self, buffer: TraceBuffer, built: Assembled) -> None:
        """Withdraw the runs that are none any more."""
        known = {run.run_id for run in built.runs}
        for run_id in [run_id for run_id in buffer.emitted if run_id not in known]:
            self._events.append(RunEvent(RunChange.WITHDRAWN, buffer.emitted.pop(run_id)))

    def _uncount(self, buffer: TraceBuffer) -> None:
        """Take the spans of a buffer out of the accounts: they are open, or counted again."""
        for account, number in buffer.counted or ():
            self.accounts[account] -= number
        buffer.counted = None

    # --- Parts of a trace ---------------------------------------------------------------------------------------------

    def _close_parts(  # noqa: C901, PLR0912 (each branch is one rule)
        self, buffer: TraceBuffer, built: Assembled, parts: Sequence[Part], now: float, *, is_quiet: bool
    ) -> None:
        """Emit the runs of the parts that are finished, and finalize those that can no longer change."""
        times = self._times
        buffer.checks = (*buffer.checks, now)
        ahead: list[float] = []
        is_waiting = False
        ready: list[Part] = []
        growing: list[Part] = []
        for part in parts:
            until = part.last + (times.idle_timeout if part.has_gap else times.linger)
            if part.is_held or until > now:
                growing.append(part)
                ahead.append(max(until, now + times.linger))
            else:
                ready.append(part)
                if part.has_linked and part.last + times.idle_timeout > now:
                    ahead.append(part.last + times.idle_timeout)
                    is_waiting = True
        self._withdraw(buffer, built)
        for part in ready:
            for number in part.runs:
                self._emit(buffer, built.runs[number], CloseReason.IDLE if part.has_gap else _ROOT, now)
        if built.keyed or buffer.lent:
            self._lend(buffer, built, now)
        final: list[Part] = []
        for part in ready:
            at = self._final_at(buffer, built, part)
            if at > now:
                ahead.append(at)
            elif not any(part.may_change_with(other) for other in growing):
                final.append(part)
        buffer.checks = tuple([at for at in buffer.checks if at + times.reopen > now])
        if final:
            self._let_go(buffer, built, final)
        if is_quiet and not growing and not is_waiting:
            self._close(buffer, self._assembled(buffer) if final else built, _ROOT, now)
        elif is_quiet:
            self._plan_parts(buffer, min(ahead, default=now + times.linger))
        else:
            buffer.next_check = now + buffer.check_interval
            buffer.check_interval = min(2 * buffer.check_interval, LONGEST_CHECK_S)

    def _plan_parts(self, buffer: TraceBuffer, at: float) -> None:
        if buffer.planned is None or at < buffer.planned:
            buffer.planned = at
            heapq.heappush(self._later, (at, next(self._ticket), buffer))

    def _final_at(self, buffer: TraceBuffer, built: Assembled, part: Part) -> float:
        """When a finished part becomes final."""
        times, spans = self._times, built.tree.spans
        keyed = {(span[0], span[1]) for each in built.keyed.values() for span in each}
        if keyed and any((spans[i][0], spans[i][1]) in keyed for i in part.spans):
            return inf
        finished = part.last + (times.idle_timeout if part.has_gap or part.has_linked else times.linger)
        checked = min(at for at in buffer.checks if at >= finished or at == buffer.checks[-1])
        emitted = [buffer.emitted_at.get(built.runs[number].run_id, checked) for number in part.runs]
        return max([checked, *emitted]) + times.reopen

    def _let_go(self, buffer: TraceBuffer, built: Assembled, parts: Iterable[Part], *, sealed: bool = False) -> None:
        """Finalize parts of an open trace: their spans leave the buffer, their ids stay."""
        self._uncount(buffer)
        tree = built.tree
        closed = buffer.closed = {} if buffer.closed is None else buffer.closed
        refs: set[SpanRef] = set()
        for part in parts:
            runs = [built.runs[number] for number in part.runs]
            for run in runs:
                self._finalize_run(buffer.emitted.pop(run.run_id))
                buffer.emitted_at.pop(run.run_id, None)
            for account, number in accounts_of(built, part).items():
                self.accounts[account] += number
            refs.update((tree.spans[i][0], tree.spans[i][1]) for i in part.spans)
            self._live_ids += late.close(closed, built, part, sealed=sealed)
        gone = [
            one
            for at, found in tree.evaluations.items()
            if (tree.spans[max(at, ~at)][0], tree.spans[max(at, ~at)][1]) in refs
            for one in found
        ]
        if gone:
            buffer.evaluations = tuple(one for one in buffer.evaluations if one not in gone)
        taken = self._take_out(buffer, refs)
        self.accounts[DUPLICATE] += len(taken) - len(refs)

    def _hold_span_limit(self, buffer: TraceBuffer, now: float) -> None:
        """Close the parts that have reached the span limit, with as many spans as arrived first; they are final at once."""
        limit = self._limits.span_limit
        built = self._assemble_spans(buffer)
        large = [part for part in divide(buffer, built, {}) if part.count >= limit]
        buffer.full_at = 2 * max(buffer.weight, limit)
        if not large:
            return
        buffer.full_at = limit
        first: dict[SpanRef, int] = {}
        for index, span in enumerate(buffer.spans):
            if is_kept(span):
                first.setdefault((span[0], span[1]), index)
        kept: set[SpanRef] = set()
        refused: dict[SpanRef, Account] = {}
        for part in large:
            refs = [(span[0], span[1]) for i in part.spans if is_kept(span := built.tree.spans[i])]
            refs.sort(key=first.__getitem__)
            kept.update(refs[:limit])
            refused.update(dict.fromkeys(refs[limit:], late.SEALED))
        self._drop(buffer, refused)
        built = self._assemble_spans(buffer)
        sealed = [
            part
            for part in divide(buffer, built, {})
            if any((span[0], span[1]) in kept for span in map(built.tree.spans.__getitem__, part.spans))
        ]
        self._withdraw(buffer, built)
        for part in sealed:
            for number in part.runs:
                self._emit(buffer, built.runs[number], CloseReason.SPAN_LIMIT, now)
        self._let_go(buffer, built, sealed, sealed=True)

    # --- Run keys -----------------------------------------------------------------------------------------------------

    def _lend(self, buffer: TraceBuffer, built: Assembled, now: float) -> None:
        """Lend lone work with a run key to the buffer of the key, whose spans are a run of their own."""
        for key in {*built.keyed, *(buffer.lent or ())}:
            self._lend_to(key, buffer, built.keyed.get(key, []), now)
        buffer.lent = frozenset(built.keyed) or None

    def _lend_to(self, key: bytes, lender: TraceBuffer, spans: list[AgentSpan], now: float) -> None:
        trace_id = RUN_KEYS + key
        buffer = self._buffers.get(trace_id)
        if buffer is None:
            if not spans:
                return
            buffer = self._buffers[trace_id] = TraceBuffer(trace_id, now, FIRST_CHECK_S, self._limits.span_limit)
            buffer.lenders = {}
            self._growing[buffer] = None
        lenders = buffer.lenders
        if lenders is None or lenders.get(lender, []) == spans:
            return
        if buffer.closed_at is not None:
            self._touch(buffer, now)
        if spans:
            lenders[lender] = spans
        else:
            del lenders[lender]
        weight = buffer.weight
        buffer.spans = [span for each in lenders.values() for span in each]
        self._open_spans += buffer.weight - weight
        self._plan_parts(buffer, now)

    # --- Finalizing ---------------------------------------------------------------------------------------------------

    def _finalize_due(self, now: float) -> None:
        finished, reopen = self._finished, self._times.reopen
        while finished and finished[0][0] + reopen <= now:
            self._finalize(*finished.popleft(), now)

    def _finalize(self, closed_at: float, buffer: TraceBuffer, now: float) -> None:
        """Finalize a trace that can no longer be reopened: its spans are dropped, their ids stay."""
        if buffer.closed_at != closed_at:
            return
        if buffer.lenders is not None and any(lender.traces for lender in buffer.lenders):
            buffer.closed_at = now  # a run of a run key may change as long as any of its traces may
            self._finished.append((now, buffer))
            return
        for run in buffer.emitted.values():
            self._finalize_run(run)
        self._reopenable_spans -= buffer.weight
        self._forget_buffer(buffer, now)

    def _finalize_run(self, run: Run) -> None:
        self._events.append(event_of((_FINAL, run, None)))
        self._final.remember(run)

    def _rest(self, buffer: TraceBuffer, now: float) -> None:
        """Put a trace that has no agent spans aside: its spans may come to connect others."""
        self._uncount(buffer)
        received = len(buffer.spans)
        kept = self._forget_buffer(buffer, now)
        self.accounts[NO_CONVENTION] += kept
        if received > kept:
            self.accounts[DUPLICATE] += received - kept

    def _forget_buffer(self, buffer: TraceBuffer, now: float) -> int:
        """Keep of a buffer what is to be remembered; return how many spans that connect others are."""
        kept = 0
        evaluations = self._unused_evaluations(buffer)
        self._other_spans -= buffer.others
        if buffer.closed is not None:
            self._live_ids -= sum(map(len, buffer.closed.values()))
        for trace_id, record in late.records(buffer, now):
            self._closed.put(trace_id, record)
            kept += len(record[6])
        for trace_id in buffer.traces:
            del self._buffers[trace_id]
        buffer.traces, buffer.spans, buffer.others, buffer.closed_at, buffer.closed = (), [], 0, None, None
        for evaluation in evaluations:
            self._evaluations.add(evaluation, now)
        return kept

    def _unused_evaluations(self, buffer: TraceBuffer) -> Sequence[Evaluation]:
        """Evaluations that no run of a buffer has, so that they wait on."""
        if not buffer.evaluations:
            return ()
        if not buffer.weight:
            return buffer.evaluations
        given = {one for found in self._assemble_spans(buffer).tree.evaluations.values() for one in found}
        lost = sum(one not in given for one in buffer.evaluations)
        self.accounts[NO_RUN] += lost
        return ()

    # --- Limits -------------------------------------------------------------------------------------------------------

    def _hold_limits(self, now: float) -> None:
        """Above a limit the heaviest traces are closed, of equals the oldest."""
        limits = self._limits
        if len(self._growing) > limits.open_runs:
            self._close_heaviest(
                len(self._growing) - limits.open_runs + limits.open_runs // _SHARE, 0, CloseReason.OPEN_RUNS, now
            )
        size = self._open_spans * SPAN_BYTES
        if size > limits.open_bytes:
            self._close_heaviest(0, size - limits.open_bytes + limits.open_bytes // _SHARE, CloseReason.MEMORY, now)
        for _ in range(len(self._finished)):
            if self._reopenable_spans * SPAN_BYTES <= limits.reopenable_bytes:
                return
            self._finalize(*self._finished.popleft(), now)
            self.accounts["ceiling", "reopenable_bytes"] += 1

    def _close_heaviest(self, number: int, size: int, reason: CloseReason, now: float) -> None:
        for buffer in sorted(self._growing, key=lambda buffer: (-buffer.weight, buffer.born)):
            if number <= 0 and size <= 0:
                return
            number, size = number - 1, size - buffer.weight * SPAN_BYTES
            self._close(buffer, self._assembled(buffer), reason, now)

    def _forget(self, now: float) -> None:
        """Forget traces in time, and the oldest where too many ids are remembered; evaluations that waited too long too."""
        limits, closed = self._limits, self._closed
        horizon = now - self._times.remember
        while (trace_id := closed.take_oldest(horizon)) is not None:
            self._final.forget(trace_id)
        if self._other_spans + closed.spans >= limits.other_spans:
            self._forget_oldest(lambda: self._other_spans + closed.spans < limits.other_spans * (1 - 1 / _SHARE))
        if self._live_ids + closed.ids > limits.closed_ids:
            self._forget_oldest(lambda: self._live_ids + closed.ids <= limits.closed_ids * (1 - 1 / _SHARE))
            self._forget_live_ids(self._live_ids + closed.ids - limits.closed_ids)
        if self._evaluations.count:
            self._evaluations.expire(now)
        if self._opened:
            self._opened.expire(horizon, now, self._is_growing)

    def _forget_oldest(self, is_enough: Callable[[], bool]) -> None:
        while not is_enough() and (trace_id := self._closed.take_oldest()) is not None:
            self._final.forget(trace_id)
            self.accounts["ceiling", "remembered_ids"] += 1

    def _forget_live_ids(self, number: int) -> None:
        """Forget ids of final runs of traces of which spans still arrive, the most numerous first."""
        if number <= 0:
            return
        self.accounts["ceiling", "remembered_ids"] += 1
        live = [one for buffer in set(self._buffers.values()) if buffer.closed for one in buffer.closed.values()]
        for closed in sorted(live, key=len, reverse=True):
            for ids in (closed.ids, closed.anchors):
                while ids and number > 0:
                    ids.pop()
                    number -= 1
                    self._live_ids -= 1

    def _is_growing(self, trace_id: TraceId) -> bool:
        buffer = self._buffers.get(trace_id)
        return buffer is not None and buffer in self._growing

    def _take_events(self) -> list[RunEvent]:
        events, self._events = self._events, []
        return events

    # --- Over a restart -----------------------------------------------------------------------------------------------

    def holds(self, trace_id: TraceId) -> bool:
        """Return whether a trace has spans that are still needed to assemble it."""
        return trace_id in self._buffers

    def closed_record(self, trace_id: TraceId, now: float) -> Record | None:
        """Return what is remembered of the final runs of a trace; None: nothing of it is final."""
        buffer = self._buffers.get(trace_id)
        if buffer is None:
            return self._closed.get(trace_id)
        closed = None if buffer.closed is None else buffer.closed.get(trace_id)
        return None if closed is None else record_of(now, closed)

    def restore_closed(self, trace_id: TraceId, record: Record) -> None:
        """Remember what `closed_record` returned, before any span of the trace is added again."""
        self._closed.put(trace_id, record)

    def restore_final(self, runs: Iterable[Run]) -> None:
        """Remember the latest final runs, the latest at the end: evaluations of them may still arrive."""
        for run in runs:
            self._final.remember(run)
