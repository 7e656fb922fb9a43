"""From agent spans to runs, as they arrive.

The assembler gathers spans into units, closes a unit when its reason has come, builds its runs as a pure function of its
spans, and tells what changed against what it told before: closed, revised, withdrawn, settled. Most traces are never gathered:
they lie in a bundle, and hold one plain run when their time comes. It has no clock and no lock: time comes as an argument,
and one caller at a time.
"""

from __future__ import annotations

import heapq
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count
from operator import attrgetter
from typing import Any, Final

from otel_reliability.assembly.adoption import Decision, OpenWork, give, joined, note, stands_alone
from otel_reliability.assembly.blocks import Block, Blocks
from otel_reliability.assembly.build import Builder, Built
from otel_reliability.assembly.build import Unit as BuildUnit
from otel_reliability.assembly.bundle import Bundle, State
from otel_reliability.assembly.bundles import Bundles
from otel_reliability.assembly.chains import parent_of
from otel_reliability.assembly.evaluations import Evaluations
from otel_reliability.assembly.gathering import Gathering
from otel_reliability.assembly.judged import SettledRuns
from otel_reliability.assembly.trees import tree_of
from otel_reliability.assembly.unit import Implicit, SpanKey, Trace, Unit
from otel_reliability.assembly.usual import usual_of
from otel_reliability.config import Settings
from otel_reliability.model.event import RunChange, RunEvent, event_of
from otel_reliability.model.run import CloseReason, Run
from otel_reliability.model.span import AgentSpan, Evaluation, Session, SpanId, TraceId

_SHARE: Final = 32
"""Above a ceiling, one 32nd more than needed is closed, so that not every span has to look for the heaviest."""
_KEPT: Final = 4_096
"""Looks at what is complete that may still be planned, beside as many as there are runs open."""
_ROOT, _GROWING, _CLOSED = CloseReason.ROOT, State.GROWING, State.CLOSED
_TOLD, _SETTLED = RunChange.CLOSED, RunChange.SETTLED
_END: Final = attrgetter("end_ns")
_NOTHING: Final = Built([], 0, 0, 0, frozenset(), 0)


