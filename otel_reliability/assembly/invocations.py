"""Invocations: agents, workflows and containers; which of them are runs, and how each is named."""

from __future__ import annotations

from collections.abc import Container, Sequence
from itertools import pairwise
from typing import Final

from otel_reliability.model.span import (
    PAUSED,
    STEPS,
    AgentSpan,
    InvocationFacts,
    Kind,
    ModelFacts,
    RejectionFacts,
)
from otel_reliability.statistics.likeness import likeness

MAX_NESTING: Final = 64
"""Maximum depth of nested runs; deeper ones are part of the run above, because every step counts
once for each run it is in.
"""
_ALIKE: Final = 0.75
"""Cosine of the sketches of two requests, below which they are unlike."""
_NO_FACTS: Final = InvocationFacts()
_AGENT = Kind.AGENT
_MODEL = Kind.MODEL
_TOOL = Kind.TOOL


class Invocation:
    """An agent, a workflow, or a chain that is a container: a node of the tree of invocations.

    - `at`: its index among the spans. `steps`: indices of the spans whose nearest invocation it is.
    - `enclosing`: the nearest invocation above (None: top level). `inner`: those that it encloses
      directly.
    - `root`: the invocation whose run it is part of. `run_above`: for the root of a nested run, the
      root of the run above.
    - `name`: its own name. `agent`: for the root of a run, the name that the run has.
    - `background`: the nearest invocation, itself or above, that went on after the run that started
      it; None where there is none.
    - `below_tool`: a tool lies between it and `enclosing`. `gap`: a local parent is missing above
      all.
    - `top`: the outermost invocation above, or itself. `depth`: the number of runs that the run of
      this root is nested in. `is_direct`: no tool lies between it and `top`.
    """

    __slots__ = (
        "agent",
        "at",
        "background",
        "below_tool",
        "depth",
        "enclosing",
        "facts",
        "gap",
        "inner",
        "is_direct",
        "name",
        "root",
        "run_above",
        "span",
        "steps",
        "top",
    )

    def __init__(
        self, at: int, span: AgentSpan, enclosing: Invocation | None, below_tool: bool, gap: bool
    ) -> None:
        facts = span.facts
        self.at = at
        self.span = span
        self.enclosing = enclosing
        self.below_tool = below_tool
        self.gap = gap
        self.facts = facts if isinstance(facts, InvocationFacts) else _NO_FACTS
        self.name: str | None = None
        self.agent: str | None = None
        self.run_above: Invocation | None = None
        self.root = self.top = self
        self.depth = 0
        self.is_direct = True
        self.background: Invocation | None = None
        self.steps: list[int] = []
        self.inner: list[Invocation] = []

    @property
    def is_agent(self) -> bool:
        """Return whether it is an agent: by its kind, or a graph with nothing above it."""
        if self.span.kind is _AGENT:
            return True
        return self.enclosing is None and self.facts.agent_if_root and self.name is not None


def settle(
    invocations: list[Invocation], spans: Sequence[AgentSpan], attempts: Container[int] = ()
) -> None:
    """Decide which invocations are runs, which of them are nested, and how each is named. Parents
    come before children; `spans` are those of their tree. `attempts`: what is executed again.
    """
    _cut_leaked_contexts(invocations)
    _cut_later_runs(invocations, spans, attempts)
    _name(invocations)
    _assign(invocations, spans)


def _cut_leaked_contexts(invocations: list[Invocation]) -> None:
    """A context that leaked out of a failed agent makes later runs its descendants; they are
    top-level runs.
    """
    failed_end: dict[Invocation, int] = {}
    for node in invocations:
        span = node.span
        if span.failed and span.kind is _AGENT:
            for enclosing in (node, node.enclosing):
                if enclosing is not None:
                    failed_end[enclosing] = min(failed_end.get(enclosing, span.end_ns), span.end_ns)
    if not failed_end:
        return
    for node in invocations:
        enclosing = node.enclosing
        span = node.span
        if enclosing is None or node.below_tool or enclosing not in failed_end:
            continue
        if span.start_ns >= failed_end[enclosing] and span.end_ns > enclosing.span.end_ns:
            node.enclosing = None


