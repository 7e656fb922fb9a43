"""Outcomes that were reported apart from spans, for runs that are still to be built.

A run is built with every outcome that names it, so the order in which both arrive makes no
difference. Those of runs that are final already are joined elsewhere.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from otel_reliability.assembly.accounts import EXCESS_EVALUATION, WITHOUT_RUN, Loss
from otel_reliability.assembly.evaluations import WAIT
from otel_reliability.model.span import Evaluation, SpanId, Subject, SubjectKind, TraceId


class _Reported(Struct, eq=False):
    """An outcome, when it arrived (s), and whether it has reached a run."""

    evaluation: Evaluation
    at: float
    reached: bool


class ReportedOutcomes:
    """Outcomes by what they are about, for `WAIT` seconds each. `losses` counts those that
    reached no run until then, and those beyond the `limit`.
    """

    def __init__(self, limit: int, losses: Counter[Loss]) -> None:
        self.limit = limit
        self._losses = losses
        self._found: dict[Subject, list[_Reported]] = {}
        self._ages: OrderedDict[int, _Reported] = OrderedDict()
        self._number = 0

    def __len__(self) -> int:
        return len(self._ages)

    def add(self, evaluation: Evaluation, now: float, *, reached: bool) -> None:
        """Keep an outcome. `reached`: it has reached a run already."""
        about = evaluation.about
        if about is None:
            return
        if len(self._ages) >= self.limit:
            self._losses[EXCESS_EVALUATION] += not reached
            return
        kept = _Reported(evaluation, now, reached)
        self._number += 1
        self._ages[self._number] = kept
        self._found.setdefault(about, []).append(kept)

    def of_run(
        self,
        trace_id: TraceId,
        root_id: SpanId,
        session_id: str | None,
        outcome_key: str | None,
        start_ns: int,
        *,
        nested: bool,
    ) -> Iterator[Evaluation]:
        """Yield the outcomes of a run, each as an evaluation of its root.

        Traces and sessions stand for their top-level runs; sessions and keys for the runs that had
        begun when the outcome became known.
        """
        for subject in subjects_of(trace_id, root_id, session_id, outcome_key, nested=nested):
            for kept in self._found.get(subject, ()):
                if reaches(kept.evaluation, start_ns):
                    kept.reached = True
                    yield replace(kept.evaluation, trace_id=trace_id, span_id=root_id, about=None)

    @property
    def unreached(self) -> int:
        """Number of outcomes that have reached no run."""
        return sum(not kept.reached for kept in self._ages.values())

    def expire(self, now: float) -> None:
        """Forget outcomes that arrived more than `WAIT` seconds ago."""
        while self._ages:
            number, kept = next(iter(self._ages.items()))
            if kept.at >= now - WAIT:
                return
            del self._ages[number]
            self._losses[WITHOUT_RUN] += not kept.reached
            about = kept.evaluation.about
            if about is not None:
                self._found[about].remove(kept)
                if not self._found[about]:
                    del self._found[about]


def subjects_of(
    trace_id: TraceId,
    root_id: SpanId,
    session_id: str | None,
    outcome_key: str | None,
    *,
    nested: bool,
) -> Iterator[Subject]:
    """Yield everything by which an outcome can name a run."""
    yield Subject(SubjectKind.RUN, f"{trace_id.hex()}-{root_id.hex()}")
    if not nested:
        yield Subject(SubjectKind.TRACE, trace_id.hex())
    if session_id is not None and not nested:
        yield Subject(SubjectKind.SESSION, session_id)
    if outcome_key is not None:
        yield Subject(SubjectKind.HASHED_KEY, outcome_key)


def reaches(evaluation: Evaluation, start_ns: int) -> bool:
    """Return whether an outcome that names a run is about it: of a session or a key, it is about
    the runs that had begun when it became known.
    """
    about = evaluation.about
    return (
        about is None
        or about.kind in {SubjectKind.TRACE, SubjectKind.RUN}
        or start_ns <= evaluation.time_ns
    )