class Assembler:
    """Rebuilds runs from agent spans.

    `accounts` counts every span that came, by (what became of it, why): `used`, `other` (no_convention, beside_agent,
    no_agent, no_run), `late`, `duplicate`, `refused`; runs `closed` by their reason; judgements lost; `ceiling` hits.
    """

    def __init__(self, settings: Settings, builder: Builder | None = None) -> None:
        """`builder`: one under the same settings, for many assemblers of few traces each."""
        self.accounts: Counter[tuple[str, str]] = Counter()
        self._times = settings.assembly
        self._evaluation_ceiling = settings.limits.evaluations
        self._builder = Builder(settings) if builder is None else builder
        self._gathering = Gathering(self._times.span_limit, self._times.other_spans, self.accounts, self._schedule)
        self._bundles = Bundles(
            self._gathering, self._times.span_limit, self._times.other_spans, self.accounts, self._schedule_bundle
        )
        self._evaluations = Evaluations(
            self._gathering, self.accounts, self._evaluation_ceiling, self._look_again, self._judge
        )
        self._settled = SettledRuns(settings.outcome)
        self._usual = self._by_many()
        self._due: list[tuple[float, int, Unit | Bundle]] = []
        self._looks: deque[tuple[float, list[Bundle]]] = deque()
        self._ticket = count()
        self._closed: deque[tuple[float, Unit | Bundle]] = deque()
        self._undecided: dict[TraceId, Trace] = {}
        self._events: list[RunEvent] = []

    def _by_many(self) -> Any:
        return usual_of(self._builder, self._gathering, self._bundles.most, self._settled, self._times, self.accounts)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_usual": None}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        """What is compiled may be there now, or not any more."""
        self.__dict__.update(state)
        self._usual = self._by_many()

    @property
    def open_runs(self) -> int:
        """Units that are still growing."""
        return len(self._gathering.open)

    @property
    def gathered(self) -> int:
        """Traces that are no bundles, or no longer."""
        return len(self._gathering.traces)

    @property
    def open_bytes(self) -> int:
        """Estimated bytes of their spans."""
        return self._gathering.open_bytes

    @property
    def levels(self) -> dict[str, tuple[int, int]]:
        """Every ceiling of this stage: how full it is, and how much it may hold."""
        times, gathering = self._times, self._gathering
        return {
            "open_runs": (len(gathering.open), times.open_runs),
            "open_bytes": (gathering.open_bytes, times.open_bytes),
            "reopenable_bytes": (gathering.closed_bytes, times.reopenable_bytes),
            "other_spans": (gathering.place_count, times.other_spans),
            "closed_ids": (gathering.gone_count, times.closed_ids),
            "waiting_evaluations": (self._evaluations.waiting, self._evaluation_ceiling),
        }

    def add(self, span: AgentSpan, now: float) -> None:
        """Take in one span."""
        self.add_all((span,), now)

    def add_all(self, spans: Sequence[AgentSpan], now: float) -> None:
        """Take in spans that come together. Blocks of them are adopted as they are where that is surely right.

        An exception out of nowhere (a signal handler's) costs no block but the one that is being taken in.
        """
        if not isinstance(spans, Blocks):
            self._add_each(spans, now)
            return
        left = iter(spans.blocks)
        try:
            self._adopt_all(left, now)
        finally:
            self._adopt_all(left, now)
            self._add_each(spans.rest, now)

    def _adopt_all(self, blocks: Iterator[Block], now: float) -> None:
        adopt, evaluations = self._bundles.adopt, self._evaluations
        while (block := self._unusual_of(blocks, now)) is not None:
            if evaluations.listens or not adopt(block, now):
                # Of too many those count that ended, and so were sent, first.
                is_too_large = block.count >= self._times.span_limit
                self._add_each(sorted(block, key=_END) if is_too_large else list(block), now)

    def _unusual_of(self, blocks: Iterator[Block], now: float) -> Block | None:
        """The next that more is to be done with than to begin a bundle; those before it have begun theirs."""
        if self._usual is None or self._evaluations.listens:
            return next(blocks, None)
        found: Block | None = self._usual.begin(blocks, now, self._looks)
        return found

    def _add_each(self, spans: Sequence[AgentSpan], now: float) -> None:
        if not self._evaluations.listens:
            self._bundles.take(spans, now, self._gather)
            return
        for span in spans:
            self._bundles.take((span,), now, self._gather)
            self._evaluations.seen(span, now)

    def _gather(self, span: AgentSpan, now: float) -> None:
        full = self._gathering.add(span, now)
        if full is not None:
            self._seal(full, now)

    def opened(self, trace_id: TraceId, span_id: SpanId, parent_id: SpanId | None, now: float) -> None:
        """A span has started (known in process only): what it belongs to stays open until it ends."""
        if not self._bundles.opened(trace_id, span_id, parent_id, now):
            self._gathering.opened(trace_id, span_id, parent_id, now)

    def ended(self, trace_id: TraceId, span_id: SpanId) -> None:
        """A span known to be open has ended and was lost on its way here: nothing waits for it any more."""
        if not self._bundles.ended(trace_id, span_id):
            self._gathering.ended(trace_id, span_id)

    def holds(self, trace_id: TraceId) -> bool:
        """Return whether a trace has runs that are not final."""
        traces = self._gathering.traces
        trace = traces.get(trace_id)
        return trace_id in traces.bundles or (trace is not None and bool(trace.units))

    def evaluate(self, evaluation: Evaluation, now: float) -> None:
        """Take in a judgement that arrived apart from its span. Before its run is here, it waits."""
        self._evaluations.add(evaluation, now)

    def tick(self, now: float) -> list[RunEvent]:
        """Close what is due, hold the ceilings, settle what can no longer change, forget what nobody will ask for."""
        self._close_due(now)
        self._hold_ceilings(now)
        self._settle(now)
        self._forget(now)
        return self._take_events()

    def close_all(self, reason: CloseReason, now: float) -> list[RunEvent]:
        """Close and settle everything that is open, in the order it began."""
        growing = self._gathering.open
        while growing:  # closing one may have another gathered that it hangs on
            for unit in list(growing):
                if unit in growing:
                    self._close_early(unit, reason, now)
        self._decide()
        while self._closed:
            self._settle_at_once(*self._closed.popleft())
        self._due.clear()
        self._looks.clear()
        return self._take_events()

    def complete(self, traces: Iterable[TraceId], reason: CloseReason, now: float) -> list[RunEvent]:
        """Close, settle and forget traces of which nothing will come any more: no span, no judgement, no link to them.

        One that other traces have a part in, by a link or by the user's own key, stays as it is: it closes with them.
        """
        for trace_id in traces:
            self._complete(trace_id, reason, now)
        self._plan_anew()
        return self._take_events()

    # --- Closing ------------------------------------------------------------------------------------------------------

    def _complete(self, trace_id: TraceId, reason: CloseReason, now: float) -> None:
        gathering = self._gathering
        bundle = gathering.traces.bundles.get(trace_id)
        if bundle is not None and bundle.state is _GROWING and bundle.count:
            told = self._told_of(bundle, reason) if self._bundles.tidy(bundle) else None
            if told is None:
                self._bundles.unfold(bundle)
            else:
                self._close_bundle(bundle, *told, now)
                self._closed.pop()
        trace = gathering.traces.get(trace_id)
        if trace is not None and not self._complete_gathered(trace, reason, now):
            return
        bundle = gathering.traces.bundles.get(trace_id)
        if bundle is not None:
            self._events += [event_of((_SETTLED, run, None)) for run in bundle.runs]
            self._bundles.let_go(bundle)
        elif trace is not None or trace_id in gathering.traces.pasts:
            self._bundles.forget(trace_id)
        gathering.quiet.pop(trace_id, None)
        self._settled.forget(trace_id)

    def _complete_gathered(self, trace: Trace, reason: CloseReason, now: float) -> bool:
        """False: other traces have a part in it."""
        if not stands_alone(trace):
            return False
        planned = len(self._closed)
        for unit in list(trace.units):
            if unit in self._gathering.open:
                self._close(unit, reason, now)
        self._decide()
        while len(self._closed) > planned:
            self._settle_at_once(*self._closed.pop())
        for unit in list(trace.units):
            if unit.closed_at is not None:
                self._settle_unit(unit.closed_at, unit)
        return True

    def _plan_anew(self) -> None:
        """Plan no more looks at what is complete, where that is most of what is planned."""
        growing, traces, looks = self._gathering.open, self._gathering.traces, self._looks
        most = 2 * len(growing) + _KEPT
        if sum(len(bundles) for _, bundles in looks) > most:
            self._looks = deque((due, [bundle for bundle in bundles if bundle in growing]) for due, bundles in looks)
        if len(self._due) > most:
            self._due = [planned for planned in self._due if planned[2] in growing]
            heapq.heapify(self._due)
        if len(self._closed) > most + 2 * (len(traces) + len(traces.bundles)):
            self._closed = deque((at, unit) for at, unit in self._closed if _can_settle(unit, at))

    def _schedule(self, unit: Unit) -> None:
        heapq.heappush(self._due, (self._deadline(unit), next(self._ticket), unit))

    def _deadline(self, unit: Unit) -> float:
        wait = self._times.idle_timeout if unit.has_local_gap else self._times.linger
        return unit.last_seen + wait

    def _close_due(self, now: float) -> None:
        self._look_at_bundles(now)
        waiting: list[Unit] = []
        while self._due and self._due[0][0] <= now:
            _, _, unit = heapq.heappop(self._due)
            if unit not in self._gathering.open:
                continue
            if isinstance(unit, Bundle):
                self._look_at(unit, now)
                continue
            deadline = self._deadline(unit)
            if deadline > now:
                self._schedule(unit)
            elif self._gathering.has_open_span(unit):
                waiting.append(unit)
            else:
                self._close(unit, CloseReason.IDLE if unit.has_local_gap else CloseReason.ROOT, now)
        for unit in waiting:
            heapq.heappush(self._due, (now + self._times.linger, next(self._ticket), unit))

    def _schedule_bundle(self, bundle: Bundle) -> None:
        """Look at a bundle when it has lingered: with those that came at the same time, or by itself if that is sooner."""
        due, looks = bundle.last_seen + self._times.linger, self._looks
        if looks and looks[-1][0] == due:
            looks[-1][1].append(bundle)
        elif not looks or looks[-1][0] < due:
            looks.append((due, [bundle]))
        else:
            heapq.heappush(self._due, (due, next(self._ticket), bundle))

    def _look_at_bundles(self, now: float) -> None:
        """Nearly all are one usual run, and closed at once. What is not so plain about the others is looked at with care."""
        looks, usual, is_odd = self._looks, self._usual, False
        while looks and looks[0][0] <= now:
            due, bundles = looks[0]
            left = bundles[::-1]
            try:
                looks.popleft()
                while left:
                    if usual is not None:
                        is_odd = usual.close(left, now, self._closed, self._events)
                    if left:
                        self._look_at_one(left[-1], now, is_odd=is_odd)
                        left.pop()
            finally:
                if left:  # an exception out of nowhere: that one is looked at once more, the others have lost nothing
                    heapq.heappush(self._due, (now + self._times.linger, next(self._ticket), left.pop()))
                    looks.extendleft([(due, left[::-1])] if left else ())

    def _look_at_one(self, bundle: Bundle, now: float, *, is_odd: bool) -> None:
        """Close it at once, or look at it with care. `is_odd`: no usual run can be made of it."""
        if bundle.state is not _GROWING:
            return
        if is_odd or bundle.open or bundle.last_seen + self._times.linger > now:
            run = None
        else:
            run = self._builder.simple.at_once(bundle, _ROOT)
        if run is None:
            self._look_at(bundle, now)
            return
        self.accounts["used", ""] += run.span_count
        self.accounts["closed", _ROOT.value] += 1
        self._bundles.close_one(bundle, run, now)
        self._closed.append((now, bundle))
        self._events.append(event_of((_TOLD, run, None)))

    def _look_at(self, bundle: Bundle, now: float) -> None:
        """Spans of a bundle have come a linger ago: it is whole, or still waits, or is more than a bundle can be."""
        bundle.due = False
        if not self._bundles.tidy(bundle):
            self._bundles.unfold(bundle)
            return
        told = self._told_of(bundle, CloseReason.ROOT)
        if told is not None and not bundle.open:
            if bundle.last_seen + self._times.linger > now:
                bundle.due = True
                self._schedule_bundle(bundle)
            else:
                self._close_bundle(bundle, *told, now)
            return
        too_old = bundle.born + self._times.idle_timeout
        if told is not None or too_old <= now or not bundle.waits:
            self._bundles.unfold(bundle)
        elif not bundle.is_waiting:
            bundle.is_waiting = True
            heapq.heappush(self._due, (too_old, next(self._ticket), bundle))

    def _told_of(self, bundle: Bundle, reason: CloseReason) -> tuple[Run | Built, AgentSpan] | None:
        """What is to be told of a bundle, and the span above all others; None where it is not, or may not be, one whole tree."""
        root = bundle.root
        run = None if root is None else self._builder.simple.build(bundle, reason)
        if run is not None and root is not None:
            return run, root
        tree = tree_of(bundle)
        built = None if tree is None else self._builder.build(tree.unit)
        if tree is None or built is None or not built.runs or built.loose:
            return None
        return built._replace(runs=[run._replace(closed_by=reason) for run in built.runs]), tree.top

    def _close_bundle(self, bundle: Bundle, told: Run | Built, top: AgentSpan, now: float) -> None:
        if isinstance(told, Run):
            self.accounts["used", ""] += told.span_count
        else:
            self.accounts.update(told.accounts(bundle.count))
        self._bundles.close(bundle, told, top, now)
        self._closed.append((now, bundle))
        for run in bundle.runs:
            self.accounts["closed", run.closed_by.value] += 1
            self._events.append(RunEvent(RunChange.CLOSED, run))

    def _close_early(self, unit: Unit | Bundle, reason: CloseReason, now: float) -> None:
        """Close what may not be whole."""
        if isinstance(unit, Unit):
            self._close(unit, reason, now)
            return
        told = self._told_of(unit, reason) if self._bundles.tidy(unit) else None
        if told is not None:
            self._close_bundle(unit, *told, now)
            return
        for one in list(self._bundles.unfold(unit).units):
            if one in self._gathering.open:
                self._close(one, reason, now)

    def _seal(self, unit: Unit, now: float) -> None:
        """`span_limit`: too large to go on; what still comes is refused by that name."""
        unit.sealed = True
        if unit in self._gathering.open:
            self._close(unit, CloseReason.SPAN_LIMIT, now)

    def _close(self, unit: Unit, reason: CloseReason, now: float) -> None:
        gathering = self._gathering
        del gathering.open[unit]
        gathering.open_bytes -= unit.weight
        gathering.closed_bytes += unit.weight
        unit.closed_at = now
        self._closed.append((now, unit))
        unit.reason = reason
        built = self._build(unit)
        note(unit, built)
        former = None
        if not built.loose:
            former, unit.verdict = unit.host, None
        if former is not None:
            former.stale = True
            del former.guests[unit]
        unit.stale = built.loose > 0 or bool(unit.guests) or any(trace.evaluations for trace in unit.traces)
        for trace in unit.traces:
            if built.loose:
                trace.loose[unit] = None
            else:
                trace.loose.pop(unit, None)
            if trace.loose or trace.hopped or unit.stale or former is not None:
                self._undecided[trace.id] = trace
        if not unit.stale:
            self._tell(unit, built)

    def _build(self, unit: Unit, implicit: Implicit | None = None, guests: Iterable[Unit] = ()) -> Built:
        """The runs of a unit, with the spans that they have adopted."""
        spans = dict(unit.spans)
        parents = {key: self._parent(unit, span) for key, span in unit.spans.items()}
        judged, sessions = list(unit.judged), self._sessions_above(unit)
        for guest in guests:
            root = guest.verdict.root if guest.verdict is not None else None
            for span in guest.spans.values():
                key = unit.key(span.trace_id, span.span_id)
                spans[key], parents[key] = span, self._parent(guest, span, unit) or root
            judged += guest.judged
            sessions += self._sessions_above(guest)
        told = [(evaluation, unit.key(*ref) if ref is not None else None) for evaluation, ref in judged]
        return self._builder.build(
            BuildUnit(spans, parents, sorted(sessions), told, implicit, has_gap=unit.has_local_gap)
        )

    def _parent(self, unit: Unit, span: AgentSpan, teller: Unit | None = None) -> SpanKey | None:
        """The nearest span of the unit above a span, through other spans, as the `teller` calls it."""
        if parent_of(span) is None:
            return None
        if teller is None and span.parent_id in unit.spans and len(unit.traces) == 1:
            return span.parent_id
        above = self._gathering.chains.above(span)
        return (teller or unit).key(*above.member) if above.unit is unit and above.member is not None else None

    def _sessions_above(self, unit: Unit) -> list[Session]:
        """Session ids of the other spans above the unit's spans."""
        if not any(trace.places for trace in unit.traces):
            return []
        found = {
            place.session
            for span in unit.spans.values()
            for _, place in self._gathering.chains.places_above(span)
            if place.session is not None
        }
        return list(found)

    # --- What depends on the rest of its trace ------------------------------------------------------------------------

    def _look_again(self, trace: Trace) -> None:
        self._undecided[trace.id] = trace

    def _decide(self) -> None:
        """What becomes of loose work and of judgements in the traces where something has changed."""
        while self._undecided:
            traces = joined(self._undecided.popitem()[1])
            for trace in traces:
                self._undecided.pop(trace.id, None)
            for unit in self._changed(traces):
                if unit.closed_at is not None:
                    self._tell_anew(unit)

    def _changed(self, traces: list[Trace]) -> Iterable[Unit]:
        """The units of which other things are to be told than before, each once."""
        units = dict.fromkeys(unit for trace in traces for unit in trace.units)
        decide = Decision(traces, units)
        changed = {unit: None for unit in units if unit.stale}
        given = self._evaluations.of(traces)
        for unit in units:
            judged = given.get(unit, [])
            if judged != unit.judged:
                unit.judged = judged
                changed[unit.host or unit] = None
        for unit in dict.fromkeys(unit for trace in traces for unit in trace.loose):
            if unit.closed_at is None or (unit.host is not None and unit.host.closed_at is None):
                continue
            verdict = decide.about(unit)
            if unit.stale or verdict != unit.verdict:
                changed.update(dict.fromkeys(give(unit, verdict)))
        return changed

    def _tell_anew(self, unit: Unit) -> None:
        unit.stale = False
        verdict = unit.verdict
        if unit.host is not None:
            self._tell(unit, _NOTHING)
        else:
            self._tell(unit, self._build(unit, verdict.implicit if verdict is not None else None, unit.guests))

    # --- Telling ------------------------------------------------------------------------------------------------------

    def _tell(self, unit: Unit, built: Built) -> None:
        """Tell what changed against what was told of these runs before, by this unit or by another that held them then."""
        reason = unit.reason
        runs = {run.run_id: run._replace(closed_by=reason) for run in built.runs}
        tellers = self._gathering.tellers
        for run_id in [run_id for run_id in unit.emitted if run_id not in runs]:
            self._events.append(RunEvent(RunChange.WITHDRAWN, unit.emitted.pop(run_id)))
            del tellers[run_id]
        for run_id, run in runs.items():
            teller = tellers.get(run_id)
            known = teller.current().emitted.pop(run_id) if teller is not None else None
            if known is None:
                self.accounts["closed", reason.value] += 1
                self._events.append(RunEvent(RunChange.CLOSED, run))
            elif known._replace(closed_by=reason) != run:
                self._events.append(RunEvent(RunChange.REVISED, run, known))
            same = known is not None and known._replace(closed_by=reason) == run
            unit.emitted[run_id], tellers[run_id] = known if known is not None and same else run, unit
        self._count(unit, built)

    def _count(self, unit: Unit, built: Built) -> None:
        """Every span of the unit is accounted for once, however often the unit is closed."""
        if unit.host is not None:
            counted = {("used", ""): len(unit.spans)}
        else:
            counted = {("used", ""): built.used - sum(len(guest.spans) for guest in unit.guests)}
            if built.loose:
                beside = unit.verdict is not None and unit.verdict.beside_agent
                counted["other", "beside_agent" if beside else "no_agent"] = built.loose
        counted["other", "no_run"] = len(unit.spans) - sum(counted.values())
        for key in unit.counted.keys() | counted.keys():
            self.accounts[key] += counted.get(key, 0) - unit.counted.get(key, 0)
        unit.counted = counted

    def _judge(self, trace: Trace, evaluation: Evaluation) -> bool:
        """A judgement of a settled run: what windows hold of the run changes, what counters have recorded does not."""
        judged = self._settled.judge(evaluation, trace.id)
        if judged is None:
            return False
        before, now = judged
        if now is not before:
            self._events.append(RunEvent(RunChange.REVISED, now, before))
        return True

    def _take_events(self) -> list[RunEvent]:
        events, self._events = self._events, []
        return events

    # --- Letting go ---------------------------------------------------------------------------------------------------

    def _settle(self, now: float) -> None:
        waiting: list[tuple[float, Unit | Bundle]] = []
        closed, reopen, open_above = self._closed, self._times.reopen, OpenWork(self._gathering.open)
        while closed and closed[0][0] + reopen <= now:
            if self._usual is not None and self._usual.settle(closed, now, self._events):
                continue
            closed_at, unit = closed.popleft()
            if isinstance(unit, Bundle):
                if unit.unit is None:
                    self._settle_bundle(unit, closed_at)
                    continue
                unit = unit.unit
            if unit.closed_at != closed_at:
                continue
            if unit.host is not None or self._has_young_guest(unit, now) or open_above.may_change(unit):
                waiting.append((closed_at, unit))
            else:
                self._settle_unit(closed_at, unit)
        closed.extendleft(reversed(waiting))

    def _settle_at_once(self, closed_at: float, unit: Unit | Bundle) -> None:
        if isinstance(unit, Unit):
            self._settle_unit(closed_at, unit)
        elif unit.unit is not None:
            self._settle_unit(closed_at, unit.unit)
        else:
            self._settle_bundle(unit, closed_at)

    def _settle_bundle(self, bundle: Bundle, closed_at: float) -> None:
        if bundle.state is _CLOSED:
            run = bundle.run
            for one in bundle.runs if run is None else (run,):
                self._events.append(event_of((_SETTLED, one, None)))
                self._settled.remember(one)
            self._bundles.settle(bundle, closed_at)

    def _has_young_guest(self, unit: Unit, now: float) -> bool:
        """Whether one that it has adopted can still change: they settle together."""
        horizon = now - self._times.reopen
        return any(guest.closed_at is None or guest.closed_at > horizon for guest in unit.guests)

    def _settle_unit(self, closed_at: float, unit: Unit) -> None:
        """A unit's time to reopen has passed: its runs are final, its spans are let go, their ids remembered."""
        if unit.closed_at != closed_at:
            return
        for guest in list(unit.guests):
            if guest.closed_at is not None:
                self._settle_unit(guest.closed_at, guest)
        gathering = self._gathering
        for run_id, run in unit.emitted.items():
            self._events.append(RunEvent(RunChange.SETTLED, run))
            self._settled.remember(run)
            del gathering.tellers[run_id]
        gathering.closed_bytes -= unit.weight
        for span in unit.spans.values():
            trace = gathering.traces[span.trace_id]
            trace.homes.pop(span.span_id, None)
            gathering.bury(trace, span.span_id)
        if unit.host is not None or any(run.implicit for run in unit.emitted.values()):
            gathering.stand_in(unit)
        gathering.unhang(unit)
        for trace in unit.traces:
            self._leave(trace, unit)
            if not trace.units:
                gathering.quiet[trace.id] = closed_at
        self._evaluations.settled(unit)
        unit.part()
        unit.spans, unit.emitted, unit.counted, unit.closed_at, unit.sealed = {}, {}, {}, None, True

    def _leave(self, trace: Trace, unit: Unit) -> None:
        trace.units.pop(unit, None)
        trace.loose.pop(unit, None)
        trace.agents = frozenset(sorted(trace.agents | unit.agents)[:2])
        if unit.invocations:
            trace.had_invocation = trace.has_invocation = True

    def _hold_ceilings(self, now: float) -> None:
        """Above a ceiling the heaviest are closed, of equals the oldest."""
        times, gathering = self._times, self._gathering
        if len(gathering.open) > times.open_runs:
            number = len(gathering.open) - times.open_runs + times.open_runs // _SHARE
            self._evict(number, 0, CloseReason.OPEN_RUNS, now)
        if gathering.open_bytes > times.open_bytes:
            size = gathering.open_bytes - times.open_bytes + times.open_bytes // _SHARE
            self._evict(0, size, CloseReason.MEMORY, now)
        self._decide()
        while gathering.closed_bytes > times.reopenable_bytes and self._closed:
            self._settle_at_once(*self._closed.popleft())
            self.accounts["ceiling", "reopenable_bytes"] += 1

    def _evict(self, number: int, size: int, reason: CloseReason, now: float) -> None:
        for unit in sorted(self._gathering.open, key=lambda unit: (-unit.count, unit.born)):
            if number <= 0 and size <= 0:
                return
            if unit in self._gathering.open:
                number, size = number - 1, size - unit.weight
                self._close_early(unit, reason, now)

    def _forget(self, now: float) -> None:
        """Quiet traces are forgotten in time, or the oldest first when there are too many ids; waiting judgements too."""
        times, gathering = self._times, self._gathering
        horizon = now - times.remember
        while True:
            due = gathering.quiet.due(horizon)
            if not due:
                has_room = gathering.place_count < times.other_spans and gathering.gone_count <= times.closed_ids
                if has_room or not gathering.quiet:
                    break
                self.accounts["ceiling", "remembered_ids"] += 1
                due = [next(iter(gathering.quiet))]
            self._settled.forget_all(due)
            self._bundles.forget_all(due)
            gathering.quiet.drop(due)  # last: whatever ends this before, they are forgotten the next time
        if gathering.gone_count > times.closed_ids:
            gathering.forget_gone(gathering.gone_count - times.closed_ids + times.closed_ids // _SHARE)
            self.accounts["ceiling", "remembered_ids"] += 1
        if self._evaluations.waiting:
            self._evaluations.expire(now)


def _can_settle(closed: Unit | Bundle, closed_at: float) -> bool:
    """Whether what was closed then is still as it was."""
    if isinstance(closed, Unit):
        return closed.closed_at == closed_at
    return closed.state is _CLOSED if closed.unit is None else closed.unit.closed_at == closed_at
