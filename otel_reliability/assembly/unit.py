"""Spans that belong together while they arrive: units, and the traces they lie in.

A unit is a tree of agent spans that is still growing, or closed and still reopenable. Other spans are not kept, only their
place, so that parent chains run through them. Everything is found by (trace id, span id): traces never mix, unless the link of
a messaging hop joins them.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Final, NamedTuple, TypeAlias

from otel_reliability.model.run import CloseReason, Run
from otel_reliability.model.span import AgentSpan, Evaluation, Kind, Session, SpanId, SpanRef, TraceId

_NO_IDS: Final = frozenset[bytes]()
_NO_NAMES: Final = frozenset[str]()

Ids: TypeAlias = frozenset[SpanId] | set[SpanId]
"""Span ids; the frozen set is the empty one that all traces begin with."""
SpanKey: TypeAlias = bytes
"""What a span is called within one unit."""
SPAN_BYTES: Final = 900
"""What an agent span is reckoned to weigh with its facts and its place in the indexes."""
LONG: Final = 32
"""Steps after which a chain of other spans is remembered, and looked at for cycles."""
RUN_KEYS: Final = b"run.key"
"""Where work that the user's own key groups into runs gathers: no trace has this id, and such runs may lie across traces."""


Judged: TypeAlias = tuple[Evaluation, SpanRef | None]
"""A judgement that came apart from spans, and the span of the unit that it names (None: the unit's outermost run)."""


class Place(NamedTuple):
    """Of a span that is no agent span: where it stands, and the session it tells."""

    parent: SpanRef | None
    parent_remote: bool | None
    session: Session | None


class Implicit(NamedTuple):
    """How work with no invocation above it becomes a run: what stands in for its root, its name, and whether its root is
    missing.
    """

    anchor: SpanRef
    agent: str | None
    incomplete: bool

    def id_in(self, trace_id: TraceId) -> bytes:
        """The id that stands in for a root in this trace. What hangs on a span of another trace gets one of its own: ids tell
        spans apart within their trace only.
        """
        if self.anchor[0] in {trace_id, RUN_KEYS}:
            return self.anchor[1]
        return blake2b(b"".join(self.anchor), digest_size=8).digest()


class Verdict(NamedTuple):
    """What became of work with no invocation above it: the run that adopted it (its unit and root), a run of its own, or
    neither: then it is nobody's, `beside_agent` where its trace has any.
    """

    host: Unit | None
    root: SpanKey | None
    implicit: Implicit | None
    beside_agent: bool


