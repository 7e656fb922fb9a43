"""What one process makes of the same spans: what workers are held to."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Final

import pytest

from otel_reliability.config import LimitSettings, Settings
from otel_reliability.engine import Engine
from otel_reliability.model.run import CloseReason, Run
from otel_reliability.model.span import RawSpan
from otel_reliability.service.recording import Recording
from otel_reliability.telemetry.exposition import Exposition
from otel_reliability.telemetry.prometheus import Prometheus
from otel_reliability.telemetry.series import Book
from tests.kafka.streams import plain
from tests.kafka.workers import SETTINGS, Worker
from tests.real.waiting import NeverHappened, until

OF_AGENTS: Final = re.compile(r"agent_reliability_\w+\{")
BY_TIME: Final = re.compile(r"agent_reliability_run_(score|path_distance)_")
"""Histograms of what the window said when a run was recorded: that depends on which runs were there by then."""


class Expected:
    """What the single process makes of spans: its runs, and what its `/metrics` tells of agents."""

    def __init__(self, spans: Iterable[RawSpan]) -> None:
        own = {name: value for name, value in SETTINGS.items() if name != "kafka"}
        settings = Settings.from_mapping(own, base=Settings(limits=LimitSettings(agents=20_000)))
        engine = Engine(settings, clock=lambda: 0.0, wall=None, places_return=True)
        book = Book(lambda: 0)
        runs: list[Run] = []
        record = Recording(engine, book)
        engine.observers.append(lambda event, _: runs.append(event.run) if event.change.value == "settled" else None)
        engine.receive(spans)
        engine.flush(CloseReason.FLUSH)
        record()
        self.runs = {run.run_id: plain(run) for run in runs}
        self.numbers = numbers_of("".join(Prometheus(Exposition(engine, book, tuple), {}).text()))


def numbers_of(text: str) -> dict[str, float]:
    """What is told of agents, by series."""
    lines = [line for line in text.splitlines() if OF_AGENTS.match(line) and not BY_TIME.match(line)]
    return {series: float(value) for series, _, value in (line.rpartition(" ") for line in lines)}


def told_together(aggregates: Sequence[Worker]) -> dict[str, float]:
    """What all workers of the second stage tell of agents; each series by one of them."""
    found = [numbers_of(worker.numbers()) for worker in aggregates]
    together = {series: value for numbers in found for series, value in numbers.items()}
    assert len(together) == sum(map(len, found)), "one writer a series"
    return together


def become(aggregates: Sequence[Worker], expected: Expected, patience: float = 30.0) -> None:
    """Wait until workers tell what one process tells. Sums of fractions may differ where they end, by the order of addition."""
    wanted = pytest.approx(expected.numbers, rel=1e-9)
    with suppress(NeverHappened):
        until(lambda: told_together(aggregates) == wanted, "the numbers", patience=patience)
    assert told_together(aggregates) == wanted
