"""Agents' gauges as OTLP points, and which of their series have ended since they were last sent."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple, TypeAlias

from otel_reliability.model.run import AgentKey
from otel_reliability.telemetry import names
from otel_reliability.telemetry import otlp_bytes as wire
from otel_reliability.telemetry.attributes import of_agent
from otel_reliability.telemetry.exposition import FULL_NAMES, GAUGES
from otel_reliability.telemetry.otlp_packer import Point
from otel_reliability.telemetry.points import Series, Shown

NUMBER: Final = 7
"""The field of attributes in number points."""

Own: TypeAlias = tuple[tuple[str, str], ...]
"""The attributes of one number of an agent: a tier, a k."""
Place: TypeAlias = tuple[AgentKey, str | None]

_MOST_OWN: Final = 4_096
_double: Final = struct.Struct("<d").pack
_SHORT: Final = 4_096
_HEADS: Final = tuple(b"\x0a" + wire.varint(size) for size in range(_SHORT))
"""What stands before a point of each size: the field's number and length."""


class _Agent(NamedTuple):
    """What was told of an agent in a window. `labels` are its attributes, as fields."""

    labels: bytes
    series: Series
    others: tuple[tuple[str, Own, float], ...]

    def names(self) -> frozenset[tuple[str, Own]]:
        """Its series."""
        found = ((FULL_NAMES[spec.name], own) for spec, own, _ in self.series)
        return frozenset((*found, *((name, own) for name, own, _ in self.others)))


class Gauges:
    """Writes points, and remembers what their receiver was told."""

    def __init__(self) -> None:
        self._told: dict[Place, _Agent] = {}
        self._telling: dict[Place, _Agent] = {}
        self._ended: dict[tuple[Place, str, Own], bytes] = {}
        self._own: dict[Own, bytes] = {}

    def write(self, slices: Iterable[list[Shown]], moment: bytes) -> dict[str, list[Point]]:
        """The points of all agents, by instrument."""
        points: dict[str, list[Point]] = {name: [] for name in GAUGES}
        self._telling = {}
        for some in slices:
            for shown in some:
                self._write(points, shown, moment)
        for place in self._told.keys() - self._telling.keys():
            self._end(place, self._told[place], frozenset())
        return points

    def ended(self) -> Iterator[tuple[str, bytes]]:
        """The series of which is to be told that they are over: instrument, and attributes as fields."""
        for (place, name, own), labels in self._ended.items():
            now = self._telling.get(place)
            if now is None or (name, own) not in now.names():
                yield name, labels

    def done(self) -> None:
        """The receiver has taken all that was written, and what ended."""
        self._told = self._telling
        self._ended.clear()

    def _write(self, points: dict[str, list[Point]], shown: Shown, moment: bytes) -> None:
        place = (shown.key, shown.window)
        before = self._told.get(place)
        labels = _labels_of(shown) if before is None else before.labels
        now = self._telling[place] = _Agent(labels, shown.series, shown.others)
        for spec, own, reading in shown.series:
            point = labels + (self._fields(own) if own else b"") + b"\x21" + _double(reading.value) + moment
            size = len(point)
            head = _HEADS[size] if size < _SHORT else b"\x0a" + wire.varint(size)
            points[FULL_NAMES[spec.name]].append((head + point, None))
        for name, own, value in shown.others:
            points[name].append((wire.field(1, labels + self._fields(own) + b"\x21" + _double(value) + moment), None))
        if before is not None and (before.series is not now.series or len(before.others) != len(now.others)):
            self._end(place, before, now.names())

    def _end(self, place: Place, gone: _Agent, still: frozenset[tuple[str, Own]]) -> None:
        for name, own in gone.names() - still:
            self._ended[place, name, own] = gone.labels + self._fields(own)

    def _fields(self, own: Own) -> bytes:
        """Attributes of one number as fields: there are few of them, so they are kept."""
        found = self._own.get(own)
        if found is None:
            if len(self._own) >= _MOST_OWN:
                self._own.clear()
            found = self._own[own] = wire.attributes(NUMBER, own)
        return found


def _labels_of(shown: Shown) -> bytes:
    window = () if shown.window is None else ((names.WINDOW, shown.window),)
    return wire.attributes(NUMBER, (*of_agent(shown.key).items(), *window))
