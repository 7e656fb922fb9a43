"""Evaluations that arrive apart from spans, and wait for the runs that they are about."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple

from msgspec.structs import replace

from otel_reliability.assembly.accounts import (
    EXCESS_EVALUATION,
    WITHOUT_RUN,
    WITHOUT_TARGET,
    Loss,
)
from otel_reliability.model.span import AgentSpan, Evaluation, ModelFacts, SpanRef, TraceId

WAIT: Final = 600.0
"""Seconds for which an evaluation waits for its run."""
MAX_PER_TRACE: Final = 256
"""Evaluations of one trace."""
MAX_RESPONSES: Final = 100_000
"""Responses that an evaluation can name."""


class _Waiting(NamedTuple):
    """An evaluation, and since when it waits (seconds)."""

    since: float
    evaluation: Evaluation


class WaitingEvaluations:
    """Evaluations whose trace, or whose response, has not arrived.

    `give` takes an evaluation to the buffer of its trace, or to a final run of it, and returns
    False if neither is known. `losses` counts those that joined no run. `responses` are the spans
    of model calls by the ids of their responses, once an evaluation has named one.
    """

    def __init__(
        self,
        limit: int,
        losses: Counter[Loss],
        give: Callable[[Evaluation, float], bool],
        kept_spans: Callable[[], Iterator[AgentSpan]],
    ) -> None:
        self._limit = limit
        self._losses = losses
        self._give = give
        self._kept_spans = kept_spans
        self._waiting: dict[TraceId | str, list[_Waiting]] = {}
        self.responses: OrderedDict[str, SpanRef] | None = None
        self.count = 0

    def __contains__(self, trace_id: TraceId) -> bool:
        return trace_id in self._waiting

    def add(self, evaluation: Evaluation, now: float) -> None:
        key = evaluation.response_id if evaluation.trace_id is None else evaluation.trace_id
        if key is None:
            self._losses[WITHOUT_TARGET] += 1
            return
        placed = evaluation if evaluation.trace_id is not None else self._by_response(evaluation)
        if placed is not None and self._give(placed, now):
            return
        if self.count >= self._limit:
            self._losses[EXCESS_EVALUATION] += 1
            return
        self.count += 1
        self._waiting.setdefault(key, []).append(_Waiting(now, evaluation))

    def see(self, spans: Iterable[AgentSpan], now: float) -> None:
        """Give the evaluations of traces and responses that have arrived."""
        for span in spans:
            self._add_again(span.trace_id, now)
            if self.responses is not None and (response_id := _response_of(span)) is not None:
                self.responses[response_id] = (span.trace_id, span.span_id)
                if len(self.responses) > MAX_RESPONSES:
                    self.responses.popitem(last=False)
                self._add_again(response_id, now)

    def _add_again(self, key: TraceId | str, now: float) -> None:
        for one in self._waiting.pop(key, ()):
            self.count -= 1
            self.add(one.evaluation, now)

    def expire(self, now: float) -> None:
        horizon = now - WAIT
        for key in [key for key, waiting in self._waiting.items() if waiting[0].since < horizon]:
            waiting = self._waiting.pop(key)
            kept = [one for one in waiting if one.since >= horizon]
            self.count -= len(waiting) - len(kept)
            self._losses[WITHOUT_RUN] += len(waiting) - len(kept)
            if kept:
                self._waiting[key] = kept

    def _by_response(self, evaluation: Evaluation) -> Evaluation | None:
        """Return an evaluation of a response with the span of that response; None if it has not
        arrived.
        """
        if self.responses is None:
            known = (
                (_response_of(span), (span.trace_id, span.span_id)) for span in self._kept_spans()
            )
            self.responses = OrderedDict(
                (response_id, ref) for response_id, ref in known if response_id is not None
            )
        ref = self.responses.get(evaluation.response_id or "")
        return None if ref is None else replace(evaluation, trace_id=ref[0], span_id=ref[1])


def _response_of(span: AgentSpan) -> str | None:
    facts = span.facts
    return facts.response_id if isinstance(facts, ModelFacts) else None
