"""Agents' gauges as OTLP points, and which of their series have ended since they were last sent."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple, TypeAlias

from otel_reliability.model.run import AgentKey
from otel_reliability.telemetry import names
from otel_reliability.telemetry import otlp_bytes as wire
from otel_reliability.telemetry.attributes import of_agent
from otel_reliability.telemetry.exposition import FULL_NAMES, GAUGES
from otel_reliability.telemetry.points import Series, Shown

NUMBER: Final = 7
"""The field of attributes in number points."""

Own: TypeAlias = tuple[tuple[str, str], ...]
"""The attributes of one number of an agent: a tier, a k."""
Place: TypeAlias = tuple[AgentKey, str | None]

_MOST_OWN: Final = 4_096
_double: Final = struct.Struct("<d").pack
_VALUE_AND_TIME: Final = 18
"""Bytes of a value and of a time, each with its field's number."""


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

    def write(self, slices: Iterable[list[Shown]], moment: bytes) -> dict[str, list[bytes]]:
        """The points of all agents, as fields, by instrument."""
        points: dict[str, list[bytes]] = {name: [] for name in GAUGES}
        of_metrics = {metric: points[name] for metric, name in FULL_NAMES.items()}
        self._telling = {}
        for some in slices:
            for shown in some:
                agent = self._told_now(shown)
                self._write(of_metrics, agent, moment)
                for name, own, value in shown.others:
                    points[name].append(self._start(agent.labels, own) + _double(value) + moment)
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

    def _told_now(self, shown: Shown) -> _Agent:
        """What is told of an agent in a window, and what it no longer has."""
        place = (shown.key, shown.window)
        before = self._told.get(place)
        labels = _labels_of(shown) if before is None else before.labels
        now = self._telling[place] = _Agent(labels, shown.series, shown.others)
        if before is not None and (before.series is not now.series or len(before.others) != len(now.others)):
            self._end(place, before, now.names())
        return now

    def _write(self, of_metrics: Mapping[str, list[bytes]], agent: _Agent, moment: bytes) -> None:
        """The points of a window. All but those with attributes of their own begin alike."""
        start = self._start(agent.labels, ())
        for spec, own, reading in agent.series:
            if own:
                of_metrics[spec.name].append(self._start(agent.labels, own) + _double(reading.value) + moment)
            else:
                of_metrics[spec.name].append(start + _double(reading.value) + moment)

    def _start(self, labels: bytes, own: Own) -> bytes:
        """A point up to its value: its length, which value and time are part of, and its attributes."""
        attributes = labels + self._fields(own) if own else labels
        return b"\x0a" + wire.varint(len(attributes) + _VALUE_AND_TIME) + attributes + b"\x21"

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
