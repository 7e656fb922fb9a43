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


class Unit:
    """A growing tree of agent spans, with what was told of it.

    - `missing`: the parent above its tops that is not here yet; `remote`: whether it lives in another process.
    - `anchor`: what its tops hang on, the missing parent or the topmost span known.
    - `is_loose`: it gathers work for which no invocation has been seen; several such tops share one unit.
    - `sealed`: it has reached the span limit, or is settled; it takes no more spans.
    - `emitted`: the runs told of it that can still change. `counted`: how its spans are accounted for.
    - `host`: the unit whose run has adopted its spans; `guests`: the units it has adopted.
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

    def __init__(self, trace: Trace, now: float, *, is_loose: bool) -> None:
        self.traces = [trace]
        self.spans: dict[SpanId, AgentSpan] = {}
        self.born = self.last_seen = now
        self.missing: SpanRef | None = None
        self.remote = False
        self.anchor: SpanRef = (trace.id, b"")
        self.is_loose = is_loose
        self.closed_at: float | None = None
        self.sealed = False
        self.emitted: dict[str, Run] = {}
        self.counted: dict[tuple[str, str], int] = {}
        self.loose = self.loose_calls = 0
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
        if self.merged_into is None:
            return self
        unit = self.merged_into
        while unit.merged_into is not None:
            unit = unit.merged_into
        here = self
        while here.merged_into is not None:
            here.merged_into, here = unit, here.merged_into
        return unit

    def release(self) -> None:
        """Whom it has adopted, and who has adopted it, is to be decided anew."""
        for guest in self.guests:
            guest.host = None
        self.guests = []
        if self.host is not None:
            self.host.guests = [guest for guest in self.host.guests if guest is not self]
            self.host = None


class Trace:
    """What is known of one trace.

    - `homes`: the unit of each agent span. `places`: the other spans. `shortcuts`: where long chains of them led. `cut`: where
      cycles of them are cut.
    - `waiting`: the units that wait for a span. `loose_at`: the unit that gathers loose work, by what it hangs on.
    - `units`: all of them; `loose`: those that, when last closed, held work with no invocation above it.
    - `open`: spans known to have started, with their parents (in process only).
    - `gone`: ids of spans of settled runs, so that what comes late is known to be late.
    - `agents`: names of its agents; `has_invocation`: whether it has any agent or workflow.
    - `evaluations`: judgements that came apart from their spans.
    """

    __slots__ = (
        "agents",
        "cut",
        "evaluations",
        "gone",
        "has_invocation",
        "homes",
        "id",
        "loose",
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
        self.cut: set[SpanId] = set()
        self.waiting: dict[SpanId, list[Unit]] = {}
        self.loose_at: dict[SpanRef, Unit] = {}
        self.units: dict[Unit, None] = {}
        self.loose: dict[Unit, None] = {}
        self.open: dict[SpanId, SpanId | None] = {}
        self.gone: set[SpanId] = set()
        self.agents: set[str] = set()
        self.has_invocation = False
        self.evaluations: list[Evaluation] = []
