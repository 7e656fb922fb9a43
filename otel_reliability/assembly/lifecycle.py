"""From agent spans to runs, as they arrive.

Theory of operation
-------------------

A trace is never known to be complete: spans come in any order, twice, minutes late, or not at all.
So nothing is linked as it arrives. Spans are only collected; when a trace is due, one pure function
makes all of its runs again from all of its spans, and the difference to what was emitted before is
emitted. A late span therefore needs no code of its own: the result is a function of the *set* of
spans, and neither the order nor the batches in which they came can change it.

    spans ──▶ intake ──▶ buffer ──▶ rebuild ──▶ emission ──▶ events, accounts
              (one append)  │        (pure)         ▲
                            ▼                       │
                         memory ◀──── final ────────┘

Each room has one concern:

- `intake`: what arrives goes to its buffer (`buffers`), or is recognized as late (`final_ids`).
- `units`: the division of what is assembled together. Its picture stands there.
- `rebuild`: runs from spans, by `span_tree`, `invocations`, `owners`, `replays`, `orphans`,
  `extent` and `build`; those of coding agents are put in order first (`conversations`). Pure.
- `progress`: how far each unit has come, where one closes before the others.
- `emission`: events about runs, and what became of each span.
- `strays`: tool calls in traces of their own, beside agents of the same service. It changes events
  on their way out, since it needs several traces.
- `across_traces`: what else changes events on their way out: conversations whose turns name the
  response that they continue (`response_chains`), runs that a durable engine reports again in
  another trace (`replayed_runs`), and runs that go on with one that waited (`resumptions`).
- `memory`: what is remembered of traces whose runs are final.
- `late_roots`: roots of runs that are final.
- `late_outcomes`: outcomes that were reported for runs which are still to be built.
- `limits`: what closes, becomes final or is forgotten where there is too much.
- `lifecycle`, here: decides when. There is no clock and no lock: time is an argument, and there is
  one caller at a time.

**The life of a buffer.** A buffer holds one trace, or several that a messaging link or a run key
joins.

    growing ──linger, or a limit──▶ closed ──reopen──▶ final ──remember──▶ forgotten
       ▲                               │
       └────────── a span ─────────────┘

- *Growing*: it has agent spans. It is due when no span has arrived for `linger`; if it never falls
  quiet, it is checked at growing intervals all the same.
- *Closed*: its runs are emitted. A span within `reopen` lets it grow again; whatever differs at the
  next closing is emitted as a revision, or a withdrawal.
- *Final*: its runs are emitted as such, which counters record once. The spans are dropped; their
  ids stay, so that what comes later is counted as a duplicate or as late, and not taken for a new
  run. Evaluations still change the latest final runs.
- *Forgotten*: after `remember`, or the oldest first where too many ids are kept.

**Closing as a whole, or by units.** A quiet buffer with all parents present closes as a whole: this
is nearly every trace. Where a local parent is missing, a span is known to be open, or spans never
stop arriving, its units close and become final one by one (`_close_units`). A final unit leaves the
buffer; its ids stay in `buffer.final_ids` for as long as the buffer lives, and move to the memory
with it. Spans in the buffer that turn out to hang below a final unit are taken out and counted as
late before anything is rebuilt (`_rebuilt`).

**Joining.** A link joins two buffers at intake, since it names the other trace. A run key is known
only after rebuilding, when lone work turns out to carry it. So `_rebuilt` may find that a buffer is
to be joined; it returns None then, and the joined buffer is checked when all that is due has
joined, once.

**The span limit** is per unit, and known only after dividing. So a buffer has a number of spans
at which it is divided (`full_at`); what is over the limit in a unit is refused, the rest of the
unit is final at once.

**Hurried callers.** In a host's process, spans come on a thread that may not be held up: its
caller is *hurried*. It does a bounded part of what is due and leaves every trace of more than
`MAX_HURRIED_SPANS` to the next tick of a caller that is not: what is due stays due, what is to be
divided waits in `Buffers.full`. Who does the work changes when it is done, not what comes of it.

**Every span is counted exactly once.** A buffer remembers how its spans were counted when it closed
(`buffer.counted`), and takes that back when it is counted again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import compress
from math import inf
from typing import Final, NamedTuple

from otel_reliability.assembly.accounts import (
    DUPLICATE,
    LATE,
    LOST_ANNOTATION,
    NO_CONVENTION,
    SEALED,
    WITHOUT_RUN,
    Account,
    accounts_of,
)
from otel_reliability.assembly.across_traces import AcrossTraces
from otel_reliability.assembly.buffers import Buffers, TraceBuffer
from otel_reliability.assembly.emission import Emitter
from otel_reliability.assembly.final_ids import (
    RUN_KEYS,
    FinalIds,
    accounts_below,
    remember,
)
from otel_reliability.assembly.intake import Intake, Opened
from otel_reliability.assembly.late_outcomes import ReportedOutcomes
from otel_reliability.assembly.limits import Limits
from otel_reliability.assembly.memory import FinalTrace, Memory
from otel_reliability.assembly.progress import Progress, progress_of, unchangeable
from otel_reliability.assembly.rebuild import Rebuild, Rebuilt
from otel_reliability.assembly.reports import Fate, fate_of
from otel_reliability.assembly.span_tree import NONE, REF, is_kept, latest_versions
from otel_reliability.config import Settings
from otel_reliability.model.limit import Limit
from otel_reliability.model.run import CloseReason, Run, RunEvent
from otel_reliability.model.span import (
    AgentSpan,
    Evaluation,
    SpanId,
    SpanRef,
    TraceId,
)

MAX_HURRIED_SPANS: Final = 512
"""Spans of a trace above which a hurried caller leaves it to others."""
_ROOT: Final = CloseReason.ROOT


class _JoinedByKeys(NamedTuple):
    """A buffer after its run keys joined it with others: the one that holds everything now, spans
    that are late because the run of their key is final, and whether anything was joined.
    """

    buffer: TraceBuffer
    late: Mapping[SpanRef, Account]
    is_joined: bool


class Assembler:
    """Rebuilds runs from agent spans.

    `accounts` counts what became of spans, runs and evaluations.
    """

    def __init__(self, settings: Settings, *, whole_services: bool = True) -> None:
        """Begin empty. `whole_services`: all traces of a service arrive here, so that its lone
        tool calls and its agents concern one another (`strays`).
        """
        self._times = settings.assembly
        self._span_limit = settings.limits.span_limit
        self._memory = Memory(settings.outcome)
        self._buffers = Buffers(settings, self._memory)
        self._across = AcrossTraces(settings, self._memory.find)
        self._emitter = Emitter(
            self._memory,
            self._across,
            has_strays=whole_services and not settings.assembly.run_key,
        )
        self._intake = Intake(settings.limits, self._buffers, self._emitter, self._reached_limit)
        self.accounts = self._emitter.accounts
        self.reported = ReportedOutcomes(settings.limits.evaluations, self.accounts.losses)
        """Outcomes that runs to come are built with."""
        self._rebuild = Rebuild(settings, self.reported)
        self._limits = Limits(settings, self._buffers, self._intake, self.accounts)
        self._joined: dict[TraceBuffer, None] = {}  # by a run key, since the last check
        self._is_hurried = False

    @property
    def growing(self) -> Collection[TraceBuffer]:
        """The buffers of traces with agent spans that are not closed."""
        return self._buffers.growing.keys()

    @property
    def limits(self) -> tuple[Limit, ...]:
        """Each limit with its use and its hits."""
        return (*self._limits.table, *self._across.limits)

    def open_runs_of(self, buffer: TraceBuffer) -> list[Run]:
        """Return the runs of a growing buffer that have not closed, as its spans show them now.
        Nothing changes.
        """
        return [run for run in self._rebuilt_as_is(buffer).runs if run.run_id not in buffer.emitted]

    # --- Receiving --------------------------------------------------------------------------------

    def add_all(self, spans: Sequence[AgentSpan], now: float, *, hurried: bool = False) -> None:
        """Receive spans. A `hurried` caller leaves a trace at the span limit to a tick of another
        one; where there is no memory left to wait in, further spans of large traces are refused.
        """
        self._is_hurried = hurried
        received = self._limits.fitting(spans, MAX_HURRIED_SPANS) if hurried else spans
        self._intake.add_all(received, now)

    def opened(self, spans: Iterable[Opened], now: float) -> None:
        """Note spans that have started (known in process only): what they belong to stays open
        until they end.
        """
        for span in spans:
            self._intake.opened.open(*span, now)

    def ended(self, spans: Iterable[SpanRef]) -> None:
        """Note that open spans have ended and will not arrive."""
        for span in spans:
            self._intake.opened.end(*span)

    def evaluate(self, evaluations: Iterable[Evaluation], now: float) -> None:
        """Receive evaluations that arrived apart from their spans. They wait until their runs are
        here.
        """
        self._intake.evaluate(evaluations, now)

    def can_evaluate(self, trace_id: TraceId, root_id: SpanId | None = None) -> bool:
        """Return whether an evaluation of a run of that trace can be joined here: spans of it are
        kept, or the final run is remembered.
        """
        buffer = self._buffers.get(trace_id)
        if buffer is None:
            return self._memory.has_ids(trace_id) and self._memory.has_runs(trace_id)
        final = buffer.final_ids.get(trace_id)
        is_final = final is not None and (not buffer.agent_spans or root_id in final.ids)
        return not is_final or self._memory.has_runs(trace_id)

    # --- Time -------------------------------------------------------------------------------------

    def tick(self, now: float, spans: float = inf) -> list[RunEvent]:
        """Close what is due, hold the limits, finalize what can no longer change, forget what is
        too old.

        `spans` makes a caller hurried: each of these ends with the trace that brings it to so many
        spans, and traces of more than `MAX_HURRIED_SPANS` are left out. The rest stays due. No
        trace is finalized before those that were due earlier are closed, so
        what they join does not depend on the caller.
        """
        self._is_hurried = spans < inf
        max_spans = MAX_HURRIED_SPANS if self._is_hurried else inf
        if not self._is_hurried:
            self._divide_full(now)
        left = spans
        for buffer in self._buffers.due(now, max_spans):
            left -= 1 + len(buffer.spans)
            self._check(buffer, now)
            if left <= 0:
                break
        while self._joined and left > 0:
            buffer = next(iter(self._joined))
            del self._joined[buffer]
            if len(buffer.spans) > max_spans:
                self._buffers.postpone(buffer, now)
            elif buffer.traces:  # otherwise another buffer has absorbed it
                left -= 1 + len(buffer.spans)
                self._check(buffer, now)
        for buffer, reason in self._limits.to_close(spans, max_spans):
            self._close_now(buffer, reason, now)
        for buffer in self._limits.to_finalize(max_spans):
            self._finalize(buffer, now)
        left = spans
        while left > 0 and (final := self._unchangeable(now, max_spans)) is not None:
            left -= 1 + len(final.spans)
            self._finalize(final, now)
        self._limits.forget(now, spans)
        self.reported.expire(now)
        return self._emitter.take_events()

    def is_behind(self, now: float) -> bool:
        """Return whether a tick has work for a hurried caller."""
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
        self._divide_full(now)
        growing = self._buffers.growing
        while growing:
            for buffer in list(growing):
                if buffer in growing:
                    self._close_now(buffer, reason, now)
        for buffer in list(self._buffers):
            self._finalize(buffer, now)
        return [*self._emitter.take_events(), *self._emitter.release()]

    def complete(
        self, traces: Iterable[TraceId], reason: CloseReason, now: float, *, alone: bool = False
    ) -> list[RunEvent]:
        """Close, finalize and forget traces of which nothing more arrives: no span, no evaluation,
        no link to them.

        A trace that shares a run with others, by a link or a run key, stays as it is. `alone`: no
        run of a later trace concerns theirs, so these are emitted as final and forgotten at once.
        """
        self._divide_full(now)
        for trace_id in traces:
            buffer = self._buffers.get(trace_id)
            if buffer is not None:
                if buffer in self._buffers.growing and not buffer.joined:
                    self._close_now(buffer, reason, now)
                if buffer.joined:
                    continue
                self._finalize(buffer, now)
            self._memory.take(trace_id)
            self._intake.opened.pop(trace_id, None)
        return self._emitter.take_alone() if alone else self._emitter.take_events(hold=True)

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
            built = self._rebuilt(buffer, now)
            times = self._times
            if built is None:
                return
            opened = self._intake.opened.of(buffer.traces)
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
        built = self._rebuilt(buffer, now)
        if built is not None:
            self._close(buffer, built, reason, now)

    def _rebuilt(self, buffer: TraceBuffer, now: float) -> Rebuilt | None:
        """Assemble a buffer, without spans that turn out to belong to final runs.

        None where it has been joined with others by a run key: it is checked again once all that is
        due has joined.
        """
        while True:
            if buffer.final_ids:
                self._drop(buffer, accounts_below(buffer.final_ids, buffer.spans))
            built = self._rebuilt_as_is(buffer)
            if not built.orphans.keyed:
                return built
            by_keys = self._join_by_keys(buffer, built, now)
            buffer = by_keys.buffer
            if buffer.agent_spans >= buffer.full_at and not self._is_hurried:
                self._hold_span_limit(buffer, now)
            elif not by_keys.late and not by_keys.is_joined:
                return built
            self._drop(buffer, by_keys.late)
            if by_keys.is_joined:
                self._joined[buffer] = None
                return None

    def _join_by_keys(self, buffer: TraceBuffer, built: Rebuilt, now: float) -> _JoinedByKeys:
        """Join a buffer with those that have work of its run keys."""
        late: dict[SpanRef, Account] = {}
        is_joined = False
        for key, run in built.orphans.keyed.items():
            trace_id = RUN_KEYS + key
            if self._memory.has_ids(trace_id) or trace_id in buffer.final_ids:
                late.update((built.tree.ref(i), LATE) for i in run.members)
            elif self._buffers.get(trace_id) is not buffer:
                buffer = self._buffers.join_key(buffer, key, now)
                is_joined = True
        return _JoinedByKeys(buffer, late, is_joined)

    def _rebuilt_as_is(self, buffer: TraceBuffer) -> Rebuilt:
        return self._rebuild(
            buffer.spans, buffer.evaluations, joined=buffer.joined, final_ids=buffer.final_ids
        )

    def _drop(self, buffer: TraceBuffer, dropped: Mapping[SpanRef, Account]) -> None:
        """Remove spans that belong to final runs from a buffer; each is counted once, with its
        duplicates.
        """
        if not dropped:
            return
        self._emitter.uncount(buffer)
        final_ids = buffer.final_ids
        for span in self._buffers.take_out(buffer, dropped):
            is_known = span.trace_id in final_ids and span.span_id in final_ids[span.trace_id].ids
            self._emitter.count_late(
                final_ids, span, DUPLICATE if is_known else dropped[span.trace_id, span.span_id]
            )

    def _close(self, buffer: TraceBuffer, built: Rebuilt, reason: CloseReason, now: float) -> None:
        """Emit what differs from what was emitted before; the trace can still be reopened."""
        self._buffers.close(buffer, now)
        self._emitter.emit(buffer, built, range(len(built.runs)), reason, now)
        self._emitter.count(buffer, built)
        tree = built.tree
        buffer.anchors = built.orphans.anchors
        buffer.connecting = (
            {tree.ref(i) for i in tree.others if tree.kept_above(i) == NONE} if tree.others else ()
        )

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
        buffer.checks = (*buffer.checks, now)
        finished = [one for one in units if not one.is_held and one.finished_at(times) <= now]
        for has_gap, reason in ((False, _ROOT), (True, CloseReason.IDLE)):
            numbers = [
                number for one in finished if one.unit.has_gap is has_gap for number in one.runs
            ]
            self._emitter.emit(buffer, built, numbers, reason, now)
        final_at = {one: one.final_at(buffer, built, times) for one in finished}
        final = unchangeable([one for one, at in final_at.items() if at <= now], units)
        buffer.checks = tuple([at for at in buffer.checks if at + times.reopen > now])
        if final:
            self._finalize_units(buffer, built, final)
        if not is_quiet:
            buffer.checked(now)
            self._buffers.plan(buffer, min(buffer.last_seen + times.linger, buffer.next_check))
            return
        growing = set(units).difference(finished)
        linked_until = [one.last + times.idle_timeout for one in finished if one.has_linked]
        waiting = [at for at in linked_until if at > now]
        if growing or waiting:
            closing = [max(one.finished_at(times), now + times.linger) for one in growing]
            becoming_final = [at for at in final_at.values() if at > now]
            self._buffers.plan(buffer, min([*closing, *becoming_final, *waiting]))
            return
        rebuilt = self._rebuilt(buffer, now) if final else built
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
        self._emitter.uncount(buffer)
        tree = built.tree
        orphans = built.orphans
        spans = {i for one in units for i in one.unit.spans}
        runs = [built.runs[number] for one in units for number in one.runs]
        for run in runs:
            self._emitter.emit_final(buffer.emitted.pop(run.run_id))
            buffer.emitted_at.pop(run.run_id, None)
        unclaimed = [account for i, account in orphans.unclaimed.items() if i in spans]
        self.accounts.spans.update(
            accounts_of(
                runs, len(spans), len(spans) - sum(one.unit.kept for one in units), unclaimed
            )
        )
        self.accounts.losses[LOST_ANNOTATION] += sum(i in spans for i in built.lost_annotations)
        final_ids = buffer.final_ids
        fates = [
            (fate_of(one, tree, built.units, final_ids, spans), one) for one in buffer.evaluations
        ]
        self.accounts.losses[WITHOUT_RUN] += sum(fate is Fate.WITHOUT_RUN for fate, _ in fates)
        buffer.evaluations = tuple([one for fate, one in fates if fate is Fate.STAYS])
        anchors = [anchor for anchor, i in orphans.anchors.items() if i in spans]
        self._memory.ids += remember(
            final_ids, [tree.spans[i] for i in spans], runs, anchors, sealed=sealed
        )
        refs = set(map(tree.ref, spans))
        self.accounts.spans[DUPLICATE] += len(self._buffers.take_out(buffer, refs)) - len(refs)

    def _reached_limit(self, buffer: TraceBuffer, now: float) -> None:
        """Divide a buffer that has as many spans as a run may have; a hurried caller leaves it."""
        if self._is_hurried:
            self._buffers.full[buffer] = None
        else:
            self._hold_span_limit(buffer, now)

    def _divide_full(self, now: float) -> None:
        """Divide the buffers at the span limit that hurried callers have left; this one is not."""
        self._is_hurried = False
        full = self._buffers.full
        while full:
            buffer, _ = full.popitem()
            if buffer.agent_spans >= buffer.full_at:  # units of it may be final
                self._hold_span_limit(buffer, now)

    def _hold_span_limit(self, buffer: TraceBuffer, now: float) -> None:
        """Close the units that have reached the span limit, with as many spans as arrived first;
        they are final at once.
        """
        self._buffers.full.pop(buffer, None)
        limit = self._span_limit
        built = self._rebuilt_as_is(buffer)
        large = [one for one in progress_of(buffer, built, {}) if one.unit.kept >= limit]
        buffer.full_at = limit if large else 2 * max(buffer.agent_spans, limit)
        if not large:
            return
        first: dict[SpanRef, int] = {}
        for index, span in enumerate(buffer.spans):
            if is_kept(span):
                first.setdefault((span.trace_id, span.span_id), index)
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
        built = self._rebuilt_as_is(buffer)
        sealed = [
            one
            for one in progress_of(buffer, built, {})
            if not kept.isdisjoint(map(built.tree.ref, one.unit.spans))
        ]
        self._emitter.emit(
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
            self._emitter.emit_final(run)
        if buffer.closed_at is None:
            self._emitter.uncount(buffer)
            unique = len({(span.trace_id, span.span_id) for span in buffer.spans})
            self.accounts.spans[NO_CONVENTION] += unique
            self.accounts.spans[DUPLICATE] += len(buffer.spans) - unique
            connecting = latest_versions(own, REF)
            noted = sum(span.notes is not None for span in connecting)
            self.accounts.losses[LOST_ANNOTATION] += noted
            own = []
        elif buffer.connecting:
            connects = [
                (span.trace_id, span.span_id) in buffer.connecting and not is_kept(span)
                for span in own
            ]
            connecting = latest_versions(list(compress(own, connects)), REF)
            own = [
                span for span, is_connecting in zip(own, connects, strict=True) if not is_connecting
            ]
        if evaluations and buffer.agent_spans:
            given = {
                one for found in self._rebuilt_as_is(buffer).evaluations.values() for one in found
            }
            self.accounts.losses[WITHOUT_RUN] += sum(one not in given for one in evaluations)
            evaluations = ()
        final_ids = buffer.final_ids
        self._memory.ids += remember(final_ids, own, buffer.emitted.values(), buffer.anchors)
        traces = buffer.traces
        self._buffers.remove(buffer)
        for trace_id in traces:
            kept = [span for span in connecting if span.trace_id == trace_id] if connecting else ()
            if trace_id in final_ids or kept:
                ids = final_ids.get(trace_id) or FinalIds()
                self._memory.put(trace_id, FinalTrace(ids.packed(now), kept))
        self._intake.evaluate(evaluations, now)

    # --- Over a restart ---------------------------------------------------------------------------

    def holds(self, trace_id: TraceId) -> bool:
        """Return whether a trace has spans or evaluations that are still needed to assemble it."""
        return self._buffers.get(trace_id) is not None or trace_id in self._intake.waiting

    def final_trace(self, trace_id: TraceId, now: float) -> FinalTrace | None:
        """Return what is remembered of the final runs of a trace; None: nothing of it is final."""
        buffer = self._buffers.get(trace_id)
        if buffer is None:
            return self._memory.get(trace_id)
        final = buffer.final_ids.get(trace_id)
        return None if final is None else FinalTrace(final.packed(now))

    def restore_final_traces(self, traces: Iterable[tuple[TraceId, FinalTrace]]) -> None:
        """Remember what `final_trace` returned, before any span of these traces is added again."""
        for trace_id, final in traces:
            self._memory.put(trace_id, final)

    def restore_final(self, runs: Iterable[Run]) -> None:
        """Remember the latest final runs, the latest at the end: evaluations of them may still
        arrive.
        """
        for run in runs:
            self._emitter.restore_final(run)
