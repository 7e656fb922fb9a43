"""Gathering: every span finds its unit, in whatever order spans come.

A span joins the unit of its parent. Where the parent is not here, its unit waits for it; when it comes, units merge. Where
nothing stands above, the span is a top. What is gathered never depends on the order of arrival.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Final

from otel_reliability.assembly.bundle import Bundle, Traces
from otel_reliability.assembly.chains import Above, Chains, parent_of
from otel_reliability.assembly.quiet import Quiet
from otel_reliability.assembly.unit import RUN_KEYS, SPAN_BYTES, Ids, Place, Trace, Unit
from otel_reliability.model.run import Run
from otel_reliability.model.span import AgentSpan, Kind, Session, SpanId, SpanRef, TraceId

_AGENT, _WORKFLOW, _OTHER = Kind.AGENT, Kind.WORKFLOW, Kind.OTHER
MAX_OPEN: Final = 10_000

Accounts = Counter[tuple[str, str]]


class Gathering:
    """All spans that can still matter, in their units.

    `open` are the units, and the bundles, still growing, oldest first; `quiet` the traces that have none, with the time since
    when; `tellers` who told a run last, by run id. `on_change` is called for a unit whose deadline may have come nearer.
    `accounts` counts what became of spans that join no unit.
    """

    def __init__(
        self, span_limit: int, place_limit: int, accounts: Accounts, on_change: Callable[[Unit], None]
    ) -> None:
        self.traces = Traces()
        self.chains = Chains(self.traces)
        self.open: dict[Unit | Bundle, None] = {}
        self.quiet = Quiet()
        self.tellers: dict[str, Unit] = {}
        self.open_bytes = self.closed_bytes = 0
        self.place_count = self.gone_count = 0
        self._span_limit = span_limit
        self._place_limit = place_limit
        self._accounts = accounts
        self._on_change = on_change

    def trace(self, trace_id: TraceId, now: float) -> Trace:
        """The trace of an id, made where it is new."""
        found = self.traces.find(trace_id)
        if found is None:
            found = self.traces[trace_id] = Trace(trace_id)
            self.quiet[trace_id] = now
        return found

    def add(self, span: AgentSpan, now: float) -> Unit | None:
        """Take in one span. Gives the unit where it has reached the span limit, so that the caller closes it."""
        trace = self.traces.find(span.trace_id)
        if trace is None:
            trace = self.trace(span.trace_id, now)
        span_id = span.span_id
        if trace.open:
            trace.open.pop(span_id, None)
        if (trace.gone or trace.stood_in) and self._is_late(trace, span):
            return None
        if span_id in trace.homes or span_id in trace.places:
            return self._again(trace, span, now)
        return self._take(trace, span, now)

    def opened(self, trace_id: TraceId, span_id: SpanId, parent_id: SpanId | None, now: float) -> None:
        """A span has started: what it belongs to stays open until it ends."""
        trace = self.trace(trace_id, now)
        if len(trace.open) < MAX_OPEN and span_id not in trace.homes and span_id not in trace.places:
            trace.open[span_id] = parent_id

    def ended(self, trace_id: TraceId, span_id: SpanId) -> None:
        """A span that had started has ended and will not come."""
        trace = self.traces.find(trace_id)
        if trace is not None:
            trace.open.pop(span_id, None)

    def put_place(self, trace: Trace, span_id: SpanId, place: Place, now: float) -> None:
        """Take in the place of another span that has been accounted for."""
        trace.places[span_id] = place
        if span_id in trace.waiting:
            self._arrived(trace, span_id, now)

    def has_open_span(self, unit: Unit) -> bool:
        """Whether a span known to be open lies in this unit, or is what the unit waits for."""
        if unit.missing is not None:
            over = self.traces.find(unit.missing[0])
            if over is not None and unit.missing[1] in over.open:
                return True
        return any(self._leads_to(trace, span_id, unit) for trace in unit.traces for span_id in trace.open)

    def touch(self, unit: Unit, now: float) -> None:
        """A unit has changed: it lingers anew, and is open again if it was closed."""
        unit.last_seen = max(unit.last_seen, now)
        if unit.closed_at is not None:
            unit.closed_at = None
            self.closed_bytes -= unit.weight
            self.open_bytes += unit.weight
            self.open[unit] = None
            self._on_change(unit)
        host = unit.host
        if host is not None and host.closed_at is not None:
            self.touch(host, now)

    def bury(self, trace: Trace, span_id: SpanId) -> None:
        """Remember the id of a span that is no longer kept."""
        trace.gone = self._with(trace.gone, span_id)

    def stand_in(self, unit: Unit) -> None:
        """Remember what stood in for the root of a settled run: loose work that comes to hang on it is late."""
        trace = self.trace(unit.anchor[0], unit.last_seen)
        trace.stood_in = self._with(trace.stood_in, unit.anchor[1])

    def _with(self, ids: Ids, added: SpanId) -> Ids:
        if added in ids:
            return ids
        self.gone_count += 1
        if isinstance(ids, frozenset):
            return {added}
        ids.add(added)
        return ids

    def forget_gone(self, number: int) -> None:
        """Forget so many ids of settled runs in traces that are still alive, the fattest first."""
        for trace in sorted(self.traces.values(), key=lambda trace: -len(trace.gone) - len(trace.stood_in)):
            for ids in (trace.gone, trace.stood_in):
                while number > 0 and isinstance(ids, set) and ids:
                    ids.pop()
                    self.gone_count -= 1
                    number -= 1

    def spans(self) -> Iterator[AgentSpan]:
        """All agent spans that are kept."""
        for bundle in self.traces.bundles.values():
            yield from bundle.spans()
        for trace in self.traces.values():
            for unit in trace.units:
                yield from unit.spans.values()

    def forget(self, trace: Trace) -> None:
        """Let a trace go with all that is remembered of it."""
        del self.traces[trace.id]
        self.place_count -= len(trace.places)
        self.gone_count -= len(trace.gone) + len(trace.stood_in)

    def _is_late(self, trace: Trace, span: AgentSpan) -> bool:
        """Whether a span is, or hangs on, one of a run that is settled, or would have been its root."""
        span_id = span.span_id
        if span_id in trace.gone:
            self._accounts["duplicate", ""] += 1
            return True
        if span_id in trace.places or span_id in trace.homes:
            return False
        if span.parent_id not in trace.gone and (span_id not in trace.stood_in or not is_kept(span)):
            return False
        self._late(trace, span_id)
        return True

    def _missed(self, above: Above, *, is_loose: bool) -> bool:
        """Whether what stands above is a settled run, or stood in for the root of one."""
        if above.missing is not None:
            trace = self.traces.find(above.missing[0])
            if trace is not None and above.missing[1] in trace.gone:
                return True
        over = self.traces.find(above.anchor[0]) if is_loose else None
        return over is not None and above.anchor[1] in over.stood_in

    def _late(self, trace: Trace, span_id: SpanId) -> None:
        """A span of a settled run: what comes below it is late too."""
        self._accounts["late", ""] += 1
        self.bury(trace, span_id)
        for unit in trace.waiting.pop(span_id, ()):
            if not unit.emitted:
                self._drop(unit)

    def _take(self, trace: Trace, span: AgentSpan, now: float, *, known: bool = False) -> Unit | None:
        """A span finds its unit. One that is `known` was gathered before, in time: it cannot come late any more."""
        kind, span_id = span.kind, span.span_id
        if kind is _OTHER and not is_kept(span):
            self._place(trace, span, now)
            return None
        unit = trace.homes.get(span.parent_id) if span.parent_id is not None else None
        if unit is None:
            above = self.chains.above(span)
            if above.unit is None and above.missing is None:
                above = _keyed(span) or above
            is_loose = kind is not _AGENT and kind is not _WORKFLOW
            if not known and above.unit is None and self._missed(above, is_loose=is_loose):
                self._late(trace, span_id)
                return None
            unit = above.unit or self._unit_at(trace, span, above, now)
        else:
            unit = unit.current()
        if unit.sealed:
            self._accounts["refused", "span_limit"] += 1
            self.bury(trace, span_id)
            return None
        if now > unit.last_seen or unit.closed_at is not None:
            self.touch(unit, now)
        if trace is not unit.traces[0]:
            self._join_trace(unit, trace)
        unit.spans[unit.key(trace.id, span_id)] = span
        trace.homes[span_id] = unit
        self.open_bytes += SPAN_BYTES
        if kind is _AGENT or kind is _WORKFLOW:
            trace.has_invocation = True
        if span_id in trace.waiting:
            self._arrived(trace, span_id, now)
            unit = unit.current()
        return unit if len(unit.spans) >= self._span_limit else None

    def _place(self, trace: Trace, span: AgentSpan, now: float) -> None:
        self._accounts["other", "no_convention"] += 1
        if self.place_count >= self._place_limit:
            self._accounts["ceiling", "other_spans"] += 1
            return
        self.place_count += 1
        self.put_place(trace, span.span_id, place_of(span), now)

    def _unit_at(self, trace: Trace, span: AgentSpan, above: Above, now: float) -> Unit:
        """A unit of its own for an invocation or a top; other work gathers by what it hangs on."""
        is_loose = span.kind is not _AGENT and span.kind is not _WORKFLOW
        if is_loose and above.anchor != (trace.id, span.span_id):
            shared = self._gathering_at(above)
            if shared is not None:
                return shared
        first = trace if above.anchor[0] != RUN_KEYS else self.trace(RUN_KEYS, now)
        unit = Unit(first, now, is_loose=is_loose)
        first.units[unit] = None
        self.open[unit] = None
        self.quiet.pop(first.id, None)
        self._hang(unit, above)
        return unit

    def _gathering_at(self, above: Above) -> Unit | None:
        """The unit of the loose work that hangs on a span, there or not. A gap is in this process if any of its work says so."""
        over = self.traces.find(above.anchor[0])
        unit = over.loose_at.get(above.anchor[1]) if over is not None else None
        if unit is not None and unit.remote and not above.remote and not unit.sealed:
            unit.remote = False
            self._on_change(unit)
        return unit

    def _hang(self, unit: Unit, above: Above) -> None:
        """A unit hangs on what stands above it: a gap it waits for, or nothing."""
        unit.missing, unit.remote, unit.anchor = above.missing, above.remote, above.anchor
        self._register(unit)

    def _register(self, unit: Unit) -> None:
        """What comes shall find a unit by what it hangs on."""
        over = self.trace(unit.anchor[0], unit.last_seen)
        if unit.is_loose:
            over.loose_at[unit.anchor[1]] = unit
        if over is not unit.trace:
            over.hanging[unit] = None
        if unit.missing is not None:
            self.trace(unit.missing[0], unit.last_seen).waiting.setdefault(unit.missing[1], {})[unit] = None
        self._on_change(unit)

    def unhang(self, unit: Unit) -> None:
        """What comes shall find a unit no more by what it hangs on."""
        over = self.traces.find(unit.anchor[0])
        if over is not None:
            over.hanging.pop(unit, None)
            if over.loose_at.get(unit.anchor[1]) is unit:
                del over.loose_at[unit.anchor[1]]
        if unit.missing is None or unit.missing[0] not in self.traces:
            return
        waiting = self.traces[unit.missing[0]].waiting
        if unit in (units := waiting.get(unit.missing[1], {})):
            del units[unit]
            if not units:
                del waiting[unit.missing[1]]

    def _rehang(self, unit: Unit, above: Above, now: float) -> None:
        """A unit's gap has moved up, or has closed."""
        self.touch(unit, now)
        self.unhang(unit)
        shared = self._gathering_at(above) if unit.is_loose else None
        if shared is None:
            self._hang(unit, above)
        else:
            self._merge(shared, unit, now)

    def _join_trace(self, unit: Unit, trace: Trace) -> None:
        if trace not in unit.traces:
            unit.traces.append(trace)
            trace.hopped = unit.trace.hopped = True
            trace.units[unit] = None
            self.quiet.pop(trace.id, None)

    def _arrived(self, trace: Trace, span_id: SpanId, now: float) -> None:
        """A span that units have waited for is here: they join its unit, or hang on what stands above it."""
        home = trace.homes[span_id].current() if span_id in trace.homes else None
        for waiting in trace.waiting.pop(span_id):
            unit = waiting.current()
            if home is not None:
                self._join(home, unit, now)
                continue
            place = trace.places[span_id]
            above = self.chains.climb(place.parent, place.parent_remote, (trace.id, span_id))
            if above.unit is not None:
                self._join(above.unit, unit, now)
            elif not unit.emitted and self._missed(above, is_loose=unit.is_loose):
                self._drop(unit)
            else:
                self._rehang(unit, above, now)

    def _drop(self, unit: Unit) -> None:
        """The spans of a unit of which nothing was told turn out to be late."""
        for key, number in unit.counted.items():
            self._accounts[key] -= number
        spans = list(unit.spans.values())
        self.touch(unit, unit.last_seen)
        self._part(unit, unit.last_seen)
        traces = unit.traces
        self._dissolve(unit)
        for span in spans:
            self._late(self.traces[span.trace_id], span.span_id)
        for trace in traces:
            if not trace.units:
                self.quiet[trace.id] = unit.last_seen

    def _join(self, upper: Unit, lower: Unit, now: float) -> None:
        """A unit hangs on another, which may be itself: then nothing will ever come above it."""
        upper, unit = upper.current(), lower.current()
        if upper is not unit:
            self._merge(upper, unit, now)
            return
        self.touch(unit, now)
        unit.circular, unit.remote = True, False
        self._on_change(unit)

    def _merge(self, upper: Unit, lower: Unit, now: float) -> None:
        """Two units are one, and hang where the upper one hung. The smaller is poured into the larger."""
        if upper is lower:
            return
        self.touch(upper, now)
        self.touch(lower, now)
        self.unhang(upper)
        self.unhang(lower)
        one, two = (upper, lower) if len(upper.spans) >= len(lower.spans) else (lower, upper)
        one.missing, one.remote, one.anchor = upper.missing, upper.remote, upper.anchor
        one.is_loose, one.circular = upper.is_loose, upper.circular
        self._part(one, now)
        self._part(two, now)
        if one.trace is two.trace:
            one.spans.update(two.spans)
        else:
            one.spans.update({one.key(span.trace_id, span.span_id): span for span in two.spans.values()})
        one.emitted.update(two.emitted)
        for key, number in two.counted.items():
            one.counted[key] = one.counted.get(key, 0) + number
        one.born, one.last_seen = min(one.born, two.born), max(one.last_seen, two.last_seen)
        one.sealed = one.sealed or two.sealed
        for trace in two.traces:
            trace.units.pop(two, None)
            trace.loose.pop(two, None)
            trace.units[one] = None
            self._join_trace(one, trace)
        two.spans, two.emitted, two.counted = {}, {}, {}
        two.merged_into = one
        self.open.pop(two, None)
        self._register(one)

    def _again(self, trace: Trace, span: AgentSpan, now: float) -> Unit | None:
        """The same span once more: dropped, unless it says more. A span that is kept says more than one of which only the place
        is; of two that are kept the greater end wins, then the greater content.
        """
        self._accounts["duplicate", ""] += 1
        home = trace.homes.get(span.span_id)
        if home is None:
            says_more = is_kept(span) or place_order(place_of(span)) > place_order(trace.places[span.span_id])
            return self._replace(trace, span, now) if says_more else None
        unit = home.current()
        key = unit.key(trace.id, span.span_id)
        known = unit.spans[key]
        if known == span or not is_kept(span) or _content(span) <= _content(known):
            return None
        if _standing(known) != _standing(span):
            return self._replace(trace, span, now)
        unit.spans[key] = span
        self.touch(unit, now)
        return None

    def _replace(self, trace: Trace, span: AgentSpan, now: float) -> Unit | None:
        """A span has changed its kind or its parent: the units of its trace, and those that hang on it, are gathered again.

        One that was gathered came in time, whatever it hangs on now: else what was told of it would be nobody's.
        """
        was_gathered = span.span_id in trace.homes
        units = list(dict.fromkeys([*trace.units, *trace.hanging]))
        traces = dict.fromkeys([trace, *(one for unit in units for one in unit.traces)])
        spans = [known for unit in units for known in unit.spans.values() if _ref(known) != _ref(span)]
        emitted: dict[str, Run] = {}
        counted: Accounts = Counter()
        for unit in units:
            self.touch(unit, now)
            emitted.update(unit.emitted)
            counted.update(unit.counted)
            self._part(unit, now)
            self._dissolve(unit)
        if trace.places.pop(span.span_id, None) is not None:
            self.place_count -= 1
            self._accounts["other", "no_convention"] -= 1
        trace.shortcuts.clear()
        trace.cut = frozenset()
        trace.has_invocation = trace.had_invocation
        full: Unit | None = None
        for known in spans:
            full = self._take(self.trace(known.trace_id, now), known, now, known=True) or full
        full = self._take(trace, span, now, known=was_gathered) or full
        if emitted or counted:
            heir = self._heir(trace, spans, now)
            heir.emitted.update(emitted)
            for key, number in counted.items():
                heir.counted[key] = heir.counted.get(key, 0) + number
            self.tellers.update(dict.fromkeys(emitted, heir))
        for one in traces:
            if not one.units:
                self.quiet[one.id] = now
        return full

    def _heir(self, trace: Trace, spans: list[AgentSpan], now: float) -> Unit:
        """Who tells what has become of runs that were told before these spans were gathered again: a unit of the trace, else
        one that holds any of them. Where all were refused, or turned out to be late, that is one that holds none.
        """
        homes = (self.traces[span.trace_id].homes.get(span.span_id) for span in spans)
        heirs = list(trace.units) or [home.current() for home in homes if home is not None]
        if heirs:
            return min(heirs, key=lambda unit: min(unit.spans, default=b""))
        heir = Unit(trace, now, is_loose=False)
        trace.units[heir] = self.open[heir] = None
        self.quiet.pop(trace.id, None)
        self._on_change(heir)
        return heir

    def _part(self, unit: Unit, now: float) -> None:
        """A unit is about to be another: the run that had adopted it is looked at again."""
        host = unit.part()
        if host is not None:
            self.touch(host, now)

    def _dissolve(self, unit: Unit) -> None:
        """Take a unit apart, as if its spans had not come."""
        self.open.pop(unit, None)
        self.open_bytes -= unit.weight
        for trace in unit.traces:
            trace.units.pop(unit, None)
            trace.loose.pop(unit, None)
        for span in unit.spans.values():
            self.traces[span.trace_id].homes.pop(span.span_id, None)
        self.unhang(unit)
        unit.spans, unit.emitted, unit.counted = {}, {}, {}

    def _leads_to(self, trace: Trace, span_id: SpanId, unit: Unit) -> bool:
        """Whether an open span's chain of parents leads into the unit."""
        above: SpanId | None = trace.open[span_id]
        for _ in range(MAX_OPEN):
            if above is None:
                return False
            home = trace.homes.get(above)
            if home is not None:
                return home.current() is unit
            if above in trace.open:
                above = trace.open[above]
            elif (place := trace.places.get(above)) is not None:
                above = None if place.parent is None else place.parent[1]
            else:
                return False
        return False


