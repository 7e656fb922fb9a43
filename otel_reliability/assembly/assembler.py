"""From agent spans to runs, as they arrive (DESIGN §3.7, §3.13).

The assembler gathers spans into units, closes a unit when its reason has come, builds its runs as a pure function of its
spans, and tells what changed against what it told before: closed, revised, withdrawn, settled. It has no clock and no lock:
time comes as an argument, and one caller at a time.
"""

from __future__ import annotations

import heapq
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from itertools import count
from typing import Final

from otel_reliability.assembly.build import Built, Builder, Implicit
from otel_reliability.assembly.build import Unit as BuildUnit
from otel_reliability.assembly.unit import Above, Place, Trace, Unit
from otel_reliability.config import Settings
from otel_reliability.model.event import RunChange, RunEvent
from otel_reliability.model.run import CloseReason, Run
from otel_reliability.model.span import (
    AgentSpan,
    Evaluation,
    Kind,
    ModelFacts,
    Session,
    SpanId,
    SpanRef,
    TraceId,
)

_INVOCATIONS: Final = frozenset({Kind.AGENT, Kind.WORKFLOW})
_LONG_CHAIN: Final = 32
_EVICT_SHARE: Final = 32
_EVALUATION_WAIT: Final = 600.0
_MAX_OPEN: Final = 10_000
_MAX_EVALUATIONS: Final = 256


