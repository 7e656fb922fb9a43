"""All traces of one partition: their parts on its shelf, their deadlines in its time, and what is told of their runs.

On the shelf stand, for each trace, its parts as they came and, once something was told of it, its `Head`: up to when. Parts
stay for `assembly.remember`, so that what comes late or twice is known to. What is in memory can be made again from there:
after a take-over, and where memory is short.
"""

from __future__ import annotations

import heapq
import marshal
import struct
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple

from otel_reliability.assembly.build import Builder
from otel_reliability.config import Settings
from otel_reliability.kafka.messages import Outgoing, write
from otel_reliability.kafka.shelf import Shelf
from otel_reliability.kafka.trace import Part, Timed, Trace
from otel_reliability.model.crossing import alone, crossing
from otel_reliability.model.event import RunChange
from otel_reliability.model.record import RunRecord
from otel_reliability.model.run import Run
from otel_reliability.model.span import AgentSpan, Evaluation, TraceId
from otel_reliability.service import journal_codec
from otel_reliability.service.decoded import Decoded

_PART: Final = b"p"
_HEAD: Final = b"h"
_ID: Final = 16
_TIME: Final = struct.Struct(">d")
_NUMBER: Final = struct.Struct(">I")
_AT_ONCE: Final = 0.0
SPAN_BYTES: Final = 900
"""What a span of a trace in memory is reckoned to weigh, as in the single process."""
TRACE_BYTES: Final = 8_192
"""The same of a trace, whatever its spans."""


class Head(NamedTuple):
    """What is known of a trace beside its parts.

    `parts`: how many there were when this was written. `last`: when the last came. `upto`: what happened until then is told;
    `told_ns`: the greatest time of a record. `due`: when it is to be looked at. `over`: all is told, and it is only remembered.
    """

    parts: int
    last: float
    upto: float
    told_ns: int
    due: float
    over: bool


@dataclass(slots=True)
class _Live:
    """A trace in memory. `before` is how it was accounted for before this worker had it."""

    trace: Trace
    parts: int
    last: float
    upto: float
    told_ns: int
    before: Counter[tuple[str, str]]