def _keyed(span: AgentSpan) -> Above | None:
    """Lone work with the user's `run.key` hangs on the key, as on a parent that never comes."""
    key = span.notes.run_key if span.notes is not None else None
    if key is None or span.kind in (_AGENT, _WORKFLOW, _OTHER):
        return None
    ref = (RUN_KEYS, bytes.fromhex(key))
    return Above(None, None, ref, False, ref)


def _ref(span: AgentSpan) -> SpanRef:
    return (span.trace_id, span.span_id)


def is_kept(span: AgentSpan) -> bool:
    """Whether more than the place of a span matters."""
    return span.kind is not _OTHER or span.notes is not None or bool(span.evaluations)


def place_of(span: AgentSpan) -> Place:
    """What is kept of a span that is no agent span."""
    return Place(parent_of(span), span.parent_remote, span.session)


def place_order(place: Place) -> tuple[SpanRef, int, Session]:
    """The order of two versions of a span of which only the place is kept: one that says something before one that does not."""
    known_remote = 0 if place.parent_remote is None else 1 + place.parent_remote
    return (place.parent or (b"", b""), known_remote, place.session or Session(-1, ""))


def _standing(span: AgentSpan) -> tuple[object, ...]:
    """What decides where a span is gathered: another version with the same takes its place and moves nothing."""
    return (span.kind, parent_of(span), span.parent_remote, _keyed(span))


def _content(span: AgentSpan) -> tuple[int, str]:
    """The order of two versions of one span: the greater end, then the greater content. Resources have no text of their own."""
    return (span.end_ns, repr(span._replace(resource=span.resource._replace(attributes={}))))
