"""Clocks of services that differ, estimated from the spans that one called in another.

A call that a service answers lies within the span of its caller. Where clocks differ by an offset,
all spans of the one service are shifted: each call that is shorter than its caller's span bounds
the offset from both sides, and what all calls of two services allow is the estimate (the
intersection of their bounds; its middle, as NTP computes it). A call that ends after its caller may
also have been made without waiting for the answer, so it counts only between a CLIENT and a SERVER
span.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from statistics import median
from typing import Final, NamedTuple

from otel_reliability.model.span import (
    KIND_CLIENT,
    KIND_CONSUMER,
    KIND_PRODUCER,
    KIND_SERVER,
    RawSpan,
    SpanRef,
)

MIN_SKEW_NS: Final = 1_000_000
"""Nanoseconds below which a difference is none: clocks have no better resolution than that."""
MAX_SPANS: Final = 50_000
"""Spans that are remembered for those they called, and that wait for their callers, the latest."""
MAX_WAITING: Final = 20
"""Calls of one span that wait for it, the first: it may never come."""
MAX_PAIRS: Final = 1_000
MAX_CALLS: Final = 100
"""Calls of two services that are compared, the first."""
_NS: Final = 1e9


class ClockSkew(NamedTuple):
    """The clock of a service against that of a service that called it. `ahead_s`: seconds that it
    is ahead, negative where it is behind; `uncertainty_s`: seconds by which this may be wrong.
    """

    service: str
    caller: str
    ahead_s: float
    uncertainty_s: float
    calls: int


class _Known(NamedTuple):
    service: str
    start_ns: int
    end_ns: int
    kind: int


class Clocks:
    """Compares the clocks of the services of a recording, whose spans may come in any order.

    >>> from otel_reliability.testing import span
    >>> clocks = Clocks()
    >>> clocks.see([span(1, start=700, end=710), span(2, 1, start=103, end=107)])
    >>> clocks.skews()  # of one service
    []
    """

    def __init__(self) -> None:
        self._spans: OrderedDict[SpanRef, _Known] = OrderedDict()
        self._waiting: OrderedDict[SpanRef, list[_Known]] = OrderedDict()
        self._bounds: dict[tuple[str, str], list[tuple[int, int]]] = {}

    def see(self, spans: Iterable[RawSpan]) -> None:
        """Compare each span with its caller's, and with those that it called."""
        for span in spans:
            here = _Known(span.resource.service_name, span.start_ns, span.end_ns, span.span_kind)
            ref = (span.trace_id, span.span_id)
            self._spans[ref] = here
            if len(self._spans) > MAX_SPANS:
                self._spans.popitem(last=False)
            for called in self._waiting.pop(ref, ()):
                self._compare(here, called)
            if span.parent_id is None:
                continue
            over = (span.trace_id, span.parent_id)
            caller = self._spans.get(over)
            if caller is not None:
                self._compare(caller, here)
                continue
            waiting = self._waiting.setdefault(over, [])
            if len(waiting) < MAX_WAITING:
                waiting.append(here)
            if len(self._waiting) > MAX_SPANS:
                self._waiting.popitem(last=False)

    def skews(self) -> list[ClockSkew]:
        """Return the services whose clock differs from a caller's, greatest difference first."""
        found = [
            skew
            for (caller, service), bounds in self._bounds.items()
            if (skew := _skew(service, caller, bounds)) is not None
        ]
        return sorted(found, key=lambda one: (-abs(one.ahead_s), one.service, one.caller))

    def _compare(self, caller: _Known, called: _Known) -> None:
        if caller.service == called.service or not (caller.service and called.service):
            return
        if caller.kind == KIND_PRODUCER or called.kind == KIND_CONSUMER:
            return
        least = called.end_ns - caller.end_ns
        most = called.start_ns - caller.start_ns
        is_waited_for = caller.kind == KIND_CLIENT or called.kind == KIND_SERVER
        if least > most or (least > 0 and not is_waited_for):
            return
        pair = (caller.service, called.service)
        if pair in self._bounds or len(self._bounds) < MAX_PAIRS:
            bounds = self._bounds.setdefault(pair, [])
            if len(bounds) < MAX_CALLS:
                bounds.append((least, most))


def _skew(service: str, caller: str, bounds: list[tuple[int, int]]) -> ClockSkew | None:
    """Return how far a clock is ahead by the bounds of each call; None where no call says that it
    is at all. Where the calls exclude one another (a clock was set meanwhile), the median counts.
    """
    least = max(low for low, _ in bounds)
    most = min(high for _, high in bounds)
    if least > most:
        least, most = (int(median(each)) for each in zip(*bounds, strict=True))
    if least <= MIN_SKEW_NS and most >= -MIN_SKEW_NS:
        return None
    ahead = (least + most) / 2
    return ClockSkew(
        service, caller, round(ahead / _NS, 3), round((most - least) / 2 / _NS, 3), len(bounds)
    )
