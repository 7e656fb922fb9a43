"""From agent spans to runs, as they arrive: a buffer per trace, assembled when it is due; the
difference to what was emitted before is emitted, so a late span needs no code of its own.

A span costs one look-up and one append. When no span has arrived for `linger`, one pure function
assembles the runs of the trace. There is no clock and no lock here: time is an argument, and there
is one caller at a time.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import compress
from math import inf
from typing import Final, TypeAlias

from otel_reliability.assembly.accounts import (
    DUPLICATE,
    LATE,
    NO_CONVENTION,
    SEALED,
    Account,
    accounts_of,
)
from otel_reliability.assembly.buffers import Buffers, TraceBuffer
from otel_reliability.assembly.closed_ids import (
    RUN_KEYS,
    ClosedIds,
    account_of,
    accounts_below,
    remember,
)
from otel_reliability.assembly.evaluations import (
    MAX_PER_TRACE,
    NO_TARGET,
    WaitingEvaluations,
)
from otel_reliability.assembly.memory import ClosedTrace, Memory
from otel_reliability.assembly.progress import Progress, progress_of, unchangeable
from otel_reliability.assembly.rebuild import Assemble, Rebuilt
from otel_reliability.assembly.reports import candidates
from otel_reliability.assembly.span_tree import NONE, REF, is_kept, latest_versions
from otel_reliability.assembly.units import Unit
from otel_reliability.config import Settings
from otel_reliability.model.limit import Limit
from otel_reliability.model.run import CloseReason, Run, RunChange, RunEvent, event_of
from otel_reliability.model.span import (
    INVOCATIONS,
    AgentSpan,
    Evaluation,
    Kind,
    SpanId,
    SpanRef,
    TraceId,
)

SPAN_BYTES: Final = 900
"""Estimated bytes of an agent span with its facts."""
_SHARE: Final = 32
"""Above a limit, one 32nd more than needed is closed, so that not every span exceeds it again."""
MAX_HURRIED_SPANS: Final = 512
"""Spans of a trace above which a caller that may not be held up leaves it to others."""
_OTHER: Final = Kind.OTHER
_ROOT: Final = CloseReason.ROOT
_CLOSED = RunChange.CLOSED
_FINAL = RunChange.FINAL

# --- Spans that are known to be open --------------------------------------------------------------


MAX_OPEN_PER_TRACE: Final = 10_000
Opened: TypeAlias = tuple[TraceId, SpanId, SpanId | None]
"""A span that has started, and its parent."""


class OpenSpansByTrace(OrderedDict[TraceId, tuple[float, dict[SpanId, SpanId | None]]]):
    """Open spans by trace, with their parents, and when the last of them started."""

    def open(
        self, trace_id: TraceId, span_id: SpanId, parent_id: SpanId | None, now: float
    ) -> None:
        parents = self.pop(trace_id, (now, dict[SpanId, SpanId | None]()))[1]
        if len(parents) < MAX_OPEN_PER_TRACE:
            parents[span_id] = parent_id
        self[trace_id] = (now, parents)

    def end(self, trace_id: TraceId, span_id: SpanId) -> None:
        if trace_id in self:
            parents = self[trace_id][1]
            parents.pop(span_id, None)
            if not parents:
                del self[trace_id]

    def of(self, traces: Iterable[TraceId]) -> Mapping[TraceId, Mapping[SpanId, SpanId | None]]:
        """Return the open spans of some traces, with their parents; traces without any are left
        out.
        """
        return {trace_id: self[trace_id][1] for trace_id in traces if trace_id in self}


# --- Assembler ------------------------------------------------------------------------------------


class Assembler:
    """Rebuilds runs from agent spans.

    `accounts` counts spans by (what became of them, why): `used`, `other` (no_convention,
    beside_agent, no_agent, no_run), `late`, `duplicate`, `refused`; runs `closed`, by reason;
    evaluations that were lost; what hit a limit (`limit`).
    """

    def __init__(self, settings: Settings) -> None:
        self.accounts: Counter[Account] = Counter()
        self._times = settings.assembly
        self._limits = settings.limits
        self._assemble = Assemble(settings)
        self._opened = OpenSpansByTrace()
        self._memory = Memory(settings.outcome)
        self._buffers = Buffers(settings, self._memory)
        self._evaluations = WaitingEvaluations(
            self._limits.evaluations, self.accounts, self._give, self.spans
        )
        self._events: list[RunEvent] = []
        self._joined: dict[TraceBuffer, None] = {}  # by a run key, since the last check

    @property
    def growing(self) -> Collection[TraceBuffer]:
        """The buffers of traces with agent spans that are not closed."""
        return self._buffers.growing.keys()

    def open_runs_of(self, buffer: TraceBuffer) -> list[Run]:
        """Return the runs of a growing buffer that have not closed, as its spans show them now.
        Nothing changes.
        """
        return [
            run for run in self._assembled_as_is(buffer).runs if run.run_id not in buffer.emitted
        ]

    @property
    def limits(self) -> tuple[Limit, ...]:
        limits = self._limits
        buffers = self._buffers
        accounts = self.accounts
        open_bytes = buffers.open_spans * SPAN_BYTES
        reopenable_bytes = buffers.reopenable_spans * SPAN_BYTES
        other_spans = buffers.other_spans + self._memory.spans
        waiting = self._evaluations.count
        return (
            Limit(
                "open_runs",
                len(buffers.growing),
                limits.open_runs,
                accounts["closed", CloseReason.OPEN_RUNS.value],
            ),
            Limit(
                "open_bytes",
                open_bytes,
                limits.open_bytes,
                accounts["closed", CloseReason.MEMORY.value],
            ),
            Limit(
                "reopenable_bytes",
                reopenable_bytes,
                limits.reopenable_bytes,
                accounts["limit", "reopenable_bytes"],
            ),
            Limit("other_spans", other_spans, limits.other_spans, accounts["limit", "other_spans"]),
            Limit(
                "closed_ids",
                self._memory.ids,
                limits.closed_ids,
                accounts["limit", "remembered_ids"],
            ),
            Limit(
                "waiting_evaluations",
                waiting,
                limits.evaluations,
                accounts["evaluation_refused", "limit"],
            ),
            Limit(
                "run_spans",
                None,
                limits.span_limit,
                accounts["closed", CloseReason.SPAN_LIMIT.value],
            ),
        )

    def spans(self) -> Iterator[AgentSpan]:
        """All spans of traces with runs that are not final."""
        for buffer in self._buffers:
            yield from buffer.spans

    # --- Receiving --------------------------------------------------------------------------------

    # one loop, no call per span
    def add_all(self, spans: Sequence[AgentSpan], now: float) -> None:  # noqa: C901, PLR0912
        buffers = self._buffers
        last = None
        buffer: TraceBuffer | None = None
        weight = 0
        try:
            for span in spans:
                trace_id = span[0]
                if buffer is None or trace_id != last:
                    if buffer is not None:
                        self._weigh(buffer, weight, now)
                    last = trace_id
                    buffer = buffers.get(trace_id)
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
                if buffer.closed and (account := account_of(buffer.closed, span)) is not None:
                    self._count_closed(buffer.closed, span, account)
                    continue
                if span[7] is _OTHER and span[13] is None and not span[14]:
                    if buffers.other_spans + self._memory.spans >= self._limits.other_spans:
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
            for span in spans:
                self._opened.end(span[0], span[1])
        if self._evaluations.count or self._evaluations.responses is not None:
            self._evaluations.see(spans, now)

    def opened(self, spans: Iterable[Opened], now: float) -> None:
        """Note spans that have started (known in process only): what they belong to stays open
        until they end.
        """
        for span in spans:
            self._opened.open(*span, now)

    def ended(self, spans: Iterable[SpanRef]) -> None:
        """Note that open spans have ended and will not arrive."""
        for span in spans:
            self._opened.end(*span)

    def _weigh(self, buffer: TraceBuffer, before: int, now: float) -> None:
        """Count the spans that a buffer received."""
        weight = len(buffer.spans) - buffer.others
        if weight != before:
            self._buffers.open_spans += weight - before
            if not before:
                self._buffers.growing[buffer] = None
            if weight >= buffer.full_at:
                self._hold_span_limit(buffer, now)

    def _count_closed(
        self, closed: dict[TraceId, ClosedIds], span: AgentSpan, account: Account
    ) -> None:
        """Count a span of a final run, or connected with one, and remember it, so that what comes
        below it is recognized too.
        """
        self.accounts[account] += 1
        if account != DUPLICATE:
            self._memory.ids += remember(closed, (span,), sealed=account == SEALED)

    # --- Evaluations ------------------------------------------------------------------------------

    def evaluate(self, evaluations: Iterable[Evaluation], now: float) -> None:
        """Receive evaluations that arrived apart from their spans. They wait until their runs are
        here.
        """
        for evaluation in evaluations:
            self._evaluations.add(evaluation, now)

    def _give(self, evaluation: Evaluation, now: float) -> bool:
        """Give an evaluation to the buffer of its trace, or to a final run. False: neither is
        known.
        """
        trace_id = evaluation.trace_id or b""
        buffer = self._buffers.get(trace_id)
        if buffer is None:
            is_known = self._memory.has_ids(trace_id)
            if is_known:
                self._evaluate_final(evaluation, trace_id)
            return is_known
        closed = buffer.closed.get(trace_id)
        if (
            closed is not None
            and closed.ids
            and (not buffer.weight or evaluation.span_id in closed.ids)
        ):
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
        found = self._memory.evaluate(evaluation, trace_id)
        if found is None:
            self.accounts["evaluation_late", ""] += 1
        elif found[0] is not found[1]:
            self._events.append(RunEvent(RunChange.REVISED, found[1], found[0]))

    # --- Time -------------------------------------------------------------------------------------

    def tick(self, now: float, spans: float = inf) -> list[RunEvent]:
        """Close what is due, hold the limits, finalize what can no longer change, forget what is
        too old.

        `spans` is for a caller that may not be held up: each of these ends with the trace that
        brings it to so many spans, and traces of more than `MAX_HURRIED_SPANS` are left out. The
        rest stays due. No trace is finalized before those that were due earlier are closed, so
        what they join does not depend on the caller.
        """
        max_spans = inf if spans == inf else MAX_HURRIED_SPANS
        left = spans
        for buffer in self._buffers.due(now, max_spans):
            left -= 1 + len(buffer.spans)
            self._check(buffer, now)
            if left <= 0:
                break
        while self._joined and left > 0:
            buffer = next(iter(self._joined))
            del self._joined[buffer]
            if buffer.traces:  # otherwise another buffer has absorbed it
                left -= 1 + len(buffer.spans)
                self._check(buffer, now)
        self._hold_limits(now, spans)
        left = spans
        while left > 0 and (final := self._unchangeable(now, max_spans)) is not None:
            left -= 1 + len(final.spans)
            self._finalize(final, now)
        self._forget(now, spans)
        return self._take_events()

    def is_behind(self, now: float) -> bool:
        """Return whether a tick has work for a caller that may not be held up."""
        return (
            bool(self._joined)
            or self._buffers.is_due(now)
            or self._unchangeable(now, MAX_HURRIED_SPANS) is not None
        )

    def _unchangeable(self, now: float, max_spans: float) -> TraceBuffer | None:
        """Return the closed trace that is to be finalized next, None without any or where it has
        more spans.
        """
        first = next(iter(self._buffers.reopenable), None)
        if first is None or len(first.spans) > max_spans:
            return None
        final_at = (first.closed_at or 0.0) + self._times.reopen
        return first if final_at <= min(now, self._buffers.first_due()) else None

    def close_all(self, reason: CloseReason, now: float) -> list[RunEvent]:
        growing = self._buffers.growing
        while growing:
            for buffer in list(growing):
                if buffer in growing:
                    self._close_now(buffer, reason, now)
        for buffer in list(self._buffers):
            self._finalize(buffer, now)
        return self._take_events()

    def complete(
        self, traces: Iterable[TraceId], reason: CloseReason, now: float
    ) -> list[RunEvent]:
        """Close, finalize and forget traces of which nothing more arrives: no span, no evaluation,
        no link to them.

        A trace that shares a run with others, by a link or a run key, stays as it is.
        """
        for trace_id in traces:
            buffer = self._buffers.get(trace_id)
            if buffer is not None:
                if buffer in self._buffers.growing and not buffer.joined:
                    self._close_now(buffer, reason, now)
                if buffer.joined:
                    continue
                self._finalize(buffer, now)
            self._memory.forget(trace_id)
            self._opened.pop(trace_id, None)
        return self._take_events()

    def _take_events(self) -> list[RunEvent]:
        events = self._events
        self._events = []
        return events

    # --- Closing ----------------------------------------------------------------------------------

    def _check(self, buffer: TraceBuffer, now: float) -> None:
        """Close a trace that is due, or those of its units that are finished."""
        if buffer.closed_at is not None:
            return
        quiet_at = buffer.last_seen + self._times.linger
        is_growing = buffer in self._buffers.growing
        if quiet_at > now and (not is_growing or buffer.next_check > now):
            self._buffers.plan(buffer, min(quiet_at, buffer.next_check) if is_growing else quiet_at)
        elif not is_growing:
            self._finalize(buffer, now)
        else:
            built = self._assembled(buffer, now)
            times = self._times
            if built is None:
                return
            opened = self._opened.of(buffer.traces)
            is_quiet = buffer.last_seen + times.linger <= now
            is_old = bool(buffer.checks) and buffer.born + times.reopen <= now
            if is_quiet and not built.has_gap and not opened and not is_old:
                self._close(buffer, built, _ROOT, now)
            else:
                self._close_units(
                    buffer, built, progress_of(buffer, built, opened), now, is_quiet=is_quiet
                )

    def _close_now(self, buffer: TraceBuffer, reason: CloseReason, now: float) -> None:
        """Close a trace, unless it has just been joined with others."""
        built = self._assembled(buffer, now)
        if built is not None:
            self._close(buffer, built, reason, now)

    def _assembled(self, buffer: TraceBuffer, now: float) -> Rebuilt | None:
        """Assemble a buffer, without spans that turn out to belong to final runs.

        None where it has been joined with others by a run key: it is checked again once all that is
        due has joined.
        """
        while True:
            if buffer.closed:
                self._drop(buffer, accounts_below(buffer.closed, buffer.spans))
            built = self._assembled_as_is(buffer)
            if not built.orphans.keyed:
                return built
            dropped: dict[SpanRef, Account] = {}
            is_joined = False
            for key, run in built.orphans.keyed.items():
                trace_id = RUN_KEYS + key
                if self._memory.has_ids(trace_id) or trace_id in buffer.closed:
                    dropped.update((built.tree.ref(i), LATE) for i in run.members)
                elif self._buffers.get(trace_id) is not buffer:
                    buffer = self._buffers.join_key(buffer, key, now)
                    is_joined = True
            if buffer.weight >= buffer.full_at:
                self._hold_span_limit(buffer, now)
            elif not dropped and not is_joined:
                return built
            self._drop(buffer, dropped)
            if is_joined:
                self._joined[buffer] = None
                return None

    def _assembled_as_is(self, buffer: TraceBuffer) -> Rebuilt:
        return self._assemble(
            buffer.spans, buffer.evaluations, joined=buffer.joined, closed=buffer.closed
        )

    def _drop(self, buffer: TraceBuffer, dropped: Mapping[SpanRef, Account]) -> None:
        """Remove spans that belong to final runs from a buffer; each is counted once, with its
        duplicates.
        """
        if not dropped:
            return
        self._uncount(buffer)
        closed = buffer.closed
        for span in self._buffers.take_out(buffer, dropped):
            is_known = span[0] in closed and span[1] in closed[span[0]].ids
            self._count_closed(closed, span, DUPLICATE if is_known else dropped[span[0], span[1]])

    def _close(self, buffer: TraceBuffer, built: Rebuilt, reason: CloseReason, now: float) -> None:
        """Emit what differs from what was emitted before; the trace can still be reopened."""
        self._buffers.close(buffer, now)
        self._emit(buffer, built, range(len(built.runs)), reason, now)
        self._uncount(buffer)
        tree = built.tree
        orphans = built.orphans
        accounts = accounts_of(
            built.runs, len(tree.spans), len(tree.others), orphans.unclaimed.values()
        )
        duplicates = len(buffer.spans) - len(tree.spans)
        buffer.counted = (
            ((DUPLICATE, duplicates), *accounts.items()) if duplicates else tuple(accounts.items())
        )
        for account, number in buffer.counted:
            if number:
                self.accounts[account] += number
        buffer.anchors = orphans.anchors
        buffer.connecting = (
            {tree.ref(i) for i in tree.others if tree.kept_above(i) == NONE} if tree.others else ()
        )

    def _emit(
        self,
        buffer: TraceBuffer,
        built: Rebuilt,
        numbers: Iterable[int],
        reason: CloseReason,
        now: float,
    ) -> None:
        """Emit those runs that differ from what was emitted before, and withdraw runs that are none
        any more.
        """
        runs = built.runs
        emitted = buffer.emitted
        events = self._events
        if emitted:
            known = {run.run_id for run in runs}
            for run_id in [run_id for run_id in emitted if run_id not in known]:
                events.append(RunEvent(RunChange.WITHDRAWN, emitted.pop(run_id)))
        for number in numbers:
            run = runs[number] if reason is _ROOT else runs[number]._replace(closed_by=reason)
            before = emitted.get(run[0])
            if before is None:
                self.accounts["closed", reason.value] += 1
                events.append(event_of((_CLOSED, run, None)))
            elif before._replace(closed_by=reason) == run:
                continue
            else:
                events.append(RunEvent(RunChange.REVISED, run, before))
            emitted[run[0]] = run
            buffer.emitted_at[run[0]] = now

    def _uncount(self, buffer: TraceBuffer) -> None:
        """Remove the spans of a buffer from the accounts: they are open, or counted again."""
        for account, number in buffer.counted:
            self.accounts[account] -= number
        buffer.counted = ()

    # --- Units of a buffer ------------------------------------------------------------------------

    def _close_units(
        self,
        buffer: TraceBuffer,
        built: Rebuilt,
        units: Sequence[Progress],
        now: float,
        *,
        is_quiet: bool,
    ) -> None:
        """Emit the runs of the units that are finished, and finalize those that can no longer
        change.
        """
        times = self._times
        buffers = self._buffers
        buffer.checks = (*buffer.checks, now)
        finished = [one for one in units if not one.is_held and one.finished_at(times) <= now]
        growing = set(units).difference(finished)
        for has_gap, reason in ((False, _ROOT), (True, CloseReason.IDLE)):
            numbers = [
                number for one in finished if one.unit.has_gap is has_gap for number in one.runs
            ]
            self._emit(buffer, built, numbers, reason, now)
        final_at = {one: one.final_at(buffer, built, times) for one in finished}
        final = unchangeable([one for one, at in final_at.items() if at <= now], units)
        buffer.checks = tuple([at for at in buffer.checks if at + times.reopen > now])
        if final:
            self._finalize_units(buffer, built, final)
        waiting = [
            at for one in finished if one.has_linked and (at := one.last + times.idle_timeout) > now
        ]
        if not is_quiet:
            buffer.checked(now)
            buffers.plan(buffer, min(buffer.last_seen + times.linger, buffer.next_check))
        elif growing or waiting:
            ahead = [max(one.finished_at(times), now + times.linger) for one in growing]
            ahead += [at for at in final_at.values() if at > now]
            buffers.plan(buffer, min([*ahead, *waiting]))
        else:
            rebuilt = self._assembled(buffer, now) if final else built
            if rebuilt is not None:
                self._close(buffer, rebuilt, _ROOT, now)

    def _finalize_units(
        self,
        buffer: TraceBuffer,
        built: Rebuilt,
        units: Sequence[Progress],
        *,
        sealed: bool = False,
    ) -> None:
        """Finalize units of an open buffer: their spans leave the buffer, their ids stay."""
        self._uncount(buffer)
        tree = built.tree
        orphans = built.orphans
        spans = {i for one in units for i in one.unit.spans}
        runs = [built.runs[number] for one in units for number in one.runs]
        for run in runs:
            self._emit_final(buffer.emitted.pop(run.run_id))
            buffer.emitted_at.pop(run.run_id, None)
        unclaimed = [account for i, account in orphans.unclaimed.items() if i in spans]
        self.accounts.update(
            accounts_of(
                runs, len(spans), len(spans) - sum(one.unit.kept for one in units), unclaimed
            )
        )
        buffer.evaluations = tuple(
            [
                evaluation
                for evaluation in buffer.evaluations
                if not self._leaves_with(spans, evaluation, built, buffer.closed)
            ]
        )
        anchors = [anchor for anchor, i in orphans.anchors.items() if i in spans]
        self._memory.ids += remember(
            buffer.closed, [tree.spans[i] for i in spans], runs, anchors, sealed=sealed
        )
        refs = set(map(tree.ref, spans))
        self.accounts[DUPLICATE] += len(self._buffers.take_out(buffer, refs)) - len(refs)

    def _leaves_with(
        self,
        final: Collection[int],
        evaluation: Evaluation,
        built: Rebuilt,
        closed: Mapping[TraceId, ClosedIds],
    ) -> bool:
        """Return whether an evaluation is about final spans, or about none because it may be about
        them and others: left alone, the others would get it. One whose span, or the head of whose
        unit, may still arrive stays.
        """
        targets = candidates(built.tree, built.units, evaluation, closed)
        possible = {each.head if isinstance(each, Unit) else each for each in targets}
        if possible.isdisjoint(final):
            return False
        if len(possible) > 1:
            named = evaluation.span_id
            if named is None and not any(built.tree.spans[i].kind in INVOCATIONS for i in possible):
                return False
            if named is not None and all(span.span_id != named for span in built.tree.spans):
                return False
            self.accounts[NO_TARGET] += 1
        return True

    def _hold_span_limit(self, buffer: TraceBuffer, now: float) -> None:
        """Close the units that have reached the span limit, with as many spans as arrived first;
        they are final at once.
        """
        limit = self._limits.span_limit
        built = self._assembled_as_is(buffer)
        large = [one for one in progress_of(buffer, built, {}) if one.unit.kept >= limit]
        buffer.full_at = limit if large else 2 * max(buffer.weight, limit)
        if not large:
            return
        first: dict[SpanRef, int] = {}
        for index, span in enumerate(buffer.spans):
            if is_kept(span):
                first.setdefault((span[0], span[1]), index)
        kept: set[SpanRef] = set()
        refused: dict[SpanRef, Account] = {}
        for one in large:
            refs = sorted(
                [ref for i in one.unit.spans if (ref := built.tree.ref(i)) in first],
                key=first.__getitem__,
            )
            kept.update(refs[:limit])
            refused.update(dict.fromkeys(refs[limit:], SEALED))
        self._drop(buffer, refused)
        built = self._assembled_as_is(buffer)
        sealed = [
            one
            for one in progress_of(buffer, built, {})
            if not kept.isdisjoint(map(built.tree.ref, one.unit.spans))
        ]
        self._emit(
            buffer,
            built,
            [number for one in sealed for number in one.runs],
            CloseReason.SPAN_LIMIT,
            now,
        )
        self._finalize_units(buffer, built, sealed, sealed=True)

    # --- Finalizing -------------------------------------------------------------------------------

    def _finalize(self, buffer: TraceBuffer, now: float) -> None:
        """Finalize a trace that is closed, or has no agent spans: its spans are dropped, what is
        remembered of it stays.

        Spans of a trace without agents may come to connect others, and its evaluations wait on.
        """
        connecting: Sequence[AgentSpan] = ()
        evaluations = buffer.evaluations
        own = buffer.spans
        for run in buffer.emitted.values():
            self._emit_final(run)
        if buffer.closed_at is None:
            self._uncount(buffer)
            unique = len({(span[0], span[1]) for span in buffer.spans})
            self.accounts[NO_CONVENTION] += unique
            self.accounts[DUPLICATE] += len(buffer.spans) - unique
            connecting = latest_versions(own, REF)
            own = []
        elif buffer.connecting:
            connects = [
                (span[0], span[1]) in buffer.connecting and not is_kept(span) for span in own
            ]
            connecting = latest_versions(list(compress(own, connects)), REF)
            own = [
                span for span, is_connecting in zip(own, connects, strict=True) if not is_connecting
            ]
        if evaluations and buffer.weight:
            given = {
                one for found in self._assembled_as_is(buffer).evaluations.values() for one in found
            }
            self.accounts[NO_TARGET] += sum(one not in given for one in evaluations)
            evaluations = ()
        closed = buffer.closed
        self._memory.ids += remember(closed, own, buffer.emitted.values(), buffer.anchors)
        traces = buffer.traces
        self._buffers.remove(buffer)
        for trace_id in traces:
            kept = [span for span in connecting if span[0] == trace_id] if connecting else ()
            if trace_id in closed or kept:
                ids = closed.get(trace_id) or ClosedIds()
                self._memory.put(trace_id, ClosedTrace(ids.packed(now), kept))
        self.evaluate(evaluations, now)

    def _emit_final(self, run: Run) -> None:
        self._events.append(event_of((_FINAL, run, None)))
        self._memory.keep(run)

    # --- Limits -----------------------------------------------------------------------------------

    def _hold_limits(self, now: float, spans: float) -> None:
        """Above a limit the heaviest traces are closed, of equals the oldest: those that bring it
        to so many spans, at most.
        """
        limits = self._limits
        buffers = self._buffers
        if len(buffers.growing) > limits.open_runs:
            number = len(buffers.growing) - limits.open_runs + limits.open_runs // _SHARE
            self._close_heaviest(number, 0, CloseReason.OPEN_RUNS, now, spans)
        size = buffers.open_spans * SPAN_BYTES
        if size > limits.open_bytes:
            size += limits.open_bytes // _SHARE - limits.open_bytes
            self._close_heaviest(0, size, CloseReason.MEMORY, now, spans)
        while (
            buffers.reopenable and buffers.reopenable_spans * SPAN_BYTES > limits.reopenable_bytes
        ):
            self._finalize(next(iter(buffers.reopenable)), now)
            self.accounts["limit", "reopenable_bytes"] += 1

    def _close_heaviest(
        self, number: int, size: int, reason: CloseReason, now: float, spans: float
    ) -> None:
        growing = self._buffers.growing
        for buffer in sorted(growing, key=lambda buffer: (-buffer.weight, buffer.born)):
            if (number <= 0 and size <= 0) or spans <= 0:
                return
            if buffer in growing:
                spans -= 1 + buffer.weight
                number = number - 1
                size = size - buffer.weight * SPAN_BYTES
                while buffer in growing:
                    self._close_now(buffer, reason, now)

    def _forget(self, now: float, most: float) -> None:
        """Forget traces in time, at most so many, and the oldest where too many ids are remembered;
        evaluations that waited too long too.
        """
        limits = self._limits
        buffers = self._buffers
        memory = self._memory
        opened = self._opened
        horizon = now - self._times.remember
        while most > 0 and memory.forget_oldest(horizon):
            most -= 1
        if buffers.other_spans + memory.spans >= limits.other_spans:
            self._forget_oldest(
                lambda: buffers.other_spans + memory.spans < limits.other_spans * (1 - 1 / _SHARE)
            )
        if memory.ids > limits.closed_ids:
            self._forget_oldest(lambda: memory.ids <= limits.closed_ids * (1 - 1 / _SHARE))
            self._forget_live_ids(memory.ids - limits.closed_ids)
        if self._evaluations.count:
            self._evaluations.expire(now)
        while opened and (oldest := next(iter(opened.items())))[1][0] <= horizon:
            del opened[oldest[0]]
            if buffers.get(oldest[0]) in buffers.growing:
                opened[oldest[0]] = (now, oldest[1][1])

    def _forget_oldest(self, is_enough: Callable[[], bool]) -> None:
        while not is_enough() and self._memory.forget_oldest():
            self.accounts["limit", "remembered_ids"] += 1

    def _forget_live_ids(self, number: int) -> None:
        """Forget ids of final runs of traces of which spans still arrive, the
        most numerous first.
        """
        if number <= 0:
            return
        self.accounts["limit", "remembered_ids"] += 1
        live = [one for buffer in self._buffers for one in buffer.closed.values()]
        for ids in [
            ids
            for closed in sorted(live, key=len, reverse=True)
            for ids in (closed.ids, closed.anchors)
        ]:
            while ids and number > 0:
                ids.pop()
                number -= 1
                self._memory.ids -= 1

    # --- Over a restart ---------------------------------------------------------------------------

    def holds(self, trace_id: TraceId) -> bool:
        """Return whether a trace has spans or evaluations that are still needed to assemble it."""
        return self._buffers.get(trace_id) is not None or trace_id in self._evaluations

    def closed_trace(self, trace_id: TraceId, now: float) -> ClosedTrace | None:
        """Return what is remembered of the final runs of a trace; None: nothing of it is final."""
        buffer = self._buffers.get(trace_id)
        if buffer is None:
            return self._memory.get(trace_id)
        closed = buffer.closed.get(trace_id)
        return None if closed is None else ClosedTrace(closed.packed(now))

    def restore_closed(self, traces: Iterable[tuple[TraceId, ClosedTrace]]) -> None:
        """Remember what `closed_trace` returned, before any span of these traces is added again."""
        for trace_id, closed in traces:
            self._memory.put(trace_id, closed)

    def restore_final(self, runs: Iterable[Run]) -> None:
        """Remember the latest final runs, the latest at the end: evaluations of them may still
        arrive.
        """
        for run in runs:
            self._memory.keep(run)
