"""Evaluations and outcomes that arrive apart from spans → the runs that they are about.

Assembly joins those of runs whose spans it keeps, and of the latest final runs. Others are searched
among the rows of the windows, and change these, for as long as a window keeps them. An outcome that
names a session, a key or a run waits in assembly as well, for runs that are still to come.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial

from msgspec.structs import replace

from otel_reliability.assembly.late_outcomes import reaches, subjects_of
from otel_reliability.assembly.lifecycle import Assembler
from otel_reliability.assembly.memory import with_evaluation
from otel_reliability.assembly.outcome import NO_NOTES, reported
from otel_reliability.config import OutcomeSettings
from otel_reliability.model.row import Row
from otel_reliability.model.run import AgentKey, Outcome, Run, RunChange, RunEvent
from otel_reliability.model.span import OUTCOME, Evaluation, Subject, SubjectKind
from otel_reliability.windows.agents import AgentRegistry

_ID_DIGITS = (32, 16)


class Outcomes:
    """Joins evaluations and the runs of one engine, within its turn."""

    def __init__(
        self,
        settings: OutcomeSettings,
        assembler: Assembler,
        agents: AgentRegistry,
        apply: Callable[[list[RunEvent], float], None],
    ) -> None:
        """`apply` receives changes of runs."""
        self._settings = settings
        self._assembler = assembler
        self._agents = agents
        self._apply = apply
        self._again: list[Evaluation] = []
        """Evaluations to search again when all agents are loaded after a restart."""
        self.stored: Callable[[Subject], Sequence[Run]] = lambda _: ()
        """Returns the final runs of the state that the id of a run or of a trace names."""

    def receive(self, evaluations: Sequence[Evaluation], now: float) -> list[int]:
        """Join evaluations, in their order. Return how many closed runs each has reached."""
        searched: list[tuple[int, Evaluation]] = []
        for at, evaluation in enumerate(evaluations):
            if evaluation.about is not None or self._is_forgotten(evaluation):
                searched.append((at, evaluation))
            else:
                self._assembler.evaluate((evaluation,), now)
        reached = [0] * len(evaluations)
        found = self._search([evaluation for _, evaluation in searched], now)
        for (at, evaluation), number in zip(searched, found, strict=True):
            reached[at] = number
            if evaluation.about is not None:
                self._assembler.reported.add(evaluation, now, reached=number > 0)
            elif not number:
                self._assembler.evaluate((evaluation,), now)
        if self._agents.unloaded:
            self._again += [evaluation for _, evaluation in searched]
        return reached

    def tick(self, now: float) -> None:
        """Search again what arrived before all agents were loaded."""
        if self._again and not self._agents.unloaded:
            again = self._again
            self._again = []
            self._search(again, now)

    def _search(self, evaluations: Sequence[Evaluation], now: float) -> list[int]:
        """Join evaluations and the runs of windows. Return how many runs each has reached."""
        found = self._rows(evaluations)
        reached: list[int] = []
        for evaluation in evaluations:
            subject = _subject(evaluation)
            if subject in found:
                meant = _meant(evaluation, found[subject])
                for key, row in meant:
                    self._join(evaluation, key, row, now)
                reached.append(len(meant))
            else:
                stored = self.stored(subject)
                for run in stored:
                    self._join_stored(evaluation, run, now)
                reached.append(len(stored))
        return reached

    def _is_forgotten(self, evaluation: Evaluation) -> bool:
        """Return whether assembly knows nothing of the trace that an evaluation names."""
        trace_id = evaluation.trace_id
        return trace_id is not None and not self._assembler.can_evaluate(
            trace_id, evaluation.span_id
        )

    def _rows(self, evaluations: Iterable[Evaluation]) -> dict[Subject, list[tuple[AgentKey, Row]]]:
        """Return the rows of the runs that evaluations may be about, by subject."""
        sought = {_subject(evaluation) for evaluation in evaluations}
        found: dict[Subject, list[tuple[AgentKey, Row]]] = {}
        for key, row in self._agents.sought(sought) if sought else ():
            for subject in _subjects(row):
                if subject in sought:
                    found.setdefault(subject, []).append((key, row))
        return found

    def _join(self, evaluation: Evaluation, key: AgentKey, row: Row, now: float) -> None:
        """Join an evaluation and one run: in assembly, in the state, or in the row alone."""
        ids = _ids(row.run_id)
        if ids is not None:
            evaluation = replace(evaluation, trace_id=ids[0], span_id=ids[1], about=None)
            if self._assembler.can_evaluate(*ids):
                self._assembler.evaluate((evaluation,), now)
                return
        stored = self.stored(Subject(SubjectKind.RUN, row.run_id))
        if stored:
            self._join_stored(evaluation, stored[0], now)
            return
        state = self._agents.agent(key)
        latest = None if state is None else state.row(row.run_id, row.end_ns)
        if latest is None:
            return
        evaluated_row = row_with(latest, evaluation, self._settings)
        if evaluated_row != latest:
            whole = partial(with_evaluation, evaluation=evaluation, settings=self._settings)
            self._agents.replace_row(key, evaluated_row, latest.outcome, whole)

    def _join_stored(self, evaluation: Evaluation, run: Run, now: float) -> None:
        root_id = run.root_span_id
        evaluation = replace(evaluation, trace_id=run.trace_id, span_id=root_id, about=None)
        evaluated = with_evaluation(run, evaluation, self._settings)
        if evaluated is not run:
            self._apply([RunEvent(RunChange.REVISED, evaluated, run)], now)


def row_with(row: Row, evaluation: Evaluation, settings: OutcomeSettings) -> Row:
    """Return the row of a final run with one more evaluation, as that of the whole run would be."""
    if evaluation.score is not None:
        signals = {**dict(row.signals), evaluation.name: evaluation.score}
        row = replace(row, signals=tuple(sorted(signals.items())))
    result = reported(NO_NOTES, (evaluation,), settings)
    if result is None:
        return row
    if evaluation.name == OUTCOME:
        before = (row.outcome_ns or 0, row.outcome is Outcome.SUCCESS)
        if before > (evaluation.time_ns, result.outcome is Outcome.SUCCESS):
            return row
        return replace(row, outcome=result.outcome, by_status=False, outcome_ns=evaluation.time_ns)
    is_open = row.success is None or row.by_status
    return replace(row, outcome=result.outcome, by_status=False) if is_open else row


def _subject(evaluation: Evaluation) -> Subject:
    """Return what an evaluation is about; of one that names a span, its trace."""
    return evaluation.about or Subject(SubjectKind.TRACE, (evaluation.trace_id or b"").hex())


def _subjects(row: Row) -> Iterable[Subject]:
    """Return everything by which an evaluation can name the run of a row."""
    ids = _ids(row.run_id)
    if ids is None:
        return (Subject(SubjectKind.RUN, row.run_id),)
    return subjects_of(*ids, row.session_id, row.outcome_key, nested=row.nested)


def _meant(
    evaluation: Evaluation, rows: Sequence[tuple[AgentKey, Row]]
) -> list[tuple[AgentKey, Row]]:
    """Return the runs among these that an evaluation is about: all that an outcome names; of one
    that names a trace or a span of it, the only top-level run.
    """
    if evaluation.about is None:
        return list(rows) if len(rows) == 1 else []
    return [(key, row) for key, row in rows if reaches(evaluation, row.start_ns)]


def _ids(run_id: str) -> tuple[bytes, bytes] | None:
    """Return the ids of a run's trace and root from its own id; None for an id of another form."""
    trace_id, _, root_id = run_id.partition("-")
    if (len(trace_id), len(root_id)) != _ID_DIGITS:
        return None
    try:
        return bytes.fromhex(trace_id), bytes.fromhex(root_id)
    except ValueError:
        return None