class Assembler:
    """Rebuilds runs from agent spans.

    `accounts` counts every span that came, by (what became of it, reason): `used`, `other` (no_convention, beside_agent,
    no_agent, no_run), `late`, `duplicate`, `refused`; and closed runs by `closed` and their reason.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._times = settings.assembly
        self._builder = Builder(settings)
        self._traces: dict[TraceId, Trace] = {}
        self._due: list[tuple[float, int, Unit]] = []
        self._ticket = count()
        self._open: dict[Unit, None] = {}
        self._closed: deque[tuple[float, Unit]] = deque()
        self._quiet: dict[TraceId, float] = {}
        self._evaluations: dict[TraceId, list[tuple[float, Evaluation]]] = {}
        self._by_response: dict[str, list[tuple[float, Evaluation]]] = {}
        self._responses: dict[str, SpanRef] | None = None
        self._pending_evaluations = 0
        self._open_bytes = 0
        self._closed_bytes = 0
        self._place_count = 0
        self._gone_count = 0
        self._events: list[RunEvent] = []
        self.accounts: Counter[tuple[str, str]] = Counter()

    @property
    def open_runs(self) -> int:
        """Units that are still growing."""
        return len(self._open)

    @property
    def open_bytes(self) -> int:
        """Estimated bytes of their spans."""
        return self._open_bytes

    @property
    def levels(self) -> dict[str, tuple[int, int]]:
        """Every ceiling of this stage: how full it is, and how much it may hold."""
        times = self._times
        return {
            "open_runs": (len(self._open), times.open_runs),
            "open_bytes": (self._open_bytes, times.open_bytes),
            "reopenable_bytes": (self._closed_bytes, times.reopenable_bytes),
            "other_spans": (self._place_count, times.other_spans),
            "closed_ids": (self._gone_count, times.closed_ids),
            "waiting_evaluations": (self._pending_evaluations, self._settings.limits.evaluations),
        }

    # what comes in

    def add(self, span: AgentSpan, now: float) -> None:
        """Take in one span."""
        trace = self._traces.get(span.trace_id) or self._new_trace(span.trace_id, now)
        span_id = span.span_id
        if trace.open:
            trace.open.pop(span_id, None)
        if trace.gone and self._is_late(trace, span):
            return
        if span_id in trace.homes or span_id in trace.places:
            self._again(trace, span, now)
        else:
            self._take(trace, span, now)

    def opened(self, trace_id: TraceId, span_id: SpanId, parent_id: SpanId | None, now: float) -> None:
        """A span has started (known in process only): what it belongs to stays open until it ends."""
        trace = self._traces.get(trace_id) or self._new_trace(trace_id, now)
        if len(trace.open) < _MAX_OPEN:
            trace.open[span_id] = parent_id

    def evaluate(self, evaluation: Evaluation, now: float) -> None:
        """Take in a judgement that arrived apart from its span (DESIGN §5.5). Before its run is here, it waits."""
        if evaluation.trace_id is None:
            self._evaluate_response(evaluation, now)
            return
        trace = self._traces.get(evaluation.trace_id)
        if trace is None:
            self._wait(self._evaluations.setdefault(evaluation.trace_id, []), evaluation, now)
        else:
            self._evaluate(trace, evaluation, now)

    def tick(self, now: float) -> list[RunEvent]:
        """Close what is due, settle what can no longer change, forget what nobody will ask for."""
        self._close_due(now)
        self._hold_ceilings(now)
        self._settle(now)
        self._forget(now)
        return self._take_events()

    def close_all(self, reason: CloseReason, now: float) -> list[RunEvent]:
        """Close and settle everything that is open, in the order it began."""
        for unit in list(self._open):
            if unit in self._open:
                self._close(unit, reason, now)
        while self._closed:
            self._settle_unit(*self._closed.popleft())
        self._due.clear()
        return self._take_events()

    # gathering

    def _new_trace(self, trace_id: TraceId, now: float) -> Trace:
        trace = self._traces[trace_id] = Trace(trace_id)
        self._quiet[trace_id] = now
        for _, evaluation in self._evaluations.pop(trace_id, ()):
            self._pending_evaluations -= 1
            trace.evaluations.append(evaluation)
        return trace

    def _is_late(self, trace: Trace, span: AgentSpan) -> bool:
        """Whether a span is, or hangs on, one of a run that is settled."""
        if span.span_id in trace.gone:
            self.accounts["duplicate", ""] += 1
            return True
        if span.parent_id is None or span.parent_id not in trace.gone:
            return False
        self.accounts["late", ""] += 1
        self._bury(trace, span.span_id)
        return True

    def _bury(self, trace: Trace, span_id: SpanId) -> None:
        if span_id not in trace.gone:
            trace.gone.add(span_id)
            self._gone_count += 1

    def _take(self, trace: Trace, span: AgentSpan, now: float) -> None:
        if span.kind is Kind.OTHER and span.notes is None and not span.evaluations:
            self._place(trace, span, now)
            return
        above = self._climb(trace, _parent(span), span.parent_remote, (trace.id, span.span_id))
        unit = above.unit
        if unit is None:
            unit = self._unit_for(trace, span, above, now)
        elif unit.sealed:
            self.accounts["refused", CloseReason.SPAN_LIMIT.value] += 1
            self._bury(trace, span.span_id)
            return
        else:
            self._touch(unit, now)
        self._join_trace(unit, trace)
        unit.spans[span.span_id] = span
        trace.homes[span.span_id] = unit
        self._open_bytes += 900
        if span.kind in _INVOCATIONS:
            trace.has_invocation = True
        if self._responses is not None or self._by_response:
            self._index_response(span, now)
        if span.span_id in trace.waiting:
            self._arrived(trace, span.span_id, now)
        if len(unit.spans) >= self._times.span_limit:
            self._seal(unit.current(), now)

    def _place(self, trace: Trace, span: AgentSpan, now: float) -> None:
        trace.places[span.span_id] = Place(_parent(span), span.parent_remote, span.session)
        self._place_count += 1
        self.accounts["other", "no_convention"] += 1
        if span.span_id in trace.waiting:
            self._arrived(trace, span.span_id, now)

    def _unit_for(self, trace: Trace, span: AgentSpan, above: Above, now: float) -> Unit:
        """A unit of its own for an invocation; work without one gathers by what it hangs on."""
        is_loose = span.kind not in _INVOCATIONS
        if is_loose and (unit := trace.loose_at.get(above.anchor)) is not None:
            unit = unit.current()
            if not unit.sealed:
                self._touch(unit, now)
                return unit
        unit = Unit(trace, above, now, is_loose=is_loose)
        if is_loose:
            trace.loose_at[above.anchor] = unit
        trace.units[unit] = None
        self._open[unit] = None
        self._quiet.pop(trace.id, None)
        self._wait_for(unit)
        self._schedule(unit)
        return unit

    def _wait_for(self, unit: Unit) -> None:
        if unit.missing is not None:
            trace_id, span_id = unit.missing
            trace = self._traces.get(trace_id)
            if trace is None:
                trace = self._new_trace(trace_id, unit.last_seen)
            trace.waiting.setdefault(span_id, []).append(unit)

    def _join_trace(self, unit: Unit, trace: Trace) -> None:
        if trace is not unit.traces[0] and trace not in unit.traces:
            unit.traces.append(trace)
            trace.units[unit] = None
            self._quiet.pop(trace.id, None)

    def _touch(self, unit: Unit, now: float) -> None:
        """A unit has changed: it is open (again), and lingers anew."""
        unit.last_seen = max(unit.last_seen, now)
        if unit.closed_at is not None:
            unit.closed_at = None
            self._closed_bytes -= unit.weight
            self._open_bytes += unit.weight
            self._open[unit] = None
            self._schedule(unit)

    def _climb(self, trace: Trace, parent: SpanRef | None, remote: bool | None, anchor: SpanRef) -> Above:
        """Up from a span, through the places of other spans, to a unit, a gap or a top."""
        start, steps = parent, 0
        seen: set[SpanRef] = set()
        while parent is not None:
            over = trace if parent[0] == trace.id else self._traces.get(parent[0])
            unit = over.homes.get(parent[1]) if over is not None else None
            if unit is not None:
                self._shorten(trace, start, anchor, steps)
                return Above(unit.current(), parent[1], None, False, anchor)
            place = over.places.get(parent[1]) if over is not None else None
            if over is None or place is None or parent in seen:
                self._shorten(trace, start, anchor, steps)
                return Above(None, None, parent, remote is True, parent)
            anchor, steps = parent, steps + 1
            if steps > _LONG_CHAIN:
                seen.add(parent)
            shortcut = over.shortcuts.get(parent[1])
            further = self._traces.get(shortcut[0]) if shortcut is not None and shortcut not in seen else None
            if shortcut is not None and further is not None:
                anchor, place = shortcut, further.places[shortcut[1]]
                seen.add(shortcut)
            parent, remote = place.parent, place.parent_remote
        self._shorten(trace, start, anchor, steps)
        return Above(None, None, None, False, anchor)

    def _shorten(self, trace: Trace, start: SpanRef | None, last: SpanRef, steps: int) -> None:
        """Remember where a long chain of other spans led, so that the next one need not walk it."""
        if steps > _LONG_CHAIN and start is not None and start != last:
            trace.shortcuts[start[1]] = last

    def _arrived(self, trace: Trace, span_id: SpanId, now: float) -> None:
        """A span that units have waited for is here: they join its unit, or wait for what stands above it."""
        waiting = trace.waiting.pop(span_id)
        for unit in dict.fromkeys(unit.current() for unit in waiting):
            home = trace.homes.get(span_id)
            if home is not None:
                self._merge(home.current(), unit, now)
                continue
            place = trace.places[span_id]
            above = self._climb(trace, place.parent, place.parent_remote, (trace.id, span_id))
            if above.unit is not None:
                self._merge(above.unit, unit, now)
            else:
                self._hang(unit, above, now)

    def _hang(self, unit: Unit, above: Above, now: float) -> None:
        """A unit's gap has moved up, or closed."""
        self._touch(unit, now)
        if unit.is_loose:
            for trace in unit.traces:
                if trace.loose_at.get(unit.anchor) is unit:
                    del trace.loose_at[unit.anchor]
        unit.missing, unit.remote, unit.anchor = above.missing, above.remote, above.anchor
        if unit.is_loose:
            other = unit.trace.loose_at.get(unit.anchor)
            if other is not None and other.current() is not unit:
                self._merge(other.current(), unit, now)
                return
            unit.trace.loose_at[unit.anchor] = unit
        self._wait_for(unit)
        self._schedule(unit)

    def _merge(self, one: Unit, two: Unit, now: float) -> None:
        """Two units are one: what stands above `one` stands above both."""
        if one is two:
            return
        self._touch(one, now)
        self._touch(two, now)
        missing, remote, anchor = one.missing, one.remote, one.anchor
        if len(one.spans) < len(two.spans):
            one, two = two, one
        one.missing, one.remote, one.anchor = missing, remote, anchor
        one.is_loose = one.is_loose and two.is_loose
        self._release_guests(one)
        self._release_guests(two)
        one.spans.update(two.spans)
        two.spans = {}
        one.born = min(one.born, two.born)
        one.last_seen = max(one.last_seen, two.last_seen)
        one.emitted.update(two.emitted)
        for key, number in two.counted.items():
            one.counted[key] = one.counted.get(key, 0) + number
        for trace in two.traces:
            trace.units.pop(two, None)
            self._join_trace(one, trace)
        two.merged_into = one
        self._open.pop(two, None)
        self._schedule(one)

    def _release_guests(self, unit: Unit) -> None:
        """What a unit has adopted, or who has adopted it, is decided anew when it closes."""
        for guest in unit.guests:
            guest.host = None
        unit.guests = []
        if unit.host is not None:
            unit.host.guests = [guest for guest in unit.host.guests if guest is not unit]
            unit.host = None

    def _again(self, trace: Trace, span: AgentSpan, now: float) -> None:
        """The same span once more: dropped, unless it says more; then the greater end wins, then the greater content."""
        self.accounts["duplicate", ""] += 1
        home = trace.homes.get(span.span_id)
        if home is None:
            place = trace.places[span.span_id]
            if span.kind is not Kind.OTHER:
                self._replace(trace, span, now)
            elif place.parent is None and _parent(span) is not None:
                self._replace(trace, span, now)
            return
        unit = home.current()
        known = unit.spans[span.span_id]
        if known != span and _content(span) > _content(known):
            self._replace(trace, span, now)

    def _replace(self, trace: Trace, span: AgentSpan, now: float) -> None:
        """A span has changed its content, perhaps its parent: the trace is gathered again."""
        units = list(trace.units)
        spans = [known for unit in units for known in unit.spans.values() if known.span_id != span.span_id]
        emitted: dict[str, Run] = {}
        counted: Counter[tuple[str, str]] = Counter()
        traces = {t.id: t for unit in units for t in unit.traces}
        for unit in units:
            self._touch(unit, now)
            self._release_guests(unit)
            emitted.update(unit.emitted)
            counted.update(unit.counted)
            self._drop_unit(unit)
        if trace.places.pop(span.span_id, None) is not None:
            self._place_count -= 1
            self.accounts["other", "no_convention"] -= 1
        trace.shortcuts.clear()
        for known in [*spans, span]:
            self._take(traces.get(known.trace_id, trace), known, now)
        heir = next((unit for t in traces.values() for unit in t.units), None)
        if heir is None:
            heir = next(iter(trace.units), None)
        if heir is not None:
            heir.emitted.update(emitted)
            heir.counted.update(counted)

    def _drop_unit(self, unit: Unit) -> None:
        self._open.pop(unit, None)
        self._open_bytes -= unit.weight
        for trace in unit.traces:
            trace.units.pop(unit, None)
            trace.loose_at = {key: other for key, other in trace.loose_at.items() if other.current() is not unit}
            for waiting in trace.waiting.values():
                waiting[:] = [other for other in waiting if other.current() is not unit]
        for span in unit.spans.values():
            self._traces[span.trace_id].homes.pop(span.span_id, None)
        unit.spans = {}

    # closing

    def _schedule(self, unit: Unit) -> None:
        heapq.heappush(self._due, (self._deadline(unit), next(self._ticket), unit))

    def _deadline(self, unit: Unit) -> float:
        wait = self._times.idle_timeout if unit.has_local_gap else self._times.linger
        return unit.last_seen + wait

    def _close_due(self, now: float) -> None:
        while self._due and self._due[0][0] <= now:
            _, _, unit = heapq.heappop(self._due)
            if unit not in self._open:
                continue
            deadline = self._deadline(unit)
            if deadline > now or self._has_open_span(unit):
                later = max(deadline, now + self._times.linger)
                heapq.heappush(self._due, (later, next(self._ticket), unit))
                continue
            self._close(unit, CloseReason.IDLE if unit.has_local_gap else CloseReason.ROOT, now)

    def _has_open_span(self, unit: Unit) -> bool:
        """Whether a span known to be open lies in this unit."""
        return any(self._leads_to(trace, span_id, unit) for trace in unit.traces for span_id in trace.open)

    def _leads_to(self, trace: Trace, span_id: SpanId, unit: Unit) -> bool:
        above = trace.open[span_id]
        for _ in range(_MAX_OPEN):
            if above is None:
                return False
            home = trace.homes.get(above)
            if home is not None:
                return home.current() is unit
            if above in trace.open:
                above = trace.open[above]
            elif above in trace.places:
                parent = trace.places[above].parent
                above = None if parent is None else parent[1]
            else:
                return False
        return False

    def _seal(self, unit: Unit, now: float) -> None:
        """DESIGN §3.7, `span_limit`: too large to go on; what still comes is refused by that name."""
        unit.sealed = True
        if unit in self._open:
            self._close(unit, CloseReason.SPAN_LIMIT, now)

    def _close(self, unit: Unit, reason: CloseReason, now: float) -> None:
        del self._open[unit]
        self._open_bytes -= unit.weight
        self._closed_bytes += unit.weight
        unit.closed_at = now
        self._closed.append((now, unit))
        built = self._build(unit, None)
        unit.loose, unit.loose_calls = built.loose, built.loose_calls
        for trace in unit.traces:
            trace.agents.update(built.agents)
            trace.has_invocation = trace.has_invocation or built.invocations > 0
        self._tell(unit, built, reason)
        self._resolve_loose(unit.traces, reason)

    def _build(self, unit: Unit, implicit: Implicit | None) -> Built:
        spans = list(unit.spans.values())
        parents = {span.span_id: self._member_above(unit, span) for span in spans}
        for guest in unit.guests:
            host = self._host_root(unit, guest)
            for span in guest.spans.values():
                spans.append(span)
                parents[span.span_id] = self._member_above(guest, span) or host
        return self._builder.build(
            BuildUnit(spans, parents, self._sessions_above(unit), list(self._evaluations_of(unit)), implicit)
        )

    def _member_above(self, unit: Unit, span: AgentSpan) -> SpanId | None:
        """The nearest span of the unit above a span, through other spans."""
        parent = _parent(span)
        if parent is None:
            return None
        if parent[1] in unit.spans:
            return parent[1]
        above = self._climb(self._traces[span.trace_id], parent, span.parent_remote, (span.trace_id, span.span_id))
        return above.member if above.unit is unit else None

    def _sessions_above(self, unit: Unit) -> list[Session]:
        """Session ids of the other spans above the unit's tops, nearest first."""
        found: list[Session] = []
        for span in unit.spans.values():
            parent = _parent(span)
            for _ in range(_LONG_CHAIN):
                trace = self._traces.get(parent[0]) if parent is not None else None
                place = trace.places.get(parent[1]) if trace is not None and parent is not None else None
                if place is None:
                    break
                if place.session is not None and place.session not in found:
                    found.append(place.session)
                parent = place.parent
        return sorted(found)

    # work without an invocation above it

    def _resolve_loose(self, traces: Iterable[Trace], reason: CloseReason) -> None:
        """DESIGN §3.2h, for every closed unit of these traces that holds such work: decided anew, since others closed."""
        units = dict.fromkeys(unit for trace in traces for unit in trace.units if unit.loose and unit.closed_at is not None)
        for unit in units:
            host = self._host_of(unit) if unit.has_local_gap else None
            if host is not unit.host:
                self._move(unit, host, reason)
            if host is None:
                self._tell(unit, self._build(unit, self._implicit(unit)), reason)
            else:
                self._tell(unit, Built([], 0, 0, 0, frozenset(), 0), reason)

    def _move(self, guest: Unit, host: Unit | None, reason: CloseReason) -> None:
        former, guest.host = guest.host, host
        if former is not None:
            former.guests = [other for other in former.guests if other is not guest]
            self._tell(former, self._build(former, None), reason)
        if host is not None:
            host.guests.append(guest)
            self._tell(host, self._build(host, None), reason)

    def _host_of(self, unit: Unit) -> Unit | None:
        """The one top-level run of the trace that encloses the unit's spans in time."""
        found = self._enclosing_runs(unit)
        return found[0][0] if len(found) == 1 else None

    def _host_root(self, host: Unit, guest: Unit) -> SpanId | None:
        found = [run for unit, run in self._enclosing_runs(guest) if unit is host]
        return found[0].root_span_id if found else None

    def _enclosing_runs(self, unit: Unit) -> list[tuple[Unit, Run]]:
        start = min(span.start_ns for span in unit.spans.values())
        end = max(span.end_ns for span in unit.spans.values())
        return [
            (other, run)
            for trace in unit.traces
            for other in trace.units
            if other is not unit and other.closed_at is not None
            for run in other.emitted.values()
            if not run.nested and not run.implicit and run.start_ns <= start and end <= run.end_ns
        ]

    def _implicit(self, unit: Unit) -> Implicit | None:
        """How work with no invocation above becomes a run of its own, None where it is nobody's."""
        trace = unit.trace
        if unit.has_local_gap:
            agents = {name for t in unit.traces for name in t.agents}
            return Implicit(unit.anchor[1], next(iter(agents)) if len(agents) == 1 else None, incomplete=True)
        if any(t.has_invocation for t in unit.traces) or not unit.loose_calls:
            return None
        return Implicit(unit.anchor[1] if unit.anchor[0] == trace.id else unit.anchor[1], None, incomplete=False)

    # telling

    def _tell(self, unit: Unit, built: Built, reason: CloseReason) -> None:
        """Tell what changed against what was told of this unit before."""
        runs = {run.run_id: run._replace(closed_by=reason) for run in built.runs}
        for run_id in [run_id for run_id in unit.emitted if run_id not in runs]:
            self._events.append(RunEvent(RunChange.WITHDRAWN, unit.emitted.pop(run_id)))
        for run_id, run in runs.items():
            known = unit.emitted.get(run_id)
            if known is None:
                self.accounts["closed", reason.value] += 1
                self._events.append(RunEvent(RunChange.CLOSED, run))
            elif known._replace(closed_by=reason) == run:
                continue
            else:
                self._events.append(RunEvent(RunChange.REVISED, run, known))
            unit.emitted[run_id] = run
        self._count(unit, built)

    def _count(self, unit: Unit, built: Built) -> None:
        """Every span of the unit is accounted for once, however often the unit is closed."""
        guests = sum(len(guest.spans) for guest in unit.guests)
        counted = {("used", ""): built.used - guests}
        if unit.host is not None:
            counted = {("used", ""): len(unit.spans)}
        elif built.loose:
            beside = any(trace.has_invocation for trace in unit.traces)
            counted["other", "beside_agent" if beside else "no_agent"] = built.loose
        rest = len(unit.spans) - sum(counted.values())
        counted["other", "no_run"] = rest
        for key in unit.counted.keys() | counted.keys():
            self.accounts[key] += counted.get(key, 0) - unit.counted.get(key, 0)
        unit.counted = counted

    def _take_events(self) -> list[RunEvent]:
        events, self._events = self._events, []
        return events

    # evaluations

    def _wait(self, waiting: list[tuple[float, Evaluation]], evaluation: Evaluation, now: float) -> None:
        if self._pending_evaluations >= self._settings.limits.evaluations:
            self.accounts["evaluation_refused", "waiting"] += 1
            return
        self._pending_evaluations += 1
        waiting.append((now, evaluation))

    def _evaluate(self, trace: Trace, evaluation: Evaluation, now: float) -> None:
        if not trace.units and trace.gone:
            self.accounts["evaluation_late", ""] += 1
            return
        if evaluation in trace.evaluations:
            return
        if len(trace.evaluations) >= _MAX_EVALUATIONS:
            self.accounts["evaluation_refused", "trace"] += 1
            return
        trace.evaluations.append(evaluation)
        for unit in trace.units:
            self._touch(unit, now)

    def _evaluate_response(self, evaluation: Evaluation, now: float) -> None:
        if evaluation.response_id is None:
            self.accounts["evaluation_refused", "no_target"] += 1
            return
        if self._responses is None:
            self._responses = {}
            for trace in self._traces.values():
                for unit in trace.units:
                    for span in unit.spans.values():
                        self._index_response(span, now)
        ref = self._responses.get(evaluation.response_id)
        trace = self._traces.get(ref[0]) if ref is not None else None
        if ref is None or trace is None:
            self._wait(self._by_response.setdefault(evaluation.response_id, []), evaluation, now)
        else:
            self._evaluate(trace, evaluation._replace(trace_id=ref[0], span_id=ref[1]), now)

    def _index_response(self, span: AgentSpan, now: float) -> None:
        facts = span.facts
        if self._responses is None or not isinstance(facts, ModelFacts) or facts.response_id is None:
            return
        if len(self._responses) < self._times.closed_ids:
            self._responses[facts.response_id] = (span.trace_id, span.span_id)
        for _, evaluation in self._by_response.pop(facts.response_id, ()):
            self._pending_evaluations -= 1
            self.evaluate(evaluation._replace(trace_id=span.trace_id, span_id=span.span_id), now)

    def _evaluations_of(self, unit: Unit) -> Iterator[tuple[Evaluation, SpanId | None]]:
        """The waiting judgements that belong to this unit, each with the span it names there."""
        for trace in unit.traces:
            for evaluation in trace.evaluations:
                target = self._target(trace, evaluation)
                if target is not None and target[0] is unit:
                    yield evaluation, target[1]

    def _target(self, trace: Trace, evaluation: Evaluation) -> tuple[Unit, SpanId | None] | None:
        """Where a judgement belongs: the run of the span it names, else the runs below that if there is one, else the trace's."""
        span_id = evaluation.span_id
        if span_id is not None and span_id in trace.homes:
            return trace.homes[span_id].current(), span_id
        if span_id is not None and span_id in trace.places:
            place = trace.places[span_id]
            above = self._climb(trace, place.parent, place.parent_remote, (trace.id, span_id))
            if above.unit is not None:
                return above.unit, above.member
            below = [unit for unit in trace.units if self._is_below(unit, (trace.id, span_id))]
            return (below[0], None) if len(below) == 1 else None
        with_runs = [unit for unit in trace.units if not unit.is_loose] or list(trace.units)
        return (with_runs[0], None) if len(with_runs) == 1 else None

    def _is_below(self, unit: Unit, ref: SpanRef) -> bool:
        """Whether a unit hangs below a span that is not one of its own."""
        for span in unit.spans.values():
            parent = _parent(span)
            for _ in range(_LONG_CHAIN):
                if parent == ref:
                    return True
                trace = self._traces.get(parent[0]) if parent is not None else None
                place = trace.places.get(parent[1]) if trace is not None and parent is not None else None
                if place is None:
                    break
                parent = place.parent
        return False

    # letting go

    def _settle(self, now: float) -> None:
        while self._closed and self._closed[0][0] + self._times.reopen <= now:
            self._settle_unit(*self._closed.popleft())

    def _settle_unit(self, closed_at: float, unit: Unit) -> None:
        """A closed unit's time to reopen has passed: its runs are final, its spans are let go, their ids remembered."""
        if unit.closed_at != closed_at or unit.merged_into is not None or unit in self._open:
            return
        if unit.host is not None and unit.host in self._open:
            self._closed.append((closed_at, unit))
            return
        for run in unit.emitted.values():
            self._events.append(RunEvent(RunChange.SETTLED, run))
        self._closed_bytes -= unit.weight
        implicit = any(run.implicit for run in unit.emitted.values()) or unit.host is not None
        for span in unit.spans.values():
            trace = self._traces[span.trace_id]
            trace.homes.pop(span.span_id, None)
            self._bury(trace, span.span_id)
        if implicit and unit.missing is not None and unit.missing[0] in self._traces:
            self._bury(self._traces[unit.missing[0]], unit.missing[1])
        for trace in unit.traces:
            trace.units.pop(unit, None)
            if trace.loose_at.get(unit.anchor) is unit:
                del trace.loose_at[unit.anchor]
            if not trace.units:
                self._quiet[trace.id] = closed_at
        unit.spans = {}
        unit.closed_at = None
        unit.sealed = True

    def _hold_ceilings(self, now: float) -> None:
        """DESIGN §4.4: above a ceiling the heaviest are closed, of equals the oldest, a share at a time."""
        times = self._times
        if len(self._open) > times.open_runs:
            self._evict(len(self._open) - times.open_runs + times.open_runs // _EVICT_SHARE, 0, CloseReason.OPEN_RUNS, now)
        if self._open_bytes > times.open_bytes:
            excess = self._open_bytes - times.open_bytes + times.open_bytes // _EVICT_SHARE
            self._evict(0, excess, CloseReason.MEMORY, now)
        while self._closed_bytes > times.reopenable_bytes and self._closed:
            self._settle_unit(*self._closed.popleft())
            self.accounts["ceiling", "reopenable_bytes"] += 1

    def _evict(self, units: int, size: int, reason: CloseReason, now: float) -> None:
        heaviest = sorted(self._open, key=lambda unit: (-len(unit.spans), unit.born))
        for unit in heaviest:
            if units <= 0 and size <= 0:
                return
            if unit in self._open:
                units, size = units - 1, size - unit.weight
                self._close(unit, reason, now)

    def _forget(self, now: float) -> None:
        """Traces without open units are forgotten in time, or when there are too many ids; waiting evaluations too."""
        horizon = now - self._times.remember
        while self._quiet:
            trace_id, since = next(iter(self._quiet.items()))
            over = self._place_count > self._times.other_spans or self._gone_count > self._times.closed_ids
            if since > horizon and not over:
                break
            if since > horizon:
                self.accounts["ceiling", "remembered_ids"] += 1
            del self._quiet[trace_id]
            self._drop_trace(self._traces[trace_id])
        if self._pending_evaluations:
            self._forget_evaluations(now - _EVALUATION_WAIT)

    def _drop_trace(self, trace: Trace) -> None:
        del self._traces[trace.id]
        self._place_count -= len(trace.places)
        self._gone_count -= len(trace.gone)

    def _forget_evaluations(self, horizon: float) -> None:
        for waiting in (self._evaluations, self._by_response):
            for key in [key for key, items in waiting.items() if items[0][0] < horizon]:
                kept = [item for item in waiting[key] if item[0] >= horizon]
                lost = len(waiting[key]) - len(kept)
                self._pending_evaluations -= lost
                self.accounts["evaluation_refused", "no_run"] += lost
                if kept:
                    waiting[key] = kept
                else:
                    del waiting[key]


def _parent(span: AgentSpan) -> SpanRef | None:
    """What a span hangs on: its parent, or the link of a messaging hop."""
    if span.parent_id is not None:
        return (span.trace_id, span.parent_id)
    return span.link


def _content(span: AgentSpan) -> tuple[int, str]:
    """The order of two versions of one span: the greater end, then the greater content."""
    return (span.end_ns, repr(span))
