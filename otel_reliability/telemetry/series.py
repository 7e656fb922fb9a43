"""Counters and histograms of our own, for the service: no limit of attribute sets, series that end, and the last exemplar.

The SDK keeps every attribute set it ever saw, folds all beyond 2 000 into one and cannot say that a series is over. Here a
series lives as long as its agent, and readers of every format share it.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import Counter as Tallied
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial, reduce
from operator import add, itemgetter
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

from otel_reliability.model.run import Run
from otel_reliability.telemetry import names
from otel_reliability.telemetry.exemplar import Exemplars
from otel_reliability.telemetry.names import Instrument

_ROOT: Final[Callable[[Run], bytes | None]] = itemgetter(Run._fields.index("root_span_id"))
_TRACE_AND_ROOT: Final[Callable[[Run], tuple[bytes, bytes]]] = itemgetter(
    *map(Run._fields.index, ("trace_id", "root_span_id"))
)

Labels: TypeAlias = tuple[tuple[str, str | bool], ...]
"""The attributes of a series, in the order they are always given in."""
Trace: TypeAlias = tuple[bytes, bytes] | None
"""The trace and the root span of the run that a measurement is of; None where the root never came."""

SLICE: Final = 512
"""Series read in one turn, so that what is recorded meanwhile does not wait for all of them."""
MOST_ENDED: Final = 200_000
"""Ended series that are remembered until they were told; beyond, the first are not told, and end by staleness."""

SPECS: Final[Mapping[str, Instrument]] = {
    spec.name: spec for spec in (*names.COUNTERS, *names.HISTOGRAMS, *names.STANDARD)
}


class Exemplar(NamedTuple):
    """One measurement with the trace it is of."""

    value: float
    time_ns: int
    trace_id: bytes
    span_id: bytes


class Tally:
    """One series of a counter. `fields` and `text` are its labels as writers of OTLP and of Prometheus text need them."""

    __slots__ = ("exemplar", "fields", "start_ns", "text", "value")

    def __init__(self, start_ns: int) -> None:
        self.fields, self.text = b"", ""
        self.start_ns = start_ns
        self.value = 0
        self.exemplar: Exemplar | None = None


class Spread:
    """One series of a histogram. `counts` are those of each bucket, the last of what lies above all boundaries.

    `fields` and `text` as those of a `Tally`.
    """

    __slots__ = ("counts", "exemplars", "fields", "highest", "lowest", "start_ns", "text", "total")

    def __init__(self, start_ns: int, buckets: int) -> None:
        self.fields, self.text = b"", ""
        self.start_ns = start_ns
        self.counts = [0] * buckets
        self.total = 0.0
        self.lowest = self.highest = 0.0
        self.exemplars: list[Exemplar | None] = [None] * buckets

    @property
    def count(self) -> int:
        """How many measurements there were."""
        return sum(self.counts)


Cell: TypeAlias = Tally | Spread


def trace_of(run: Run | None) -> Trace:
    """The trace of a run, as these instruments take it."""
    return None if run is None or run.root_span_id is None else (run.trace_id, run.root_span_id)


def traces_of(runs: Sequence[Run]) -> list[Trace]:
    """The trace of each. (Most runs have a root.)"""
    if all(map(_ROOT, runs)):
        return list(map(_TRACE_AND_ROOT, runs))
    return list(map(trace_of, runs))


TRACES: Final = Exemplars(traces_of, None)
"""The exemplars that these instruments take."""


class Counter:
    """All series of one counter."""

    def __init__(self, spec: Instrument, wall: Callable[[], int]) -> None:
        self.spec = spec
        self.cells: dict[Labels, Tally] = {}
        self.touched: set[Labels] = set()
        self._wall = wall

    def add(self, amount: int, attributes: Mapping[str, str | bool] | None, trace: Trace, /) -> None:
        """Count so many more."""
        labels = tuple((attributes or {}).items())
        cell = self.cells.get(labels)
        if cell is None:
            cell = self.cells[labels] = Tally(self._wall())
        cell.value += amount
        self.touched.add(labels)
        if trace is not None:
            cell.exemplar = Exemplar(amount, self._wall(), *trace)


class Histogram:
    """All series of one histogram."""

    def __init__(self, spec: Instrument, wall: Callable[[], int]) -> None:
        self.spec = spec
        self.cells: dict[Labels, Spread] = {}
        self.touched: set[Labels] = set()
        self._wall = wall

    def record(self, amount: float, attributes: Mapping[str, str | bool] | None, trace: Trace, /) -> None:
        """One more measurement. A bucket holds what is not above its boundary."""
        self.record_all((amount,), attributes or {}, (trace,))

    def record_all(
        self, amounts: Sequence[float], attributes: Mapping[str, str | bool], traces: Sequence[Trace], /
    ) -> None:
        """One measurement or more of one series, in their order; each with the trace it is of."""
        labels = tuple(attributes.items())
        cell = self.cells.get(labels)
        if cell is None:
            cell = self.cells[labels] = Spread(self._wall(), len(self.spec.boundaries) + 1)
            cell.lowest = cell.highest = amounts[0]
        self.touched.add(labels)
        places = self._places(amounts)
        for at, number in Tallied(places).items():
            cell.counts[at] += number
        cell.total = reduce(add, amounts, cell.total)  # one after the other: `sum` rounds otherwise
        cell.lowest, cell.highest = min(cell.lowest, *amounts), max(cell.highest, *amounts)
        self._show(cell, places, amounts, traces)

    def _places(self, amounts: Sequence[float]) -> list[int]:
        """The bucket of each."""
        bounds, first = self.spec.boundaries, amounts[0]
        if amounts.count(first) == len(amounts):
            return [bisect_left(bounds, first)] * len(amounts)
        return list(map(partial(bisect_left, bounds), amounts))

    def _show(self, cell: Spread, places: Sequence[int], amounts: Sequence[float], traces: Sequence[Trace]) -> None:
        """The last measurement of each bucket that has a trace."""
        shown = zip(places, zip(amounts, traces, strict=True), strict=True)
        last = dict(shown) if all(traces) else {at: one for at, one in shown if one[1] is not None}
        for at, (amount, trace) in last.items():
            if trace is not None:
                cell.exemplars[at] = Exemplar(amount, self._wall(), *trace)


Kind = TypeVar("Kind", Counter, Histogram)
Written = TypeVar("Written")


class Book:
    """All series, by instrument. It makes instruments as a meter of the SDK does, so that a `Recorder` can write in it.

    Whoever writes, and whoever reads a slice, holds `lock`. `wall` gives the time of starts and exemplars (Unix nanoseconds).
    """

    def __init__(self, wall: Callable[[], int]) -> None:
        self.lock = threading.Lock()
        self.wall = wall
        self.ended: deque[tuple[Instrument, Labels]] = deque(maxlen=MOST_ENDED)
        """The series that have ended, until somebody takes them."""
        self._instruments: dict[str, Counter | Histogram] = {}

    def create_counter(self, name: str, unit: str, description: str, /) -> Counter:
        """The counter of that name. Its unit and description are those of the table of names."""
        return self._instrument(Counter(SPECS[name], self.wall))

    def create_histogram(
        self, name: str, unit: str, description: str, /, *, explicit_bucket_boundaries_advisory: Sequence[float] | None
    ) -> Histogram:
        """The histogram of that name. Its boundaries are those of the table of names."""
        return self._instrument(Histogram(SPECS[name], self.wall))

    def slices(
        self, write: Callable[[Instrument, Labels, Cell], Written]
    ) -> Iterator[tuple[Instrument, list[Written]]]:
        """Every series as `write` writes it, some at a time, by instrument. While they are written nothing is recorded."""
        for instrument in self._instruments.values():
            with self.lock:
                keys = list(instrument.cells)
            for start in range(0, len(keys), SLICE):
                with self.lock:
                    some = [(key, instrument.cells.get(key)) for key in keys[start : start + SLICE]]
                    written = [write(instrument.spec, key, cell) for key, cell in some if cell is not None]
                yield instrument.spec, written

    def has(self, spec: Instrument, labels: Labels) -> bool:
        """Whether there is such a series now."""
        return labels in self._instruments[spec.name].cells

    def keep(self, owners: Collection[Labels]) -> None:
        """End the series of all agents but these."""
        with self.lock:
            for instrument in self._instruments.values():
                over = [labels for labels in instrument.cells if owner_of(instrument.spec, labels) not in owners]
                for labels in over:
                    del instrument.cells[labels]
                    instrument.touched.add(labels)
                    self.ended.append((instrument.spec, labels))

    def changes(self) -> Iterator[tuple[Any, Any]]:
        """Yield the series that changed since this was last asked for: instrument and attributes, plain data (None: it ended).

        For the thread that records.
        """
        for name, instrument in self._instruments.items():
            touched, instrument.touched = instrument.touched, set()
            for labels in touched:
                cell = instrument.cells.get(labels)
                yield [name, labels], None if cell is None else _data_of(cell)

    def restore(self, data: Iterable[tuple[Any, Any]]) -> None:
        """Replace all series by those that `changes` yielded, of the instruments that there are now."""
        with self.lock:
            for instrument in self._instruments.values():
                instrument.cells.clear()
                instrument.touched.clear()
            for (name, plain), body in data:
                instrument, labels = self._instruments.get(name), tuple((key, value) for key, value in plain)
                if isinstance(instrument, Counter):
                    instrument.cells[labels] = _tally_of(body)
                elif instrument is not None and len(body[1]) == len(instrument.spec.boundaries) + 1:
                    instrument.cells[labels] = _spread_of(body)

    def labels(self, spec: Instrument) -> list[Labels]:
        """Return the attributes of every series of an instrument."""
        return list(self._instruments[spec.name].cells)

    def _instrument(self, made: Kind) -> Kind:
        self._instruments[made.spec.name] = made
        return made


def _data_of(cell: Cell) -> Any:
    if isinstance(cell, Tally):
        return [cell.start_ns, cell.value, cell.exemplar]
    return [cell.start_ns, cell.counts, cell.total, cell.lowest, cell.highest, cell.exemplars]


def _tally_of(data: Any) -> Tally:
    tally = Tally(data[0])
    tally.value, exemplar = data[1:]
    tally.exemplar = None if exemplar is None else Exemplar(*exemplar)
    return tally


def _spread_of(data: Any) -> Spread:
    spread = Spread(data[0], len(data[1]))
    spread.counts, spread.total, spread.lowest, spread.highest, exemplars = data[1:]
    spread.exemplars = [None if one is None else Exemplar(*one) for one in exemplars]
    return spread


def owner_of(spec: Instrument, labels: Labels) -> Labels:
    """The attributes of the agent whose series it is: all but those of the instrument's own.

    >>> owner_of(names.RUNS, (("gen_ai.agent.name", "support"), ("outcome", "success")))
    (('gen_ai.agent.name', 'support'),)
    """
    return tuple(label for label in labels if label[0] not in spec.attributes) if spec.attributes else labels
