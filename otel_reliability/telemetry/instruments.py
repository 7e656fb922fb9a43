"""Observed instruments: asked for at a collection, all answered from one snapshot (DESIGN §6.4, §6.5).

They are created once, when a door is made, and never inside a callback: the SDK would deadlock.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Final, TypeAlias

from opentelemetry.metrics import CallbackOptions, Meter, Observation

from otel_reliability.telemetry.exemplar import NOWHERE
from otel_reliability.telemetry.guard import Guard
from otel_reliability.telemetry.names import Instrument

Point: TypeAlias = tuple[str, float, Mapping[str, str | bool]]
"""Name of the instrument, value, attributes."""
Snapshot: TypeAlias = dict[str, list[Observation]]

_OBSERVE: Final = Guard("a collection")


def snapshot(points: Iterable[Point]) -> Snapshot:
    """The points by instrument."""
    found: defaultdict[str, list[Observation]] = defaultdict(list)
    for name, value, attributes in points:
        found[name].append(Observation(value, attributes, NOWHERE))
    return dict(found)


class Observed:
    """The observed instruments of one meter.

    The first callback of a collection takes a snapshot, the others use it up. An instrument that is asked a second time
    marks the next collection: so it does not matter in which order the SDK asks, nor whether a collection broke off.
    """

    def __init__(self, meter: Meter, specs: Sequence[Instrument], take: Callable[[], Snapshot]) -> None:
        self._take = take
        self._names = frozenset(spec.name for spec in specs)
        self._unasked: set[str] = set()
        self._snapshot: Snapshot = {}
        for spec in specs:
            _CREATE[spec.kind](meter, spec, partial(self._answer, spec.name))

    def restart(self) -> None:
        """Forget the snapshot: a forked child has its own numbers."""
        self._unasked, self._snapshot = set(), {}

    def _answer(self, name: str, options: CallbackOptions) -> Iterable[Observation]:
        with _OBSERVE:
            if name in self._unasked:
                self._unasked.discard(name)
            else:
                self._unasked, self._snapshot = set(self._names - {name}), {}
                self._snapshot = self._take()
            return self._snapshot.pop(name, ())
        return ()


Answer: TypeAlias = Callable[[CallbackOptions], Iterable[Observation]]


def _gauge(meter: Meter, spec: Instrument, answer: Answer) -> None:
    meter.create_observable_gauge(spec.name, [answer], spec.unit, spec.description)


def _counter(meter: Meter, spec: Instrument, answer: Answer) -> None:
    meter.create_observable_counter(spec.name, [answer], spec.unit, spec.description)


def _up_down_counter(meter: Meter, spec: Instrument, answer: Answer) -> None:
    meter.create_observable_up_down_counter(spec.name, [answer], spec.unit, spec.description)


_CREATE: Final[Mapping[str, Callable[[Meter, Instrument, Answer], None]]] = {
    "gauge": _gauge,
    "counter": _counter,
    "up_down_counter": _up_down_counter,
}
