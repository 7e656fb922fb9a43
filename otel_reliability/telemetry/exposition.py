"""All that is told, as one stream that the writers of every format read: agents' gauges, counters and histograms, ourselves.

Names and values are the same in every format because there is one source of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from otel_reliability import metrics
from otel_reliability.engine import Engine
from otel_reliability.telemetry import names
from otel_reliability.telemetry.instruments import Point
from otel_reliability.telemetry.names import Instrument
from otel_reliability.telemetry.points import Shown, slices
from otel_reliability.telemetry.series import Book, Cell, Labels, Written

GAUGES: Final[Mapping[str, Instrument]] = {spec.name: spec for spec in names.gauges()}
OWN: Final[Mapping[str, Instrument]] = {spec.name: spec for spec in (*names.SELF, *names.SERVICE, *names.KAFKA)}
FULL_NAMES: Final[Mapping[str, str]] = {spec.name: names.PREFIX + spec.name for spec in metrics.ALL_SPECS}
"""The instrument of each metric of the table."""


class Exposition:
    """What is told of one engine and its book. `own` gives self-telemetry. Without `agents`, only that is told."""

    def __init__(self, engine: Engine, book: Book, own: Callable[[], Iterable[Point]], *, agents: bool = True) -> None:
        self._engine, self._book, self._own, self._agents = engine, book, own, agents

    @property
    def book(self) -> Book:
        """The counters and histograms."""
        return self._book

    def gauges(self) -> Iterator[list[Shown]]:
        """Agents' gauges, some agents at a time."""
        return slices(self._engine) if self._agents else iter(())

    def cells(self, write: Callable[[Instrument, Labels, Cell], Written]) -> Iterator[tuple[Instrument, list[Written]]]:
        """Counters and histograms as `write` writes them, some series at a time."""
        return self._book.slices(write) if self._agents else iter(())

    def own(self) -> dict[str, list[Point]]:
        """Self-telemetry, by instrument."""
        found: dict[str, list[Point]] = {}
        for point in self._own():
            found.setdefault(point[0], []).append(point)
        return found
