"""Spans known to have started and not to have ended: what they belong to stays open. Known in process only."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from otel_reliability.model.span import AgentSpan, SpanId, TraceId

MAX_PER_TRACE: Final = 10_000


class OpenSpans:
    """Open spans by trace, with their parents."""

    def __init__(self) -> None:
        self._since: OrderedDict[TraceId, float] = OrderedDict()
        self._parents: dict[TraceId, dict[SpanId, SpanId | None]] = {}

    def __bool__(self) -> bool:
        return bool(self._parents)

    def open(self, trace_id: TraceId, span_id: SpanId, parent_id: SpanId | None, now: float) -> None:
        """Note that a span has started."""
        parents = self._parents.setdefault(trace_id, {})
        self._since[trace_id] = now
        self._since.move_to_end(trace_id)
        if len(parents) < MAX_PER_TRACE:
            parents[span_id] = parent_id

    def end(self, trace_id: TraceId, span_id: SpanId) -> None:
        """Note that a span has ended."""
        parents = self._parents.get(trace_id)
        if parents is not None:
            parents.pop(span_id, None)
            if not parents:
                self.forget(trace_id)

    def end_all(self, spans: Iterable[AgentSpan]) -> None:
        """Note that spans have ended and arrived."""
        known = self._parents
        for span in spans:
            if span[0] in known:
                self.end(span[0], span[1])

    def of(self, traces: Iterable[TraceId]) -> Mapping[TraceId, Mapping[SpanId, SpanId | None]]:
        """Return the open spans of some traces, with their parents; traces without any are left out."""
        known = self._parents
        return {trace_id: known[trace_id] for trace_id in traces if trace_id in known}

    def forget(self, trace_id: TraceId) -> None:
        """Drop a trace."""
        self._parents.pop(trace_id, None)
        self._since.pop(trace_id, None)

    def expire(self, horizon: float, now: float, is_growing: Callable[[TraceId], bool]) -> None:
        """Drop traces of which no span has started since then, unless they grow."""
        while self._since:
            trace_id, since = next(iter(self._since.items()))
            if since > horizon:
                return
            if is_growing(trace_id):
                self._since[trace_id] = now
                self._since.move_to_end(trace_id)
            else:
                self.forget(trace_id)
