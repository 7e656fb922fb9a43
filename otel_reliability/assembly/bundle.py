"""A trace that needs no gathering: most hold one run, whole by the time it closes.

The spans of such a trace lie in a bundle as they come, and nothing is worked out before its time to close is there. What a
bundle cannot say is left to `Gathering`: it is unfolded, span by span at the times they came, into what would have been
gathered had there been none.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from otel_reliability.assembly import compiled, rows
from otel_reliability.assembly.blocks import Block
from otel_reliability.assembly.quiet import Past, Pasts
from otel_reliability.assembly.resting import AWAITED, HERE
from otel_reliability.assembly.rows import ID, ID_BYTES, PARENT, ROW_BYTES, Models, Rows, Tools
from otel_reliability.assembly.unit import SPAN_BYTES, Place, Trace, Unit
from otel_reliability.model.packed import HEAD, NUMBER, Packed
from otel_reliability.model.run import Run
from otel_reliability.model.span import AgentSpan, Kind, SpanId, TraceId

if TYPE_CHECKING:
    from otel_reliability.assembly.build import Built

_MODEL, _TOOL, _AGENT = Kind.MODEL, Kind.TOOL, Kind.AGENT


class State(enum.Enum):
    """GROWING: spans still come. CLOSED: its run was told, and can still change. PAST: it is no bundle any more."""

    GROWING = "growing"
    CLOSED = "closed"
    PAST = "past"


_GROWING, _CLOSED, _PAST = State


class Mark(NamedTuple):
    """That spans came at another time than those before: when, and how long the lists of a bundle were then."""

    when: float
    models: int = 0
    tools: int = 0
    others: int = 0


class Bundle:
    """The agent spans of one trace, and where its other spans stand.

    - `models`, `tools`: the spans that are alike, as rows; `others`: the rest, as they are.
    - `places`, `open`: as in `Trace`. `is_plain`: it grows, and there is nothing but spans. A plain one may hold spans twice.
    - `index`: where each span stands, made when somebody asks for one; then no span is held twice.
    - `born`, `latest`: when its first span and its last came; `last_seen`: when anything came that it had waited for.
    - `marks`: every later time at which spans came. `late`: places that units would have waited for, as (number of spans
      before, when, id).
    - `due`: whether somebody will look at it at `last_seen` and a little; `is_waiting`: whether when it has grown too old.
    - `run`: what was told of it while CLOSED, or `built`, where that is more than one plain run. `missing`: the parent above its
      root, in another process, that is not here.
    - `rest`: the rows as bytes while nobody asks for them; `models` and `tools` are made of it when somebody does.
    - `unit`: what a CLOSED one became when it was unfolded.
    - `told_ids`: the ids of its spans as bytes, if they were laid down when its run was told, while they were near.
    """

    __slots__ = (
        "_models",
        "_tools",
        "born",
        "built",
        "closed_at",
        "due",
        "index",
        "is_plain",
        "is_waiting",
        "last_seen",
        "late",
        "latest",
        "marks",
        "missing",
        "open",
        "others",
        "places",
        "rest",
        "run",
        "state",
        "told_ids",
        "trace_id",
        "unit",
    )

    def __init__(self, trace_id: TraceId, now: float, block: Block | None = None) -> None:
        """`block`: what it begins with."""
        self.trace_id = trace_id
        self.rest: Packed | None = None
        if block is None:
            self._models, self._tools, self.others = Models(), Tools(), list[AgentSpan]()
        else:
            self.rest, self.others = block.rest, block.others[:]
            if block.rest is None:
                self._models, self._tools = block.rows()
        self.places: dict[SpanId, Place] | None = None
        self.open: dict[SpanId, SpanId | None] | None = None
        self.index: dict[SpanId, int] | None = None
        self.marks: list[Mark] | None = None
        self.late: list[tuple[int, float, SpanId]] | None = None
        self.born = self.latest = self.last_seen = now
        self.state = _GROWING
        self.is_plain = True
        self.due = self.is_waiting = False
        self.closed_at: float | None = None
        self.run: Run | None = None
        self.built: Built | None = None
        self.missing: SpanId | None = None
        self.unit: Unit | None = None
        self.told_ids: bytes | None = None

    @property
    def models(self) -> Models:
        """Its model calls."""
        if self.rest is not None:
            self._wake(self.rest)
        return self._models

    @property
    def tools(self) -> Tools:
        """Its tool calls."""
        if self.rest is not None:
            self._wake(self.rest)
        return self._tools

    def _wake(self, rest: Packed) -> None:
        (self._models, self._tools), self.rest = compiled.wake(rest), None

    @property
    def count(self) -> int:
        """How many spans it holds."""
        if self.rest is not None:
            return self.rest[NUMBER] + len(self.others)
        return len(self.models) // Models.width + len(self.tools) // Tools.width + len(self.others)

    @property
    def weight(self) -> int:
        """Estimated bytes, rows at rest as if they were not."""
        others = len(self.others)
        return (self.count - others) * ROW_BYTES + others * SPAN_BYTES

    @property
    def root(self) -> AgentSpan | None:
        """Its first agent."""
        for span in self.others:
            if span.kind is _AGENT:
                return span
        return None

    @property
    def ids(self) -> list[SpanId]:
        """The ids of its spans."""
        return rows.ids_of(self.models, self.tools, self.others)

    def holds(self, span_id: SpanId) -> bool:
        """Whether a span of this id is here."""
        if self.rest is None:
            return span_id in self.ids
        return bool(compiled.seek(self.rest, self.others, span_id) & HERE)

    @property
    def parents(self) -> set[SpanId | None]:
        """What its spans hang on."""
        found: set[SpanId | None] = set(self.models.column(PARENT))
        found.update(self.tools.column(PARENT))
        found.update([span.parent_id for span in self.others])
        return found

    def spans(self) -> Iterator[AgentSpan]:
        """Its spans."""
        return chain(self.models.spans(self.trace_id), self.tools.spans(self.trace_id), self.others)

    def story(self) -> Iterator[tuple[float, Iterator[AgentSpan]]]:
        """Its spans by the times at which they came."""
        begins = [Mark(self.born), *(self.marks or ())]
        ends = [*begins[1:], Mark(0.0, len(self.models), len(self.tools), len(self.others))]
        for begin, end in zip(begins, ends, strict=True):
            models = self.models.spans(self.trace_id, begin.models, end.models)
            tools = self.tools.spans(self.trace_id, begin.tools, end.tools)
            yield begin.when, chain(models, tools, self.others[begin.others : end.others])

    def keep(self, span: AgentSpan) -> int:
        """Hold one more span. Gives its weight."""
        kind = span.kind
        rows: Rows | None = self.models if kind is _MODEL else self.tools if kind is _TOOL else None
        if rows is None or not rows.take(span):
            rows = None
            self.others.append(span)
        if self.index is not None:
            self.index[span.span_id] = self._last(rows)
        return SPAN_BYTES if rows is None else ROW_BYTES

    def can_take(self, models: Models, tools: Tools) -> bool:
        """Whether rows are like those here."""
        return self.models.can_join(models) and self.tools.can_join(tools)

    def keep_all(self, models: Models, tools: Tools, others: list[AgentSpan]) -> None:
        """Hold rows that are like those here, and other spans."""
        self.models.join(models)
        self.tools.join(tools)
        self.others += others

    def join(self, rest: Packed, others: list[AgentSpan]) -> None:
        """Hold these rows in the place of those at rest, and more of other spans."""
        self.rest = rest
        self.others += others

    def lie_down(self) -> Packed | None:
        """Its rows as bytes from here on, until somebody looks at them; None where they have no place there."""
        if self.rest is None:
            rest = compiled.lay_down(self.models, self.tools)
            if rest is not None:
                self.rest = rest
                del self._models, self._tools
        return self.rest

    def mark(self, now: float) -> None:
        """What is kept from here on comes at another time than what was kept before."""
        if not self.count:
            self.born = self.latest = self.last_seen = now
        elif now != self.latest:
            self.latest = now
            self.marks = [] if self.marks is None else self.marks
            self.marks.append(Mark(now, *self._lengths, len(self.others)))
            self.last_seen = max(self.last_seen, now)

    @property
    def _lengths(self) -> tuple[int, int]:
        """Of its lists."""
        if self.rest is None:
            return len(self._models), len(self._tools)
        models, tools = HEAD.unpack_from(self.rest[0])
        return models * Models.width, tools * Tools.width

    # --- Spans by their ids -------------------------------------------------------------------------------------------

    def make_index(self) -> None:
        """From here on every span is held once. It must be so already."""
        index = {span.span_id: ~at for at, span in enumerate(self.others)}
        for odd, calls in enumerate((self.models, self.tools)):
            index.update(zip(calls.column(ID), range(odd, 2 * len(calls), 2 * calls.width), strict=True))
        self.index = index

    def find(self, span_id: SpanId) -> AgentSpan | None:
        """A span of an indexed bundle."""
        at = None if self.index is None else self.index.get(span_id)
        if at is None:
            return None
        if at < 0:
            return self.others[~at]
        rows = self.tools if at % 2 else self.models
        return next(rows.spans(self.trace_id, at // 2, at // 2 + 1))

    def _last(self, rows: Rows | None) -> int:
        """Where the span stands that came last: among the others, or in these rows; even numbers are of model calls."""
        return ~(len(self.others) - 1) if rows is None else 2 * (len(rows) - rows.width) + (rows is self.tools)

    def without_repeats(self) -> Bundle | None:
        """One with every span once, as if none had come again; None where two versions of a span differ."""
        fresh, known = Bundle(self.trace_id, self.born), dict[SpanId, AgentSpan]()
        for when, spans in self.story():
            for span in spans:
                here = known.get(span.span_id)
                if here is None:
                    known[span.span_id] = span
                    fresh.mark(when)
                    fresh.keep(span)
                elif here != span:
                    return None
        return fresh

    def become(self, fresh: Bundle) -> None:
        """Hold what another holds that is like this one."""
        self._models, self._tools, self.others = fresh.models, fresh.tools, fresh.others
        self.rest, self.latest, self.last_seen, self.marks = None, fresh.latest, fresh.last_seen, fresh.marks

    # --- What stands above --------------------------------------------------------------------------------------------

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
        here = set(self.ids)
        return all(self._hangs(parent, remote, here) for parent, remote in self._hooks())

    def _hooks(self) -> set[tuple[SpanId | None, bool | None]]:
        """The parents of its spans, each with whether it is remote."""
        found = {(span.parent_id, span.parent_remote) for span in self.others}
        for calls in (self.models, self.tools):
            found.update((parent, calls.remote) for parent in set(calls.column(PARENT)))
        return found

    def _hangs(self, parent: SpanId | None, remote: bool | None, here: set[SpanId]) -> bool:
        if parent is not None and parent not in here:
            parent, remote = self.above(parent, remote)
        return parent is not None and (parent in here or remote is not True)

    def awaits(self, span_id: SpanId) -> bool:
        """Whether anything here hangs on a span."""
        if self.rest is not None:
            is_above = bool(compiled.seek(self.rest, self.others, span_id) & AWAITED)
        else:
            is_above = span_id in self.models.column(PARENT) or span_id in self.tools.column(PARENT)
        if is_above or any(span.parent_id == span_id for span in self.others):
            return True
        places = (self.places or {}).values()
        return any(place.parent is not None and place.parent[1] == span_id for place in places)

    def close(self, told: Run | Built, top: AgentSpan, now: float) -> None:
        """Its run is told, or all that was built of it. Whatever ends this before leaves it as it was."""
        if self.lie_down() is not None:
            self.index = None
        self.state, self.is_plain, self.closed_at = _CLOSED, False, now
        if isinstance(told, Run):
            self.run = told
        else:
            self.built = told
        self.missing = None if top.parent_id is None else self.above(top.parent_id, None)[0]

    @property
    def runs(self) -> Sequence[Run]:
        """What was told of it while CLOSED."""
        if self.run is not None:
            return (self.run,)
        return () if self.built is None else self.built.runs

    def past(self) -> Past:
        """What is remembered once its run is final, as small as can be."""
        ids = self.told_ids or self._packed_ids() or tuple(self.ids)
        if self.run is not None:
            return self.run.key.agent, ids, self.places, self.open or None
        agents = () if self.built is None else tuple(sorted(self.built.agents)[:2])
        return agents, ids, self.places, self.open or None

    def _packed_ids(self) -> bytes | None:
        if self.rest is None:
            return rows.packed(self.models, self.tools, self.others)
        return compiled.ids_of(self.rest, self.others)

    def let_go(self) -> None:
        """It is no bundle any more: whoever still plans to look at it shall not keep its spans."""
        self.state = _PAST
        if self.is_waiting or self.due:
            self._models, self._tools, self.others, self.run, self.built = Models(), Tools(), [], None, None
            self.rest = None


def ids_of(past: Past) -> set[SpanId]:
    """The ids of the spans of a bundle that is past."""
    ids = past[1]
    if isinstance(ids, bytes):
        return {ids[at : at + ID_BYTES] for at in range(0, len(ids), ID_BYTES)}
    return set(ids)


def count_of(past: Past) -> int:
    """How many ids that is."""
    return len(past[1]) // ID_BYTES if isinstance(past[1], bytes) else len(past[1])


class Traces(dict[TraceId, Trace]):
    """The traces that are gathered, by id. `find` unfolds a bundle first, since whoever asks needs to look into it.

    `bundles` are those that grow or can be reopened, `pasts` what is remembered of the others.
    """

    __slots__ = ("bundles", "pasts", "remember", "unfold")

    def __init__(self) -> None:
        super().__init__()
        self.bundles: dict[TraceId, Bundle] = {}
        self.pasts = Pasts()
        self.unfold: Callable[[Bundle], Trace] | None = None
        self.remember: Callable[[TraceId], Trace] | None = None

    def find(self, trace_id: TraceId) -> Trace | None:
        """The trace of an id, None where nothing of it has come."""
        found = self.get(trace_id)
        if found is None and self.unfold is not None and trace_id in self.bundles:
            return self.unfold(self.bundles[trace_id])
        if found is None and self.remember is not None and trace_id in self.pasts:
            return self.remember(trace_id)
        return found
