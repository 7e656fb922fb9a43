"""A trace that needs no gathering: most hold one run, whole by the time it closes.

The spans of such a trace lie in a bundle as they come, and nothing is worked out before its time to close is there. What a
bundle cannot say is left to `Gathering`: it is unfolded, span by span at the times they came, into what would have been
gathered had there been none.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Final

from otel_reliability.assembly.unit import SPAN_BYTES, Place, Trace, Unit
from otel_reliability.model.run import Run
from otel_reliability.model.span import AgentSpan, SpanId, TraceId

_ID_BYTES: Final = 8
_NO_SPANS: Final[dict[SpanId, AgentSpan]] = {}
"""Of those that are settled: one for all, since nothing is added to them."""


class State(enum.Enum):
    """GROWING: spans still come. CLOSED: its run was told, and can still change. SETTLED: it cannot; only ids are left."""

    GROWING = "growing"
    CLOSED = "closed"
    SETTLED = "settled"


class Bundle:
    """The agent spans of one trace, and where its other spans stand.

    - `spans`, `places`, `open`: as in `Unit` and `Trace`. `is_plain`: it grows, and there is nothing but spans.
    - `born`, `latest`: when its first span and its last came; `last_seen`: when anything came that it had waited for.
    - `times`: (number of spans before, when) for every later time at which spans came. `late`: places that units would have
      waited for, as (number of spans before, when, id).
    - `due`: whether somebody will look at it at `last_seen` and a little; `is_waiting`: whether when it has grown too old.
    - `run`: what was told of it while CLOSED. `missing`: the parent above its root, in another process, that is not here.
    - `agent`, `ids`: what is remembered of a SETTLED one: its agent's name, and the ids of its spans, one after the other.
    - `unit`: what a CLOSED one became when it was unfolded.
    """

    __slots__ = (
        "agent",
        "born",
        "closed_at",
        "due",
        "ids",
        "is_plain",
        "is_waiting",
        "last_seen",
        "late",
        "latest",
        "missing",
        "open",
        "places",
        "run",
        "spans",
        "state",
        "times",
        "trace_id",
        "unit",
    )

    def __init__(self, trace_id: TraceId, now: float) -> None:
        self.trace_id = trace_id
        self.spans: dict[SpanId, AgentSpan] = {}
        self.places: dict[SpanId, Place] | None = None
        self.open: dict[SpanId, SpanId | None] | None = None
        self.times: list[tuple[int, float]] | None = None
        self.late: list[tuple[int, float, SpanId]] | None = None
        self.born = self.latest = self.last_seen = now
        self.state = State.GROWING
        self.is_plain = True
        self.due = self.is_waiting = False
        self.closed_at: float | None = None
        self.run: Run | None = None
        self.missing: SpanId | None = None
        self.agent = ""
        self.ids: tuple[SpanId, ...] | bytes = b""
        self.unit: Unit | None = None

    @property
    def weight(self) -> int:
        """Estimated bytes."""
        return len(self.spans) * SPAN_BYTES

    def above(self, span_id: SpanId, remote: bool | None) -> tuple[SpanId | None, bool | None]:
        """What stands at or above a parent, through other spans; None: nothing, what hangs there is a top.

        With it, whether what is missing there lives in another process. A circle of other spans is a gap in this one.
        """
        places = self.places or {}
        parent: SpanId | None = span_id
        for _ in places:
            place = places.get(parent) if parent is not None else None
            if place is None:
                return parent, remote
            parent, remote = None if place.parent is None else place.parent[1], place.parent_remote
        return parent, remote if parent not in places else False

    @property
    def waits(self) -> bool:
        """Whether all its spans hang, at last, on spans of this process that are not here yet."""
        return all(self._hangs(span) for span in self.spans.values())

    def _hangs(self, span: AgentSpan) -> bool:
        parent, remote = span.parent_id, span.parent_remote
        if parent is not None and parent not in self.spans:
            parent, remote = self.above(parent, remote)
        return parent is not None and (parent in self.spans or remote is not True)

    def awaits(self, span_id: SpanId) -> bool:
        """Whether anything here hangs on a span."""
        if any(span.parent_id == span_id for span in self.spans.values()):
            return True
        places = (self.places or {}).values()
        return any(place.parent is not None and place.parent[1] == span_id for place in places)

    def close(self, run: Run, missing: SpanId | None, now: float) -> None:
        """Its run is told."""
        self.state, self.is_plain = State.CLOSED, False
        self.run, self.missing, self.closed_at = run, missing, now

    def settle(self) -> None:
        """Its run is final: its spans are let go, their ids remembered, as small as can be."""
        ids = tuple(self.spans)
        packed = b"".join(ids)
        self.ids = packed if all(len(one) == _ID_BYTES for one in ids) else ids
        self.agent = "" if self.run is None else self.run.key.agent
        self.state, self.spans, self.run, self.times, self.late = State.SETTLED, _NO_SPANS, None, None, None

    @property
    def remembers(self) -> int:
        """How many ids that is."""
        return len(self.ids) // _ID_BYTES if isinstance(self.ids, bytes) else len(self.ids)

    def remembered(self) -> set[SpanId]:
        """The ids of the spans of a SETTLED one."""
        ids = self.ids
        if isinstance(ids, bytes):
            return {ids[at : at + _ID_BYTES] for at in range(0, len(ids), _ID_BYTES)}
        return set(ids)


class Traces(dict[TraceId, Trace]):
    """The traces that are gathered, by id. `find` unfolds a bundle first, since whoever asks needs to look into it."""

    __slots__ = ("bundles", "unfold")

    def __init__(self) -> None:
        super().__init__()
        self.bundles: dict[TraceId, Bundle] = {}
        self.unfold: Callable[[Bundle], Trace] | None = None

    def find(self, trace_id: TraceId) -> Trace | None:
        """The trace of an id, None where nothing of it has come."""
        found = self.get(trace_id)
        if found is None and self.unfold is not None and trace_id in self.bundles:
            return self.unfold(self.bundles[trace_id])
        return found
