"""Memory of traces whose runs are final: their span ids, so that what comes later is
recognized, and the latest runs themselves, since evaluations arrive minutes after the run that they
are about. Both are forgotten together.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from math import inf
from typing import Final, NamedTuple, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from otel_reliability.assembly.final_ids import FinalIds, PackedIds, count_of, since_of
from otel_reliability.assembly.late_roots import completed, is_root
from otel_reliability.assembly.outcome import NO_NOTES, latest, reported
from otel_reliability.config import OutcomeSettings
from otel_reliability.model.record import pack, unpack_run
from otel_reliability.model.run import Run
from otel_reliability.model.span import OUTCOME, AgentSpan, Evaluation, SpanId, TraceId

TABLE: Final = 65_536
"""Traces whose ids lie in one table."""
MAX_RUNS: Final = 10_000
"""Final runs that can be evaluated; beyond, the first to become final are dropped."""
_BY_USER: Final = "reliability."
_TOP_LEVEL = b"\0"
_NESTED = b"\1"


class FinalTrace(Struct, frozen=True, eq=False):
    """A trace of which nothing is open: its runs are final.

    - `packed`: the ids of its final runs, and since when they are.
    - `connecting`: its spans that belong to no run and connect others.
    """

    packed: PackedIds
    connecting: Sequence[AgentSpan] = ()

    @property
    def since(self) -> float:
        """When it became final, in seconds."""
        return since_of(self.packed)


class Replaced(NamedTuple):
    """A final run as it was, and as it is now."""

    before: Run
    after: Run


FindFinal: TypeAlias = Callable[[TraceId, str], Run | None]
"""Returns a final run by its trace and its id (`Memory.find`); None where it is not kept."""


class Memory:
    """Final traces, the oldest first, and the latest final runs by trace.

    - `ids`: number of span ids that are remembered here, and in buffers of traces of which a part
      is final. `spans`: number of connecting spans that are kept.

    Ids lie in tables of a bounded size: one of all would take twenty megabytes each time that it is
    copied. A run is kept as bytes, which take less memory than its objects; the first byte says
    whether it is nested.

    A trace of which more spans arrive is taken out until it is final again; its final runs stay.
    """

    def __init__(self, settings: OutcomeSettings) -> None:
        self.ids = self.spans = 0
        self._settings = settings
        self._tables: deque[OrderedDict[TraceId, PackedIds]] = deque([OrderedDict()])
        self._connecting: dict[TraceId, Sequence[AgentSpan]] = {}
        self._runs: OrderedDict[TraceId, dict[SpanId | str, bytes]] = OrderedDict()
        self._run_count = 0
        self._lost_steps: set[TraceId] = set()

    # --- Final traces -----------------------------------------------------------------------------

    def get(self, trace_id: TraceId) -> FinalTrace | None:
        for table in self._tables:
            if trace_id in table:
                return FinalTrace(table[trace_id], self._connecting.get(trace_id, ()))
        return None

    def has_ids(self, trace_id: TraceId) -> bool:
        """Return whether spans of final runs of a trace are known, apart from missing parents."""
        final = self.get(trace_id)
        return final is not None and bool(FinalIds.unpacked(final.packed).ids)

    def put(self, trace_id: TraceId, final: FinalTrace) -> None:
        """Remember a final trace, of which nothing is remembered here."""
        if len(self._tables[-1]) >= TABLE:
            self._tables.append(OrderedDict())
        self._tables[-1][trace_id] = final.packed
        self.ids += count_of(final.packed)
        if final.connecting:
            self._connecting[trace_id] = final.connecting
            self.spans += len(final.connecting)

    def take(self, trace_id: TraceId) -> FinalTrace | None:
        """Remove a final trace and return it: more of it arrives. Its final runs stay."""
        final = self.get(trace_id)
        if final is not None:
            self._drop(trace_id)
        return final

    def forget_oldest(self, horizon: float = inf) -> bool:
        """Forget the trace that became final first, and its runs; False: none became so at
        `horizon` or before.
        """
        while not self._tables[0] and len(self._tables) > 1:
            self._tables.popleft()
        trace_id = next(iter(self._tables[0]), None)
        if trace_id is None or since_of(self._tables[0][trace_id]) > horizon:
            return False
        self._drop(trace_id)
        self.forget_runs(trace_id)
        return True

    def _drop(self, trace_id: TraceId) -> None:
        table = next(table for table in self._tables if trace_id in table)
        self.ids -= count_of(table.pop(trace_id))
        if self._connecting:
            self.spans -= len(self._connecting.pop(trace_id, ()))

    # --- Final runs -------------------------------------------------------------------------------

    def keep(self, run: Run) -> None:
        """Keep a final run, or its new version: it can be evaluated."""
        known = self._runs.setdefault(run.trace_id, {})
        key = run.root_span_id or run.run_id
        self._run_count += key not in known
        known[key] = (_NESTED if run.nested else _TOP_LEVEL) + pack(run)
        while self._run_count > MAX_RUNS:
            trace_id, dropped = self._runs.popitem(last=False)
            self._run_count -= len(dropped)
            self._lost_steps.discard(trace_id)

    def find(self, trace_id: TraceId, run_id: str) -> Run | None:
        """Return a final run; None where it is not kept any longer."""
        known = self._runs.get(trace_id, {})
        packed = known.get(run_id) or known.get(bytes.fromhex(run_id.partition("-")[2][:16]))
        return None if packed is None else unpack_run(packed[1:])

    def evaluate(self, evaluation: Evaluation, trace_id: TraceId) -> Replaced | None:
        """Return the final run that an evaluation is about, as it was and as it is now (the same if
        nothing is new). None: unknown.

        It is the run whose root the evaluation names, else the one top-level run of the trace.
        """
        known = self._runs.get(trace_id, {})
        packed = known.get(evaluation.span_id or "") or _only(
            [one for one in known.values() if one.startswith(_TOP_LEVEL)]
        )
        if packed is None:
            return None
        run = unpack_run(packed[1:])
        evaluated = with_evaluation(run, evaluation, self._settings)
        if evaluated is not run:
            self.keep(evaluated)
        return Replaced(run, evaluated)

    def note_late_step(self, trace_id: TraceId) -> None:
        """Note that a step of a trace with final runs came late."""
        if trace_id in self._runs:
            self._lost_steps.add(trace_id)

    def complete(self, span: AgentSpan, above: SpanId | None) -> Replaced | None:
        """Return the final run whose missing parent a span is, as it was and as it is with that
        root. None: it is that of no run, or only lies between a run and its root, which is the span
        `above` (None: not to be followed).
        """
        known = self._runs.get(span.trace_id, {})
        packed = known.pop(_implicit(span.trace_id, span.span_id), None)
        if packed is None:
            return None
        if is_root(span):
            run = unpack_run(packed[1:])
            lost_steps = span.trace_id in self._lost_steps
            found = completed(run, span, self._settings, lost_steps=lost_steps)
            known[span.span_id] = packed
            self.keep(found)
            return Replaced(run, found)
        known[_implicit(span.trace_id, above or span.span_id)] = packed
        return None

    def has_runs(self, trace_id: TraceId) -> bool:
        """Return whether final runs of a trace can be evaluated."""
        return trace_id in self._runs

    def forget_runs(self, trace_id: TraceId) -> None:
        """Forget the final runs of a trace."""
        self._run_count -= len(self._runs.pop(trace_id, ()))
        self._lost_steps.discard(trace_id)


def _implicit(trace_id: TraceId, anchor: SpanId) -> str:
    """Return the id of the run without a root that has this missing parent."""
    return f"{trace_id.hex()}-{anchor.hex()}"


def with_evaluation(run: Run, evaluation: Evaluation, settings: OutcomeSettings) -> Run:
    """Return a final run with one more evaluation; the run itself where nothing is new. Its outcome
    follows the evaluation, unless its own attributes have it; what is reported later comes first.
    """
    evaluations = latest([*run.evaluations, evaluation])
    if evaluations == run.evaluations:
        return run
    evaluated = replace(run, evaluations=evaluations)
    is_open = evaluation.name == OUTCOME or not run.outcome_source.startswith(_BY_USER)
    if is_open and (result := reported(NO_NOTES, evaluations, settings)):
        evaluated = replace(evaluated, outcome=result.outcome, outcome_source=result.source)
    return evaluated


def _only(found: Sequence[bytes]) -> bytes | None:
    return found[0] if len(found) == 1 else None