def _cut_later_runs(
    invocations: list[Invocation], spans: Sequence[AgentSpan], attempts: Container[int]
) -> None:
    """Cut off what begins again after its own end: a later run of the same agent or workflow,
    though a context that was kept makes it a descendant of the one before.
    """
    for node in invocations:
        above = None if node.at in attempts else node.enclosing
        for _ in range(MAX_NESTING):
            if above is None:
                break
            if _is_later_run(node, above, spans):
                node.enclosing = None
                break
            above = above.enclosing


def _is_later_run(node: Invocation, above: Invocation, spans: Sequence[AgentSpan]) -> bool:
    """Return whether an invocation began after the end of one above of the same name, which had
    finished steps of its own by then. (One that reports its end too early had not.) What follows
    one that paused is its resumption.
    """
    name = node.facts.name
    end = above.span.end_ns
    return (
        name is not None
        and name == above.facts.name
        and node.span.kind is above.span.kind
        and node.span.start_ns >= end
        and node.span.resource.service == above.span.resource.service
        and any(spans[i].kind in STEPS and spans[i].end_ns <= end for i in above.steps)
        and above.facts.stopped != PAUSED
        and not any(_is_pending(spans[i]) for i in above.steps)
    )


def _is_pending(span: AgentSpan) -> bool:
    return isinstance(span.facts, RejectionFacts) and span.facts.pending


def _is_detached(node: Invocation, enclosing: Invocation, spans: Sequence[AgentSpan]) -> bool:
    """Return whether a tool started an invocation in the background, which went on after the run
    that started it.

    The clocks of two services differ, so there it must have lasted longer than that run.
    """
    if not node.below_tool or node.span.kind is not _AGENT:
        return False
    root = enclosing.root
    caller = root.span
    end = max([caller.end_ns, *[spans[i].end_ns for i in (*root.steps, *enclosing.steps)]])
    if node.span.end_ns <= end:
        return False
    if node.span.resource.service_name == caller.resource.service_name:
        return node.span.start_ns >= caller.start_ns
    return node.span.end_ns - node.span.start_ns > end - caller.start_ns


def _name(invocations: list[Invocation]) -> None:
    """Give each its own name, else the one its manager calls it by."""
    for node in invocations:
        facts = node.facts
        enclosing = node.enclosing
        if not facts.weak:
            node.name = facts.name
        if node.name is None and enclosing is not None and facts.fallback_name is not None:
            manages = enclosing.facts.manages
            if manages and enclosing.facts.fallback_name is not None:
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
        enclosing = node.enclosing
        if enclosing is not None:
            node.top = enclosing.top
            node.is_direct = enclosing.is_direct and not node.below_tool
            node.background = enclosing.background
        name = node.facts.name
        if name is not None and node.is_direct:
            if node.facts.weak:
                weak[node.top] = name
            elif node.span.kind is _AGENT and (
                node.top not in first or node.at < first[node.top][0]
            ):
                first[node.top] = (node.at, name)
    for node in invocations:
        enclosing = node.enclosing
        if enclosing is None:
            if node.name is not None and node.is_agent:
                node.agent = node.name
            # the first named agent's name, the container's, the innermost weak one, a class name
            else:
                named = first[node][1] if node in first else None
                node.agent = named or node.name or weak.get(node) or node.facts.fallback_name
        elif node in separate:
            node.agent = node.name
        else:
            _place_in(enclosing, node, spans)


