"""OTLP requests → agent spans → runs → full windows, beside protobuf's own parsing of the same bytes, which keeps nothing.

Every request is new: what has come before would be a duplicate. Runs close two seconds after their last span and settle a
minute later, as in a service; windows hold 100 runs and are full before anything is measured. Every stability metric of every
agent is read every twelve requests, which are twelve seconds here: what windows leave until somebody asks is in it.
"""

from __future__ import annotations

import os
from typing import Final

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from benchmarks.bench_decode import BARE, by
from benchmarks.fresh import Fed
from benchmarks.fresh import seconds as in_turn
from benchmarks.measure import Row, ratios, row
from benchmarks.payloads import SPANS, Traffic
from otel_reliability import conventions
from otel_reliability.config import ChangeSettings, Settings
from otel_reliability.conventions.reader import Reader
from otel_reliability.engine import Engine
from otel_reliability.metrics.stability import ROWS
from otel_reliability.service.answers import Encoding, Signal
from otel_reliability.service.decoded import Decoder
from otel_reliability.service.memory import look_seldom
from otel_reliability.windows.fleet import Fleet

WARM: Final = 120
"""Requests after which every window is full and runs settle: 4 400 runs of ten agents, in 120 seconds."""
REQUESTS: Final = 12
"""Requests of one measurement, and seconds between two readings."""
AGED: Final = 31
"""Rounds in which an old service and a young one take turns: single ones differ by a third."""
EARLY: Final = 100_000
LATE: Final = int(os.environ.get("BENCH_SPANS", "300000"))
"""Spans after which the cost of a span is compared with that after the first hundred thousand."""


class Service:
    """What a service does with a request, on a clock that moves on by a second each."""

    def __init__(self, *, compiled: bool = True) -> None:
        settings = Settings(change=ChangeSettings(enabled=False))
        self._now, self._taken = 0.0, 0
        reader = Reader(settings, conventions.TABLE)
        self.engine = Engine(settings, clock=lambda: self._now, wall=None, reader=reader)
        self._decode = Decoder(reader, native=compiled)

    def take(self, body: bytes) -> None:
        """One request, and the tick of its second."""
        self.engine.receive(self._decode(Signal.TRACES, Encoding.PROTOBUF, body).spans)
        self._now += 1.0
        self.engine.tick()
        self.engine.take_settled()
        self.engine.take_scored()
        self._taken += 1
        if not self._taken % REQUESTS:
            self.engine.read(_read)


def serving(*, chaotic: bool = False, compiled: bool = True, web: bool = False) -> Fed[bytes]:
    """The whole job, on a service whose windows are full."""
    service, traffic = Service(compiled=compiled), Traffic(chaotic=chaotic, web=web)
    for body in traffic.requests(WARM):
        service.take(body)
    return Fed(service.take, lambda: traffic.requests(1)[0])


def _read(fleet: Fleet) -> None:
    for agent in map(fleet.agent, fleet.keys()):
        for window in () if agent is None else agent.windows.values():
            for number in ROWS:
                window.reading(number.spec.name)


def aged(late: int) -> list[float]:
    """What a request costs after so many spans, over what it cost after the first of them: ratios of neighbouring rounds.

    A young service and an old one are measured in turns, so that the machine's moods hit both. Both get runs of the same agents:
    with others' habits there would be more runs in a request, or fewer.
    """
    old, young = Service(), Service()
    traffic, other = Traffic(), Traffic()
    for _ in range(late // SPANS):
        old.take(traffic.requests(1)[0])
    for _ in range(EARLY // SPANS):
        young.take(other.requests(1)[0])
    of_old, of_young = in_turn(
        Fed(old.take, lambda: traffic.requests(1)[0]),
        Fed(young.take, lambda: other.requests(1)[0]),
        each=REQUESTS,
        rounds=AGED,
    )
    return ratios(of_old, of_young)


def rows() -> list[Row]:
    """What the whole job costs, for habitual paths and for paths that are nearly always new, and whether that lasts."""
    look_seldom()
    parse, requests = ExportTraceServiceRequest.FromString, Traffic(seed=9)
    theirs = Fed(parse, lambda: requests.requests(1)[0])
    # Works that run in turns share the processor's caches, and a service in Python takes most of them.
    stable, chaotic, bare = in_turn(serving(), serving(chaotic=True), theirs, each=REQUESTS)
    web, python, beside = in_turn(serving(web=True), serving(compiled=False), theirs, each=REQUESTS)
    name = "decode + assembly + all windows (100 runs, full), {}"
    return [
        row(name.format("stable paths"), ratios(stable, bare), at_most=3.5, against=by(BARE)),
        row(name.format("chaotic paths"), ratios(chaotic, bare), at_most=3.5, against=by(BARE)),
        row("the same, stable paths, decoded in Python", ratios(python, beside), against=BARE),
        row("the same, stable paths, below spans of a web server", ratios(web, beside), against=by(BARE)),
        row("the same, a span, stable paths", stable, unit="µs", scale=1e6 / SPANS, against="512 spans of agents"),
        row("the same, a span, chaotic paths", chaotic, unit="µs", scale=1e6 / SPANS, against="512 spans of agents"),
        row(f"CPU a span after {LATE:,} spans".replace(",", " "), aged(LATE), at_most=1.1, against="after 100 000"),
    ]
