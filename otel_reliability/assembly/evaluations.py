"""Judgements that arrive apart from their spans: they wait for their run, and find it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from otel_reliability.assembly.chains import Chains
from otel_reliability.assembly.gathering import Accounts, Gathering
from otel_reliability.assembly.unit import Judged, Trace, Unit
from otel_reliability.model.span import AgentSpan, Evaluation, ModelFacts, SpanRef, TraceId

WAIT: Final = 600.0
"""Seconds for which a judgement waits for its run."""
_MAX_A_TRACE: Final = 256
_MAX_RESPONSES: Final = 100_000
"""Responses that a judgement can still name."""

_Waiting = list[tuple[float, Evaluation]]


class Evaluations:
    """Judgements by trace, or by the response they judge; each waits where it is until its run is built.

    `on_given` is told of a trace that has got one. `on_settled` takes a judgement of a trace whose run is settled, and says
    whether it found it. `accounts` counts what was lost: `evaluation_late` (its run is forgotten), `evaluation_refused`
    (ceiling, no_run, no_target).
    """

    def __init__(
        self,
        gathering: Gathering,
        accounts: Accounts,
        ceiling: int,
        on_given: Callable[[Trace], None],
        on_settled: Callable[[Trace, Evaluation], bool],
    ) -> None:
        self._gathering = gathering
        self._chains: Chains = gathering.chains
        self._accounts = accounts
        self._ceiling = ceiling
        self._on_given = on_given
        self._on_settled = on_settled
        self._by_trace: dict[TraceId, _Waiting] = {}
        self._by_response: dict[str, _Waiting] = {}
        self._responses: OrderedDict[str, SpanRef] | None = None
        self.waiting = 0

    @property
    def listens(self) -> bool:
        """Whether it must be told of every span: judgements wait, or somebody has asked by response id."""
        return self.waiting > 0 or self._responses is not None

    def add(self, evaluation: Evaluation, now: float) -> None:
        """Take in one judgement."""
        if evaluation.trace_id is not None:
            trace = self._gathering.traces.find(evaluation.trace_id)
            if trace is None:
                if self._has_room():
                    self._by_trace.setdefault(evaluation.trace_id, []).append((now, evaluation))
            else:
                self._give(trace, evaluation)
        elif evaluation.response_id is not None:
            self._add_by_response(evaluation.response_id, evaluation, now)
        else:
            self._accounts["evaluation_refused", "no_target"] += 1

    def seen(self, span: AgentSpan, now: float) -> None:
        """A span has come: judgements of its trace, or of its response, need wait no longer."""
        if self._by_trace and span.trace_id in self._by_trace:
            trace = self._gathering.traces.find(span.trace_id)
            if trace is not None:
                for _, evaluation in self._by_trace.pop(span.trace_id):
                    self.waiting -= 1
                    self._give(trace, evaluation)
        facts = span.facts
        if self._responses is not None and isinstance(facts, ModelFacts) and facts.response_id is not None:
            self._responses[facts.response_id] = (span.trace_id, span.span_id)
            if len(self._responses) > _MAX_RESPONSES:
                self._responses.popitem(last=False)
            for _, evaluation in self._by_response.pop(facts.response_id, ()):
                self.waiting -= 1
                self._add_by_response(facts.response_id, evaluation, now)

    def of(self, traces: Iterable[Trace]) -> dict[Unit, list[Judged]]:
        """The judgements of traces by the unit they belong to, each with the span it names there (None: its outermost run)."""
        found: dict[Unit, list[Judged]] = {}
        for trace in traces:
            for evaluation in trace.evaluations:
                target = self._target(trace, evaluation)
                if target is not None:
                    found.setdefault(target[0], []).append((evaluation, target[1]))
        return found

    def settled(self, unit: Unit) -> None:
        """A unit is final: it keeps its judgements, and those of a trace without others have missed every run."""
        for trace in unit.traces:
            if trace.evaluations:
                own = [evaluation for evaluation, _ in unit.judged]
                trace.evaluations = tuple(one for one in trace.evaluations if one not in own)
                if not trace.units:
                    self._accounts["evaluation_refused", "no_run"] += len(trace.evaluations)
                    trace.evaluations = ()

    def expire(self, now: float) -> None:
        """Let go what has waited too long."""
        for waiting in (self._by_trace, self._by_response):
            self._expire(waiting, now - WAIT)

    def _expire(self, waiting: dict[TraceId, _Waiting] | dict[str, _Waiting], horizon: float) -> None:
        old = {key: items for key, items in waiting.items() if items[0][0] < horizon}
        for key, items in old.items():
            lost = sum(since < horizon for since, _ in items)
            del items[:lost]
            self.waiting -= lost
            self._accounts["evaluation_refused", "no_run"] += lost
            if not items:
                waiting.pop(key)  # pyright: ignore[reportArgumentType]  # the key came from this very mapping

    def _has_room(self) -> bool:
        """Whether one more may wait; it is counted either way."""
        if self.waiting >= self._ceiling:
            self._accounts["evaluation_refused", "ceiling"] += 1
            return False
        self.waiting += 1
        return True

    def _give(self, trace: Trace, evaluation: Evaluation) -> None:
        """The trace is here: whose judgement it is, is decided with all that is known of the trace."""
        if trace.gone and (not trace.units or evaluation.span_id in trace.gone):
            self._accounts["evaluation_late", ""] += not self._on_settled(trace, evaluation)
        elif evaluation in trace.evaluations:
            return
        elif len(trace.evaluations) >= _MAX_A_TRACE:
            self._accounts["evaluation_refused", "ceiling"] += 1
        else:
            trace.evaluations += (evaluation,)
            self._on_given(trace)

    def _add_by_response(self, response_id: str, evaluation: Evaluation, now: float) -> None:
        if self._responses is None:
            self._responses = OrderedDict(self._known_responses())
        ref = self._responses.get(response_id)
        trace = self._gathering.traces.find(ref[0]) if ref is not None else None
        if ref is None or trace is None:
            if self._has_room():
                self._by_response.setdefault(response_id, []).append((now, evaluation))
        else:
            self._give(trace, evaluation._replace(trace_id=ref[0], span_id=ref[1]))

    def _known_responses(self) -> Iterator[tuple[str, SpanRef]]:
        for span in self._gathering.spans():
            if isinstance(span.facts, ModelFacts) and span.facts.response_id is not None:
                yield span.facts.response_id, (span.trace_id, span.span_id)

    def _target(self, trace: Trace, evaluation: Evaluation) -> tuple[Unit, SpanRef | None] | None:
        """Where a judgement belongs: the run of the span it names, else the one run below that, else the trace's one."""
        span_id = evaluation.span_id
        if span_id is not None and span_id in trace.homes:
            return trace.homes[span_id].current(), (trace.id, span_id)
        if span_id is not None and span_id in trace.places:
            place = trace.places[span_id]
            above = self._chains.climb(place.parent, place.parent_remote, (trace.id, span_id))
            if above.unit is not None:
                return above.unit, above.member
            below = [unit for unit in trace.units if self._is_below(unit, (trace.id, span_id))]
            return (below[0], None) if len(below) == 1 else None
        units = [unit for unit in trace.units if not unit.is_loose or unit.circular] or list(trace.units)
        return (units[0], None) if len(units) == 1 else None

    def _is_below(self, unit: Unit, ref: SpanRef) -> bool:
        return any(above == ref for span in unit.spans.values() for above, _ in self._chains.places_above(span))
