"""Evaluations that arrive apart from spans: the spans and runs they are about, those that wait for them, and final runs that
can still be evaluated: evaluations arrive minutes after the run they are about.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator
from typing import Final, TypeAlias

from otel_reliability.assembly.outcome import latest, reported
from otel_reliability.config import OutcomeSettings
from otel_reliability.model.run import Run
from otel_reliability.model.span import AgentSpan, Evaluation, ModelFacts, Notes, SpanId, SpanRef, TraceId

WAIT: Final = 600.0
"""Seconds for which an evaluation waits for its run."""
MAX_PER_TRACE: Final = 256
"""Evaluations of one trace."""
MAX_RESPONSES: Final = 100_000
"""Responses that an evaluation can name."""
NO_TARGET: Final = ("evaluation_refused", "no_run")
_LIMIT: Final = ("evaluation_refused", "limit")

_Waiting: TypeAlias = list[tuple[float, Evaluation]]


class WaitingEvaluations:
    """Evaluations whose trace, or whose response, has not arrived.

    `give` takes an evaluation to the buffer of its trace, or to a final run of it, and returns False if neither is known.
    `accounts` counts what was lost: `evaluation_late` (its run is forgotten), `evaluation_refused` (limit, no_run, no_target).
    """

    def __init__(
        self,
        limit: int,
        accounts: Counter[tuple[str, str]],
        give: Callable[[Evaluation, float], bool],
        kept_spans: Callable[[], Iterator[AgentSpan]],
    ) -> None:
        self._limit, self._accounts, self._give, self._kept_spans = limit, accounts, give, kept_spans
        self._by_trace: dict[TraceId, _Waiting] = {}
        self._by_response: dict[str, _Waiting] = {}
        self.responses: OrderedDict[str, SpanRef] | None = None
        self.count = 0

    @property
    def waiting(self) -> Iterator[tuple[float, Evaluation]]:
        """Evaluations that wait, with the time of their arrival."""
        for waiting in (*self._by_trace.values(), *self._by_response.values()):
            yield from waiting

    def add(self, evaluation: Evaluation, now: float) -> None:
        """Receive an evaluation."""
        if evaluation.trace_id is not None:
            if not self._give(evaluation, now) and self._has_room():
                self._by_trace.setdefault(evaluation.trace_id, []).append((now, evaluation))
        elif evaluation.response_id is not None:
            self._add_by_response(evaluation.response_id, evaluation, now)
        else:
            self._accounts["evaluation_refused", "no_target"] += 1

    def restore(self, since: float, evaluation: Evaluation) -> None:
        """Wait on with an evaluation that waited before a restart."""
        self.count += 1
        if evaluation.trace_id is not None:
            self._by_trace.setdefault(evaluation.trace_id, []).append((since, evaluation))
        elif evaluation.response_id is not None:
            self.responses = self.responses or OrderedDict()
            self._by_response.setdefault(evaluation.response_id, []).append((since, evaluation))

    def see(self, spans: Iterable[AgentSpan], now: float) -> None:
        """Give the evaluations of traces and responses that have arrived."""
        for span in spans:
            if self._by_trace and span[0] in self._by_trace:
                for _, evaluation in self._by_trace.pop(span[0]):
                    self.count -= 1
                    self._give(evaluation, now)
            facts = span[9]
            if self.responses is not None and isinstance(facts, ModelFacts) and facts.response_id is not None:
                self.responses[facts.response_id] = (span[0], span[1])
                if len(self.responses) > MAX_RESPONSES:
                    self.responses.popitem(last=False)
                for _, evaluation in self._by_response.pop(facts.response_id, ()):
                    self.count -= 1
                    self._add_by_response(facts.response_id, evaluation, now)

    def expire(self, now: float) -> None:
        """Drop the evaluations that have waited too long."""
        self._expire(self._by_trace, now - WAIT)
        self._expire(self._by_response, now - WAIT)

    def _expire(self, waiting: dict[TraceId, _Waiting] | dict[str, _Waiting], horizon: float) -> None:
        old = {key: items for key, items in waiting.items() if items[0][0] < horizon}
        for key, items in old.items():
            lost = sum(since < horizon for since, _ in items)
            del items[:lost]
            self.count -= lost
            self._accounts[NO_TARGET] += lost
            if not items:
                waiting.pop(key)  # pyright: ignore[reportArgumentType]  # the key came from this very mapping

    def _has_room(self) -> bool:
        """Return whether one more may wait; it is counted either way."""
        if self.count >= self._limit:
            self._accounts[_LIMIT] += 1
            return False
        self.count += 1
        return True

    def _add_by_response(self, response_id: str, evaluation: Evaluation, now: float) -> None:
        if self.responses is None:
            self.responses = OrderedDict(self._known_responses())
        ref = self.responses.get(response_id)
        if ref is not None and self._give(evaluation._replace(trace_id=ref[0], span_id=ref[1]), now):
            return
        if self._has_room():
            self._by_response.setdefault(response_id, []).append((now, evaluation))

    def _known_responses(self) -> Iterator[tuple[str, SpanRef]]:
        for span in self._kept_spans():
            facts = span.facts
            if isinstance(facts, ModelFacts) and facts.response_id is not None:
                yield facts.response_id, (span.trace_id, span.span_id)


# --- Final runs ---------------------------------------------------------------------------------------------------------


MAX_RUNS: Final = 10_000
"""Final runs that can be evaluated; beyond, the first to become final are dropped."""
_BY_USER: Final = "reliability."


class FinalRuns:
    """The latest final runs, by trace. An evaluation makes a new version of its run; spans no longer do."""

    def __init__(self, settings: OutcomeSettings) -> None:
        self._settings = settings
        self._by_trace: OrderedDict[TraceId, tuple[Run, ...]] = OrderedDict()
        self._count = 0

    def __iter__(self) -> Iterator[Run]:
        for runs in self._by_trace.values():
            yield from runs

    def remember(self, run: Run) -> None:
        """Remember a run that has become final."""
        known = self._by_trace.get(run.trace_id)
        if known is None:
            self._by_trace[run.trace_id] = (run,)
        else:
            others = tuple([one for one in known if one.run_id != run.run_id])
            self._count -= len(known) - len(others)
            self._by_trace[run.trace_id] = (*others, run)
        self._count += 1
        while self._count > MAX_RUNS:
            self._count -= len(self._by_trace.popitem(last=False)[1])

    def forget(self, trace_id: TraceId) -> None:
        """Drop the runs of a trace."""
        self._count -= len(self._by_trace.pop(trace_id, ()))

    def evaluate(self, evaluation: Evaluation, trace_id: TraceId) -> tuple[Run, Run] | None:
        """Return the run that an evaluation is about, as it was and as it is now (the same if nothing is new). None: unknown."""
        known = self._by_trace.get(trace_id, ())
        run = _run_of(known, evaluation.span_id)
        if run is None:
            return None
        evaluations = latest([*run.evaluations, evaluation])
        if evaluations == run.evaluations:
            return run, run
        evaluated = self._with(run, evaluations)
        self._by_trace[trace_id] = tuple([evaluated if one is run else one for one in known])
        return run, evaluated

    def _with(self, run: Run, evaluations: tuple[Evaluation, ...]) -> Run:
        """The run with these evaluations; its outcome follows them, unless the user reports it."""
        is_by_user = run.outcome_source.startswith(_BY_USER)
        result = None if is_by_user else reported(Notes(), evaluations, self._settings)
        if result is None:
            return run._replace(evaluations=evaluations)
        return run._replace(evaluations=evaluations, outcome=result.outcome, outcome_source=result.source)


def _run_of(runs: Iterable[Run], span_id: SpanId | None) -> Run | None:
    """The run whose root the evaluation names, else the one top-level run of the trace."""
    known = list(runs)
    named = [run for run in known if span_id is not None and run.root_span_id == span_id]
    candidates = named or [run for run in known if not run.nested]
    return candidates[0] if len(candidates) == 1 else None
