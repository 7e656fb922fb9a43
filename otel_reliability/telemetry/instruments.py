"""The instruments of a meter of the SDK: observed ones, answered from one snapshot a collection,
and recorded ones.

They are created once, with the processor, and never inside a callback: the SDK would deadlock.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final, TypeAlias, cast

from opentelemetry.context import Context
from opentelemetry.metrics import CallbackOptions, CallbackT, Meter, Observation
from opentelemetry.trace import (
    INVALID_SPAN,
    NonRecordingSpan,
    SpanContext,
    TraceFlags,
    set_span_in_context,
)

from otel_reliability.model.run import Run
from otel_reliability.telemetry.guard import Guard
from otel_reliability.telemetry.names import Instrument

Attributes: TypeAlias = Mapping[str, str | bool]
Point: TypeAlias = tuple[str, float, Attributes]
"""Name of the instrument, value, attributes."""
Snapshot: TypeAlias = dict[str, list[Observation]]


def counted(spec: Instrument, numbers: Mapping[Any, float]) -> Iterator[Point]:
    """Yield a point for each key of `numbers`: the value of the instrument's attribute, or a tuple
    of the values of all.

    An empty value is left out. Another thread may count meanwhile.

    >>> list(
    ...     counted(
    ...         Instrument("spans", "counter", "", "", ("disposition", "reason")), {("used", ""): 3}
    ...     )
    ... )
    [('spans', 3, {'disposition': 'used'})]
    """
    for key, number in dict(numbers).items():
        values = cast("tuple[Any, ...]", key if isinstance(key, tuple) else (key,))
        found = zip(spec.attributes, values, strict=True)
        yield spec.name, number, {name: value for name, value in found if value != ""}


_OBSERVE: Final = Guard("a collection")
_NO_SPAN: Final = set_span_in_context(INVALID_SPAN, Context())
"""A context without a span. In place of an empty context the SDK would use the host's current span
on this thread.
"""


class Recorded:
    """Counters and histograms of one meter. The root span of a run is its exemplar."""

    def __init__(self, meter: Meter, specs: Iterable[Instrument]) -> None:
        self._made: dict[str, Any] = {spec.name: _create(meter, spec) for spec in specs}
        self._last: tuple[Run | None, Context] = (None, _NO_SPAN)

    def add(
        self, spec: Instrument, amount: int, attributes: Attributes, run: Run | None = None
    ) -> None:
        self._made[spec.name].add(amount, attributes, self._context(run))

    def record(
        self, spec: Instrument, amount: float, attributes: Attributes, run: Run | None = None
    ) -> None:
        self._made[spec.name].record(amount, attributes, self._context(run))

    def _context(self, run: Run | None) -> Context:
        """Return the context of a run, which is measured several times in succession."""
        known, context = self._last
        if known is not run:
            context = _context_of(run)
            self._last = (run, context)
        return context


def _context_of(run: Run | None) -> Context:
    """Return a context whose current span is the run's root; `_NO_SPAN` if the
    root never arrived.
    """
    if run is None or run.root_span_id is None:
        return _NO_SPAN
    trace_id = int.from_bytes(run.trace_id)
    span_id = int.from_bytes(run.root_span_id)
    root = SpanContext(
        trace_id, span_id, is_remote=True, trace_flags=TraceFlags(TraceFlags.SAMPLED)
    )
    return set_span_in_context(NonRecordingSpan(root), Context())


def snapshot(points: Iterable[Point]) -> Snapshot:
    """Return the points by instrument."""
    found: defaultdict[str, list[Observation]] = defaultdict(list)
    for name, value, attributes in points:
        found[name].append(Observation(value, attributes, _NO_SPAN))
    return dict(found)


class _Callbacks(list[CallbackT]):
    """The callback of one instrument, which notices when the SDK reads it: then it makes the
    instrument.

    Before a MeterProvider is set, the API keeps proxies. The SDK makes the instruments when it is
    set, and our exit hook must be registered then, so that it runs before the provider's.
    """

    def __init__(self, callback: CallbackT, made: Callable[[], None]) -> None:
        super().__init__([callback])
        self._made = made

    def __iter__(self) -> Iterator[CallbackT]:
        self._made()
        return super().__iter__()


class Observed:
    """The observed instruments of one meter. `read` returns all their values; `made` is called when
    the SDK makes them.

    The first callback of a collection reads a snapshot, the others use it up. An instrument that is
    asked a second time marks the next collection, so neither the order of the SDK's calls nor an
    interrupted collection matters.
    """

    def __init__(
        self,
        meter: Meter,
        specs: Sequence[Instrument],
        read: Callable[[], Snapshot],
        made: Callable[[], None] = lambda: None,
    ) -> None:
        self._read = read
        self._names = frozenset(spec.name for spec in specs)
        self._unasked: set[str] = set()
        self._snapshot: Snapshot = {}
        for spec in specs:
            _create(meter, spec, _Callbacks(partial(self._answer, spec.name), made))

    def restart(self) -> None:
        """Drop the snapshot: a forked child has its own numbers."""
        self._unasked = set()
        self._snapshot = {}

    def _answer(self, name: str, options: CallbackOptions) -> Iterable[Observation]:
        with _OBSERVE:
            if name in self._unasked:
                self._unasked.discard(name)
            else:
                self._unasked = set(self._names - {name})
                self._snapshot = {}
                self._snapshot = self._read()
            return self._snapshot.pop(name, ())
        return ()


def _create(meter: Meter, spec: Instrument, callbacks: Sequence[CallbackT] | None = None) -> Any:
    """Create the instrument of a line of the table; with callbacks, an observed one."""
    name = spec.name
    unit = spec.unit
    about = spec.description
    if spec.kind == "histogram":
        return meter.create_histogram(
            name, unit, about, explicit_bucket_boundaries_advisory=spec.boundaries
        )
    if callbacks is None:
        return meter.create_counter(name, unit, about)
    create = {
        "gauge": meter.create_observable_gauge,
        "counter": meter.create_observable_counter,
        "up_down_counter": meter.create_observable_up_down_counter,
    }
    return create[spec.kind](name, callbacks, unit, about)
