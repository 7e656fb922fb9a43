"""Spans that belong together while they arrive: units, and the traces they lie in.

A unit is a tree of agent spans that is still growing, or closed and still reopenable. Other spans are not kept, only their
place, so that parent chains run through them. Everything is found by (trace id, span id): traces never mix, unless the link of
a messaging hop joins them.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from otel_reliability.model.run import Run
from otel_reliability.model.span import AgentSpan, Evaluation, Session, SpanId, SpanRef, TraceId

SPAN_BYTES: Final = 900
"""What an agent span is reckoned to weigh with its facts and its place in the indexes."""


class Place(NamedTuple):
    """Of a span that is no agent span: where it stands, and the session it tells."""

    parent: SpanRef | None
    parent_remote: bool | None
    session: Session | None


class Above(NamedTuple):
    """What stands above a span: a `unit` it belongs to, or the `missing` span it waits for, or nothing: it is a top.

    `anchor` is the topmost span known (the missing one, where one is); `below` the last place before the unit.
    """

    unit: Unit | None
    member: SpanId | None
    missing: SpanRef | None
    remote: bool
    anchor: SpanRef


class Unit:
    """A growing tree of agent spans, with what was told of it.

    `missing` is the parent above its tops that is not here yet. `emitted` are the runs that were told and can still change.
    `hosts` is the unit whose run has adopted this one's spans, `guests` are the units adopted.
    """

    __slots__ = (
        "anchor",
        "born",
        "closed_at",
        "counted",
        "emitted",
        "guests",
        "host",
        "is_loose",
        "last_seen",
        "loose",
        "loose_calls",
        "merged_into",
        "missing",
        "remote",
        "sealed",
        "spans",
        "traces",
    )

    def __init__(self, trace: Trace, above: Above, now: float, *, is_loose: bool) -> None:
        self.traces = [trace]
        self.spans: dict[SpanId, AgentSpan] = {}
        self.born = now
        self.last_seen = now
        self.missing = above.missing
        self.remote = above.remote
        self.anchor = above.anchor
        self.is_loose = is_loose
        self.closed_at: float | None = None
        self.sealed = False
        self.emitted: dict[str, Run] = {}
        self.counted: dict[tuple[str, str], int] = {}
        self.loose = 0
        self.loose_calls = 0
        self.host: Unit | None = None
        self.guests: list[Unit] = []
        self.merged_into: Unit | None = None

    @property
    def trace(self) -> Trace:
        """The trace it began in."""
        return self.traces[0]

    @property
    def has_local_gap(self) -> bool:
        """Whether a parent in the same process never came."""
        return self.missing is not None and not self.remote

    @property
    def weight(self) -> int:
        """Estimated bytes."""
        return len(self.spans) * SPAN_BYTES

    def current(self) -> Unit:
        """The unit this one has become part of, the way there made short."""
        unit = self
        while unit.merged_into is not None:
            unit = unit.merged_into
        here = self
        while here.merged_into is not None:
            here.merged_into, here = unit, here.merged_into
        return unit


class Trace:
    """What is known of one trace.

    `homes`: the unit of each agent span. `places`: other spans. `waiting`: the units that wait for a span. `loose_at`: the
    unit that gathers work without an invocation, by what it hangs on. `open`: spans known to have started, with their
    parents. `gone`: ids of spans of settled runs, so that what comes late is known to be late.
    """

    __slots__ = (
        "agents",
        "evaluations",
        "gone",
        "has_invocation",
        "homes",
        "id",
        "loose_at",
        "open",
        "places",
        "shortcuts",
        "units",
        "waiting",
    )

    def __init__(self, trace_id: TraceId) -> None:
        self.id = trace_id
        self.homes: dict[SpanId, Unit] = {}
        self.places: dict[SpanId, Place] = {}
        self.shortcuts: dict[SpanId, SpanRef] = {}
        self.waiting: dict[SpanId, list[Unit]] = {}
        self.loose_at: dict[SpanRef, Unit] = {}
        self.units: dict[Unit, None] = {}
        self.open: dict[SpanId, SpanId | None] = {}
        self.gone: set[SpanId] = set()
        self.agents: set[str] = set()
        self.has_invocation = False
        self.evaluations: list[Evaluation] = []
