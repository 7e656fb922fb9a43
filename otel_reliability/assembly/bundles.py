"""Where spans come in: those of traces that are bundles lie there, the others are gathered."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from otel_reliability.assembly.adoption import note
from otel_reliability.assembly.beginning import begun
from otel_reliability.assembly.blocks import Block
from otel_reliability.assembly.build import Built
from otel_reliability.assembly.bundle import Bundle, State, count_of, ids_of
from otel_reliability.assembly.compiled import are_distinct, joined, seek, take_rows
from otel_reliability.assembly.gathering import MAX_OPEN, Accounts, Gathering, is_kept, place_of, place_order
from otel_reliability.assembly.resting import DOUBTFUL, HERE
from otel_reliability.assembly.rows import ROW_BYTES
from otel_reliability.assembly.unit import SPAN_BYTES, Trace
from otel_reliability.model.packed import NUMBER
from otel_reliability.model.run import Run
from otel_reliability.model.span import AgentSpan, Kind, SpanId, TraceId

MOST_AT_REST: Final = 512
"""Rows to which others are joined at rest. Each time all of them are copied; so longer traces go on in lists."""
FEW_PLACES: Final = 16
FEW_SPANS: Final = 128
"""So many places of other spans are kept beside so many spans at rest with a look through their ids for each. Where there are
more, the spans are indexed once.
"""
_MODEL, _TOOL, _OTHER = Kind.MODEL, Kind.TOOL, Kind.OTHER
_GROWING, _CLOSED = State.GROWING, State.CLOSED


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
        self.most, self._place_limit = span_limit - 1, place_limit
        self._bundles, self._pasts = gathering.traces.bundles, gathering.traces.pasts
        gathering.traces.unfold, gathering.traces.remember = self.unfold, self._recall

    def take(self, spans: Sequence[AgentSpan], now: float, gather: Callable[[AgentSpan, float], None]) -> None:
        """Take in spans. What does not fit into a bundle is handed to `gather`.

        Spans of one trace come in a row, most of them calls of models and tools: so those are what this is quick at.
        """
        at, end = 0, len(spans)
        while at < end:
            span = spans[at]
            if span.kind is _MODEL or span.kind is _TOOL:
                bundle = self._plain(span, now)
                if bundle is not None:
                    taken = take_rows(spans, at, bundle.models, bundle.tools, self.most - bundle.count)
                    self._gathering.open_bytes += taken * ROW_BYTES
                    at += taken
                    if taken:
                        continue
            if not self._take(span, now):
                gather(span, now)
            at += 1

    def adopt(self, block: Block, now: float) -> bool:
        """Take in the spans of a trace as they are. False: they are to be taken one by one."""
        trace_id, gathering, others = block.trace_id, self._gathering, len(block.others)
        bundle = self._bundles.get(trace_id)
        if bundle is None:
            if trace_id in self._pasts or trace_id in gathering.traces or block.count > self.most:
                return False
            bundle = self._bundles[trace_id] = begun(block, now)
            gathering.open[bundle] = None
            bundle.due = True
            self._on_growing(bundle)
        elif not bundle.is_plain or bundle.count + block.count > self.most or not self._join(bundle, block, now):
            return False
        gathering.open_bytes += (block.count - others) * ROW_BYTES + others * SPAN_BYTES
        return True

    def _join(self, bundle: Bundle, block: Block, now: float) -> bool:
        """Take in a block where there is something of its trace. False: its rows are not like those there."""
        rest, rows = None, None
        if bundle.rest is not None and block.rest is not None and bundle.rest[NUMBER] <= MOST_AT_REST:
            rest = joined(bundle.rest, block.rest)
        if rest is None:
            rows = block.rows()
            if not bundle.can_take(*rows):
                return False
        if now != bundle.latest or not bundle.due:
            self._touch(bundle, now)
        if rest is not None:
            bundle.join(rest, block.others)
        elif rows is not None:
            bundle.keep_all(*rows, block.others)
        return True

    def _plain(self, span: AgentSpan, now: float) -> Bundle | None:
        """The bundle that a model or tool call is sure to be kept in as it is; it may be new."""
        bundle = self._bundles.get(span.trace_id)
        if bundle is None:
            if self._is_known(span.trace_id) or span.link is not None or not self.most:
                return None
            bundle = self._bundles[span.trace_id] = Bundle(span.trace_id, now)
        elif not bundle.is_plain or span.link is not None or bundle.count >= self.most:
            return None
        if now != bundle.latest or not bundle.due:
            self._touch(bundle, now)
        return bundle

    def opened(self, trace_id: TraceId, span_id: SpanId, parent_id: SpanId | None, now: float) -> bool:
        """A span has started. False: that is to be told to the gathering."""
        bundle = self._bundles.get(trace_id)
        if bundle is None:
            if self._is_known(trace_id):
                return False
            bundle = self._begin(trace_id, now)
        if bundle.state is not _GROWING or not self._indexed(bundle):
            return self._left(bundle)
        if bundle.open is None:
            bundle.open = {}
        if len(bundle.open) < MAX_OPEN and bundle.find(span_id) is None and span_id not in (bundle.places or ()):
            bundle.open[span_id] = parent_id
        return True

    def ended(self, trace_id: TraceId, span_id: SpanId) -> bool:
        """A span that had started will not come. False: that is to be told to the gathering."""
        bundle, past = self._bundles.get(trace_id), self._pasts.get(trace_id)
        if bundle is None and past is None:
            return False
        begun = bundle.open if bundle is not None else past[3] if past is not None else None
        if begun:
            begun.pop(span_id, None)
        return True

    def forget(self, trace_id: TraceId) -> None:
        """Let a trace go with all that is remembered of it."""
        past, bundle = self._pasts.pop(trace_id, None), self._bundles.pop(trace_id, None)
        if past is not None:
            self._gathering.place_count -= len(past[2] or ())
            self._gathering.gone_count -= count_of(past)
        elif bundle is not None:
            self._gathering.place_count -= len(bundle.places or ())
        elif trace_id in self._gathering.traces:
            self._gathering.forget(self._gathering.traces[trace_id])

    def forget_all(self, trace_ids: list[TraceId]) -> None:
        """The same of many traces, most of which were usual bundles."""
        number, others = self._pasts.forget(trace_ids)
        self._gathering.gone_count -= number
        while others:
            self.forget(others.pop())

    def tidy(self, bundle: Bundle) -> bool:
        """See to it that a bundle holds every span once. False: there are two versions of one, which is for the gathering."""
        if bundle.index is not None:
            return True
        if are_distinct(bundle.models, bundle.tools, bundle.others) or len(set(bundle.ids)) == bundle.count:
            return True
        fresh = bundle.without_repeats()
        if fresh is None:
            return False
        again = bundle.count - fresh.count
        self._accounts["duplicate", ""] += again
        self._gathering.open_bytes -= bundle.weight - fresh.weight
        bundle.become(fresh)
        return True

    def close(self, bundle: Bundle, told: Run | Built, top: AgentSpan, now: float) -> None:
        """The run of a bundle is told, or all that was built of it; it can still change."""
        gathering, weight = self._gathering, bundle.weight
        bundle.close(told, top, now)
        gathering.open.pop(bundle, None)
        gathering.open_bytes -= weight
        gathering.closed_bytes += weight

    def close_one(self, bundle: Bundle, run: Run, now: float) -> None:
        """The same of one that holds nothing but rows, which lie at rest, and the agent of this run."""
        gathering, weight = self._gathering, (run.span_count - 1) * ROW_BYTES + SPAN_BYTES
        above = bundle.others[0].parent_id
        bundle.missing = None if above is None else bundle.above(above, None)[0]
        bundle.due = bundle.is_plain = False
        bundle.state, bundle.closed_at, bundle.run, bundle.index = _CLOSED, now, run, None
        gathering.open.pop(bundle, None)
        gathering.open_bytes -= weight
        gathering.closed_bytes += weight

    def settle(self, bundle: Bundle, closed_at: float) -> None:
        """It can change no more."""
        gathering, trace_id, others, rest = self._gathering, bundle.trace_id, len(bundle.others), bundle.rest
        rows = bundle.count - others if rest is None else rest[NUMBER]
        gathering.closed_bytes -= rows * ROW_BYTES + others * SPAN_BYTES
        gathering.gone_count += rows + others
        gathering.quiet[trace_id] = closed_at
        del self._bundles[trace_id]
        self._pasts[trace_id] = bundle.past()
        bundle.let_go()

    def let_go(self, bundle: Bundle) -> None:
        """Nothing of its trace will come any more: its run is final, and nothing of it is remembered."""
        gathering = self._gathering
        if bundle.state is _CLOSED:
            gathering.closed_bytes -= bundle.weight
        gathering.place_count -= len(bundle.places or ())
        del self._bundles[bundle.trace_id]
        bundle.let_go()

    def unfold(self, bundle: Bundle) -> Trace:
        """Gather what a bundle holds, as if it had come to the gathering from the beginning."""
        gathering = self._gathering
        del self._bundles[bundle.trace_id]
        trace = gathering.traces[bundle.trace_id] = Trace(bundle.trace_id)
        trace.open.update(bundle.open or {})
        if bundle.state is _GROWING:
            gathering.open.pop(bundle, None)
            gathering.open_bytes -= bundle.weight
        else:
            gathering.closed_bytes -= bundle.weight
        self._replay(trace, bundle)
        if bundle.state is _CLOSED:
            self._close_again(trace, bundle)
        if not trace.units and trace.id not in gathering.quiet:  # all of it was late
            gathering.quiet[trace.id] = bundle.last_seen
        bundle.let_go()
        return trace

    def _recall(self, trace_id: TraceId) -> Trace:
        """Gather what is remembered of a bundle."""
        agents, _, places, begun = past = self._pasts.pop(trace_id)
        trace = self._gathering.traces[trace_id] = Trace(trace_id)
        trace.open.update(begun or {})
        trace.places.update(places or {})
        trace.gone, trace.agents = ids_of(past), frozenset((agents,) if isinstance(agents, str) else agents)
        trace.had_invocation = trace.has_invocation = True
        return trace

    def _is_known(self, trace_id: TraceId) -> bool:
        """Whether a trace that is no bundle is known."""
        return trace_id in self._pasts or trace_id in self._gathering.traces

    def _begin(self, trace_id: TraceId, now: float) -> Bundle:
        bundle = self._bundles[trace_id] = Bundle(trace_id, now)
        self._gathering.quiet[trace_id] = now
        return bundle

    def _left(self, bundle: Bundle) -> bool:
        """What has come does not fit in."""
        self.unfold(bundle)
        return False

    def _indexed(self, bundle: Bundle) -> bool:
        """See to it that spans are found by their ids. False: there are two versions of one."""
        if bundle.index is None:
            if not self.tidy(bundle):
                return False
            bundle.make_index()
            bundle.is_plain = False
        return True

    def _take(self, span: AgentSpan, now: float) -> bool:
        """Take in one span. False: it is to be gathered."""
        bundle = self._bundles.get(span.trace_id)
        if bundle is None:
            if self._is_known(span.trace_id):
                return False
            bundle = self._begin(span.trace_id, now)
        if not bundle.is_plain or span.kind is _OTHER or span.link is not None or bundle.count >= self.most:
            return self._take_with_care(bundle, span, now)
        self._keep(bundle, span, now)
        return True

    def _keep(self, bundle: Bundle, span: AgentSpan, now: float) -> None:
        if now != bundle.latest or not bundle.due:
            self._touch(bundle, now)
        self._gathering.open_bytes += bundle.keep(span)

    def _touch(self, bundle: Bundle, now: float) -> None:
        """A span comes."""
        if not bundle.count:
            self._gathering.open[bundle] = None
            self._gathering.quiet.pop(bundle.trace_id, None)
        bundle.mark(now)
        self._look_later(bundle)

    def _look_later(self, bundle: Bundle) -> None:
        if not bundle.due:
            bundle.due = True
            self._on_growing(bundle)

    def _take_with_care(self, bundle: Bundle, span: AgentSpan, now: float) -> bool:
        span_id, is_place = span.span_id, span.kind is _OTHER and not is_kept(span)
        if span.link is not None:
            return self._left(bundle)
        if not (is_place and _is_surely_new(bundle, span_id)) and bundle.count and not self._indexed(bundle):
            return self._left(bundle)
        if bundle.open:
            bundle.open.pop(span_id, None)
        if is_place:
            return self._take_place(bundle, span, now)
        known = bundle.find(span_id)
        if known == span:
            self._accounts["duplicate", ""] += 1
            return True
        if known is not None or bundle.state is not _GROWING or bundle.count >= self.most:
            return self._left(bundle)
        if bundle.places is not None and span_id in bundle.places:
            return self._left(bundle)
        self._keep(bundle, span, now)
        return True

    def _take_place(self, bundle: Bundle, span: AgentSpan, now: float) -> bool:
        """Of another span its place is kept. Units would wait for some of them, even when they are closed."""
        span_id, place = span.span_id, place_of(span)
        known = None if bundle.places is None else bundle.places.get(span_id)
        if known is not None or (bundle.index is not None and bundle.find(span_id) is not None):
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
        if bundle.state is _GROWING and bundle.count and now != bundle.born and bundle.awaits(span_id):
            bundle.late = [*(bundle.late or ()), (bundle.count, now, span_id)]
            bundle.last_seen = max(bundle.last_seen, now)
            self._look_later(bundle)
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
        before = 0
        for now, spans in bundle.story():
            while late and late[0][0] <= before:
                _, when, span_id = late.pop(0)
                self._gathering.put_place(trace, span_id, places[span_id], when)
            for span in spans:
                self._gathering.add(span, now)
                before += 1
        for _, when, span_id in late:
            self._gathering.put_place(trace, span_id, places[span_id], when)

    def _close_again(self, trace: Trace, bundle: Bundle) -> None:
        """What was one unit is one, closed as it was."""
        gathering = self._gathering
        unit = next(iter(trace.units))
        del gathering.open[unit]
        gathering.open_bytes -= unit.weight
        gathering.closed_bytes += unit.weight
        runs = bundle.runs
        unit.closed_at, unit.reason = bundle.closed_at, runs[0].closed_by
        unit.emitted = {run.run_id: run for run in runs}
        gathering.tellers.update(dict.fromkeys(unit.emitted, unit))
        built = bundle.built or Built(list(runs), bundle.count, 0, 0, frozenset({runs[0].key.agent}), 1)
        unit.counted = built.accounts(bundle.count)
        note(unit, built)
        bundle.unit = unit


def _is_surely_new(bundle: Bundle, span_id: SpanId) -> bool:
    """Whether a bundle has few rows, at rest, holds every span once and none of this id: then nobody need look at its spans."""
    if bundle.rest is None or bundle.count > FEW_SPANS or len(bundle.places or ()) >= FEW_PLACES:
        return False
    return not seek(bundle.rest, bundle.others, span_id) & (HERE | DOUBTFUL)
