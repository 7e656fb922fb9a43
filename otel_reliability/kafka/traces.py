"""All traces of one partition: their parts in its log, their deadlines in its time, and what is told of their runs.

In the log stand, for each trace, its parts as they came and, once something was told of it, its `Head`: up to when. Parts
stay for `assembly.remember`, so that what comes late or twice is known to. What is in memory can be made again from there:
after a take-over, and where memory is short.
"""

from __future__ import annotations

import heapq
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from otel_reliability.assembly.assemble import Assemble
from otel_reliability.config import Settings
from otel_reliability.kafka.messages import Outgoing, text_of, written
from otel_reliability.kafka.shelf import Shelf
from otel_reliability.kafka.trace import Part, Timed, Trace
from otel_reliability.kafka.trace_log import Head, TraceLog
from otel_reliability.model.crossing import alone, crossing
from otel_reliability.model.event import RunChange
from otel_reliability.model.run import Run
from otel_reliability.model.span import AgentSpan, Evaluation, TraceId

_AT_ONCE: Final = 0.0
MOST: Final = 1_000
"""Traces that are met because of one message. After a backlog all that it held is due at once, and what one message brings about
must have an end before the brokers' patience with the transaction has.
"""
SPAN_BYTES: Final = 900
"""What a span of a trace in memory is reckoned to weigh, as in the single process."""
TRACE_BYTES: Final = 8_192
"""The same of a trace, whatever its spans."""


