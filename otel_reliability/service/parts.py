"""The parts of the engine and of telemetry whose state is stored by key, as plain data: everything that a restart needs beside
spans and run records.

A part says what changed since it was last saved, and takes the same back at a start, after open traces were assembled again
from their spans: what that repeated is replaced. Sessions, change detection and series are parts themselves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol, TypeAlias, cast

from otel_reliability.engine import Engine
from otel_reliability.model.span import AgentSpan, SpanId, TraceId
from otel_reliability.service.recording import Recording

Plain: TypeAlias = Any
"""None, booleans, numbers, texts, bytes, and lists, tuples and dictionaries of them."""
Item: TypeAlias = tuple[Plain, Plain]
"""The state of one key; None: the key is gone."""

REMEMBER_CLOSED_S = 15 * 60.0
"""Seconds for which ids of closed runs are remembered at least."""
_ID_BYTES = 8


class Part(Protocol):
    """State that is stored by key."""

    def changes(self) -> Iterable[Item]:
        """Yield what changed since this was last asked for."""
        ...

    def restore(self, data: Iterable[Item]) -> None:
        """Replace everything by what `changes` yielded, each key once, the one that changed last at the end."""
        ...


def parts_of(engine: Engine, recording: Recording, logs: Counter[tuple[str, str]]) -> dict[str, Part]:
    """Return the parts by name, in the order in which they are brought back."""
    found: dict[str, Part] = {"session": engine.sessions, "series": recording, "totals": Totals(engine, logs)}
    return found if engine.monitor is None else {"change": engine.monitor, **found}


class ClosedIds:
    """Ids of the spans of final runs, so that a span that is sent again after a restart is known."""

    def __init__(self, now: Callable[[], float], count: Callable[[str, str], None]) -> None:
        """`now` gives the engine's time; `count` is called with disposition and reason of each span that is known."""
        self._now, self._count = now, count
        self._restored: dict[TraceId, frozenset[SpanId]] = {}
        self._new: list[Item] = []
        self._since: dict[TraceId, float] = {}

    def close(self, trace_id: TraceId, ids: Iterable[SpanId]) -> None:
        """Remember the spans of a trace whose runs are all final."""
        now = self._now()
        self._new.append((trace_id, [now, b"".join(ids)]))
        self._since.pop(trace_id, None)
        self._since[trace_id] = now

    def changes(self) -> Iterator[Item]:
        """Yield the ids that are new, and those that need not be remembered any longer."""
        new, self._new = self._new, []
        yield from new
        horizon = self._now() - REMEMBER_CLOSED_S
        while self._since:
            trace_id, since = next(iter(self._since.items()))
            if since >= horizon:
                return
            del self._since[trace_id]
            self._restored.pop(trace_id, None)
            yield trace_id, None

    def restore(self, data: Iterable[Item]) -> None:
        """Take the ids back."""
        for trace_id, (now, joined) in data:
            self._restored[trace_id] = frozenset(joined[at : at + _ID_BYTES] for at in range(0, len(joined), _ID_BYTES))
            self._since[trace_id] = now

    def unknown(self, spans: Sequence[AgentSpan]) -> Sequence[AgentSpan]:
        """Return the spans that belong to no run that was final before the restart; the others are counted."""
        restored = self._restored
        if not restored or not any(span.trace_id in restored for span in spans):
            return spans
        found: list[AgentSpan] = []
        for span in spans:
            ids = restored.get(span.trace_id, frozenset())
            if span.span_id in ids or span.parent_id in ids:
                self._count("duplicate" if span.span_id in ids else "late", "")
            else:
                found.append(span)
        return found


class Totals:
    """The accounts of spans, runs and log records: small, and stored as a whole."""

    def __init__(self, engine: Engine, logs: Counter[tuple[str, str]]) -> None:
        self._engine, self._logs = engine, logs

    def changes(self) -> Iterator[Item]:
        """Yield all of them."""
        totals = {**self._engine.totals(), "logs": self._logs}
        yield None, {name: _plain(value) for name, value in totals.items()}

    def restore(self, data: Iterable[Item]) -> None:
        """Replace all of them."""
        for _, body in data:
            found = {name: _total(value) for name, value in body.items()}
            self._logs.clear()
            self._logs.update(found.pop("logs", {}))
            self._engine.restore_totals(found)


def _plain(total: Any) -> Plain:
    return [list(item) for item in cast("Counter[Any]", total).items()] if isinstance(total, Counter) else total


def _total(plain: Plain) -> Any:
    if not isinstance(plain, list):
        return plain
    return Counter({_key(key): number for key, number in cast("list[tuple[Plain, int]]", plain)})


def _key(plain: Plain) -> Any:
    return tuple(cast("list[Plain]", plain)) if isinstance(plain, list) else plain