class Traces:
    """The traces of one partition.

    `accounts` counts spans as the single process does, once their trace is over; `apart` what belongs to two traces and cannot
    be joined here, by what it is: link, run_key, response_id, no_trace; `told` the records by their change.
    """

    def __init__(self, settings: Settings, shelf: Shelf) -> None:
        self.accounts: Counter[tuple[str, str]] = Counter()
        self.apart: Counter[str] = Counter()
        self.told: Counter[str] = Counter()
        self.now = 0.0
        self._settings, self._shelf = settings, shelf
        self._builder = Builder(settings)
        self._remember, self._room = settings.assembly.remember, settings.assembly.open_bytes
        self._live: OrderedDict[TraceId, _Live] = OrderedDict()
        self._weight = 0
        self._when: dict[TraceId, float] = {}
        self._heap: list[tuple[float, TraceId]] = []
        self._out: list[Outgoing] = []
        self._restore()

    def __len__(self) -> int:
        """Traces that are remembered."""
        return len(self._when)

    @property
    def live(self) -> int:
        """Traces in memory."""
        return len(self._live)

    def take(self, spans: Iterable[AgentSpan], evaluations: Iterable[Evaluation], now: float) -> list[Outgoing]:
        """Take in what a message holds. Gives what is to be told, after what was due before."""
        self._advance(now)
        found: defaultdict[TraceId, tuple[list[AgentSpan], list[Evaluation]]] = defaultdict(lambda: ([], []))
        for span in spans:
            found[span.trace_id][0].append(self._alone(span))
        for evaluation in evaluations:
            if evaluation.trace_id is None:
                self.apart["no_trace" if evaluation.response_id is None else "response_id"] += 1
            else:
                found[evaluation.trace_id][1].append(evaluation)
        for trace_id, (some, judged) in found.items():
            self._take(trace_id, Part(self.now, tuple(some), tuple(judged)))
        self._make_room()
        return self._taken()

    def tick(self, now: float) -> list[Outgoing]:
        """Meet what is due. Gives what is to be told."""
        self._advance(now)
        return self._taken()

    # --- Parts --------------------------------------------------------------------------------------------------------

    def _alone(self, span: AgentSpan) -> AgentSpan:
        """A span without what would join it to other traces: they may be anywhere."""
        found = crossing(span)
        if not found:
            return span
        self.apart.update(found)
        return alone(span)

    def _take(self, trace_id: TraceId, part: Part) -> None:
        live = self._wake(trace_id)
        self._shelf.put(_part_key(trace_id, live.parts), _write(part))
        live.parts, live.last = live.parts + 1, part.now
        self._weight += SPAN_BYTES * len(part.spans)
        self._tell(trace_id, live, live.trace.add(part))
        self._plan(trace_id, live)

    def _wake(self, trace_id: TraceId) -> _Live:
        """A trace in memory, new or made again from its parts."""
        live = self._live.get(trace_id)
        if live is not None:
            self._live.move_to_end(trace_id)
            return live
        if trace_id not in self._when:
            live = _Live(Trace(self._settings, self._builder), 0, self.now, -1.0, 0, Counter())
            self._keep(trace_id, live)
            return live
        live, untold = self._remade(trace_id)
        self._keep(trace_id, live)
        self._tell(trace_id, live, untold)
        return live

    def _remade(self, trace_id: TraceId) -> tuple[_Live, list[Timed]]:
        head = self._head(trace_id)
        live = _Live(Trace(self._settings, self._builder), 0, self.now, head.upto, head.told_ns, Counter())
        events: list[Timed] = []
        while (kept := self._shelf.get(_part_key(trace_id, live.parts))) is not None:
            live.parts += 1
            part = self._read(kept)
            if part is not None:
                live.last = part.now
                events += live.trace.add(part)
        events += live.trace.advance(head.upto)
        live.before = Counter(live.trace.accounts)
        return live, [(at, event) for at, event in events if at > head.upto]

    def _head(self, trace_id: TraceId) -> Head:
        kept = self._shelf.get(trace_id + _HEAD)
        return Head(0, 0.0, -1.0, 0, _AT_ONCE, over=False) if kept is None else Head(*marshal.loads(kept))  # noqa: S302 (our own)

    def _read(self, kept: bytes) -> Part | None:
        try:
            found = journal_codec.read(kept[_TIME.size :])
        except journal_codec.Damaged:
            self.accounts["state", "damaged"] += 1
            return None
        return Part(_TIME.unpack_from(kept)[0], found.spans, found.evaluations)

    def _keep(self, trace_id: TraceId, live: _Live) -> None:
        self._live[trace_id] = live
        self._weight += _weight(live)

    # --- Time ---------------------------------------------------------------------------------------------------------

    def _advance(self, now: float) -> None:
        self.now = max(self.now, now)
        heap = self._heap
        while heap and heap[0][0] <= self.now:
            due, trace_id = heapq.heappop(heap)
            if self._when.get(trace_id) == due:
                self._meet(trace_id, due)

    def _meet(self, trace_id: TraceId, due: float) -> None:
        if trace_id not in self._live and (head := self._head(trace_id)).over and head.due == due:
            self._forget(trace_id)
            return
        live = self._wake(trace_id)
        self._tell(trace_id, live, live.trace.advance(self.now))
        self._plan(trace_id, live)

    def _plan(self, trace_id: TraceId, live: _Live) -> None:
        """When to look at it next. A trace that is over leaves memory, and stays on the shelf for a while."""
        due = live.trace.due
        if due is not None:
            self._schedule(trace_id, due)
            return
        self._schedule(trace_id, live.last + self._remember)
        if self.now >= self._when[trace_id]:
            self._forget(trace_id)
        else:
            self._sleep(trace_id, over=True)

    def _schedule(self, trace_id: TraceId, due: float) -> None:
        if self._when.get(trace_id) != due:
            self._when[trace_id] = due
            heapq.heappush(self._heap, (due, trace_id))

    def _sleep(self, trace_id: TraceId, *, over: bool) -> None:
        """Let a trace go from memory; its head says where it stood."""
        live = self._let_go(trace_id)
        self._put_head(trace_id, live, over=over)

    def _let_go(self, trace_id: TraceId) -> _Live:
        live = self._live.pop(trace_id)
        self._weight -= _weight(live)
        for what, number in live.trace.accounts.items():
            self.accounts[what] += number - live.before[what]
        return live

    def _forget(self, trace_id: TraceId) -> None:
        """Let a trace go for good."""
        if trace_id in self._live:
            self._let_go(trace_id)
        number = 0
        while self._shelf.get(_part_key(trace_id, number)) is not None:
            self._shelf.drop(_part_key(trace_id, number))
            number += 1
        self._shelf.drop(trace_id + _HEAD)
        del self._when[trace_id]

    def _make_room(self) -> None:
        """Where memory is short, what was touched longest ago is made again from the shelf when it is needed."""
        while self._weight > self._room and len(self._live) > 1:
            self._sleep(next(iter(self._live)), over=False)

    # --- Telling ------------------------------------------------------------------------------------------------------

    def _tell(self, trace_id: TraceId, live: _Live, events: list[Timed]) -> None:
        for at, event in events:
            if event.previous is not None and event.previous.key != event.run.key:
                self._write(live, at, RunChange.WITHDRAWN, event.previous)  # it was another agent's
            self._write(live, at, event.change, event.run)
        if events:
            live.upto = self.now
            self._put_head(trace_id, live, over=False)

    def _write(self, live: _Live, at: float, change: RunChange, run: Run) -> None:
        """Tell one change. Of two records of a run the later has the greater time."""
        live.told_ns = max(live.told_ns + 1, round(at * 1e9))
        self._out.append(write(RunRecord(change, run, live.told_ns)))
        self.told[change.value] += 1

    def _put_head(self, trace_id: TraceId, live: _Live, *, over: bool) -> None:
        due = self._when.get(trace_id, _AT_ONCE)
        self._shelf.put(trace_id + _HEAD, marshal.dumps((live.parts, live.last, live.upto, live.told_ns, due, over)))

    def _taken(self) -> list[Outgoing]:
        out, self._out = self._out, []
        return out

    # --- A take-over --------------------------------------------------------------------------------------------------

    def _restore(self) -> None:
        """Which traces there are, and when each is due; what they hold is read then."""
        parts: Counter[TraceId] = Counter()
        heads: dict[TraceId, Head] = {}
        for key, value in self._shelf.items():
            trace_id = key[:_ID]
            if key[_ID:] == _HEAD:
                heads[trace_id] = Head(*marshal.loads(value))  # noqa: S302 (our own)
            else:
                parts[trace_id] += 1
                self.now = max(self.now, _TIME.unpack_from(value)[0])
        for trace_id, number in parts.items():
            head = heads.get(trace_id)
            self._schedule(trace_id, head.due if head is not None and head.parts == number else _AT_ONCE)


def _weight(live: _Live) -> int:
    return TRACE_BYTES + SPAN_BYTES * live.trace.spans


def _part_key(trace_id: TraceId, number: int) -> bytes:
    return trace_id + _PART + _NUMBER.pack(number)


def _write(part: Part) -> bytes:
    return _TIME.pack(part.now) + journal_codec.write(Decoded(part.spans, part.evaluations))
