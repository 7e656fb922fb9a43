"""OTLP requests → agent spans → runs → full windows, beside protobuf's own parsing of the same bytes, which keeps nothing.

Every request is new: what has come before would be a duplicate. Runs close two seconds after their last span and settle a
minute later, as in a service; windows hold 100 runs and are full before anything is measured.
"""

from __future__ import annotations

import gc
from collections import deque
from collections.abc import Callable, Iterator
from typing import Final

from benchmarks.bench_decode import BARE, bare
from benchmarks.measure import Row, ratios, row, seconds
from benchmarks.payloads import SPANS, Traffic
from otel_reliability import conventions
from otel_reliability.config import ChangeSettings, Settings
from otel_reliability.conventions.reader import Reader
from otel_reliability.engine import Engine
from otel_reliability.service.answers import Encoding, Signal
from otel_reliability.service.decoded import Decoder
from otel_reliability.service.serve import GARBAGE

WARM: Final = 120
"""Requests after which every window is full and runs settle: 4 400 runs of ten agents, in 120 seconds."""
STOCK: Final = 120
"""Requests that are made at once, when those at hand are used up."""
BEGIN_NS: Final = 1_700_000_000_000_000_000


class Service:
    """What a service does with a request, on a clock that moves on by a second each."""

    def __init__(self, *, change: bool = False) -> None:
        settings = Settings(change=ChangeSettings(enabled=change))
        self._now = 0.0
        reader = Reader(settings, conventions.TABLE)
        self.engine = Engine(settings, clock=lambda: self._now, wall=None, reader=reader)
        self._decode = Decoder(settings, reader)

    def take(self, body: bytes) -> None:
        """One request, and the tick of its second."""
        self.engine.receive(self._decode(Signal.TRACES, Encoding.PROTOBUF, body).spans)
        self._now += 1.0
        self.engine.tick()
        self.engine.take_settled()


def endless(traffic: Traffic) -> Iterator[bytes]:
    """Requests that never repeat, made before they are needed."""
    stock: deque[bytes] = deque()
    while True:
        stock.extend(traffic.requests(STOCK))
        while stock:
            yield stock.popleft()


def serving(*, chaotic: bool, change: bool = False) -> Callable[[], object]:
    """The whole job, on a service whose windows are full."""
    service, requests = Service(change=change), endless(Traffic(chaotic=chaotic))
    for _ in range(WARM):
        service.take(next(requests))

    def work() -> None:
        service.take(next(requests))

    return work


def rows() -> list[Row]:
    """What the whole job costs, for habitual paths and for paths that are nearly always new."""
    gc.set_threshold(*GARBAGE)
    bodies = Traffic().requests(32)
    stable, chaotic, theirs = seconds(serving(chaotic=False), serving(chaotic=True), bare(bodies))
    name = "decode + assembly + all windows (100 runs, full), {}"
    return [
        row(name.format("stable paths"), ratios(stable, theirs), at_most=3.5, against=BARE),
        row(name.format("chaotic paths"), ratios(chaotic, theirs), at_most=3.5, against=BARE),
        row("the same, a span, stable paths", stable, unit="µs", scale=1e6 / SPANS, against="512 spans of agents"),
        row("the same, a span, chaotic paths", chaotic, unit="µs", scale=1e6 / SPANS, against="512 spans of agents"),
    ]
