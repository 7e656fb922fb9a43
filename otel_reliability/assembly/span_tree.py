"""The agent spans of a buffer as a tree. Pure: a function of the set of
spans, not of their order.

Spans are sorted by (start, end, span id). One pass, parents first, attaches every span to the
nearest invocation above it. Rules that seldom apply (a tool inside a tool, a model inside a model,
work with no invocation above) have side tables, which are empty for most traces.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from otel_reliability.assembly.invocations import Invocation, settle
from otel_reliability.model.span import (
    KIND_CONSUMER,
    KIND_SERVER,
    STEPS,
    AgentSpan,
    InvocationFacts,
    Kind,
    ModelFacts,
    SpanRef,
)

NONE: Final = -1
"""The index that stands for no span."""
ORDER: Final = attrgetter("start_ns", "end_ns", "span_id", "trace_id")
"""Start, end, span id, trace id."""
_ID: Final = attrgetter("span_id")
REF: Final[Callable[[AgentSpan], SpanRef]] = attrgetter("trace_id", "span_id")
_AGENT = Kind.AGENT
_WORKFLOW = Kind.WORKFLOW
_CHAIN = Kind.CHAIN
_MODEL = Kind.MODEL
_TOOL = Kind.TOOL
_OTHER = Kind.OTHER
_EVALUATION = Kind.EVALUATION
_WORK: Final = STEPS | {Kind.AGENT}


class Position(Struct, frozen=True, eq=False):
    """Place of the children of a span, shared by all of them.

    - `node`: the invocation above. `tool`, `model`: the tool and the model span between.
    - `below_tool`, `below_chain`: whether a tool (or an evaluation) or a chain lies between. `gap`:
      whether a local parent is missing above all.
    """

    node: Invocation | None = None
    tool: int = NONE
    model: int = NONE
    below_tool: bool = False
    below_chain: bool = False
    gap: bool = False


_TOP: Final = Position()
_BELOW_GAP: Final = Position(gap=True)


class SpanTree:
    """Spans in order with their parents, the invocations, and side tables. Lists are indexed like
    `spans`.

    - `parent`: the index of the parent, `NONE` for the top of a tree.
    - `nodes`: the nearest invocation above each span; `invocations`: all of them, parents before
      children.
    - `orphans`: work with no invocation above. `annotators`: other spans with notes or evaluations
      and no invocation above.
    - `others`: all other spans of kind OTHER, which only connect spans.
    - `in_tool`, `in_model`: the tool or model span that a span lies in, within its invocation.
    - `details`: what log events add to the model span that they were written in.
    - `cut`: tops that have a parent here, in a cycle of parents.
    - `attempts`: the topmost spans of attempts at an invocation that was executed again, which lie
      below it, with what distinguishes the attempts.
    """

    __slots__ = (
        "_invocation_at",
        "_kept_above",
        "_tops",
        "_working",
        "annotators",
        "attempts",
        "cut",
        "details",
        "has_background",
        "in_model",
        "in_tool",
        "invocations",
        "joined",
        "nodes",
        "orphans",
        "others",
        "parent",
        "spans",
    )

    def __init__(
        self,
        spans: Sequence[AgentSpan],
        linked: Mapping[int, int] | None = None,
        *,
        joined: bool = False,
        attempts: Mapping[int, int] | None = None,
    ) -> None:
        """`linked`: spans and the ones that they are put below. `joined`: the spans of several
        traces, which messaging links or a run key join.
        """
        self.spans = spans = sorted(spans, key=ORDER)
        self.joined = joined
        self.attempts = attempts or {}
        index = _indices(spans, joined=joined)
        if len(index) < len(spans):
            name: Callable[[AgentSpan], Any] = REF if joined else _ID
            self.spans = spans = sorted(latest_versions(spans, name), key=ORDER)
            index = _indices(spans, joined=joined)
        get = index.get
        if joined:
            self.parent = [get(parent_ref(span), NONE) for span in spans]
        else:
            self.parent = [get(span.parent_id, NONE) for span in spans]
        if linked:
            for below, root in linked.items():
                self.parent[below] = root
        self.invocations: list[Invocation] = []
        self.orphans: list[int] = []
        self.in_tool: dict[int, int] = {}
        self.in_model: dict[int, int] = {}
        self.annotators: list[int] = []
        self.others: list[int] = []
        self.details: dict[int, list[ModelFacts]] = {}
        self.nodes: list[Invocation | None] = [None] * len(spans)
        self.cut: set[int] = set()
        self._working: set[int] | None = None
        self._invocation_at: dict[int, Invocation] | None = None
        self._kept_above: dict[int, int] = {}
        self._tops: dict[int, int] = {}
        self._attach()
        if self.invocations:
            settle(self.invocations, spans, self.attempts)
        self.has_background = any(node.background is node for node in self.invocations)

    # --- Building ---------------------------------------------------------------------------------

    def _attach(self) -> None:
        """First the few spans that have children, parents before children; then all others, which
        are leaves.
        """
        parent = self.parent
        positions: dict[int, Position] = {}
        parents = set(parent)
        parents.discard(NONE)
        chain: dict[int, None]
        for first in sorted(parents):
            i = first
            chain = {}
            while i != NONE and i not in positions:
                if i in chain:  # a cycle of parents is cut at its earliest span
                    steps = list(chain)
                    cut = min(steps[steps.index(i) :])
                    parent[cut] = NONE
                    self.cut.add(cut)
                    i = first
                    chain = {}
                chain[i] = None
                i = parent[i]
            for j in reversed(chain):
                self._attach_inner(j, positions)
        spans = self.spans
        nodes = self.nodes
        orphans = self.orphans
        in_tool = self.in_tool
        in_model = self.in_model
        for i, span in enumerate(spans):
            if i in positions:
                continue
            kind = span.kind
            if kind is _MODEL or kind is _TOOL:
                above = parent[i]
                here = positions[above] if above != NONE else _position_of_top(span)
                nodes[i] = node = here.node
                (orphans if node is None else node.steps).append(i)
                if here.tool != NONE:
                    in_tool[i] = here.tool
                if here.model != NONE:
                    in_model[i] = here.model
            else:
                self._attach_inner(i, positions)

    # one branch per kind
    def _attach_inner(self, i: int, positions: dict[int, Position]) -> None:  # noqa: C901
        """Attach any span, and note the position of its children."""
        span = self.spans[i]
        above = self.parent[i]
        kind = span.kind
        here = positions[above] if above != NONE else _position_of_top(span)
        node = here.node
        tool = here.tool
        model = here.model
        gap = here.gap
        self.nodes[i] = node
        is_container = kind is _AGENT or kind is _WORKFLOW
        is_chain = kind is _CHAIN and span.span_kind not in (KIND_SERVER, KIND_CONSUMER)
        if is_chain and node is None and not here.below_chain and not gap:
            is_container = not _is_turn(span) and self._has_work_below(i)
        below = here
        if is_container:
            new = Invocation(i, span, node, here.below_tool, gap)
            self.invocations.append(new)
            below = Position(new, gap=gap)
        elif kind is _OTHER and not is_kept(span):
            self.others.append(i)
            positions[i] = here
            facts = span.facts
            if model != NONE and isinstance(facts, ModelFacts):
                self.details.setdefault(model, []).append(facts)
            return
        elif node is not None:
            node.steps.append(i)
        else:
            (self.annotators if kind is _OTHER else self.orphans).append(i)
        if kind is _TOOL:
            below = Position(node, tool=i, below_tool=True, below_chain=here.below_chain, gap=gap)
        elif kind is _MODEL:
            below = replace(here, model=i)
        elif kind is _EVALUATION:  # what a judge or a guardrail calls does not name the run
            below = replace(here, below_tool=True)
        elif is_chain and not is_container and not here.below_chain:
            below = replace(here, below_chain=True)
        if tool != NONE:
            self.in_tool[i] = tool
        if model != NONE:
            self.in_model[i] = model
        positions[i] = below

    def _has_work_below(self, i: int) -> bool:
        """Return whether agent, model or tool work lies below a span."""
        if self._working is None:
            self._working = found = set[int]()
            for j, span in enumerate(self.spans):
                if span.kind in _WORK:
                    above = self.parent[j]
                    while above != NONE and above not in found:
                        found.add(above)
                        above = self.parent[above]
        return i in self._working

    def release(self) -> None:
        """Cut the invocations apart, which refer to one another: so they are freed at once, without
        a garbage collection.
        """
        for node in self.invocations:
            del node.root, node.top
            node.enclosing = node.run_above = None

    # --- Questions --------------------------------------------------------------------------------

    @property
    def invocation_at(self) -> Mapping[int, Invocation]:
        """The invocations by index, made when they are first asked for."""
        if self._invocation_at is None:
            self._invocation_at = {node.at: node for node in self.invocations}
        return self._invocation_at

    def innermost(self, i: int) -> Invocation | None:
        """Return the invocation that a span is, else the nearest above it."""
        return self.invocation_at.get(i, self.nodes[i])

    def ref(self, i: int) -> SpanRef:
        span = self.spans[i]
        return span.trace_id, span.span_id

    def kept_above(self, i: int) -> int:
        """Return the nearest span above that is more than a connection, or `NONE`."""
        above = self.parent[i]
        spans = self.spans
        if above == NONE or is_kept(spans[above]):
            return above
        return self._climb(above, self._kept_above, lambda at: at == NONE or is_kept(spans[at]))

    def top_of(self, i: int) -> int:
        """Return the topmost known span above a span, or the span itself."""
        return self._climb(i, self._tops, lambda at: self.parent[at] == NONE)

    def _climb(self, i: int, known: dict[int, int], is_end: Callable[[int], bool]) -> int:
        """Return the first end from a span upwards. `known` remembers it for every span passed, so
        none is passed twice.
        """
        passed: list[int] = []
        while not is_end(i):
            if i in known:
                i = known[i]
                break
            passed.append(i)
            i = self.parent[i]
        known.update(dict.fromkeys(passed, i))
        return i

    def top_kept(self, i: int) -> int:
        """Return the topmost span above a span that is more than a connection, or the span
        itself.
        """
        while (above := self.kept_above(i)) != NONE:
            i = above
        return i

    def attempt_of(self, i: int) -> int:
        """Return the attempt that a span lies in; `NONE`: the one that was brought to an end."""
        while i != NONE and i not in self.attempts:
            i = self.parent[i]
        return self.attempts.get(i, NONE)

    def is_below(self, i: int, above: int) -> bool:
        """Return whether a span lies below another one, or is that one."""
        while i not in (NONE, above):
            i = self.parent[i]
        return i == above

    def anchor(self, top: int) -> SpanRef:
        """Return the reference of a topmost span: its missing parent, or itself."""
        span = self.spans[top]
        missing = None if top in self.cut else parent_ref(span)
        return missing or (span.trace_id, span.span_id)

    def has_gap(self, top: int) -> bool:
        """Return whether a topmost span has a local parent that has not arrived."""
        return _position_of_top(self.spans[top]) is _BELOW_GAP


def _indices(spans: Sequence[AgentSpan], *, joined: bool) -> dict[Any, int]:
    """Return the index of each span, by its id; by its trace and its id where traces are joined."""
    if joined:
        return {(span.trace_id, span.span_id): i for i, span in enumerate(spans)}
    return {span.span_id: i for i, span in enumerate(spans)}


def is_kept(span: AgentSpan) -> bool:
    """Return whether a span is more than a connection between others."""
    return span.kind is not _OTHER or span.notes is not None or bool(span.evaluations)


def parent_ref(span: AgentSpan) -> SpanRef | None:
    """Return the parent of a span, or the link of a messaging hop."""
    parent_id = span.parent_id
    return (span.trace_id, parent_id) if parent_id is not None else span.link


def _is_turn(span: AgentSpan) -> bool:
    return isinstance(span.facts, InvocationFacts) and span.facts.is_turn


def _position_of_top(span: AgentSpan) -> Position:
    """Return the position of a span without a parent here: at the top, or below a local parent that
    may still arrive.
    """
    if span.parent_id is None and span.link is None:
        return _TOP
    return _BELOW_GAP if span.parent_remote is not True else _TOP


def latest_versions(
    spans: Sequence[AgentSpan], name: Callable[[AgentSpan], Any]
) -> list[AgentSpan]:
    """Of several versions of a span keep the one with the greater end, then the greater content."""
    found: dict[Any, AgentSpan] = {}
    for span in spans:
        known = found.setdefault(name(span), span)
        if known is not span and known != span and _rank(span) > _rank(known):
            found[name(span)] = span
    return list(found.values())


def _rank(span: AgentSpan) -> tuple[bool, int, str]:
    return (
        is_kept(span),
        span.end_ns,
        repr(replace(span, resource=replace(span.resource, attributes={}))),
    )
