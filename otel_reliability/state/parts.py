"""State that is stored by key, as plain data: everything that a restart needs next to stored spans
and final runs.

A part yields what changed since it was last saved, and is restored at a start, after open traces
were assembled again from their spans: what that repeated is replaced. Sessions, change detection,
series and histories are parts themselves.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, NamedTuple, Protocol, TypeAlias, cast

from msgspec import Struct

from otel_reliability.assembly.lifecycle import Assembler
from otel_reliability.assembly.memory import FinalTrace
from otel_reliability.config import Settings
from otel_reliability.engine import Engine
from otel_reliability.model.record import pack_spans, unpack_spans
from otel_reliability.model.span import TraceId
from otel_reliability.telemetry.series_recording import SeriesRecording

Plain: TypeAlias = Any
"""None, booleans, numbers, texts, bytes, and lists, tuples and dictionaries of them."""
Item: TypeAlias = tuple[Plain, Plain]
"""The state of one key; None: the key is gone."""

FINAL_TRACES: Final = "closed"
"""The name under which final traces are stored, from a time when these were called closed."""


class StoredPart(Protocol):
    """State that is stored by key."""

    def changes(self) -> Iterable[Item]:
        """Yield what changed since this was last asked for; nothing at first, as nothing is noted
        until then (`ChangedKeys`).
        """
        ...

    def restore(self, data: Iterable[Item]) -> None:
        """Replace everything by what `changes` yielded, each key once, the one that changed last at
        the end.
        """
        ...


def parts_of(
    engine: Engine,
    recording: SeriesRecording,
    logs: Counter[tuple[str, str]],
    histories: StoredPart | None = None,
    groups: StoredPart | None = None,
) -> dict[str, StoredPart]:
    """Return the parts by name, in the order in which they are restored. `histories`: scores over
    time, if the UI shows them; `groups`: those of requests, with their names.
    """
    found: dict[str, StoredPart | None] = {
        "change": engine.monitor,
        "session": engine.sessions,
        "series": recording,
        "totals": AccountTotals(engine, logs),
        "history": histories,
        "groups": groups,
    }
    return {name: part for name, part in found.items() if part is not None}


class FinalTraceRecords:
    """Memory of final runs, so that a span that is sent again, or late, is known after a restart
    too.
    """

    def __init__(self, assembler: Assembler, now: Callable[[], float], remember: float) -> None:
        """`now` gives the engine's time, `remember` the seconds for which final traces are
        remembered.
        """
        self._assembler = assembler
        self._now = now
        self._remember = remember
        self._changed: dict[TraceId, None] = {}
        self._since: dict[TraceId, float] = {}

    def change(self, trace_id: TraceId) -> None:
        """Note that runs of a trace have become final."""
        self._changed[trace_id] = None

    def changes(self) -> Iterator[Item]:
        """Yield what is new, and what need not be remembered any longer."""
        changed = self._changed
        self._changed = {}
        now = self._now()
        for trace_id in changed:
            final = self._assembler.final_trace(trace_id, now)
            if final is not None:
                self._since.pop(trace_id, None)
                self._since[trace_id] = now
                spans = pack_spans(final.connecting) if final.connecting else b""
                yield trace_id, [final.packed, spans]
        while self._since:
            trace_id, since = next(iter(self._since.items()))
            if since >= now - self._remember:
                return
            del self._since[trace_id]
            yield trace_id, None

    def restore(self, data: Iterable[Item]) -> None:
        found = [
            (trace_id, FinalTrace(ids, unpack_spans(spans) if spans else ()))
            for trace_id, (ids, spans) in data
        ]
        found.sort(key=lambda one: one[1].since)  # the oldest is forgotten first
        self._since = {trace_id: final.since for trace_id, final in found}
        self._assembler.restore_final_traces(found)


class AccountTotals:
    """The accounts of spans, runs and log records: small, and stored as a whole."""

    def __init__(self, engine: Engine, logs: Counter[tuple[str, str]]) -> None:
        self._engine = engine
        self._logs = logs

    def changes(self) -> Iterator[Item]:
        totals = {**self._engine.totals(), "logs": self._logs}
        yield None, {name: _plain(value) for name, value in totals.items()}

    def restore(self, data: Iterable[Item]) -> None:
        for _, body in data:
            found = {name: _total(value) for name, value in body.items()}
            self._logs.clear()
            self._logs.update(found.pop("logs", {}))
            self._engine.restore_totals(found)


def _plain(total: Any) -> Plain:
    return (
        [list(item) for item in cast("Counter[Any]", total).items()]
        if isinstance(total, Counter)
        else total
    )


def _total(plain: Plain) -> Any:
    if not isinstance(plain, list):
        return plain
    return Counter({_key(key): number for key, number in cast("list[tuple[Plain, int]]", plain)})


def _key(plain: Plain) -> Any:
    return tuple(cast("list[Plain]", plain)) if isinstance(plain, list) else plain


MARGIN_S: Final = 1.0
"""Seconds after `linger` when a trace without runs is certainly put aside."""


class _Stored(Struct):
    """The rows in which the spans and evaluations of a trace are stored, and when the last came."""

    rows: list[int] = []
    last: float = 0.0


class OpenTraces:
    """The rows of stored spans and evaluations by trace. `due`: traces of which runs have become
    final, or were withdrawn, since `unneeded`.

    A trace that grows stands in `_new`, in the order of arrival. When it has lingered it has runs,
    or evaluations that wait for them, and moves to `_old` until the runs are final or nothing waits
    any more; or it has neither, and its rows go.
    """

    def __init__(self, assembler: Assembler, final: FinalTraceRecords, settings: Settings) -> None:
        self.due: dict[TraceId, None] = {}
        self._assembler = assembler
        self._final = final
        self._linger = settings.assembly.linger + MARGIN_S
        self._wait = settings.assembly.idle_timeout + settings.assembly.reopen
        self._new: OrderedDict[TraceId, _Stored] = OrderedDict()
        self._old: OrderedDict[TraceId, _Stored] = OrderedDict()
        self._firsts: OrderedDict[int, None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._new) + len(self._old)

    @property
    def first(self) -> float:
        """The first row that is needed; infinite where there is none."""
        return next(iter(self._firsts), float("inf"))

    def add(self, trace_id: TraceId, row: int, now: float) -> None:
        """Note a row of a trace. Rows only rise."""
        stored = self._new.pop(trace_id, None) or self._old.pop(trace_id, None) or _Stored()
        if not stored.rows:
            self._firsts[row] = None
        stored.rows.append(row)
        stored.last = now
        self._new[trace_id] = stored

    def unneeded(self, now: float) -> Iterator[int]:
        """Yield the rows that are needed no longer, once."""
        self._note_waited(now)
        due = self.due
        self.due = {}
        for trace_id in due:
            self._final.change(trace_id)
            is_new = trace_id in self._new  # its runs may not show a new row yet
            if not is_new and not self._assembler.holds(trace_id):
                stored = self._old.pop(trace_id, None)
                if stored is not None:
                    del self._firsts[stored.rows[0]]
                    yield from stored.rows

    def _note_waited(self, now: float) -> None:
        """Note the traces as due that have lingered since their last row, or were old for as long
        as something may wait for them; they are old from now on.
        """
        for kept, wait in ((self._new, self._linger), (self._old, self._wait)):
            while kept:
                trace_id, stored = next(iter(kept.items()))
                if stored.last > now - wait:
                    break
                del kept[trace_id]
                if kept is self._old:
                    stored.last = now
                self._old[trace_id] = stored
                self.due[trace_id] = None


MIN_RECENT_RUNS: Final = 200
"""Runs stored an agent, whatever its windows hold: the user interface lists them."""


class Retention(NamedTuple):
    """Which final runs of an agent are stored: the last `last`, and those that ended in the last
    `period_ns` nanoseconds.
    """

    last: int
    period_ns: int

    @classmethod
    def of(cls, settings: Settings) -> Retention:
        """Return what the widest windows, and the list of recent runs, need."""
        lasts = [window.last for window in settings.windows if window.last is not None]
        periods = [
            window.period
            for window in settings.windows
            if window.period is not None and window.last is None
        ]
        last = max(MIN_RECENT_RUNS, settings.limits.recent_runs, *lasts)
        return cls(min(last, settings.limits.rows), round(max(periods, default=0.0) * 1e9))

    def oldest_end(self, newest: int, last: int) -> int:
        """Return the end (ns) before which no run is stored, from the ends of the newest run and of
        the one at rank `last`.
        """
        return min(last, newest - self.period_ns)
