"""Runs that are final and can still be evaluated: evaluations arrive minutes after the run they are about."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import Final

from otel_reliability.assembly.evaluations import latest
from otel_reliability.assembly.outcome import reported
from otel_reliability.config import OutcomeSettings
from otel_reliability.model.run import Run
from otel_reliability.model.span import Evaluation, Notes, SpanId, TraceId

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
        run = _target(known, evaluation.span_id)
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


def _target(runs: Iterable[Run], span_id: SpanId | None) -> Run | None:
    """The run whose root the evaluation names, else the one top-level run of the trace."""
    known = list(runs)
    named = [run for run in known if span_id is not None and run.root_span_id == span_id]
    candidates = named or [run for run in known if not run.nested]
    return candidates[0] if len(candidates) == 1 else None
