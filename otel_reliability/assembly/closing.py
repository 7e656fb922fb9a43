"""The life of the runs of a trace: closed, revised, withdrawn, final. Each time the trace is assembled as a whole, and the
difference to what was emitted before is emitted; a late span needs no code of its own.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from otel_reliability.assembly import late
from otel_reliability.assembly.assemble import DUPLICATE, NO_CONVENTION, Account, Assemble, Assembled
from otel_reliability.assembly.buffers import Buffers, TraceBuffer
from otel_reliability.assembly.closed_traces import ClosedIds
from otel_reliability.assembly.evaluations import NO_RUN, FinalRuns
from otel_reliability.assembly.orphans import RUN_KEYS
from otel_reliability.assembly.parts import Part, accounts_of, divide
from otel_reliability.assembly.span_tree import is_kept
from otel_reliability.config import Settings
from otel_reliability.model.run import CloseReason, Run, RunChange, RunEvent, event_of
from otel_reliability.model.span import AgentSpan, Evaluation, SpanId, SpanRef, TraceId

# --- Spans that are known to be open ------------------------------------------------------------------------------------


MAX_PER_TRACE: Final = 10_000


class OpenSpans:
    """Open spans by trace, with their parents."""

    def __init__(self) -> None:
        self._since: OrderedDict[TraceId, float] = OrderedDict()
        self._parents: dict[TraceId, dict[SpanId, SpanId | None]] = {}

    def __bool__(self) -> bool:
        return bool(self._parents)

    def open(self, trace_id: TraceId, span_id: SpanId, parent_id: SpanId | None, now: float) -> None:
        """Note that a span has started."""
        parents = self._parents.setdefault(trace_id, {})
        self._since[trace_id] = now
        self._since.move_to_end(trace_id)
        if len(parents) < MAX_PER_TRACE:
            parents[span_id] = parent_id

    def end(self, trace_id: TraceId, span_id: SpanId) -> None:
        """Note that a span has ended."""
        parents = self._parents.get(trace_id)
        if parents is not None:
            parents.pop(span_id, None)
            if not parents:
                self.forget(trace_id)

    def end_all(self, spans: Iterable[AgentSpan]) -> None:
        """Note that spans have ended and arrived."""
        known = self._parents
        for span in spans:
            if span[0] in known:
                self.end(span[0], span[1])

    def of(self, traces: Iterable[TraceId]) -> Mapping[TraceId, Mapping[SpanId, SpanId | None]]:
        """Return the open spans of some traces, with their parents; traces without any are left out."""
        known = self._parents
        return {trace_id: known[trace_id] for trace_id in traces if trace_id in known}

    def forget(self, trace_id: TraceId) -> None:
        """Drop a trace."""
        self._parents.pop(trace_id, None)
        self._since.pop(trace_id, None)

    def expire(self, horizon: float, now: float, is_growing: Callable[[TraceId], bool]) -> None:
        """Drop traces of which no span has started since then, unless they grow."""
        while self._since:
            trace_id, since = next(iter(self._since.items()))
            if since > horizon:
                return
            if is_growing(trace_id):
                self._since[trace_id] = now
                self._since.move_to_end(trace_id)
            else:
                self.forget(trace_id)


# --- Closing ------------------------------------------------------------------------------------------------------------


_ROOT: Final = CloseReason.ROOT
_CLOSED, _FINAL = RunChange.CLOSED, RunChange.FINAL


class Closing:
    """Closes and finalizes the runs of buffers.

    `events` are what it emitted, `unclaimed` the evaluations of traces without runs, `accounts` what became of spans and runs.
    """

    def __init__(
        self,
        settings: Settings,
        buffers: Buffers,
        opened: OpenSpans,
        final: FinalRuns,
        accounts: Counter[Account],
    ) -> None:
        self.events: list[RunEvent] = []
        self.unclaimed: list[Evaluation] = []
        self._times, self._span_limit = settings.assembly, settings.limits.span_limit
        self._assemble = Assemble(settings)
        self._buffers, self._opened, self._final, self._accounts = buffers, opened, final, accounts

    # --- Checking -----------------------------------------------------------------------------------------------------

    def check(self, buffer: TraceBuffer, now: float) -> None:
        """Close a trace that is due, or those of its parts that are finished."""
        quiet_at = buffer.last_seen + self._times.linger
        is_growing = buffer in self._buffers.growing
        if buffer.closed_at is not None:
            return
        if quiet_at > now and (not is_growing or buffer.next_check > now):
            self._buffers.plan(buffer, min(quiet_at, buffer.next_check) if is_growing else quiet_at)
        elif not is_growing:
            self.put_aside(buffer, now)
        else:
            built, opened, times = self._assembled(buffer, now), self._opened.of(buffer.traces), self._times
            is_quiet = buffer.last_seen + times.linger <= now
            is_old = bool(buffer.checks) and buffer.born + times.reopen <= now
            if is_quiet and not built.has_gap and not opened and not is_old:
                self._close(buffer, built, _ROOT, now)
            else:
                self._close_parts(buffer, built, divide(buffer, built, opened), now, is_quiet=is_quiet)

    def close(self, buffer: TraceBuffer, reason: CloseReason, now: float) -> None:
        """Close a whole trace now."""
        self._close(buffer, self._assembled(buffer, now), reason, now)

    def _assembled(self, buffer: TraceBuffer, now: float) -> Assembled:
        """Assemble a buffer: with all work of its run keys, and without spans that turn out to belong to final runs."""
        while True:
            if buffer.closed is not None:
                self._drop(buffer, late.hanging_on_closed(buffer.closed, buffer.spans))
            built = self.assemble_spans(buffer)
            if not built.keyed:
                return built
            dropped: dict[SpanRef, Account] = {}
            is_joined = False
            for key, at in built.keyed.items():
                trace_id = RUN_KEYS + key
                if self._buffers.closed.has_ids(trace_id) or trace_id in (buffer.closed or ()):
                    dropped.update((built.tree.ref(i), late.LATE) for i in at)
                elif self._buffers.get(trace_id) is not buffer:
                    self._buffers.join_key(buffer, key, now)
                    is_joined = True
            if buffer.weight >= buffer.full_at:
                self.hold_span_limit(buffer, now)
            elif not dropped and not is_joined:
                return built
            self._drop(buffer, dropped)

    def assemble_spans(self, buffer: TraceBuffer) -> Assembled:
        """Assemble the spans of a buffer as they are."""
        closed = buffer.closed
        if closed is None:
            return self._assemble(buffer.spans, buffer.evaluations, joined=buffer.joined)
        return self._assemble(buffer.spans, buffer.evaluations, joined=buffer.joined, closed=closed)

    def _drop(self, buffer: TraceBuffer, dropped: Mapping[SpanRef, Account]) -> None:
        """Take spans that belong to final runs out of a buffer; each is counted once, with its duplicates."""
        if not dropped:
            return
        self._uncount(buffer)
        closed = buffer.closed = buffer.closed or {}
        for span in self._buffers.take_out(buffer, dropped):
            account = dropped[span[0], span[1]]
            ids = closed.setdefault(span[0], ClosedIds())
            self._accounts[DUPLICATE if span[1] in ids.ids else account] += 1
            self._buffers.closed.ids += late.add(closed, span, account)

    # --- A whole trace ------------------------------------------------------------------------------------------------

    def _close(self, buffer: TraceBuffer, built: Assembled, reason: CloseReason, now: float) -> None:
        """Emit what differs from what was emitted before; the trace can still be reopened."""
        self._buffers.close(buffer, now)
        runs = built.runs
        if buffer.emitted:
            self._withdraw(buffer, built)
            for run in runs:
                self._emit(buffer, run, reason, now)
        elif runs:
            if reason is not _ROOT:
                runs = [run._replace(closed_by=reason) for run in runs]
            self.events.extend([event_of((_CLOSED, run, None)) for run in runs])
            self._accounts["closed", reason.value] += len(runs)
            buffer.emitted = {run[0]: run for run in runs}
        self._uncount(buffer)
        for account, number in built.accounts:
            if number:
                self._accounts[account] += number
        buffer.counted, buffer.anchors = built.accounts, built.anchors

    def _emit(self, buffer: TraceBuffer, run: Run, reason: CloseReason, now: float) -> None:
        """Emit a run unless it is what was emitted before."""
        run = run._replace(closed_by=reason)
        before = buffer.emitted.get(run.run_id)
        if before is None:
            self._accounts["closed", reason.value] += 1
            self.events.append(RunEvent(_CLOSED, run))
        elif before._replace(closed_by=reason) == run:
            return
        else:
            self.events.append(RunEvent(RunChange.REVISED, run, before))
        buffer.emitted[run.run_id] = run
        buffer.emitted_at[run.run_id] = now

    def _withdraw(self, buffer: TraceBuffer, built: Assembled) -> None:
        """Withdraw the runs that are none any more."""
        known = {run.run_id for run in built.runs}
        for run_id in [run_id for run_id in buffer.emitted if run_id not in known]:
            self.events.append(RunEvent(RunChange.WITHDRAWN, buffer.emitted.pop(run_id)))

    def _uncount(self, buffer: TraceBuffer) -> None:
        """Take the spans of a buffer out of the accounts: they are open, or counted again."""
        for account, number in buffer.counted:
            self._accounts[account] -= number
        buffer.counted = ()

    # --- Parts of a trace ---------------------------------------------------------------------------------------------

    def _close_parts(
        self, buffer: TraceBuffer, built: Assembled, parts: Sequence[Part], now: float, *, is_quiet: bool
    ) -> None:
        """Emit the runs of the parts that are finished, and finalize those that can no longer change."""
        times, buffers = self._times, self._buffers
        buffer.checks = (*buffer.checks, now)
        finished = [part for part in parts if not part.is_held and part.finished_at(times) <= now]
        growing = [part for part in parts if part not in finished]
        self._withdraw(buffer, built)
        for part in finished:
            for number in part.runs:
                self._emit(buffer, built.runs[number], CloseReason.IDLE if part.has_gap else _ROOT, now)
        final_at = {part: part.final_at(buffer, built, times) for part in finished}
        final = _unchangeable([part for part, at in final_at.items() if at <= now], parts)
        buffer.checks = tuple([at for at in buffer.checks if at + times.reopen > now])
        if final:
            self._let_go(buffer, built, final)
        waiting = [at for part in finished if part.has_linked and (at := part.last + times.idle_timeout) > now]
        if not is_quiet:
            buffer.checked(now)
            buffers.plan(buffer, min(buffer.last_seen + times.linger, buffer.next_check))
        elif growing or waiting:
            ahead = [max(part.finished_at(times), now + times.linger) for part in growing]
            ahead += [at for at in final_at.values() if at > now]
            buffers.plan(buffer, min([*ahead, *waiting]))
        else:
            self._close(buffer, self._assembled(buffer, now) if final else built, _ROOT, now)

    def _let_go(self, buffer: TraceBuffer, built: Assembled, parts: Iterable[Part], *, sealed: bool = False) -> None:
        """Finalize parts of an open trace: their spans leave the buffer, their ids stay."""
        self._uncount(buffer)
        tree = built.tree
        closed = buffer.closed = {} if buffer.closed is None else buffer.closed
        refs: set[SpanRef] = set()
        for part in parts:
            for number in part.runs:
                run_id = built.runs[number].run_id
                self._finalize(buffer.emitted.pop(run_id))
                buffer.emitted_at.pop(run_id, None)
            for account, number in accounts_of(built, part).items():
                self._accounts[account] += number
            refs.update(map(tree.ref, part.spans))
            self._buffers.closed.ids += late.close(closed, built, part, sealed=sealed)
        given = [one for at, found in tree.evaluations.items() if tree.ref(max(at, ~at)) in refs for one in found]
        if given:
            buffer.evaluations = tuple(one for one in buffer.evaluations if one not in given)
        taken = self._buffers.take_out(buffer, refs)
        self._accounts[DUPLICATE] += len(taken) - len(refs)

    def hold_span_limit(self, buffer: TraceBuffer, now: float) -> None:
        """Close the parts that have reached the span limit, with as many spans as arrived first; they are final at once."""
        limit = self._span_limit
        built = self.assemble_spans(buffer)
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
            refs = sorted(
                [built.tree.ref(i) for i in part.spans if is_kept(built.tree.spans[i])], key=first.__getitem__
            )
            kept.update(refs[:limit])
            refused.update(dict.fromkeys(refs[limit:], late.SEALED))
        self._drop(buffer, refused)
        built = self.assemble_spans(buffer)
        sealed = [part for part in divide(buffer, built, {}) if not kept.isdisjoint(map(built.tree.ref, part.spans))]
        self._withdraw(buffer, built)
        for part in sealed:
            for number in part.runs:
                self._emit(buffer, built.runs[number], CloseReason.SPAN_LIMIT, now)
        self._let_go(buffer, built, sealed, sealed=True)

    # --- Finalizing ---------------------------------------------------------------------------------------------------

    def finalize_due(self, now: float) -> None:
        """Finalize the traces that can no longer be reopened."""
        closed, reopen = self._buffers.reopenable, self._times.reopen
        while closed and ((buffer := next(iter(closed))).closed_at or 0.0) + reopen <= now:
            self.finalize(buffer, now)

    def finalize(self, buffer: TraceBuffer, now: float) -> None:
        """Finalize a closed trace: its spans are dropped, their ids stay."""
        for run in buffer.emitted.values():
            self._finalize(run)
        if buffer.evaluations and buffer.weight:
            given = {one for found in self.assemble_spans(buffer).tree.evaluations.values() for one in found}
            self._accounts[NO_RUN] += sum(one not in given for one in buffer.evaluations)
            buffer.evaluations = ()
        self._remove(buffer, now)

    def put_aside(self, buffer: TraceBuffer, now: float) -> None:
        """Put a trace without agent spans aside: its spans may come to connect others, its evaluations wait on."""
        self._uncount(buffer)
        unique = {(span[0], span[1]) for span in buffer.spans}
        self._accounts[NO_CONVENTION] += len(unique)
        self._accounts[DUPLICATE] += len(buffer.spans) - len(unique)
        self._remove(buffer, now)

    def _finalize(self, run: Run) -> None:
        self.events.append(event_of((_FINAL, run, None)))
        self._final.remember(run)

    def _remove(self, buffer: TraceBuffer, now: float) -> None:
        """Keep of a buffer what is to be remembered."""
        self.unclaimed += buffer.evaluations
        records = list(late.records(buffer, now))
        self._buffers.remove(buffer)
        for trace_id, record in records:
            self._buffers.closed.put(trace_id, record)


def _unchangeable(final: list[Part], parts: Sequence[Part]) -> list[Part]:
    """Return those of the final parts that no other part may change, nor a final part that must wait for another."""
    if not any(part.is_loose and part.has_gap for part in parts):
        return final
    while True:
        others = [part for part in parts if part not in final]
        kept = [part for part in final if not any(part.may_change_with(other) for other in others)]
        if len(kept) == len(final):
            return kept
        final = kept
