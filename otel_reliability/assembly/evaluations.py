"""Evaluations that arrive apart from spans: the spans and runs they are about, those that wait for
them, and final runs that can still be evaluated: evaluations arrive minutes after the run they are
about.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from otel_reliability.assembly.outcome import NO_NOTES, latest, reported
from otel_reliability.config import OutcomeSettings
from otel_reliability.model.record import pack, unpack_run
from otel_reliability.model.run import Run
from otel_reliability.model.span import AgentSpan, Evaluation, ModelFacts, SpanId, SpanRef, TraceId

WAIT: Final = 600.0
"""Seconds for which an evaluation waits for its run."""
MAX_PER_TRACE: Final = 256
"""Evaluations of one trace."""
MAX_RESPONSES: Final = 100_000
"""Responses that an evaluation can name."""
NO_TARGET: Final = ("evaluation_refused", "no_run")


class WaitingEvaluations:
    """Evaluations whose trace, or whose response, has not arrived.

    `give` takes an evaluation to the buffer of its trace, or to a final run of it, and returns
    False if neither is known. `accounts` counts what was lost: `evaluation_late` (its run is
    forgotten), `evaluation_refused` (limit, no_run, no_target). `responses` are the spans of model
    calls by the ids of their responses, once an evaluation has named one.
    """

    def __init__(
        self,
        limit: int,
        accounts: Counter[tuple[str, str]],
        give: Callable[[Evaluation, float], bool],
        kept_spans: Callable[[], Iterator[AgentSpan]],
    ) -> None:
        self._limit = limit
        self._accounts = accounts
        self._give = give
        self._kept_spans = kept_spans
        self._waiting: dict[TraceId | str, list[tuple[float, Evaluation]]] = {}
        self.responses: OrderedDict[str, SpanRef] | None = None
        self.count = 0

    def __contains__(self, trace_id: TraceId) -> bool:
        return trace_id in self._waiting

    def add(self, evaluation: Evaluation, now: float) -> None:
        key = evaluation.response_id if evaluation.trace_id is None else evaluation.trace_id
        if key is None:
            self._accounts["evaluation_refused", "no_target"] += 1
            return
        placed = evaluation if evaluation.trace_id is not None else self._by_response(evaluation)
        if placed is not None and self._give(placed, now):
            return
        if self.count >= self._limit:
            self._accounts["evaluation_refused", "limit"] += 1
            return
        self.count += 1
        self._waiting.setdefault(key, []).append((now, evaluation))

    def see(self, spans: Iterable[AgentSpan], now: float) -> None:
        """Give the evaluations of traces and responses that have arrived."""
        for span in spans:
            self._add_again(span[0], now)
            if self.responses is not None and (response_id := _response_of(span)) is not None:
                self.responses[response_id] = (span[0], span[1])
                if len(self.responses) > MAX_RESPONSES:
                    self.responses.popitem(last=False)
                self._add_again(response_id, now)

    def _add_again(self, key: TraceId | str, now: float) -> None:
        for _, evaluation in self._waiting.pop(key, ()):
            self.count -= 1
            self.add(evaluation, now)

    def expire(self, now: float) -> None:
        horizon = now - WAIT
        for key in [key for key, waiting in self._waiting.items() if waiting[0][0] < horizon]:
            waiting = self._waiting.pop(key)
            kept = [one for one in waiting if one[0] >= horizon]
            self.count -= len(waiting) - len(kept)
            self._accounts[NO_TARGET] += len(waiting) - len(kept)
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
        return None if ref is None else evaluation._replace(trace_id=ref[0], span_id=ref[1])


def _response_of(span: AgentSpan) -> str | None:
    facts = span[9]
    return facts.response_id if isinstance(facts, ModelFacts) else None


# --- Final runs -----------------------------------------------------------------------------------


MAX_RUNS: Final = 10_000
"""Final runs that can be evaluated; beyond, the first to become final are dropped."""
_BY_USER: Final = "reliability."
_TOP_LEVEL = b"\0"
_NESTED = b"\1"


class FinalRuns:
    """The latest final runs, by trace. An evaluation makes a new version of its run, whose outcome
    follows it unless the user reports the outcome; spans no longer do.

    A run is kept as bytes, which take less memory than its objects; the first byte says whether it
    is nested.
    """

    def __init__(self, settings: OutcomeSettings) -> None:
        self._settings = settings
        self._by_trace: OrderedDict[TraceId, dict[SpanId | str, bytes]] = OrderedDict()
        self._count = 0

    def remember(self, run: Run) -> None:
        known = self._by_trace.setdefault(run.trace_id, {})
        key = run.root_span_id or run.run_id
        self._count += key not in known
        known[key] = (_NESTED if run.nested else _TOP_LEVEL) + pack(run)
        while self._count > MAX_RUNS:
            self._count -= len(self._by_trace.popitem(last=False)[1])

    def forget(self, trace_id: TraceId) -> None:
        self._count -= len(self._by_trace.pop(trace_id, ()))

    def evaluate(self, evaluation: Evaluation, trace_id: TraceId) -> tuple[Run, Run] | None:
        """Return the run that an evaluation is about, as it was and as it is now (the same if
        nothing is new). None: unknown.

        It is the run whose root the evaluation names, else the one top-level run of the trace.
        """
        known = self._by_trace.get(trace_id, {})
        packed = known.get(evaluation.span_id or "") or _only(
            [one for one in known.values() if one.startswith(_TOP_LEVEL)]
        )
        if packed is None:
            return None
        run = unpack_run(packed[1:])
        evaluations = latest([*run.evaluations, evaluation])
        if evaluations == run.evaluations:
            return run, run
        evaluated = run._replace(evaluations=evaluations)
        if not run.outcome_source.startswith(_BY_USER) and (
            result := reported(NO_NOTES, evaluations, self._settings)
        ):
            evaluated = evaluated._replace(outcome=result.outcome, outcome_source=result.source)
        self.remember(evaluated)
        return run, evaluated


def _only(found: Sequence[bytes]) -> bytes | None:
    return found[0] if len(found) == 1 else None
