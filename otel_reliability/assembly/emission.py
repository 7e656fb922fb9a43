"""Output of assembly: events about runs, and the accounts of spans."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msgspec.structs import replace

from otel_reliability.assembly.accounts import (
    DUPLICATE,
    LATE_EVALUATION,
    LOST_ANNOTATION,
    SEALED,
    Account,
    Accounts,
    accounts_of,
)
from otel_reliability.assembly.across_traces import AcrossTraces
from otel_reliability.assembly.buffers import TraceBuffer
from otel_reliability.assembly.final_ids import FinalIds, remember
from otel_reliability.assembly.memory import Memory
from otel_reliability.assembly.rebuild import Rebuilt
from otel_reliability.assembly.strays import Strays, count_hollow, is_hollow
from otel_reliability.model.run import CloseReason, Run, RunChange, RunEvent
from otel_reliability.model.span import STEPS, AgentSpan, Evaluation, TraceId

MAX_HELD: Final = 4_096
"""Runs of a file that wait for its end; beyond, the oldest are final as they are."""
_ROOT: Final = CloseReason.ROOT
_CLOSED: Final = RunChange.CLOSED
_FINAL: Final = RunChange.FINAL


class Emitter:
    """Emits runs, and counts spans."""

    def __init__(self, memory: Memory, across: AcrossTraces, *, has_strays: bool = True) -> None:
        """Begin with nothing emitted. `has_strays`: a lone tool call may belong to an agent of its
        service.
        """
        self.accounts = Accounts()
        self._memory = memory
        self._events: list[RunEvent] = []
        self._held: dict[str, Run] = {}
        self._across = across
        self._strays = Strays(self.accounts.spans) if has_strays else None

    def take_events(self, *, hold: bool = False) -> list[RunEvent]:
        """Return what was emitted since the last call. `hold`: runs that a later trace may concern
        become final at `release`.
        """
        events = self._events
        self._events = []
        if hold:
            events = self._without_held(events)
        events = self._across.pass_on(events)
        if self._strays is not None:
            return self._strays.pass_on(events, hold=hold)
        for event in events:
            if event.change is _FINAL and is_hollow(event.run):
                count_hollow(self.accounts.spans, event.run)
        return [event for event in events if not is_hollow(event.run)]

    def take_alone(self) -> list[RunEvent]:
        """Return the events as `take_events`, and forget the final runs."""
        final = [event.run for event in self._events if event.change is _FINAL]
        events = self.take_events()
        for run in final:
            self._memory.forget_runs(run.trace_id)
            self._across.forget(run)
        return events

    def restore_final(self, run: Run) -> None:
        """Remember a run that became final before a restart."""
        self._memory.keep(run)
        self._across.restore_final(run)

    def release(self) -> list[RunEvent]:
        """Return the events of the runs that were held."""
        self._events += [RunEvent(_FINAL, run) for run in self._held.values()]
        self._held.clear()
        events = self.take_events()
        return events if self._strays is None else [*events, *self._strays.release()]

    def _without_held(self, events: Iterable[RunEvent]) -> list[RunEvent]:
        """Return the events without those of runs that become final at `release`: a run of a later
        trace may continue them, or report them again.
        """
        found: list[RunEvent] = []
        held = self._held
        for event in events:
            run = event.run
            if event.change is not _FINAL or not (run.first_step or run.last_response):
                if run.run_id in held:
                    held[run.run_id] = run
                found.append(event)
                continue
            held[run.run_id] = run
            if len(held) > MAX_HELD:
                found.append(RunEvent(_FINAL, held.pop(next(iter(held)))))
        return found

    # --- Runs -------------------------------------------------------------------------------------

    def emit(
        self,
        buffer: TraceBuffer,
        built: Rebuilt,
        numbers: Iterable[int],
        reason: CloseReason,
        now: float,
    ) -> None:
        """Emit those runs that differ from what was emitted before, and withdraw runs that are none
        any more. `numbers`: the indices of the runs that close.
        """
        runs = built.runs
        emitted = buffer.emitted
        events = self._events
        if emitted:
            known = {run.run_id for run in runs}
            for run_id in [run_id for run_id in emitted if run_id not in known]:
                events.append(RunEvent(RunChange.WITHDRAWN, emitted.pop(run_id)))
        for number in numbers:
            run = runs[number] if reason is _ROOT else replace(runs[number], closed_by=reason)
            before = emitted.get(run.run_id)
            if before is None:
                self.accounts.closed[reason.value] += 1
                events.append(RunEvent(_CLOSED, run))
            elif replace(before, closed_by=reason) == run:
                continue
            else:
                events.append(RunEvent(RunChange.REVISED, run, before))
            emitted[run.run_id] = run
            buffer.emitted_at[run.run_id] = now

    def emit_final(self, run: Run) -> None:
        """Emit that a run can no longer change by spans. It can still be evaluated."""
        self._events.append(RunEvent(_FINAL, run))
        self._memory.keep(run)

    def evaluate_final(self, evaluation: Evaluation, trace_id: TraceId) -> None:
        """Change what windows hold of a final run; what counters have recorded stays."""
        found = self._memory.evaluate(evaluation, trace_id)
        if found is None:
            self.accounts.losses[LATE_EVALUATION] += 1
        elif found.before is not found.after:
            self._events.append(RunEvent(RunChange.REVISED, found.after, found.before))

    def complete_final(self, buffer: TraceBuffer, span: AgentSpan) -> None:
        """Let a late span complete the final run whose missing parent it is. Where it only lies
        between the two, its own parent is the next to come late, unless it has other spans below.
        """
        known = buffer.final_ids.get(span.trace_id)
        if known is None or span.span_id not in known.anchors:
            if span.kind in STEPS:
                self._memory.note_late_step(span.trace_id)
            return
        above = span.parent_id
        if any(above in (one.span_id, one.parent_id) for one in buffer.spans):
            above = None
        found = self._memory.complete(span, above)
        if found is not None:
            self._events.append(RunEvent(RunChange.REVISED, found.after, found.before))
        elif above is not None and span.parent_remote is not True:
            self._memory.ids += above not in known.anchors
            known.anchors.add(above)

    # --- Spans ------------------------------------------------------------------------------------

    def count(self, buffer: TraceBuffer, built: Rebuilt) -> None:
        """Count the spans of a buffer that closes."""
        self.uncount(buffer)
        tree = built.tree
        accounts = accounts_of(
            built.runs, len(tree.spans), len(tree.others), built.orphans.unclaimed.values()
        )
        accounts[DUPLICATE] = len(buffer.spans) - len(tree.spans)
        buffer.counted = tuple([entry for entry in accounts.items() if entry[1]])
        for account, number in buffer.counted:
            self.accounts.spans[account] += number
        if built.lost_annotations:
            buffer.lost_annotations = len(built.lost_annotations)
            self.accounts.losses[LOST_ANNOTATION] += buffer.lost_annotations

    def uncount(self, buffer: TraceBuffer) -> None:
        """Remove the spans of a buffer from the accounts: they are open, or counted again."""
        for account, number in buffer.counted:
            self.accounts.spans[account] -= number
        buffer.counted = ()
        if buffer.lost_annotations:
            self.accounts.losses[LOST_ANNOTATION] -= buffer.lost_annotations
            buffer.lost_annotations = 0

    def count_late(
        self, final_ids: dict[TraceId, FinalIds], span: AgentSpan, account: Account
    ) -> None:
        """Count a span of a final run, or connected with one, and remember it, so that what comes
        below it is recognized too.
        """
        self.accounts.spans[account] += 1
        if account != DUPLICATE:
            self._memory.ids += remember(final_ids, (span,), sealed=account == SEALED)