def _place_in(enclosing: Invocation, node: Invocation, spans: Sequence[AgentSpan]) -> None:
    """Make an invocation a part of the run above it, a nested run, or a top-level run."""
    enclosing.inner.append(node)
    if _is_part_of_run(node, enclosing):
        node.root = enclosing.root
        return
    node.run_above = enclosing.root
    node.depth = enclosing.root.depth + 1
    node.agent = node.name or node.facts.name or node.facts.fallback_name
    if _is_detached(node, enclosing, spans):
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
        if node.enclosing is not None:
            inside.setdefault(node.enclosing, []).append(node)
    found: set[Invocation] = set()
    for enclosing, nodes in inside.items():
        if len(nodes) < 2 or enclosing.enclosing is not None or enclosing.is_agent:
            continue
        names = {node.name for node in nodes if node.span.kind is _AGENT and not node.below_tool}
        is_one_agent = len(names) == 1 and None not in names
        if (
            is_one_agent
            and all(node.span.kind is _AGENT and not node.below_tool for node in nodes)
            and not any(spans[i].kind in STEPS for i in enclosing.steps)
            and all(_are_separate(one, two, enclosing, spans) for one, two in pairwise(nodes))
        ):
            found.update(nodes)
    return found


def _are_separate(
    one: Invocation, two: Invocation, enclosing: Invocation, spans: Sequence[AgentSpan]
) -> bool:
    """Return whether an agent's invocation begins again after the one before: in another
    conversation, or in a loop of the user's own after an end of its own, with no longer input. In a
    container of the framework's own, which the turns of a conversation may share, the first must
    have answered, and the next be asked something else.
    """
    first_session = one.span.session
    next_session = two.span.session
    if first_session is not None and next_session is not None and first_session != next_session:
        return True
    before = _models_of(one, spans)
    after = _models_of(two, spans)
    if not before or not after:
        return False
    last = before[-1][1]
    first = after[0][1]
    if enclosing.span.scope == one.span.scope:
        answered = not last.asked_for_tools and not one.span.failed
        return answered and enclosing.facts.request is None and _asks_anew(one, two, spans)
    if last.tokens.input is None or first.tokens.input is None:
        return False
    has_tools = any(spans[i].kind is _TOOL for i in one.steps)
    has_end = has_tools or one.span.failed or not last.asked_for_tools
    return has_end and first.tokens.input <= last.tokens.input


def _asks_anew(one: Invocation, two: Invocation, spans: Sequence[AgentSpan]) -> bool:
    """Return whether two invocations are known to have unlike requests."""
    before = _request_of(one, spans)
    after = _request_of(two, spans)
    if before is None or after is None or before == after:
        return False
    return likeness(before, after) < _ALIKE


def _request_of(node: Invocation, spans: Sequence[AgentSpan]) -> bytes | None:
    if node.facts.request is not None:
        return node.facts.request
    models = _models_of(node, spans)
    return (models[0][1].request or None) if models else None


def _models_of(node: Invocation, spans: Sequence[AgentSpan]) -> list[tuple[AgentSpan, ModelFacts]]:
    found = [(spans[i], spans[i].facts) for i in node.steps if spans[i].kind is _MODEL]
    return [(span, facts) for span, facts in found if isinstance(facts, ModelFacts)]


def _is_part_of_run(node: Invocation, enclosing: Invocation) -> bool:
    """Return whether an invocation is part of the run of the one that encloses it.

    At the greatest depth it is. Else it must not be below a tool, and one of these holds: it has no
    name; it is no agent; an enclosing invocation, up to the nearest tool, has its name; its name is
    the one that the run has from its agents (the root has no name, or is no agent).
    """
    root = enclosing.root
    name = node.name
    if root.depth >= MAX_NESTING:
        return True
    if node.below_tool:
        return False
    if name is None or node.span.kind is not _AGENT or _is_name_above(enclosing, name):
        return True
    return (not root.is_agent or root.name is None) and root.agent == name


def _is_name_above(enclosing: Invocation, name: str) -> bool:
    """Return whether an enclosing invocation has the name, up to the nearest tool."""
    here: Invocation | None = enclosing
    for _ in range(MAX_NESTING):
        if here is None:
            return False
        if here.name == name:
            return True
        here = None if here.below_tool else here.enclosing
    return False
