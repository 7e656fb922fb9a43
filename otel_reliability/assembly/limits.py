"""Limits of assembly: which traces close, become final or are forgotten where it is too much.

Decides only; the lifecycle closes. Above a limit, one 32nd more than needed goes, so that not every
span exceeds it again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from math import inf
from typing import Final

from otel_reliability.assembly.accounts import (
    EXCESS_EVALUATION,
    EXCESS_IDS,
    EXCESS_OTHERS,
    EXCESS_REOPENABLE,
    NO_MEMORY,
    Accounts,
)
from otel_reliability.assembly.buffers import Buffers, TraceBuffer
from otel_reliability.assembly.intake import Intake
from otel_reliability.config import Settings
from otel_reliability.model.limit import Limit
from otel_reliability.model.run import CloseReason
from otel_reliability.model.span import AgentSpan

SPAN_BYTES: Final = 900
"""Estimated bytes of an agent span with its facts."""
_SHARE: Final = 32
_MAX_SEEN: Final = 1_000
"""Open traces, the oldest, of which the heaviest are closed for a hurried caller."""


class Limits:
    """The limits of one assembler."""

    def __init__(
        self, settings: Settings, buffers: Buffers, intake: Intake, accounts: Accounts
    ) -> None:
        self._limits = settings.limits
        self._remember = settings.assembly.remember
        self._buffers = buffers
        self._memory = buffers.memory
        self._intake = intake
        self._accounts = accounts

    @property
    def table(self) -> tuple[Limit, ...]:
        """Each limit with its use and its hits."""
        limits = self._limits
        buffers = self._buffers
        losses = self._accounts.losses

        def closed(reason: CloseReason) -> int:
            return self._accounts.closed[reason.value]

        return (
            Limit(
                "open_runs",
                len(buffers.growing),
                limits.open_runs,
                closed(CloseReason.OPEN_RUNS),
            ),
            Limit(
                "open_bytes",
                buffers.open_spans * SPAN_BYTES,
                limits.open_bytes,
                closed(CloseReason.MEMORY),
            ),
            Limit(
                "reopenable_bytes",
                buffers.reopenable_spans * SPAN_BYTES,
                limits.reopenable_bytes,
                losses[EXCESS_REOPENABLE],
            ),
            Limit(
                "other_spans",
                buffers.other_spans + self._memory.spans,
                limits.other_spans,
                losses[EXCESS_OTHERS],
            ),
            Limit(
                "closed_ids",
                self._memory.ids,
                limits.closed_ids,
                losses[EXCESS_IDS],
            ),
            Limit(
                "waiting_evaluations",
                self._intake.waiting.count,
                limits.evaluations,
                losses[EXCESS_EVALUATION],
            ),
            Limit(
                "run_spans",
                None,
                limits.span_limit,
                closed(CloseReason.SPAN_LIMIT),
            ),
        )

    def fitting(self, spans: Sequence[AgentSpan], max_spans: int) -> Sequence[AgentSpan]:
        """Return the spans that there is memory for. Above the limit those of traces with more
        than `max_spans` are refused and counted: a hurried caller does not close these.
        """
        buffers = self._buffers
        if buffers.open_spans * SPAN_BYTES <= self._limits.open_bytes:
            return spans
        taken: list[AgentSpan] = []
        for span in spans:
            buffer = buffers.get(span.trace_id)
            if buffer is None or len(buffer.spans) <= max_spans:
                taken.append(span)
            else:
                self._intake.opened.end(span.trace_id, span.span_id)
        self._accounts.spans[NO_MEMORY] += len(spans) - len(taken)
        return taken

    def to_close(self, spans: float, max_spans: float) -> Iterator[tuple[TraceBuffer, CloseReason]]:
        """Yield the traces to close at once and why, the heaviest first, of equals the oldest: for
        each limit those that bring it to so many `spans`, at most. A trace that grows again when
        it was closed is yielded again. Those with more than `max_spans` are left out.
        """
        limits = self._limits
        buffers = self._buffers
        too_many = len(buffers.growing) - limits.open_runs
        if too_many > 0:
            number = too_many + limits.open_runs // _SHARE
            for buffer in self._heaviest(number, 0, spans, max_spans):
                yield buffer, CloseReason.OPEN_RUNS
        too_large = buffers.open_spans * SPAN_BYTES - limits.open_bytes
        if too_large > 0:
            size = too_large + limits.open_bytes // _SHARE
            for buffer in self._heaviest(0, size, spans, max_spans):
                yield buffer, CloseReason.MEMORY

    def _heaviest(
        self, number: int, size: int, spans: float, max_spans: float
    ) -> Iterator[TraceBuffer]:
        growing = self._buffers.growing
        seen = growing if max_spans == inf else islice(growing, _MAX_SEEN)
        candidates = [buffer for buffer in seen if len(buffer.spans) <= max_spans]
        candidates.sort(key=lambda buffer: (-buffer.agent_spans, buffer.born))
        for buffer in candidates:
            if (number <= 0 and size <= 0) or spans <= 0:
                return
            if buffer in growing:
                spans -= 1 + buffer.agent_spans
                number -= 1
                size -= buffer.agent_spans * SPAN_BYTES
                while buffer in growing:
                    yield buffer

    def to_finalize(self, max_spans: float) -> Iterator[TraceBuffer]:
        """Yield the closed traces that must become final at once, the first to be closed first, up
        to one with more than `max_spans`.
        """
        buffers = self._buffers
        limit = self._limits.reopenable_bytes
        while buffers.reopenable and buffers.reopenable_spans * SPAN_BYTES > limit:
            first = next(iter(buffers.reopenable))
            if len(first.spans) > max_spans:
                return
            yield first
            self._accounts.losses[EXCESS_REOPENABLE] += 1

    # --- Forgetting -------------------------------------------------------------------------------

    def forget(self, now: float, most: float) -> None:
        """Forget traces in time, and the oldest where too many ids are remembered: of each at most
        so many. Forget evaluations that waited too long too.
        """
        limits = self._limits
        buffers = self._buffers
        memory = self._memory
        opened = self._intake.opened
        horizon = now - self._remember
        left = most
        while left > 0 and memory.forget_oldest(horizon):
            left -= 1
        if buffers.other_spans + memory.spans >= limits.other_spans:
            self._forget_oldest(
                lambda: buffers.other_spans + memory.spans < limits.other_spans * (1 - 1 / _SHARE),
                most,
            )
        if memory.ids > limits.closed_ids:
            self._forget_oldest(lambda: memory.ids <= limits.closed_ids * (1 - 1 / _SHARE), most)
            if most == inf:
                self._forget_live_ids(memory.ids - limits.closed_ids)
        if self._intake.waiting.count:
            self._intake.waiting.expire(now)
        opened.expire(horizon, now, lambda trace_id: buffers.get(trace_id) in buffers.growing)

    def _forget_oldest(self, is_enough: Callable[[], bool], most: float) -> None:
        while most > 0 and not is_enough() and self._memory.forget_oldest():
            self._accounts.losses[EXCESS_IDS] += 1
            most -= 1

    def _forget_live_ids(self, number: int) -> None:
        """Forget ids of final runs of traces of which spans still arrive, the most numerous
        first.
        """
        if number <= 0:
            return
        self._accounts.losses[EXCESS_IDS] += 1
        live = [one for buffer in self._buffers for one in buffer.final_ids.values()]
        for ids in [
            ids for one in sorted(live, key=len, reverse=True) for ids in (one.ids, one.anchors)
        ]:
            while ids and number > 0:
                ids.pop()
                number -= 1
                self._memory.ids -= 1
