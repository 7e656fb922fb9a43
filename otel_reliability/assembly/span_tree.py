"""The agent spans of one trace as a tree, and its invocations. Pure: a function of the set of
spans, not of their order.

Spans are sorted by (start, end, span id). One pass, parents first, attaches every span to the
nearest invocation above it. Rules that seldom apply (a tool inside a tool, a model inside a model,
work with no invocation above) have side tables, which are empty for most traces.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from operator import attrgetter, itemgetter
from typing import Any, Final, TypeAlias

from otel_reliability.model.span import (
    KIND_CONSUMER,
    KIND_SERVER,
    STEPS,
    AgentSpan,
    Evaluation,
    InvocationFacts,
    Kind,
    ModelFacts,
    Session,
    SpanRef,
)

# --- Invocations: agents, workflows and containers; which of them are runs, and how each is named -


MAX_NESTING: Final = 64
"""Maximum depth of nested runs; deeper ones are part of the run above, because every step counts
once for each run it is in.
"""
_NO_FACTS: Final = InvocationFacts()


class Invocation:
    """An agent, a workflow, or a chain that is a container: a node of the tree of invocations.

    - `at`: its index among the spans. `steps`: indices of the spans whose nearest invocation it is.
    - `over`: the invocation that encloses it (None: top level). `inner`: those that it encloses
      directly.
    - `root`: the invocation whose run it is part of. `above`: for the root of a nested run, the
      root of the run above.
    - `name`: its own name. `agent`: for the root of a run, the name that the run has.
    - `background`: the nearest invocation, itself or above, that went on after the run that started
      it; None where there is none.
    - `below_tool`: a tool lies between it and `over`. `gap`: a local parent is missing above all.
    """

    __slots__ = (
        "above",
        "agent",
        "at",
        "background",
        "below_tool",
        "depth",
        "facts",
        "gap",
        "inner",
        "is_direct",
        "name",
        "over",
        "root",
        "span",
        "steps",
        "top",
    )

    def __init__(
        self, at: int, span: AgentSpan, over: Invocation | None, below_tool: bool, gap: bool
    ) -> None:
        facts = span[9]
        self.at = at
        self.span = span
        self.over = over
        self.below_tool = below_tool
        self.gap = gap
        self.facts = facts if isinstance(facts, InvocationFacts) else _NO_FACTS
        self.name: str | None = None
        self.agent: str | None = None
        self.above: Invocation | None = None
        self.root = self.top = self
        self.depth = 0
        self.is_direct = True
        self.background: Invocation | None = None
        self.steps: list[int] = []
        self.inner: list[Invocation] = []

    @property
    def is_agent(self) -> bool:
        """Return whether it is an agent: by its kind, or a graph with nothing above it."""
        if self.span[7] is _AGENT:
            return True
        return self.over is None and self.facts.agent_if_root and self.name is not None


def _cut_leaked_contexts(invocations: list[Invocation]) -> None:
    """A context that leaked out of a failed agent makes later runs its descendants; they are
    top-level runs.
    """
    failed_end: dict[Invocation, int] = {}
    for node in invocations:
        span = node.span
        if span.failed and span.kind is _AGENT:
            for over in (node, node.over):
                if over is not None:
                    failed_end[over] = min(failed_end.get(over, span.end_ns), span.end_ns)
    if not failed_end:
        return
    for node in invocations:
        over = node.over
        span = node.span
        if over is None or node.below_tool or over not in failed_end:
            continue
        if span.start_ns >= failed_end[over] and span.end_ns > over.span.end_ns:
            node.over = None


def _is_detached(node: Invocation, over: Invocation, spans: Sequence[AgentSpan]) -> bool:
    """Return whether a tool started an invocation in the background, which went on after the run
    that started it.

    The clocks of two services differ, so there it must have lasted longer than that run.
    """
    caller = over.root.span
    if not node.below_tool or node.span.end_ns <= over.root.span.end_ns <= caller.start_ns:
        return False
    end = max([caller.end_ns, *[spans[i].end_ns for i in (*over.root.steps, *over.steps)]])
    if node.span.end_ns <= end or node.span.kind is not _AGENT:
        return False
    if node.span.resource.service_name == caller.resource.service_name:
        return node.span.start_ns >= caller.start_ns
    return node.span.end_ns - node.span.start_ns > end - caller.start_ns


def _name(invocations: list[Invocation]) -> None:
    """Give each its own name, else the one its manager calls it by."""
    for node in invocations:
        facts = node.facts
        over = node.over
        if not facts.weak:
            node.name = facts.name
        if node.name is None and over is not None and facts.fallback_name is not None:
            manages = over.facts.manages
            if manages and over.facts.fallback_name is not None:
                if len(manages) == 1:
                    node.name = manages[0]
                elif facts.called_as in manages:
                    node.name = facts.called_as


def _assign(invocations: list[Invocation], spans: Sequence[AgentSpan]) -> None:
    """Find top-level runs, then, parents first, what is the same invocation and what is a nested
    run.
    """
    separate = _separate_runs(invocations, spans) if len(invocations) > 2 else ()
    first: dict[Invocation, tuple[int, str]] = {}
    weak: dict[Invocation, str] = {}
    for node in invocations:
        over = node.over
        if over is not None:
            node.top = over.top
            node.is_direct = over.is_direct and not node.below_tool
            node.background = over.background
        name = node.facts.name
        if name is not None and node.is_direct:
            if node.facts.weak:
                weak[node.top] = name
            elif node.span.kind is _AGENT and (
                node.top not in first or node.at < first[node.top][0]
            ):
                first[node.top] = (node.at, name)
    for node in invocations:
        over = node.over
        if over is None:
            if node.name is not None and node.is_agent:
                node.agent = node.name
            # the first named agent's name, the container's, the innermost weak one, a class name
            else:
                named = first[node][1] if node in first else None
                node.agent = named or node.name or weak.get(node) or node.facts.fallback_name
        elif node in separate:
            node.agent = node.name
        else:
            _place_in(over, node, spans)


def _place_in(over: Invocation, node: Invocation, spans: Sequence[AgentSpan]) -> None:
    """Make an invocation a part of the run above it, a nested run, or a top-level run."""
    over.inner.append(node)
    if _is_same(node, over):
        node.root = over.root
        return
    node.above = over.root
    node.depth = over.root.depth + 1
    node.agent = node.name or node.facts.name or node.facts.fallback_name
    if _is_detached(node, over, spans):
        node.background = node


def _separate_runs(
    invocations: Sequence[Invocation], spans: Sequence[AgentSpan]
) -> set[Invocation]:
    """Return agents that are runs of their own although a container is around them: a loop over
    runs, and no agent that is reported once a step.

    A container that has steps of its own, or agents of several names, is one run.
    """
    inside: dict[Invocation, list[Invocation]] = {}
    for node in invocations:
        if node.over is not None:
            inside.setdefault(node.over, []).append(node)
    found: set[Invocation] = set()
    for over, nodes in inside.items():
        if len(nodes) < 2 or over.over is not None or over.is_agent:
            continue
        names = {node.name for node in nodes if node.span.kind is _AGENT and not node.below_tool}
        is_one_agent = len(names) == 1 and None not in names
        if (
            is_one_agent
            and all(node.span.kind is _AGENT and not node.below_tool for node in nodes)
            and not any(spans[i].kind in STEPS for i in over.steps)
            and all(_are_separate(one, two, over, spans) for one, two in pairwise(nodes))
        ):
            found.update(nodes)
    return found


def _are_separate(
    one: Invocation, two: Invocation, over: Invocation, spans: Sequence[AgentSpan]
) -> bool:
    """Return whether an agent's invocation begins anew after the one before: in another
    conversation, or in a loop of the user's own after an end of its own, with no longer input.
    """
    first_session = one.span.session
    next_session = two.span.session
    if first_session is not None and next_session is not None and first_session != next_session:
        return True
    before = _models_of(one, spans)
    after = _models_of(two, spans)
    if not before or not after or over.span.scope == one.span.scope:
        return False
    last = before[-1][1]
    first = after[0][1]
    if last.tokens.input is None or first.tokens.input is None:
        return False
    has_tools = any(spans[i].kind is _TOOL for i in one.steps)
    has_end = has_tools or one.span.failed or not last.asked_for_tools
    return has_end and first.tokens.input <= last.tokens.input


def _models_of(node: Invocation, spans: Sequence[AgentSpan]) -> list[tuple[AgentSpan, ModelFacts]]:
    found = [(spans[i], spans[i].facts) for i in node.steps if spans[i].kind is _MODEL]
    return [(span, facts) for span, facts in found if isinstance(facts, ModelFacts)]


def _is_same(node: Invocation, over: Invocation) -> bool:
    """Return whether it is not below a tool, and unnamed, a workflow, of an enclosing name, or the
    container's agent.
    """
    root = over.root
    name = node.name
    if root.depth >= MAX_NESTING:
        return True
    if node.below_tool:
        return False
    if name is None or node.span.kind is not _AGENT or _is_name_above(over, name):
        return True
    return (not root.is_agent or root.name is None) and root.agent == name


def _is_name_above(over: Invocation, name: str) -> bool:
    """Return whether an enclosing invocation has the name, up to the nearest tool."""
    here: Invocation | None = over
    for _ in range(MAX_NESTING):
        if here is None:
            return False
        if here.name == name:
            return True
        here = None if here.below_tool else here.over
    return False


# --- Tree -----------------------------------------------------------------------------------------


NONE: Final = -1
"""The index that stands for no span."""
_ORDER: Final = itemgetter(4, 5, 1, 0)
"""Start, end, span id, trace id."""
_ID: Final = itemgetter(1)
REF: Final[Callable[[AgentSpan], SpanRef]] = itemgetter(0, 1)
_AGENT = Kind.AGENT
_WORKFLOW = Kind.WORKFLOW
_CHAIN = Kind.CHAIN
_MODEL = Kind.MODEL
_TOOL = Kind.TOOL
_OTHER = Kind.OTHER
_WORK: Final = STEPS | {Kind.AGENT}

Above: TypeAlias = "tuple[Invocation | None, int, int, bool, bool, bool]"
"""The position of the children of a span, shared by all of them: the invocation above, the tool and
the model between, whether a tool or a chain lies between, whether a local parent is missing above
all.
"""
_TOP: Final[Above] = (None, NONE, NONE, False, False, False)
_BELOW_GAP: Final[Above] = (None, NONE, NONE, False, False, True)


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
    - `evaluations`: those that arrived apart from spans, by the index of the span they are about.
    """

    __slots__ = (
        "_agents",
        "_invocation_at",
        "_kept_above",
        "_sessions",
        "_tops",
        "_units",
        "_working",
        "annotators",
        "cut",
        "details",
        "evaluations",
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
    ) -> None:
        """`linked`: orphans and the root of the run that encloses them. `joined`: the spans of
        several traces, which messaging links or a run key join.
        """
        self.spans = spans = sorted(spans, key=_ORDER)
        self.joined = joined
        name: Callable[[AgentSpan], Any] = REF if joined else _ID
        index = {name(span): i for i, span in enumerate(spans)}
        if len(index) < len(spans):
            self.spans = spans = sorted(latest_versions(spans, name), key=_ORDER)
            index = {name(span): i for i, span in enumerate(spans)}
        get = index.get
        if joined:
            self.parent = [get(parent_ref(span), NONE) for span in spans]
        else:
            self.parent = [get(span[2], NONE) for span in spans]
        if linked:
            for below, root in linked.items():
                self.parent[below] = root
        self.invocations: list[Invocation] = []
        self.orphans: list[int] = []
        self.in_tool: dict[int, int] = {}
        self.in_model: dict[int, int] = {}
        self.annotators: list[int] = []
        self.others: list[int] = []
        self.evaluations: dict[int, list[Evaluation]] = {}
        self.details: dict[int, list[ModelFacts]] = {}
        self.nodes: list[Invocation | None] = [None] * len(spans)
        self.cut: set[int] = set()
        self._working: set[int] | None = None
        self._units: list[int] | None = None
        self._invocation_at: dict[int, Invocation] | None = None
        self._agents: dict[int, list[Invocation]] | None = None
        self._kept_above: dict[int, int] = {}
        self._tops: dict[int, int] = {}
        self._sessions: dict[int, Session] | None = None
        self._attach()
        if self.invocations:
            _cut_leaked_contexts(self.invocations)
            _name(self.invocations)
            _assign(self.invocations, spans)
        self.has_background = any(node.background is node for node in self.invocations)

    # --- Building ---------------------------------------------------------------------------------

    def _attach(self) -> None:
        """First the few spans that have children, parents before children; then all others, which
        are leaves.
        """
        parent = self.parent
        above: dict[int, Above] = {}
        parents = set(parent)
        parents.discard(NONE)
        chain: dict[int, None]
        for first in sorted(parents):
            i = first
            chain = {}
            while i != NONE and i not in above:
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
                self._attach_inner(j, above)
        spans = self.spans
        nodes = self.nodes
        orphans = self.orphans
        in_tool = self.in_tool
        in_model = self.in_model
        for i, span in enumerate(spans):
            if i in above:
                continue
            kind = span[7]
            if kind is _MODEL or kind is _TOOL:
                over = parent[i]
                here = above[over] if over != NONE else _position_of_top(span)
                nodes[i] = node = here[0]
                (orphans if node is None else node.steps).append(i)
                if here[1] != NONE:
                    in_tool[i] = here[1]
                if here[2] != NONE:
                    in_model[i] = here[2]
            else:
                self._attach_inner(i, above)

    # one branch per kind
    def _attach_inner(self, i: int, above: dict[int, Above]) -> None:  # noqa: C901
        """Attach any span, and note the position of its children."""
        span = self.spans[i]
        over = self.parent[i]
        kind = span[7]
        here = above[over] if over != NONE else _position_of_top(span)
        node, tool, model, below_tool, below_chain, gap = here
        self.nodes[i] = node
        is_container = kind is _AGENT or kind is _WORKFLOW
        is_chain = kind is _CHAIN and span[6] not in (KIND_SERVER, KIND_CONSUMER)
        if is_chain and node is None and not below_chain and not gap:
            is_container = self._has_work_below(i)
        below = here
        if is_container:
            new = Invocation(i, span, node, below_tool, gap)
            self.invocations.append(new)
            below = (new, NONE, NONE, False, False, gap)
        elif kind is _OTHER and not is_kept(span):
            self.others.append(i)
            above[i] = here
            facts = span[9]
            if model != NONE and isinstance(facts, ModelFacts):
                self.details.setdefault(model, []).append(facts)
            return
        elif node is not None:
            node.steps.append(i)
        else:
            (self.annotators if kind is _OTHER else self.orphans).append(i)
        if kind is _TOOL:
            below = (node, i, NONE, True, below_chain, gap)
        elif kind is _MODEL:
            below = (node, tool, i, below_tool, below_chain, gap)
        elif is_chain and not is_container:
            below = (node, tool, model, below_tool, True, gap)
        if tool != NONE:
            self.in_tool[i] = tool
        if model != NONE:
            self.in_model[i] = model
        above[i] = below

    def _has_work_below(self, i: int) -> bool:
        """Return whether agent, model or tool work lies below a span."""
        if self._working is None:
            self._working = found = set[int]()
            for j, span in enumerate(self.spans):
                if span[7] in _WORK:
                    over = self.parent[j]
                    while over != NONE and over not in found:
                        found.add(over)
                        over = self.parent[over]
        return i in self._working

    def release(self) -> None:
        """Cut the invocations apart, which refer to one another: so they are freed at once, without
        a garbage collection.
        """
        for node in self.invocations:
            del node.root, node.top
            node.over = node.above = None

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
        return span[0], span[1]

    def kept_above(self, i: int) -> int:
        """Return the nearest span above that is more than a connection, or `NONE`."""
        over = self.parent[i]
        spans = self.spans
        if over == NONE or is_kept(spans[over]):
            return over
        return self._climb(over, self._kept_above, lambda at: at == NONE or is_kept(spans[at]))

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

    def session_above(self, i: int) -> Session | None:
        """Return the first session, by rank and id, of the connecting spans right above members of
        a span's unit.
        """
        if self._sessions is None:
            self._sessions = (
                self._sessions_above()
                if any(self.spans[j][12] is not None for j in self.others)
                else {}
            )
        return self._sessions.get(self.units[i]) if self._sessions else None

    def _sessions_above(self) -> dict[int, Session]:
        spans = self.spans
        parent = self.parent
        found: dict[int, Session] = {}
        first: dict[int, Session | None] = {NONE: None}
        for i, unit in enumerate(self.units):
            if unit == NONE or not is_kept(spans[i]):
                continue
            over = parent[i]
            passed = list[int]()
            while over not in first and not is_kept(spans[over]):
                passed.append(over)
                over = parent[over]
            session = first.get(over)
            for j in reversed(passed):
                session = first[j] = min(
                    [one for one in (session, spans[j][12]) if one is not None], default=None
                )
            if session is not None:
                found[unit] = min(found.get(unit, session), session)
        return found

    def next_agent(self, i: int) -> Invocation | None:
        """Return the first agent of a span's unit that starts with it or later."""
        if self._agents is None:
            self._agents = {}
            for node in sorted(
                self.invocations, key=attrgetter("at")
            ):  # in the order of their starts
                if node.span.kind is _AGENT:
                    self._agents.setdefault(self.units[node.at], []).append(node)
        agents = self._agents.get(self.units[i], [])
        place = bisect_left(agents, self.spans[i].start_ns, key=attrgetter("span.start_ns"))
        return agents[place] if place < len(agents) else None

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

    @property
    def units(self) -> list[int]:
        """The unit of each span, as the index of its first member: spans connected through spans
        that are more than connections. Topmost spans that are no agent or workflow and have the
        same reference as parent share a unit. `NONE`: in no unit.
        """
        if self._units is None:
            self._units = self._divide()
        return self._units

    def _divide(self) -> list[int]:
        spans = self.spans
        parent = self.parent
        count = len(self.spans)
        units = [NONE] * count
        state = bytearray(count)
        shared: dict[SpanRef, int] = {}
        for i in range(count):
            chain: list[int] = []
            here = i
            while here != NONE and not state[here]:
                state[here] = 1
                chain.append(here)
                here = parent[here]
            for j in reversed(chain):
                over = parent[j]
                unit = units[over] if over != NONE else NONE
                if unit == NONE and (spans[j].kind is not _OTHER or is_kept(spans[j])):
                    unit = j
                    if spans[j].kind is not _AGENT and spans[j].kind is not _WORKFLOW:
                        unit = shared.setdefault(self.anchor(self.top_of(j)), j)
                units[j] = unit
        return units


def is_kept(span: AgentSpan) -> bool:
    """Return whether a span is more than a connection between others."""
    return span[7] is not _OTHER or span[13] is not None or bool(span[14])


def parent_ref(span: AgentSpan) -> SpanRef | None:
    """Return the parent of a span, or the link of a messaging hop."""
    parent_id = span[2]
    return (span[0], parent_id) if parent_id is not None else span[15]


def _position_of_top(span: AgentSpan) -> Above:
    """Return the position of a span without a parent here: at the top, or below a local parent that
    may still arrive.
    """
    if span[2] is None and span[15] is None:
        return _TOP
    return _BELOW_GAP if span[3] is not True else _TOP


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
        repr(span._replace(resource=span.resource._replace(attributes={}))),
    )
