"""The demo's process: an SDK as any application sets it up, a fleet that acts under it, and an
evaluator next to it.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_ON
from opentelemetry.trace import Span

from otel_reliability.model.span import Evaluation, RawSpan
from otel_reliability.sources import sdk
from otel_reliability.sources.otlp_write import logs_json, traces_json
from tests.demo.fleet import RESOURCE, ROUNDS, perform
from tests.demo.stage import SECOND, SeededIds, Stage

ROUND: Final = 25
"""Seconds of a round on the stage, at most."""
LATE_AFTER_S: Final = 3.0
"""Seconds after which a span that outlives its run ends: by then a service has closed the run."""


class Bookshop:
    """The fleet under an SDK, with these `processors` too.

    The first rounds are of the last minutes, one after the other; later ones are of now. No global
    provider is set. The same seed gives the same runs, and with the same `wall` the same spans.
    """

    def __init__(
        self,
        seed: int,
        processors: Iterable[SpanProcessor] = (),
        *,
        wall: Callable[[], int] = time.time_ns,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        dice = random.Random(seed)
        self._tracers = TracerProvider(
            sampler=ALWAYS_ON,
            resource=Resource(RESOURCE),
            id_generator=SeededIds(dice),
            shutdown_on_exit=False,
        )
        self._kept = InMemorySpanExporter()
        for processor in (SimpleSpanProcessor(self._kept), *processors):
            self._tracers.add_span_processor(processor)
        self._stage = Stage(self._tracers.get_tracer("otel_reliability.demo"), dice)
        self._wall = wall
        self._clock = clock
        self._opened_ns = wall() - ROUNDS * ROUND * SECOND
        self._late: list[tuple[float, list[tuple[Span, int]]]] = []
        self._rounds = 0

    def round(self) -> None:
        opening = self._rounds < ROUNDS
        now_ns = self._wall() - ROUND * SECOND
        self._stage.now_ns = self._opened_ns + self._rounds * ROUND * SECOND if opening else now_ns
        perform(self._stage, self._rounds)
        self._late.append((self._clock() + LATE_AFTER_S, self._stage.unfinished))
        self._stage.unfinished = []
        self._rounds += 1
        self.end_late(self._clock())

    def end_late(self, now: float | None = None) -> None:
        """End the spans that have outlived their runs for long enough; without `now`
        all of them.
        """
        while self._late and (now is None or self._late[0][0] <= now):
            for span, end_ns in self._late.pop(0)[1]:
                span.end(end_ns)

    def ended(self) -> tuple[list[RawSpan], list[Evaluation]]:
        """Return the spans that ended, and the evaluations that were made, since the last call."""
        spans = self._kept.get_finished_spans()
        self._kept.clear()
        evaluations = self._stage.evaluations
        self._stage.evaluations = []
        return list(map(sdk.read, spans)), evaluations

    def close(self) -> None:
        self.end_late()
        self._tracers.shutdown()


def write(shop: Bookshop, path: Path) -> None:
    """Write the first rounds to a file of OTLP-JSON lines, like the Collector's file exporter, and
    close the shop.
    """
    with path.open("w", encoding="utf-8") as file:
        for number in range(1, ROUNDS + 1):
            shop.round()
            if number == ROUNDS:
                shop.close()
            spans, evaluations = shop.ended()
            lines = [traces_json(spans), *([logs_json(evaluations)] if evaluations else ())]
            file.writelines(f"{json.dumps(line)}\n" for line in lines)
