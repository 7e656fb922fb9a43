"""Runs that are settled but can still be judged: evaluations come minutes after the run they are about."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from typing import Final

from otel_reliability.assembly.fetching import fetch
from otel_reliability.assembly.outcome import told
from otel_reliability.config import OutcomeSettings
from otel_reliability.model.run import Run
from otel_reliability.model.span import Evaluation, Notes, SpanId, TraceId

MOST: Final = 10_000
"""Settled runs that are remembered; beyond, the first to have settled are let go."""
TOGETHER: Final = 128
"""So many are let go of at once: they have not been looked at for minutes, and are fetched together."""
_USER: Final = "reliability."


class SettledRuns:
    """The runs settled last, by trace. A judgement makes a new version of its run; spans no longer do."""

    def __init__(self, settings: OutcomeSettings) -> None:
        self._settings = settings
        self.by_trace: OrderedDict[TraceId, Run | dict[str, Run]] = OrderedDict()
        """The run of a trace, or its runs by their ids."""
        self._count = 0
        self._gone: list[Run | dict[str, Run]] = []

    def remember(self, run: Run) -> None:
        """A run has settled. Most traces have one; several stand by their ids."""
        known = self.by_trace.setdefault(run.trace_id, run)
        if known is not run:
            of_trace = self.by_trace[run.trace_id] = known if isinstance(known, dict) else {known.run_id: known}
            self._count -= run.run_id in of_trace
            of_trace[run.run_id] = run
        self.have_come(1)

    def have_come(self, number: int) -> None:
        """So many runs have come to stand in `by_trace`: the first of all are let go of, where they are too many now."""
        self._count += number
        while self._count > MOST:
            gone = self.by_trace.popitem(last=False)[1]
            self._count -= _number(gone)
            self._gone.append(gone)
            if len(self._gone) >= TOGETHER:
                fetch(self._gone)
                self._gone.clear()

    def forget(self, trace_id: TraceId) -> None:
        """The trace is forgotten."""
        known = self.by_trace.pop(trace_id, None)
        self._count -= 0 if known is None else _number(known)

    def forget_all(self, trace_ids: Iterable[TraceId]) -> None:
        """These traces are forgotten; most have long been let go."""
        by_trace = self.by_trace
        for trace_id in trace_ids:
            if trace_id in by_trace:
                self.forget(trace_id)

    def judge(self, evaluation: Evaluation, trace_id: TraceId) -> tuple[Run, Run] | None:
        """The run a judgement is about, as it was and as it now is (the same, if it was told before). None: unknown."""
        known = self.by_trace.get(trace_id, {})
        run = _judged(known.values() if isinstance(known, dict) else (known,), evaluation.span_id)
        if run is None:
            return None
        evaluations = best([*run.evaluations, evaluation])
        if evaluations == run.evaluations:
            return run, run
        judged = self._with(run, evaluations)
        if isinstance(known, dict):
            known[run.run_id] = judged
        else:
            self.by_trace[trace_id] = judged
        return run, judged

    def _with(self, run: Run, evaluations: tuple[Evaluation, ...]) -> Run:
        """The run with these judgements; its outcome follows them, unless the user has told it."""
        verdict = None if run.outcome_source.startswith(_USER) else told(Notes(), evaluations, self._settings)
        if verdict is None:
            return run._replace(evaluations=evaluations)
        return run._replace(evaluations=evaluations, outcome=verdict.outcome, outcome_source=verdict.source)


def _number(known: Run | dict[str, Run]) -> int:
    return len(known) if isinstance(known, dict) else 1


def best(evaluations: Iterable[Evaluation]) -> tuple[Evaluation, ...]:
    """Of several judgements of one name the one with the greatest (time, score), by name."""
    found: dict[str, Evaluation] = {}
    for evaluation in evaluations:
        other = found.get(evaluation.name)
        if other is None or _rank(evaluation) > _rank(other):
            found[evaluation.name] = evaluation
    return tuple(found[name] for name in sorted(found))


def _rank(evaluation: Evaluation) -> tuple[int, float, str, SpanId, str]:
    """Time and score; what follows lets the order of arrival decide nothing."""
    score = evaluation.score if evaluation.score is not None else -1.0
    return (evaluation.time_ns, score, evaluation.label or "", evaluation.span_id or b"", evaluation.response_id or "")


def _judged(runs: Iterable[Run], span_id: SpanId | None) -> Run | None:
    """The run whose root the judgement names, else the one top-level run of the trace."""
    known = list(runs)
    named = [run for run in known if span_id is not None and run.root_span_id == span_id]
    candidates = named or [run for run in known if not run.nested]
    return candidates[0] if len(candidates) == 1 else None
