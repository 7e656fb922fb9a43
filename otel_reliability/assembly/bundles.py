"""Where spans come in: those of traces that are bundles lie there, the others are gathered."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from otel_reliability.assembly.bundle import Bundle, State
from otel_reliability.assembly.gathering import MAX_OPEN, Accounts, Gathering, is_kept, place_of, place_order
from otel_reliability.assembly.unit import SPAN_BYTES, Trace
from otel_reliability.model.run import Run
from otel_reliability.model.span import AgentSpan, Kind, SpanId, TraceId

_OTHER: Final = Kind.OTHER


class Bundles:
    """All bundles. What does not fit into one is told so, and is for the gathering.

    `on_growing` is called for a bundle that will want to be looked at.
    """

    def __init__(
        self,
        gathering: Gathering,
        span_limit: int,
        place_limit: int,
        accounts: Accounts,
        on_growing: Callable[[Bundle], None],
    ) -> None:
        self._gathering, self._accounts, self._on_growing = gathering, accounts, on_growing
        self._most, self._place_limit = span_limit - 1, place_limit
        self._bundles = gathering.traces.bundles
        gathering.traces.unfold = self.unfold

    def take(self, span: AgentSpan, now: float) -> bool:
        """Take in one span. False: it is to be gathered."""
        bundle = self._bundles.get(span.trace_id)
        if bundle is None:
            if span.trace_id in self._gathering.traces:
                return False
            bundle = self._begin(span.trace_id, now)
        spans, span_id = bundle.spans, span.span_id
        if (
            not bundle.is_plain
            or span.kind is _OTHER
            or span.link is not None
            or span_id in spans
            or len(spans) >= self._most
        ):
            return self._take_with_care(bundle, span, now)
        spans[span_id] = span
        self._gathering.open_bytes += SPAN_BYTES
        if now != bundle.latest or not bundle.due:
            self._touch(bundle, len(spans) - 1, now)
        return True

    def opened(self, trace_id: TraceId, span_id: SpanId, parent_id: SpanId | None, now: float) -> bool:
        """A span has started. False: that is to be told to the gathering."""
        bundle = self._bundles.get(trace_id)
        if bundle is None:
            if trace_id in self._gathering.traces:
                return False
            bundle = self._begin(trace_id, now)
        if bundle.state is not State.GROWING:
            return self._left(bundle)
        if bundle.open is None:
            bundle.open, bundle.is_plain = {}, False
        if len(bundle.open) < MAX_OPEN and span_id not in bundle.spans and span_id not in (bundle.places or ()):
            bundle.open[span_id] = parent_id
        return True

    def ended(self, trace_id: TraceId, span_id: SpanId) -> bool:
        """A span that had started will not come. False: that is to be told to the gathering."""
        bundle = self._bundles.get(trace_id)
        if bundle is None:
            return False
        if bundle.open:
            bundle.open.pop(span_id, None)
        return True

    def forget(self, trace_id: TraceId) -> None:
        """Let a trace go with all that is remembered of it."""
        bundle = self._bundles.pop(trace_id, None)
        if bundle is None:
            self._gathering.forget(self._gathering.traces[trace_id])
        else:
            self._gathering.place_count -= len(bundle.places or ())
            self._gathering.gone_count -= bundle.remembers

    def close(self, bundle: Bundle, run: Run, now: float) -> None:
        """The run of a bundle is told; it can still change."""
        gathering = self._gathering
        parent = bundle.spans[run.root_span_id].parent_id if run.root_span_id is not None else None
        missing = None if parent is None else bundle.above(parent, None)[0]
        gathering.open.pop(bundle, None)
        gathering.open_bytes -= bundle.weight
        gathering.closed_bytes += bundle.weight
        bundle.close(run, missing, now)

    def settle(self, bundle: Bundle, closed_at: float) -> None:
        """It can change no more."""
        self._gathering.closed_bytes -= bundle.weight
        self._gathering.gone_count += len(bundle.spans)
        self._gathering.quiet[bundle.trace_id] = closed_at
        bundle.settle()

    def unfold(self, bundle: Bundle) -> Trace:
        """Gather what a bundle holds, as if it had come to the gathering from the beginning."""
        gathering = self._gathering
        del self._bundles[bundle.trace_id]
        trace = gathering.traces[bundle.trace_id] = Trace(bundle.trace_id)
        trace.open.update(bundle.open or {})
        if bundle.state is State.SETTLED:
            trace.places.update(bundle.places or {})
            trace.gone, trace.agents = bundle.remembered(), frozenset({bundle.agent})
            trace.had_invocation = trace.has_invocation = True
            return trace
        if bundle.state is State.GROWING:
            gathering.open.pop(bundle, None)
            gathering.open_bytes -= bundle.weight
        else:
            gathering.closed_bytes -= bundle.weight
        self._replay(trace, bundle)
        if bundle.run is not None:
            self._close_again(trace, bundle, bundle.run)
        return trace

    def _begin(self, trace_id: TraceId, now: float) -> Bundle:
        bundle = self._bundles[trace_id] = Bundle(trace_id, now)
        self._gathering.quiet[trace_id] = now
        return bundle

    def _left(self, bundle: Bundle) -> bool:
        """What has come does not fit in."""
        self.unfold(bundle)
        return False

    def _touch(self, bundle: Bundle, before: int, now: float) -> None:
        """Spans have come, after so many."""
        if not before:
            bundle.born = bundle.latest = bundle.last_seen = now
            self._gathering.open[bundle] = None
            self._gathering.quiet.pop(bundle.trace_id, None)
        elif now != bundle.latest:
            bundle.latest = now
            bundle.times = [*(bundle.times or ()), (before, now)]
            bundle.last_seen = max(bundle.last_seen, now)
        if not bundle.due:
            bundle.due = True
            self._on_growing(bundle)

    def _take_with_care(self, bundle: Bundle, span: AgentSpan, now: float) -> bool:
        spans, span_id = bundle.spans, span.span_id
        if bundle.state is State.SETTLED or span.link is not None:
            return self._left(bundle)
        if bundle.open:
            bundle.open.pop(span_id, None)
        if span.kind is _OTHER and not is_kept(span):
            return self._take_place(bundle, span, now)
        if spans.get(span_id) == span:
            self._accounts["duplicate", ""] += 1
            return True
        if span_id in spans or bundle.state is not State.GROWING or len(spans) >= self._most:
            return self._left(bundle)
        if bundle.places is not None and span_id in bundle.places:
            return self._left(bundle)
        spans[span_id] = span
        self._gathering.open_bytes += SPAN_BYTES
        self._touch(bundle, len(spans) - 1, now)
        return True

    def _take_place(self, bundle: Bundle, span: AgentSpan, now: float) -> bool:
        """Of another span its place is kept. Units would wait for some of them, even when they are closed."""
        span_id, place = span.span_id, place_of(span)
        known = None if bundle.places is None else bundle.places.get(span_id)
        if span_id in bundle.spans or known is not None:
            if known is not None and place_order(place) > place_order(known):
                return self._left(bundle)
            self._accounts["duplicate", ""] += 1
            return True
        if span_id == bundle.missing:
            return self._left(bundle)
        self._accounts["other", "no_convention"] += 1
        if self._gathering.place_count >= self._place_limit:
            self._accounts["ceiling", "other_spans"] += 1
            return True
        self._gathering.place_count += 1
        if bundle.spans and bundle.state is State.GROWING and now != bundle.born and bundle.awaits(span_id):
            bundle.late = [*(bundle.late or ()), (len(bundle.spans), now, span_id)]
            bundle.last_seen = max(bundle.last_seen, now)
            if not bundle.due:
                bundle.due = True
                self._on_growing(bundle)
        if bundle.places is None:
            bundle.places, bundle.is_plain = {}, False
        bundle.places[span_id] = place
        return True

    def _replay(self, trace: Trace, bundle: Bundle) -> None:
        """All that came, when it came."""
        places = bundle.places or {}
        late = list(bundle.late or ())
        known = {span_id for _, _, span_id in late}
        trace.places.update((span_id, place) for span_id, place in places.items() if span_id not in known)
        times = list(bundle.times or ())
        now = bundle.born
        for before, span in enumerate(bundle.spans.values()):
            while late and late[0][0] <= before:
                _, when, span_id = late.pop(0)
                self._gathering.put_place(trace, span_id, places[span_id], when)
            if times and times[0][0] == before:
                now = times.pop(0)[1]
            self._gathering.add(span, now)
        for _, when, span_id in late:
            self._gathering.put_place(trace, span_id, places[span_id], when)

    def _close_again(self, trace: Trace, bundle: Bundle, run: Run) -> None:
        """What was one unit is one, closed as it was."""
        gathering = self._gathering
        unit = next(iter(trace.units))
        del gathering.open[unit]
        gathering.open_bytes -= unit.weight
        gathering.closed_bytes += unit.weight
        unit.closed_at, unit.reason = bundle.closed_at, run.closed_by
        unit.emitted, gathering.tellers[run.run_id] = {run.run_id: run}, unit
        unit.counted = {("used", ""): len(unit.spans)}
        unit.agents, unit.invocations = frozenset({run.key.agent}), 1
        unit.tops = ((run.start_ns, run.end_ns, run.root_span_id or b""),)
        bundle.unit = unit