class Unit:
    """A growing tree of agent spans, with what was told of it.

    - `spans`: by their ids; those of other traces than its first, which ids alone cannot tell apart, by both ids (`key`).
    - `missing`: the parent above its tops that is not here yet; `remote`: whether it lives in another process.
    - `anchor`: what its tops hang on, the missing parent or the topmost span known.
    - `circular`: what it waited for hangs on itself.
    - `is_loose`: it gathers work for which no invocation has been seen; several such tops share one unit.
    - `sealed`: it has reached the span limit, or is settled; it takes no more spans.
    - `emitted`: the runs told of it that can still change. `counted`: how its spans are accounted for.
    - Of the last time it was closed: `reason`; `loose`, `loose_calls`: spans with no invocation above, and tool calls among
      them; `agents`, `invocations`: its agents' names, and how many invocations it has; `tops`: start, end and root of its own
      top-level runs; `extent`: its first start and last end.
    - `judged`: the judgements its runs were built with.
    - `verdict`: what was decided about its loose spans, None before. `guests`: the units it has adopted. `stale`: it has closed
      since, and what is told of it depends on what is decided.
    """

    __slots__ = (
        "agents",
        "anchor",
        "born",
        "circular",
        "closed_at",
        "counted",
        "emitted",
        "extent",
        "guests",
        "invocations",
        "is_loose",
        "judged",
        "last_seen",
        "loose",
        "loose_calls",
        "merged_into",
        "missing",
        "reason",
        "remote",
        "sealed",
        "spans",
        "stale",
        "tops",
        "traces",
        "verdict",
    )

    def __init__(self, trace: Trace, now: float, *, is_loose: bool) -> None:
        self.traces = [trace]
        self.spans: dict[SpanKey, AgentSpan] = {}
        self.born = self.last_seen = now
        self.missing: SpanRef | None = None
        self.remote = False
        self.anchor: SpanRef = (trace.id, b"")
        self.circular = False
        self.is_loose = is_loose
        self.closed_at: float | None = None
        self.sealed = False
        self.emitted: dict[str, Run] = {}
        self.counted: dict[tuple[str, str], int] = {}
        self.reason = CloseReason.ROOT
        self.loose = self.loose_calls = self.invocations = 0
        self.agents: frozenset[str] = _NO_NAMES
        self.tops: tuple[tuple[int, int, SpanKey], ...] = ()
        self.extent: tuple[int, int] = (0, 0)
        self.judged: list[Judged] = []
        self.verdict: Verdict | None = None
        self.guests: dict[Unit, None] = {}
        self.stale = False
        self.merged_into: Unit | None = None

    @property
    def trace(self) -> Trace:
        """The trace it began in."""
        return self.traces[0]

    def key(self, trace_id: TraceId, span_id: SpanId) -> SpanKey:
        """What a span is called among the spans of this unit."""
        return span_id if trace_id == self.traces[0].id else trace_id + span_id

    @property
    def has_local_gap(self) -> bool:
        """Whether a parent in the same process never came."""
        return self.missing is not None and not self.remote

    @property
    def stand_in(self) -> SpanRef:
        """What stands in for a root of its loose work: what it hangs on, in a circle the least of its steps."""
        if not self.circular:
            return self.anchor
        steps = (span for span in self.spans.values() if span.kind not in (Kind.AGENT, Kind.WORKFLOW))
        return min((span.trace_id, span.span_id) for span in steps)

    @property
    def is_adoptable(self) -> bool:
        """Whether, when last closed, it held work that the run around it may claim."""
        return self.loose > 0 and self.has_local_gap and self.anchor[0] != RUN_KEYS

    @property
    def host(self) -> Unit | None:
        """The unit whose run has adopted its spans."""
        return self.verdict.host if self.verdict is not None else None

    @property
    def count(self) -> int:
        """How many spans it holds."""
        return len(self.spans)

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

    def part(self) -> Unit | None:
        """Whom it has adopted, and who has adopted it, is to be decided anew. Gives the one that has lost a guest."""
        host, guests = self.host, self.guests
        self.verdict, self.guests = None, {}
        for guest in guests:
            guest.verdict = None
        if host is not None:
            del host.guests[self]
        return host


class Trace:
    """What is known of one trace. Most hold hardly anything, so what is seldom filled begins as an empty value that all share.

    - `homes`: the unit of each agent span. `places`: the other spans. `shortcuts`: where long chains of them led. `cut`: where
      cycles of them are cut.
    - `waiting`: the units that wait for a span. `loose_at`: the unit that gathers loose work, by what it hangs on, which
      need not be here.
    - `hanging`: units of other traces that hang on a span of this one, by a link.
    - `units`: all of them; `loose`: those that, when last closed, held work with no invocation above it.
    - `open`: spans known to have started, with their parents (in process only).
    - `gone`: ids of spans of settled runs, so that what comes late is known to be late. `stood_in`: what their loose work hung
      on, and stood in for a root.
    - `agents`: names of the agents of its settled runs, two at most, since more make no difference; `had_invocation`: whether
      it had any invocation that is settled; `has_invocation`: the same, or a span of it that says so has come.
    - `hopped`: whether a messaging hop has joined it to another trace, so that both are decided about together.
    - `evaluations`: judgements that came apart from their spans.
    """

    __slots__ = (
        "agents",
        "cut",
        "evaluations",
        "gone",
        "had_invocation",
        "hanging",
        "has_invocation",
        "homes",
        "hopped",
        "id",
        "loose",
        "loose_at",
        "open",
        "places",
        "shortcuts",
        "stood_in",
        "units",
        "waiting",
    )

    def __init__(self, trace_id: TraceId) -> None:
        self.id = trace_id
        self.homes: dict[SpanId, Unit] = {}
        self.places: dict[SpanId, Place] = {}
        self.shortcuts: dict[SpanId, SpanRef] = {}
        self.cut: frozenset[SpanId] = _NO_IDS
        self.waiting: dict[SpanId, dict[Unit, None]] = {}
        self.loose_at: dict[SpanId, Unit] = {}
        self.hanging: dict[Unit, None] = {}
        self.units: dict[Unit, None] = {}
        self.loose: dict[Unit, None] = {}
        self.open: dict[SpanId, SpanId | None] = {}
        self.gone: Ids = _NO_IDS
        self.stood_in: Ids = _NO_IDS
        self.agents: frozenset[str] = _NO_NAMES
        self.had_invocation = self.has_invocation = self.hopped = False
        self.evaluations: tuple[Evaluation, ...] = ()
