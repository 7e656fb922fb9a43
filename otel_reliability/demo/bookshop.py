"""The demo's process: an SDK as any application sets it up, a fleet that acts under it, and an evaluator beside it."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import Final, Protocol

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.sampling import ALWAYS_ON

from otel_reliability.demo.fleet import RESOURCE, ROUNDS, perform
from otel_reliability.demo.stage import SECOND, SeededIds, Stage, Unfinished
from otel_reliability.model.span import Evaluation
from otel_reliability.sources import sdk
from otel_reliability.sources.otlp_write import logs_json, traces_json

ROUND: Final = 25
"""Seconds that a round takes on the stage, at most."""
LATENESS: Final = 3.0
"""Seconds after which a span that outlives its run ends: by then a service has closed the run."""
SPANS_A_LINE: Final = 50


class Evaluator(Protocol):
    """Takes judgements somewhere."""

    def judge(self, judgements: Sequence[Evaluation]) -> None: ...


class SpanFile(SpanExporter):
    """Writes spans and judgements as OTLP-JSON lines, as the Collector's file exporter does."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("w", encoding="utf-8")
        self._waiting: list[ReadableSpan] = []
        self.spans = 0
        """How many spans were written."""

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        if not self._file.closed:
            self._waiting.extend(spans)
        return SpanExportResult.SUCCESS

    def judge(self, judgements: Sequence[Evaluation]) -> None:
        """Write what has come since the last time, with these judgements behind it."""
        if self._file.closed:
            return
        raw = map(sdk.read, self._waiting)
        while line := list(islice(raw, SPANS_A_LINE)):
            self._file.write(json.dumps(traces_json(line)) + "\n")
        if judgements:
            self._file.write(json.dumps(logs_json(judgements)) + "\n")
        self._file.flush()
        self.spans += len(self._waiting)
        self._waiting = []

    def close(self) -> None:
        """Write no more."""
        self.judge(())
        self._file.close()

    def shutdown(self) -> None:
        self.close()


class Bookshop:
    """The fleet under an SDK. What its spans come to is up to `processors`; `evaluators` are told what was judged.

    The first rounds are of the last minutes, one after the other; those behind them are of now. Nothing here is global: no
    provider is set for the process. The same seed gives the same runs, and with the same `wall` the same spans.
    """

    def __init__(
        self,
        seed: int,
        processors: Iterable[SpanProcessor],
        evaluators: Iterable[Evaluator] = (),
        *,
        wall: Callable[[], int] = time.time_ns,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        dice = random.Random(seed)
        self._tracers = TracerProvider(
            sampler=ALWAYS_ON, resource=Resource(RESOURCE), id_generator=SeededIds(dice), shutdown_on_exit=False
        )
        for processor in processors:
            self._tracers.add_span_processor(processor)
        self._evaluators = list(evaluators)
        self._stage = Stage(self._tracers.get_tracer("otel_reliability.demo"), dice)
        self._wall, self._clock = wall, clock
        self._opened_ns = wall() - ROUNDS * ROUND * SECOND
        self._late: list[tuple[float, list[Unfinished]]] = []
        self.rounds = 0
        """Rounds that are over."""

    def round(self) -> None:
        """One turn of every agent."""
        opening, now_ns = self.rounds < ROUNDS, self._wall() - ROUND * SECOND
        self._stage.now_ns = self._opened_ns + self.rounds * ROUND * SECOND if opening else now_ns
        perform(self._stage, self.rounds)
        self._late.append((self._clock() + LATENESS, self._stage.unfinished))
        self._stage.unfinished = []
        self.rounds += 1
        self.end_late(self._clock())
        self._judge()

    def end_late(self, now: float | None = None) -> None:
        """End the spans that have outlived their runs for long enough; without `now` all of them."""
        while self._late and (now is None or self._late[0][0] <= now):
            for span, end_ns in self._late.pop(0)[1]:
                span.end(end_ns)

    @property
    def lateness(self) -> float:
        """Seconds until `end_late` has nothing left to wait for."""
        return max(0.0, self._late[-1][0] - self._clock()) if self._late else 0.0

    def close(self) -> None:
        """End what is unfinished, send what is left, and end the SDK."""
        self.end_late()
        self._judge()
        self._tracers.shutdown()

    def _judge(self) -> None:
        judgements, self._stage.judgements = self._stage.judgements, []
        for evaluator in self._evaluators:
            evaluator.judge(judgements)


def record(path: Path, seed: int, wall: Callable[[], int] = time.time_ns) -> int:
    """Leave the opening rounds of the fleet in a file, with no service and no waiting. Gives the number of spans."""
    file = SpanFile(path)
    shop = Bookshop(seed, [SimpleSpanProcessor(file)], [file], wall=wall)
    for _ in range(ROUNDS):
        shop.round()
    shop.close()
    return file.spans
