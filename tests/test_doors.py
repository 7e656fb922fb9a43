from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import pytest
from msgspec.structs import replace
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan, Span
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import (
    Link,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    TraceState,
)

from otel_reliability.config import Settings
from otel_reliability.engine import Engine
from otel_reliability.exporter import ReliabilitySpanExporter
from otel_reliability.model.run import CloseReason
from otel_reliability.model.span import RawSpan
from otel_reliability.processor import ReliabilitySpanProcessor
from otel_reliability.sources.otlp_json import read_file
from otel_reliability.telemetry.live import Live, live_of
from otel_reliability.testing import FakeClock
from tests.laws.arrival import Observed, Outcome
from tests.laws.laws import same
from tests.shared import each_file
from tests.telemetry.meters import Meters


@pytest.fixture(scope="module", params=each_file("corpora/captured/*.jsonl.gz", without=".logs."))
def spans(request: pytest.FixtureRequest) -> list[RawSpan]:
    path: Path = request.param
    return [span for batch in read_file(path) for span in batch.spans]


SETTINGS = Settings(hash_key="00" * 16)
"""Hashes of different engines can be compared."""


def by_file(spans: Iterable[RawSpan]) -> Outcome:
    """As a recording is read: in the order of the file, closed at its end."""
    observed = Observed(Engine(SETTINGS, clock=FakeClock(), wall=None))
    observed.engine.receive(spans)
    observed.engine.flush(CloseReason.END_OF_INPUT)
    return observed.outcome()


def by_processor(spans: Sequence[RawSpan]) -> Outcome:
    """As a process would: spans begin and end by their own times, the clock goes with them, a
    collection once a minute.
    """
    clock, live = _live(spans)
    observed = Observed(live.engine)
    door = ReliabilitySpanProcessor(meter_provider=live._provider)
    _play(spans, clock, live, door.on_start, door.on_end)
    door.force_flush()
    return observed.outcome()


def by_exporter(spans: Sequence[RawSpan]) -> Outcome:
    """As `BatchSpanProcessor` would: spans that ended, in batches."""
    clock, live = _live(spans)
    observed = Observed(live.engine)
    door = ReliabilitySpanExporter(meter_provider=live._provider)
    batch: list[ReadableSpan] = []

    def ended(span: ReadableSpan) -> None:
        batch.append(span)
        if len(batch) >= 32:
            door.export(batch)
            batch.clear()

    _play(spans, clock, live, _unseen, ended)
    door.export(batch)
    door.force_flush()
    return observed.outcome()


def _unseen(_: ReadableSpan) -> None:
    """An exporter does not see spans begin."""


def stretched(spans: Sequence[RawSpan], factor: int) -> list[RawSpan]:
    """The same spans, everything taking so many times as long: recordings have fake models, which
    answer at once.
    """
    first = min(span.start_ns for span in spans)

    def later(time_ns: int) -> int:
        return first + (time_ns - first) * factor

    return [
        replace(
            span,
            start_ns=later(span.start_ns),
            end_ns=later(span.end_ns),
            events=tuple(replace(event, time_ns=later(event.time_ns)) for event in span.events),
        )
        for span in spans
    ]


def _live(spans: Sequence[RawSpan]) -> tuple[FakeClock, Live]:
    clock = FakeClock()
    first = min((span.start_ns for span in spans), default=0)

    def engine(settings: Settings) -> Engine:
        return Engine(settings, clock=clock, wall=lambda: first + round(clock() * 1e9))

    return clock, live_of(Meters().provider, SETTINGS, engine)


def _play(spans: Sequence[RawSpan], clock: FakeClock, live: Live, begin: Any, end: Any) -> None:
    moments = sorted(
        [(span.start_ns, 0, at) for at, span in enumerate(spans)]
        + [(span.end_ns, 1, at) for at, span in enumerate(spans)]
    )
    first = moments[0][0]
    collected = 0.0
    sdk_spans = [as_sdk(span) for span in spans]
    for moment, ends, at in moments:
        clock.advance((moment - first) / 1e9 - clock())
        if clock() - collected >= 60:
            live.collect()
            collected = clock()
        (end if ends else begin)(cast("Span", sdk_spans[at]))


def as_sdk(span: RawSpan) -> ReadableSpan:
    """The span as the SDK would have had it."""
    return ReadableSpan(
        span.name,
        context=_context(span.trace_id, span.span_id, remote=False, state=span.trace_state),
        parent=None
        if span.parent_id is None
        else _context(span.trace_id, span.parent_id, remote=bool(span.parent_remote)),
        resource=Resource(dict(span.resource.attributes)),
        attributes=_attributes(span.attributes),
        events=[
            Event(event.name, _attributes(event.attributes), event.time_ns) for event in span.events
        ],
        links=[Link(_context(*link, remote=True)) for link in span.links],
        kind=SpanKind(max(0, span.span_kind - 1)),
        status=Status(StatusCode(span.status)),
        start_time=span.start_ns,
        end_time=span.end_ns,
        instrumentation_scope=InstrumentationScope(span.scope, span.scope_version),
    )


def _context(trace_id: bytes, span_id: bytes, *, remote: bool, state: str = "") -> SpanContext:
    trace_state = TraceState.from_header([state]) if state else None
    return SpanContext(
        int.from_bytes(trace_id), int.from_bytes(span_id), remote, TraceFlags(1), trace_state
    )


def _attributes(attributes: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: tuple(cast("list[Any]", value)) if isinstance(value, list) else value
        for key, value in attributes.items()
    }


def test_every_door_sees_the_same_runs(spans: list[RawSpan]) -> None:
    read = by_file(spans)

    same(by_processor(spans), read)
    same(by_exporter(spans), read)


def test_real_seconds_and_minutes_change_nothing(spans: list[RawSpan]) -> None:
    slow = stretched(spans, 500)

    same(by_processor(slow), by_file(slow))