@dataclass(slots=True)
class _Live:
    """A trace in memory. `before` is how it was accounted for before this worker had it, `texts` the runs told last, written."""

    trace: Trace
    born: int
    last: float
    parts: int = 0
    heads: int = 0
    upto: float = -1.0
    told_ns: int = 0
    before: Mapping[tuple[str, str], int] = field(default_factory=dict[tuple[str, str], int])
    texts: dict[str, tuple[Run, bytes]] = field(default_factory=dict[str, tuple[Run, bytes]])


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
        self._settings, self._assemble = settings, Assemble(settings)
        self._log = TraceLog(shelf)
        self._remember, self._room = settings.assembly.remember, settings.assembly.open_bytes
        self._live: OrderedDict[TraceId, _Live] = OrderedDict()
        self._asleep: set[TraceId] = set()
        """Traces that are not over and not in memory."""
        self._moved: dict[TraceId, _Live] = {}
        """Traces whose head is to be written with this step."""
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

    def take(self, spans: Sequence[AgentSpan], evaluations: Iterable[Evaluation], now: float) -> list[Outgoing]:
        """Take in what a message holds. Gives what is to be told, after what was due before."""
        self._advance(now)
        found: defaultdict[TraceId, tuple[list[AgentSpan], list[Evaluation]]]
        found = defaultdict(lambda: ([], []))
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

    @property
    def behind(self) -> bool:
        """Whether more is due than was met."""
        return bool(self._heap) and self._heap[0][0] <= self.now

    def tick(self, now: float) -> list[Outgoing]:
        """Meet what is due. Gives what is to be told."""
        self._advance(now)
        return self._taken()

    # --- Parts --------------------------------------------------------------------------------------------------------

    def _alone(self, span: AgentSpan) -> AgentSpan:
        """A span without what would join it to other traces: they may be anywhere."""
        found = None if span.link is None and span.notes is None else crossing(span)
        if not found:
            return span
        self.apart.update(found)
        return alone(span)

    def _take(self, trace_id: TraceId, part: Part) -> None:
        live = self._wake(trace_id)
        self._log.add_part(trace_id, live.born, live.parts, part)
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
            live = _Live(Trace(self._settings, self._assemble), self._log.birth(), self.now)
            self._keep(trace_id, live)
            return live
        live, untold = self._remade(trace_id)
        self._keep(trace_id, live)
        self._tell(trace_id, live, untold)
        return live

    def _remade(self, trace_id: TraceId) -> tuple[_Live, list[Timed]]:
        self._write_heads()
        standing, parts = self._log.of(trace_id)
        head, trace, last = standing.head, Trace(self._settings, self._assemble), self.now
        events: list[Timed] = []
        for part in parts:
            if part is None:
                self.accounts["state", "damaged"] += 1
                continue
            last = part.now
            events += trace.add(part)
        events += trace.advance(head.upto)
        live = _Live(trace, standing.born, last, standing.parts, standing.heads, head.upto, head.told_ns)
        live.before = dict(trace.accounts)
        return live, [(at, event) for at, event in events if at > head.upto]

    def _keep(self, trace_id: TraceId, live: _Live) -> None:
        self._asleep.discard(trace_id)
        self._live[trace_id] = live
        self._weight += _weight(live)

    # --- Time ---------------------------------------------------------------------------------------------------------

    def _advance(self, now: float) -> None:
        """Meet what is due, but no more than `MOST`. Traces know nothing of each other, so it does not matter who comes first."""
        self.now = max(self.now, now)
        heap, met = self._heap, 0
        while heap and heap[0][0] <= self.now and met < MOST:
            due, trace_id = heapq.heappop(heap)
            if self._when.get(trace_id) == due:
                self._meet(trace_id)
                met += 1

    def _meet(self, trace_id: TraceId) -> None:
        if trace_id not in self._live and trace_id not in self._asleep:
            self._forget(trace_id)
            return
        live = self._wake(trace_id)
        self._tell(trace_id, live, live.trace.advance(self.now))
        self._plan(trace_id, live)

    def _plan(self, trace_id: TraceId, live: _Live) -> None:
        """When to look at it next. A trace that is over leaves memory, and stays in the log for a while."""
        due = live.trace.due
        if due is not None:
            self._schedule(trace_id, due)
            return
        self._schedule(trace_id, live.last + self._remember)
        if self.now >= self._when[trace_id]:
            self._forget(trace_id)
        else:
            self._sleep(trace_id)

    def _schedule(self, trace_id: TraceId, due: float) -> None:
        if self._when.get(trace_id) != due:
            self._when[trace_id] = due
            heapq.heappush(self._heap, (due, trace_id))

    def _sleep(self, trace_id: TraceId) -> None:
        """Let a trace go from memory; its head says where it stood."""
        self._moved[trace_id] = self._let_go(trace_id)

    def _let_go(self, trace_id: TraceId) -> _Live:
        live = self._live.pop(trace_id)
        self._weight -= _weight(live)
        for what, number in live.trace.accounts.items():
            self.accounts[what] += number - live.before.get(what, 0)
        return live

    def _forget(self, trace_id: TraceId) -> None:
        """Let a trace go for good."""
        if trace_id in self._live:
            self._let_go(trace_id)
        self._moved.pop(trace_id, None)
        self._log.forget(trace_id)
        del self._when[trace_id]

    def _make_room(self) -> None:
        """Where memory is short, what was touched longest ago is made again from the log when it is needed."""
        while self._weight > self._room and len(self._live) > 1:
            trace_id = next(iter(self._live))
            self._asleep.add(trace_id)
            self._sleep(trace_id)

    # --- Telling ------------------------------------------------------------------------------------------------------

    def _tell(self, trace_id: TraceId, live: _Live, events: list[Timed]) -> None:
        for at, event in events:
            if event.previous is not None and event.previous.key != event.run.key:
                self._write(live, at, RunChange.WITHDRAWN, event.previous)  # it was another agent's
            self._write(live, at, event.change, event.run)
        if events:
            live.upto = self.now
            self._moved[trace_id] = live

    def _write(self, live: _Live, at: float, change: RunChange, run: Run) -> None:
        """Tell one change. Of two records of a run the later has the greater time."""
        live.told_ns = max(live.told_ns + 1, round(at * 1e9))
        known = live.texts.get(run.run_id)
        if known is None or known[0] is not run:
            known = live.texts[run.run_id] = (run, text_of(run))
        self._out.append(written(change, live.told_ns, *known))
        self.told[change.value] += 1

    def _write_heads(self) -> None:
        for trace_id, live in self._moved.items():
            is_over = trace_id not in self._live and trace_id not in self._asleep
            head = Head(live.parts, live.last, live.upto, live.told_ns, self._when[trace_id], is_over)
            self._log.add_head(trace_id, live.born, live.heads, head)
            live.heads += 1
        self._moved.clear()

    def _taken(self) -> list[Outgoing]:
        self._write_heads()
        self._log.write()
        out, self._out = self._out, []
        return out

    # --- A take-over --------------------------------------------------------------------------------------------------

    def _restore(self) -> None:
        """Which traces there are, and when each is due; what they hold is read then."""
        for trace_id, standing in self._log.restore().items():
            self._schedule(trace_id, standing.head.due if standing.is_told else _AT_ONCE)
            if not (standing.is_told and standing.head.over):
                self._asleep.add(trace_id)
        self.now = self._log.now
        self.accounts["state", "damaged"] += self._log.damaged


def _weight(live: _Live) -> int:
    return TRACE_BYTES + SPAN_BYTES * live.trace.spans
