"""The engine joins the stages: spans → agent spans → runs → windows. It owns the one clock and the
one lock.

Receivers hand it spans; `read` gives access to the windows. Methods that read or change the stages
hold the lock (`_turn`), and nothing else does, so the stages below need not know about threads.
`count` and the `take_*` methods use deques that any thread may use; properties and `limits` take no
lock: they are for callers within `read`, or on the one thread that changes the engine. `tick` meets
deadlines (a run's linger, its `reopen`, an agent's expiry) by the engine's own clock; the times of
spans are those of their source.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from math import inf
from typing import Any, Final, TypeAlias, TypeVar

from msgspec.structs import replace

from otel_reliability import conventions
from otel_reliability.assembly.accounts import DISPOSITIONS, EVALUATION, LOST_ANNOTATION
from otel_reliability.assembly.intake import Opened
from otel_reliability.assembly.lifecycle import Assembler
from otel_reliability.change.monitor import Change, Monitor
from otel_reliability.config import Settings
from otel_reliability.conventions.reader import Reader
from otel_reliability.model.limit import Limit
from otel_reliability.model.observation import Observation
from otel_reliability.model.run import AgentKey, CloseReason, Run, RunChange, RunEvent
from otel_reliability.model.span import (
    AgentSpan,
    Evaluation,
    RawLog,
    RawSpan,
    SpanRef,
    TraceId,
    bounded,
)
from otel_reliability.model.taken import taken
from otel_reliability.outcomes import Outcomes
from otel_reliability.read_view import ReadView
from otel_reliability.watch import Excess, Watch
from otel_reliability.windows.agents import AgentRegistry, AgentState, LateOutcome
from otel_reliability.windows.sessions import SessionEvent, Sessions

T = TypeVar("T")

_LAST: Final = frozenset({CloseReason.SHUTDOWN, CloseReason.END_OF_INPUT})
"""Reasons after which nothing more arrives, so that sessions close too."""
MAX_UNREAD: Final = 100_000
"""Maximum number of runs that are final and wait to be recorded, and of those that were revised, of
sessions and of late outcomes; beyond, the oldest are dropped and counted.
"""

_TOTALS: Final = ("incomplete", "revised", "unread", "event_lag")
"""Counts in plain numbers."""

_CLOSED = RunChange.CLOSED
_FINAL = RunChange.FINAL

FOREVER: Final = -1.0
"""Seconds to wait for the lock: as long as it takes."""
LOAD_TURN_S: Final = 0.05
"""Seconds of a turn in which an agent is loaded."""

SPANS_PER_TICK: Final = 4_096
"""Spans of one batch after which limits are enforced: a batch may have any size."""
_SPANS_PER_READ: Final = 512
"""Spans that are read before they are handed on; divides `SPANS_PER_TICK`."""

Observer: TypeAlias = Callable[[RunEvent, float], None]
Accounts: TypeAlias = Counter[tuple[str, str]]


class Engine:
    """Spans in; windows, final runs and an account of every span out.

    >>> from otel_reliability.testing import agent, tool
    >>> engine = Engine(clock=lambda: 0.0, wall=lambda: 0)
    >>> engine.receive([tool(2, 1, "search"), agent(1, called="a")]) and engine.flush(
    ...     CloseReason.END_OF_INPUT
    ... )
    True
    >>> [(run.key.agent, run.path) for run in engine.take_final()]
    [('a', ('search',))]
    """

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], int] | None = time.time_ns,
        reader: Reader | None = None,
        places_return: bool = False,
        pinned: Mapping[AgentKey, Sequence[Observation]] | None = None,
        split_by: str | None = None,
        whole_services: bool = True,
    ) -> None:
        """Begin empty.

        `clock` counts seconds, for deadlines. `wall` is the Unix time in nanoseconds, which bounds
        times of spans from the future; None for recordings, whose times are used as they are.
        `places_return`: see `AgentRegistry`. `pinned`: the observations of a recording that change
        is measured against, by agent (`reference.pinned_by` reads them). `split_by`: a kind of
        fingerprint (`FINGERPRINTS`) whose values become part of the agents' keys. `whole_services`:
        see `Assembler`.
        """
        self.settings = Settings() if settings is None else settings
        self.reader = Reader(self.settings, conventions.TABLE) if reader is None else reader
        self.observers: list[Observer] = []
        """Called for every change of a run, within the turn that made it."""
        self._clock = clock
        self._wall = wall
        self._places_return = places_return
        self._pinned = pinned
        self._split_by = split_by
        self._whole_services = whole_services
        self.restart()

    def restart(self) -> None:
        """Begin again with nothing received, as a forked child does: a thread that does not exist
        may hold the lock.
        """
        self._lock = threading.RLock()
        self._depth = 0
        """Number of times that the thread which holds the lock has asked for it."""
        self.assembler = Assembler(self.settings, whole_services=self._whole_services)
        """The open traces, and what is remembered of final ones. These six are for those who store
        and restore state. Readers have `view`.
        """
        self.agents = AgentRegistry(self.settings, places_return=self._places_return)
        """The windows."""
        self.sessions = Sessions(self.settings, self.agents.is_known)
        self.monitor = (
            Monitor(self.settings, self._pinned) if self.settings.change.enabled else None
        )
        """Change detection; None where it is switched off."""
        self.outcomes = Outcomes(self.settings.outcome, self.assembler, self.agents, self._apply)
        """Evaluations and outcomes that arrive apart from spans."""
        self.watched = Watch(self.settings.watch, self.assembler, self.agents)
        """The open runs."""
        self.view = ReadView(self.settings, self.agents, self.sessions, self.monitor, self.watched)
        """All that is read of them, for callers that are alone with the engine; others `read`."""
        self._final: deque[Run] = deque()
        self._revised: deque[Run] = deque()
        self._scored: deque[SessionEvent] = deque()
        self._late: deque[LateOutcome] = deque()
        self._unrecorded = self._final, self._revised, self._scored, self._late
        self._counts: Accounts = Counter()
        self._exported: Accounts = Counter()
        """The largest value of each account so far: counters that were exported must not fall."""
        self._uncounted: deque[tuple[str, str, int]] = deque()
        """Spans that other threads counted, added to `_counts` in the next turn."""
        self.refused_attributes: Accounts = Counter()
        """Values on spans that were refused: (attribute, reason) → number."""
        self.closed: Counter[str] = Counter()
        """Runs closed, by reason."""
        self.recorded: Counter[tuple[str, str, bool]] = Counter()
        """Final runs, by (source of the outcome, why closed, whether nested)."""
        self.incomplete = self.revised = self.unread = 0
        """Closed runs whose own root never arrived; runs changed after closing; runs that were not
        recorded in time.
        """
        self.is_behind = False
        """True if the last tick left work for a hurried caller."""
        self.event_lag = 0.0
        """Seconds between the end of the last span received and its receipt."""

    # --- In ---------------------------------------------------------------------------------------

    def receive(self, spans: Iterable[RawSpan | AgentSpan], *, wait: float = FOREVER) -> bool:
        """Receive spans, in any order. False: the engine was busy for `wait` seconds (-1: wait for
        ever), nothing was read. With 0 the caller is hurried.

        The iterable is consumed within the turn, so a queue that hands its spans out one by one
        keeps what was not read.
        """
        return self._in_turn(lambda now: self._receive(spans, now, hurried=not wait), wait)

    def receive_logs(self, logs: Iterable[RawLog]) -> bool:
        """Receive log events: those that coding agents emit become spans."""
        return self.receive(self.reader.read_logs(logs))

    def receive_evaluations(self, evaluations: Iterable[Evaluation]) -> bool:
        """Receive evaluations that arrived apart from spans."""
        return self.report_outcomes(evaluations) is not None

    def report_outcomes(self, evaluations: Iterable[Evaluation]) -> list[int] | None:
        """Receive evaluations and outcomes. Return how many closed runs each has reached; None when
        the engine is busy.
        """
        keyed = [self.reader.without_key(evaluation) for evaluation in evaluations]
        reached: list[int] = []

        def act(now: float) -> None:
            reached.extend(self.outcomes.receive(keyed, now))
            self._keep_late()

        return reached if self._in_turn(act) else None

    def receive_events(self, events: Iterable[RunEvent]) -> bool:
        """Receive changes of runs that were rebuilt elsewhere."""
        return self._in_turn(lambda now: self._apply(list(events), now))

    def opened(self, spans: Iterable[Opened], *, wait: float = FOREVER) -> bool:
        """Note spans that have started and not ended: their runs stay open. As `receive`."""
        return self._in_turn(lambda now: self.assembler.opened(spans, now), wait)

    def lost(self, spans: Iterable[SpanRef], *, wait: float = FOREVER) -> bool:
        """Note open spans that have ended and will not arrive: their runs need not wait for them.
        As `receive`.
        """
        return self._in_turn(lambda _: self.assembler.ended(spans), wait)

    def count(self, disposition: str, reason: str, number: int = 1) -> None:
        """Count spans that did not reach the engine: `malformed` or `refused`, and why. Never
        waits.
        """
        self._uncounted.append((disposition, reason, number))

    def remove(self, key: AgentKey) -> bool:
        """Remove an agent, its windows, sessions and detector. Runs of it that close later make it
        again.
        """

        def act(_: float) -> None:
            self.agents.remove(key)
            self.sessions.forget(key)
            if self.monitor is not None:
                self.monitor.remove(key)

        return self._in_turn(act)

    # --- Time -------------------------------------------------------------------------------------

    def now(self) -> float:
        return self._clock()

    def tick(self, *, wait: float = -1, spans: float = inf) -> bool:
        """Meet every deadline that has passed: close and finalize runs, expire idle agents. As
        `receive`.

        `spans`: for hurried callers, about how many spans of runs they close and
        finalize. The rest waits for the next call: see `is_behind`.
        """

        def act(now: float) -> None:
            self._apply(self.assembler.tick(now, spans), now)
            self.outcomes.tick(now)
            self._keep_late()
            self.sessions.forget(*self.agents.advance(now))
            scored = self.sessions.tick(now, None if spans == inf else 1)
            self._keep(self._scored, scored)
            if self.monitor is not None:
                self.monitor.advance(now, scored)
            self.is_behind = self.assembler.is_behind(now) or self.sessions.is_due(now)

        return self._in_turn(act, wait)

    def watch(self, *, wait: float = FOREVER) -> bool:
        """Compare the open runs with their bounds, at most once a second. As `receive`."""
        return self._in_turn(self.watched.check, wait)

    def flush(
        self, reason: CloseReason, *, sessions: int | None = None, wait: float = FOREVER
    ) -> bool:
        """Close and finalize every run now: no span will arrive, or the numbers are wanted at once.
        As `receive`.

        With the last runs all sessions close, or the first `sessions`: a caller that cannot hold
        the scores of all of them asks again.
        """

        def act(now: float) -> None:
            self._apply(self.assembler.tick(now), now)
            self._apply(self.assembler.close_all(reason, now), now)
            if reason in _LAST:
                self._keep(self._scored, self.sessions.close_all(sessions))

        return self._in_turn(act, wait)

    def complete(self, traces: Iterable[TraceId], *, alone: bool = False) -> bool:
        """Close and finalize the runs of these traces now, and forget the traces: no span, no
        evaluation and no link to them will arrive. Traces that share a run with others stay open.
        `alone`: no run of a later trace concerns theirs, which are forgotten too.
        """

        def act(now: float) -> None:
            reason = CloseReason.END_OF_INPUT
            self._apply(self.assembler.complete(traces, reason, now, alone=alone), now)

        return self._in_turn(act)

    def close_sessions(self, kept: int) -> bool:
        """Close all sessions but so many, the last in which something happened. Runs of a closed
        one that come later have it scored again.
        """

        def act(_: float) -> None:
            excess = self.sessions.number_open - kept
            if excess > 0:
                self._keep(self._scored, self.sessions.close_all(excess))

        return self._in_turn(act)

    # --- Out --------------------------------------------------------------------------------------

    def read(self, ask: Callable[[ReadView], T], *, wait: float = FOREVER) -> T | None:
        """Return what `ask` returns for the state as it is now; None when the engine is busy. `ask`
        must not call back.
        """
        with self._turn(wait) as entered:
            return ask(self.view) if entered else None

    def take_final(self) -> list[Run]:
        """Return the runs that became final, each once: counters and histograms record them."""
        return taken(self._final)

    def take_revised(self) -> list[Run]:
        """Return the runs that late spans changed or withdrew after they had closed."""
        return taken(self._revised)

    def take_scored(self) -> list[SessionEvent]:
        """Return the sessions that were scored since the last call: histograms record those that
        have just closed.
        """
        return taken(self._scored)

    def take_late(self) -> list[LateOutcome]:
        """Return the outcomes that became known after their runs were final, since the last call:
        counters count each once.
        """
        return taken(self._late)

    def take_changes(self) -> list[Change]:
        """Return the alarms and change points detected since the last call, each once."""
        return [] if self.monitor is None else self.monitor.take_changes()

    def take_excesses(self) -> list[Excess]:
        """Return the open runs found since the last call to exceed a bound, once for each kind of
        usage.
        """
        return taken(self.watched.excesses)

    @property
    def waiting(self) -> int:
        """Number of runs, sessions and changes that wait to be recorded."""
        changes = 0 if self.monitor is None else self.monitor.unread
        return sum(map(len, self._unrecorded)) + changes

    @property
    def accounts(self) -> Accounts:
        """Number of spans by (disposition, reason). A copy.

        Every received span is used, other, late, duplicate, malformed or refused, or part of a run
        that is open.
        """
        self._add_uncounted()
        return self._counts + self.assembler.accounts.spans

    @property
    def open_runs(self) -> int:
        return len(self.assembler.growing)

    @property
    def lost_annotations(self) -> int:
        """Number of annotated spans whose annotations joined no run."""
        return self.assembler.accounts.losses[LOST_ANNOTATION]

    @property
    def rising_accounts(self) -> Accounts:
        """The accounts as counters need them: none decreases, though a span that was `other` may
        turn out to be used.
        """
        self._exported |= self.accounts  # the larger of each
        return self._exported

    @property
    def refused_evaluations(self) -> Counter[str]:
        """Evaluations that joined no run, by reason."""
        losses = self.assembler.accounts.losses
        return +Counter(
            {reason: number for (what, reason), number in losses.items() if what == EVALUATION}
        )

    def limits(self) -> tuple[Limit, ...]:
        limits = self.settings.limits
        agents = self.agents.accounts
        sessions = self.sessions.accounts
        return (
            *self.assembler.limits,
            Limit("agents", len(self.agents), limits.agents, agents["agents", "limit"]),
            Limit("tasks", None, limits.tasks, agents["tasks", "limit"]),
            Limit(
                "sessions", len(self.sessions), limits.sessions, sessions["sessions", "forgotten"]
            ),
            Limit("unread_runs", max(map(len, self._unrecorded)), MAX_UNREAD, self.unread),
            *self.watched.limits,
        )

    # --- Over a restart ---------------------------------------------------------------------------

    def totals(self) -> dict[str, Any]:
        """Return everything that was counted, by name: numbers, and counters by their keys. To be
        read before the next turn.
        """
        with self._own_turn():
            return {**{name: getattr(self, name) for name in _TOTALS}, **self._counters()}

    def restore_totals(self, totals: Mapping[str, Any]) -> None:
        """Replace everything that was counted by what `totals` returned."""
        with self._own_turn():
            for name in _TOTALS:
                if name in totals:
                    setattr(self, name, totals[name])
            for name, counter in self._counters().items():
                counter.clear()
                counter.update(totals.get(name, {}))
            spans = self.assembler.accounts.spans
            for account in [one for one in spans if one[0] not in DISPOSITIONS]:
                del spans[account]  # earlier states hold losses among the spans

    def restore_agents(
        self, agents: Mapping[AgentKey, tuple[float, Callable[[], Iterable[Run]]]]
    ) -> None:
        """Let agents be known, each with when it last had a run; its final runs are asked for when
        it is.
        """
        with self._own_turn():
            self.agents.restore_runs(agents)

    def load_agents(self, seconds: float) -> None:
        """Load restored agents for about so many seconds of real time, some runs at least; those
        with new runs first.
        """
        end = time.monotonic() + seconds
        with self._own_turn():
            while self.agents.unloaded:
                for _ in self.agents.load_next():
                    if time.monotonic() >= end:
                        return
                if time.monotonic() >= end:
                    return

    def load_agent(self, key: AgentKey) -> None:
        """Load an agent that was restored, if it is not yet. Others have their turns meanwhile."""
        while not self.agents.is_loaded(key):
            end = time.monotonic() + LOAD_TURN_S
            with self._own_turn():
                for _ in self.agents.loading(key):
                    if time.monotonic() >= end:
                        break
            time.sleep(0)

    def observe_agents(self, observer: Callable[[AgentState], None]) -> None:
        """Call this for an agent when a run of it has closed and is in its windows."""
        self.agents.observers.append(observer)

    def ignore_waiting(self) -> None:
        """Let no observer be called for the changes that wait for restored agents now: they were
        observed before the restart.
        """
        self.agents.ignore_waiting()

    def _counters(self) -> dict[str, Counter[Any]]:
        """Return the counters of this engine and of its parts, by name."""
        found: dict[str, Counter[Any]] = {
            "spans": self._counts,
            "rising": self._exported,
            "refused_attributes": self.refused_attributes,
            "closed": self.closed,
            "recorded": self.recorded,
            "assembly": self.assembler.accounts.spans,
            "assembly_closed": self.assembler.accounts.closed,
            "assembly_losses": self.assembler.accounts.losses,
            "windows": self.agents.accounts,
            "sessions": self.sessions.accounts,
        }
        return found if self.monitor is None else {**found, "change": self.monitor.accounts}

    # --- Within a turn ----------------------------------------------------------------------------

    def _receive(self, spans: Iterable[RawSpan | AgentSpan], now: float, *, hurried: bool) -> None:
        read = self.reader.read
        rest = iter(spans)
        number = 0
        while True:
            batch: list[AgentSpan] = []
            try:
                batch.extend(
                    span if isinstance(span, AgentSpan) else read(span)
                    for span in islice(rest, _SPANS_PER_READ)
                )
            finally:  # what was read before a signal handler's exception is not lost with it
                self._assemble(batch, now, hurried=hurried)
            if not batch:
                return
            number += len(batch)
            if not number % SPANS_PER_TICK:
                self._apply(self.assembler.tick(now), now)

    def _assemble(self, spans: Sequence[AgentSpan], now: float, *, hurried: bool) -> None:
        self._counts["received", ""] += len(spans)
        for span in spans:
            if span.notes is not None and span.notes.refused:
                self.refused_attributes.update(span.notes.refused)
        self.assembler.add_all(spans, now, hurried=hurried)
        if self._wall is not None and spans:
            self.event_lag = max(0.0, (self._wall() - spans[-1].end_ns) / 1e9)

    def _add_uncounted(self) -> None:
        for disposition, reason, number in taken(self._uncounted):
            self._counts["received", ""] += number
            self._counts[disposition, reason] += number

    def _apply(self, events: list[RunEvent], now: float) -> None:
        wall = None if self._wall is None else self._wall()
        windows = self.agents.apply
        sessions = self.sessions.apply
        monitor = self.monitor
        observers = self.observers
        if self._split_by is not None:
            events = [_split(event, self._split_by) for event in events]
        for event in events:
            windows(event, now, wall)
            unobserved = False
            if event.change is not _FINAL:  # a session has a run from its closing on
                unobserved = sessions(event, now)
            if monitor is not None:
                monitor.apply(event, now, unobserved=unobserved)
            for observer in observers:
                observer(event, now)
        self._record(events)
        self._keep_late()

    def _keep_late(self) -> None:
        self._keep(self._late, self.agents.late)
        self.agents.late.clear()

    def _record(self, events: Iterable[RunEvent]) -> None:
        final: list[Run] = []
        for event in events:
            run = event.run
            if event.change is _FINAL:
                final.append(run)
            elif event.change is _CLOSED:
                self.closed[run.closed_by._value_] += 1
                self.incomplete += run.incomplete
            else:
                self.revised += 1
                self._keep(self._revised, (run,))
        self.recorded.update(
            [(run.outcome_source, run.closed_by._value_, run.nested) for run in final]
        )
        self._keep(self._final, final)

    def _keep(self, kept: deque[T], items: Iterable[T]) -> None:
        kept.extend(items)
        while len(kept) > MAX_UNREAD:
            kept.popleft()
            self.unread += 1

    def _in_turn(self, act: Callable[[float], None], wait: float = FOREVER) -> bool:
        """Hold the lock and act, at the engine's time. Return False, without acting, where the lock
        is not free in time.
        """
        with self._turn(wait) as entered:
            if entered:
                act(self._clock())
            return entered

    @contextmanager
    def _own_turn(self) -> Generator[None]:
        """Hold the lock, however long that takes. Raise `RuntimeError` where this thread holds it
        already.
        """
        with self._turn(FOREVER) as entered:
            if not entered:
                raise RuntimeError("the engine is in a turn of this thread")
            yield

    @contextmanager
    def _turn(self, wait: float) -> Generator[bool]:
        """Hold the lock. A thread that holds it already (a signal handler, a finalizer) gets False
        and never blocks.

        The lock knows its owner by itself: a signal handler may run between any two statements.
        """
        held = self._lock.acquire(timeout=wait)
        entered = False
        try:
            if held:
                self._depth += 1
                entered = self._depth == 1
            if entered:
                self._add_uncounted()
            yield entered
        finally:
            if held:
                self._depth -= 1
                self._lock.release()


def _split(event: RunEvent, kind: str) -> RunEvent:
    """Return the event with the values of a kind of fingerprint in the keys of its runs."""

    def keyed(run: Run) -> Run:
        values = [value for name, value in run.fingerprints if name == kind]
        extra = kind, bounded(", ".join(values)) or "unknown"
        return replace(run, key=run.key._replace(extra=(*run.key.extra, extra)))

    previous = None if event.previous is None else keyed(event.previous)
    return replace(event, run=keyed(event.run), previous=previous)
