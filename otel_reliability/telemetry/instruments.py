"""Observed instruments: asked for at a collection, all answered from one snapshot.

They are created once, when a door is made, and never inside a callback: the SDK would deadlock.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final, TypeAlias

from opentelemetry.metrics import CallbackOptions, CallbackT, Meter, Observation

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


class _Callbacks(Sequence[CallbackT]):
    """The one callback of an instrument, and a word when somebody looks for it: the SDK does when it makes the instrument.

    A door may be made before the MeterProvider; then the API keeps a stand-in, and the instrument is made when the provider is
    set. That is when our exit hook must be registered, so that it runs before the provider's.
    """

    def __init__(self, callback: CallbackT, made: Callable[[], None]) -> None:
        self._callback, self._made = callback, made

    def __len__(self) -> int:
        return 1

    def __getitem__(self, index: Any) -> Any:
        self._made()
        only: Any = (self._callback,)
        return only[index]


class Observed:
    """The observed instruments of one meter. `made` is called when the SDK makes them.

    The first callback of a collection takes a snapshot, the others use it up. An instrument that is asked a second time
    marks the next collection: so it does not matter in which order the SDK asks, nor whether a collection broke off.
    """

    def __init__(
        self, meter: Meter, specs: Sequence[Instrument], take: Callable[[], Snapshot], made: Callable[[], None]
    ) -> None:
        self._take = take
        self._names = frozenset(spec.name for spec in specs)
        self._unasked: set[str] = set()
        self._snapshot: Snapshot = {}
        for spec in specs:
            _CREATE[spec.kind](meter, spec, _Callbacks(partial(self._answer, spec.name), made))

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


def _gauge(meter: Meter, spec: Instrument, callbacks: Sequence[CallbackT]) -> None:
    meter.create_observable_gauge(spec.name, callbacks, spec.unit, spec.description)


def _counter(meter: Meter, spec: Instrument, callbacks: Sequence[CallbackT]) -> None:
    meter.create_observable_counter(spec.name, callbacks, spec.unit, spec.description)


def _up_down_counter(meter: Meter, spec: Instrument, callbacks: Sequence[CallbackT]) -> None:
    meter.create_observable_up_down_counter(spec.name, callbacks, spec.unit, spec.description)


_CREATE: Final[Mapping[str, Callable[[Meter, Instrument, Sequence[CallbackT]], None]]] = {
    "gauge": _gauge,
    "counter": _counter,
    "up_down_counter": _up_down_counter,
}
