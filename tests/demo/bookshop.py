"""The demo's process: an SDK as any application sets it up, a fleet that acts under it, and an evaluator next to it."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Final, Protocol

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.sampling import ALWAYS_ON
from opentelemetry.trace import Span

from otel_reliability.model.span import Evaluation
from otel_reliability.sources import sdk
from otel_reliability.sources.otlp_write import logs_json, traces_json
from tests.demo.fleet import RESOURCE, ROUNDS, perform
from tests.demo.stage import SECOND, SeededIds, Stage

ROUND: Final = 25
"""Seconds of a round on the stage, at most."""
LATE_AFTER_S: Final = 3.0
"""Seconds after which a span that outlives its run ends: by then a service has closed the run."""
SPANS_PER_LINE: Final = 50


class Evaluator(Protocol):
    """Receives evaluations."""

    def judge(self, judgements: Sequence[Evaluation]) -> None: ...


class SpanFile(SpanExporter):
    """Writes spans and evaluations as OTLP-JSON lines, like the Collector's file exporter."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("w", encoding="utf-8")
        self._waiting: list[ReadableSpan] = []

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        if not self._file.closed:
            self._waiting.extend(spans)
        return SpanExportResult.SUCCESS

    def judge(self, judgements: Sequence[Evaluation]) -> None:
        """Write the spans since the last call, then these evaluations."""
        if self._file.closed:
            return
        raw = list(map(sdk.read, self._waiting))
        lines = [traces_json(raw[at : at + SPANS_PER_LINE]) for at in range(0, len(raw), SPANS_PER_LINE)]
        lines += [logs_json(judgements)] if judgements else []
        self._file.writelines(f"{json.dumps(line)}\n" for line in lines)
        self._file.flush()
        self._waiting = []

    def shutdown(self) -> None:
        """Write the rest, and close the file."""
        self.judge(())
        self._file.close()


class Bookshop:
    """The fleet under an SDK with these `processors`; `evaluators` receive the evaluations.

    The first rounds are of the last minutes, one after the other; later ones are of now. No global provider is set. The same seed
    gives the same runs, and with the same `wall` the same spans.
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
        self._late: list[tuple[float, list[tuple[Span, int]]]] = []
        self.rounds = 0
        """Rounds that are over."""

    def round(self) -> None:
        """Let every agent do one round."""
        opening, now_ns = self.rounds < ROUNDS, self._wall() - ROUND * SECOND
        self._stage.now_ns = self._opened_ns + self.rounds * ROUND * SECOND if opening else now_ns
        perform(self._stage, self.rounds)
        self._late.append((self._clock() + LATE_AFTER_S, self._stage.unfinished))
        self._stage.unfinished = []
        self.rounds += 1
        self.end_late(self._clock())
        self._evaluate()

    def end_late(self, now: float | None = None) -> None:
        """End the spans that have outlived their runs for long enough; without `now` all of them."""
        while self._late and (now is None or self._late[0][0] <= now):
            for span, end_ns in self._late.pop(0)[1]:
                span.end(end_ns)

    @property
    def lateness(self) -> float:
        """Seconds until `end_late` has ended all spans."""
        return max(0.0, self._late[-1][0] - self._clock()) if self._late else 0.0

    def close(self) -> None:
        """End unfinished spans, export the rest, and shut the SDK down."""
        self.end_late()
        self._evaluate()
        self._tracers.shutdown()

    def _evaluate(self) -> None:
        evaluations, self._stage.evaluations = self._stage.evaluations, []
        for evaluator in self._evaluators:
            evaluator.judge(evaluations)


def record(path: Path, seed: int, wall: Callable[[], int] = time.time_ns) -> None:
    """Write the first rounds of the fleet to a file, without a service and without waiting."""
    file = SpanFile(path)
    shop = Bookshop(seed, [SimpleSpanProcessor(file)], [file], wall=wall)
    for _ in range(ROUNDS):
        shop.round()
    shop.close()
