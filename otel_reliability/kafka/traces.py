"""The traces of one partition: their spans in its state until their runs are final, and the run
records that follow.

All of it is a function of the messages and of their times, so a worker that takes the partition
over, and assembles the stored spans again, goes on with what the one before it would have sent.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Sequence
from typing import Any, Final

from otel_reliability.assembly.accounts import Account, Loss
from otel_reliability.assembly.lifecycle import Assembler
from otel_reliability.config import Settings
from otel_reliability.kafka.partition_values import KeyValues, PartitionValues
from otel_reliability.kafka.stage import Outgoing, write
from otel_reliability.model.record import RunRecord, evaluations_of, pack_spans, unpack_spans
from otel_reliability.model.run import RunChange, RunEvent
from otel_reliability.model.span import AgentSpan, Evaluation, TraceId, alone, crossing
from otel_reliability.state.parts import FINAL_TRACES, FinalTraceRecords, OpenTraces

_FINAL: Final = frozenset({RunChange.FINAL, RunChange.WITHDRAWN})
_SPANS = "span"
_HEAD = "head"


class Traces:
    """The traces of one partition.

    `spans` counts spans as the service does, `losses` what else was lost; `apart` what belongs to
    two traces and cannot be joined here, by what it is: link, run_key, response_id, no_trace;
    `records` the run records by their change.
    """

    def __init__(self, settings: Settings, store: KeyValues) -> None:
        self.apart: Counter[str] = Counter()
        self.records: Counter[str] = Counter()
        self.now = 0.0
        times = settings.assembly
        self._assembler = Assembler(settings, whole_services=False)
        self._values = PartitionValues(store)
        self._final = FinalTraceRecords(self._assembler, lambda: self.now, times.remember)
        self._open = OpenTraces(self._assembler, self._final, settings)
        self._row = self._revision = 0
        self._restore()
        accounts = self._assembler.accounts
        self._before = Counter(accounts.spans)
        self._lost_before = Counter(accounts.losses)

    def __len__(self) -> int:
        """Traces whose spans are stored."""
        return len(self._open)

    @property
    def spans(self) -> Counter[Account]:
        """Return the number of spans by (disposition, reason), since this worker has the
        partition.
        """
        found = Counter(self._assembler.accounts.spans)
        found.subtract(self._before)
        return found

    @property
    def losses(self) -> Counter[Loss]:
        """Return what else was lost since this worker has the partition: evaluations, annotations,
        values of its state that were damaged.
        """
        found = Counter(self._assembler.accounts.losses)
        found.subtract(self._lost_before)
        found["state", "damaged"] += self._values.damaged
        return found

    def take(
        self, spans: Iterable[AgentSpan], evaluations: Iterable[Evaluation], now: float
    ) -> list[Outgoing]:
        """Receive what a message holds. Return the records of what was due before."""
        out = self.tick(now)
        found: dict[TraceId, tuple[list[AgentSpan], list[Evaluation]]] = {}
        for span in spans:
            found.setdefault(span.trace_id, ([], []))[0].append(self._alone(span))
        for evaluation in evaluations:
            if evaluation.trace_id is None:
                self.apart["no_trace" if evaluation.response_id is None else "response_id"] += 1
            else:
                found.setdefault(evaluation.trace_id, ([], []))[1].append(evaluation)
        for trace_id, (some, judged) in found.items():
            self._row += 1
            self._values.put(_SPANS, self._row, [self.now, trace_id, pack_spans(some), judged])
            self._add(self._row, trace_id, some, judged)
        return out

    def tick(self, now: float) -> list[Outgoing]:
        """Meet what is due. Return its records."""
        self.now = max(self.now, now)
        return [self._record(event) for event in self._events(self._assembler.tick(self.now))]

    def save(self) -> None:
        """Store what changed: what was emitted, and spans whose runs are final go, but for their
        ids.
        """
        for row in self._open.unneeded(self.now):
            self._values.put(_SPANS, row, None)
        for key, body in self._final.changes():
            self._values.put(FINAL_TRACES, key, body)
        self._values.put(_HEAD, None, [self.now, self._revision, self._row])

    def _add(
        self,
        row: int,
        trace_id: TraceId,
        spans: Sequence[AgentSpan],
        evaluations: Iterable[Evaluation],
    ) -> None:
        self._open.add(trace_id, row, self.now)
        self._assembler.add_all(spans, self.now)
        self._assembler.evaluate(evaluations, self.now)

    def _alone(self, span: AgentSpan) -> AgentSpan:
        """Return a span without what would join it to other traces: they may be
        in any partition.
        """
        found = None if span.link is None and span.notes is None else crossing(span)
        if not found:
            return span
        self.apart.update(found)
        return alone(span)

    def _events(self, events: Iterable[RunEvent]) -> Iterable[RunEvent]:
        """Note what is final, and yield a change of agent as the two that it is."""
        for event in events:
            if event.change in _FINAL:
                self._open.due[event.run.trace_id] = None
            if event.previous is not None and event.previous.key != event.run.key:
                yield RunEvent(RunChange.WITHDRAWN, event.previous)
            yield event

    def _record(self, event: RunEvent) -> Outgoing:
        """Return the record of a change. Of two records of a run the later has the greater
        revision.
        """
        self._revision = max(self._revision + 1, round(self.now * 1e9))
        self.records[event.change.value] += 1
        return write(RunRecord(event.change, event.run, self._revision))

    # --- A take-over ------------------------------------------------------------------------------

    def _restore(self) -> None:
        """Assemble the stored spans again. What follows from them was sent before."""
        spans: list[tuple[int, Any]] = []
        final: list[tuple[Any, Any]] = []
        now = 0.0
        for name, key, body in self._values.items():
            if name == _SPANS:
                spans.append((key, body))
            elif name == FINAL_TRACES:
                final.append((key, body))
            else:
                now, self._revision, self._row = body
        self._final.restore(final)
        for row, (at, trace_id, body, judged) in sorted(spans, key=lambda one: one[0]):
            deque(self._events(self._assembler.tick(at)), maxlen=0)
            self.now, self._row = at, max(self._row, row)
            self._add(row, trace_id, unpack_spans(body), evaluations_of(judged))
        self.now = max(self.now, now)
        deque(self._events(self._assembler.tick(self.now)), maxlen=0)
