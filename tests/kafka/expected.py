"""What one process makes of the same spans: what workers are held to."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from math import isclose
from typing import Any, Final, TypeVar

from otel_reliability.config import LimitSettings, Settings
from otel_reliability.engine import Engine
from otel_reliability.loading import load
from otel_reliability.model.run import CloseReason, Run
from otel_reliability.model.span import AgentSpan, Evaluation, RawSpan
from otel_reliability.telemetry.exposition import Exposition, Registry
from otel_reliability.telemetry.prometheus import Prometheus
from otel_reliability.telemetry.series_recording import SeriesRecording
from tests.kafka.streams import plain
from tests.kafka.workers import SETTINGS, Worker
from tests.real.waiting import PATIENCE, NeverHappened, until

T = TypeVar("T")

OF_AGENTS: Final = re.compile(r"agent_reliability_\w+\{")
BY_TIME: Final = re.compile(r"agent_reliability_run_(score|path_distance|revisions)_")
"""Histograms of what the window said when a run was recorded: that depends on which runs were there
by then; and how often runs were told again, which depends on when their spans came.
"""


class Expected:
    """What the single process makes of spans: its runs, and what its `/metrics` tells of agents."""

    def __init__(
        self,
        spans: Iterable[RawSpan | AgentSpan],
        evaluations: Iterable[Evaluation] = (),
        over: Mapping[str, Any] | None = None,
    ) -> None:
        own = {
            name: value
            for name, value in {**SETTINGS, **(over or {})}.items()
            if name not in {"kafka", "service"}
        }
        settings = load(Settings, own, base=Settings(limits=LimitSettings(agents=20_000)))
        engine = Engine(settings, clock=lambda: 0.0, wall=None, places_return=True)
        book = Registry(lambda: 0)
        runs: list[Run] = []
        record = SeriesRecording(engine, book)
        engine.observers.append(
            lambda event, _: runs.append(event.run) if event.change.value == "final" else None
        )
        engine.receive(spans)
        engine.receive_evaluations(evaluations)
        # Where a test does not wait for the end of sessions, workers have not scored them.
        engine.flush(CloseReason.END_OF_INPUT if "sessions" in own else CloseReason.FLUSH)
        record.record()
        self.runs = {run.run_id: plain(run) for run in runs}
        self.numbers = numbers_of(
            "".join(Prometheus(Exposition(lambda: [(engine, book)], tuple), {}).text())
        )


def numbers_of(text: str) -> dict[str, float]:
    """What is told of agents, by series."""
    lines = [
        line for line in text.splitlines() if OF_AGENTS.match(line) and not BY_TIME.match(line)
    ]
    return {series: float(value) for series, _, value in (line.rpartition(" ") for line in lines)}


def told_together(aggregates: Sequence[Worker]) -> dict[str, float]:
    """What all workers of the second stage tell of agents; each series by one of them."""
    found = [numbers_of(worker.numbers()) for worker in aggregates]
    together = {series: value for numbers in found for series, value in numbers.items()}
    assert len(together) == sum(map(len, found)), "one writer a series"
    return together


def become(aggregates: Sequence[Worker], expected: Expected, patience: float = PATIENCE) -> None:
    """Wait until workers tell what one process tells."""
    with suppress(NeverHappened):
        until(
            lambda: not differing(told_together(aggregates), expected.numbers),
            "the numbers",
            patience=patience,
        )
    apart = differing(told_together(aggregates), expected.numbers)
    assert not apart, f"{len(apart)} series, such as {dict(list(apart.items())[:20])}"


def differing(
    found: Mapping[T, float], wanted: Mapping[T, float]
) -> dict[T, tuple[float | None, float | None]]:
    """What is not as wanted, by series. Sums of fractions may differ where they end, by the order
    of addition.

    >>> differing({"a": 0.1 + 0.2, "b": 1.0, "c": 0.0}, {"a": 0.3, "b": 2.0})
    {'b': (1.0, 2.0), 'c': (0.0, None)}
    """
    return {
        series: (found.get(series), wanted.get(series))
        for series in {**found, **wanted}
        if series not in found
        or series not in wanted
        or not isclose(found[series], wanted[series], rel_tol=1e-9, abs_tol=1e-12)
    }
