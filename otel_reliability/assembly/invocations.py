"""Invocations: agents, workflows and containers; which of them are runs, and how each is named."""

from __future__ import annotations

from typing import Final

from otel_reliability.model.span import AgentSpan, InvocationFacts, Kind

MAX_NESTING: Final = 64
"""Maximum depth of nested runs; deeper ones are part of the run above, because every step counts once for each run it is in."""
_AGENT: Final = Kind.AGENT
_NO_FACTS: Final = InvocationFacts()


class Invocation:
    """An agent, a workflow, or a chain that is a container: a node of the tree of invocations.

    - `at`: its index among the spans. `steps`: indices of the spans whose nearest invocation it is.
    - `over`: the invocation that encloses it (None: top level). `inner`: those that it encloses directly.
    - `root`: the invocation whose run it is part of. `above`: for the root of a nested run, the root of the run above.
    - `name`: its own name. `agent`: for the root of a run, the name that the run has.
    - `below_tool`: a tool lies between it and `over`. `gap`: a local parent is missing above all.
    """

    __slots__ = ("above", "agent", "at", "below_tool", "depth", "facts", "gap", "inner", "is_direct", "name", "over", "root",
                 "span", "steps", "top")  # fmt: skip

    def __init__(self, at: int, span: AgentSpan, over: Invocation | None, below_tool: bool, gap: bool) -> None:
        facts = span[9]
        self.at, self.span, self.over, self.below_tool, self.gap = at, span, over, below_tool, gap
        self.facts = facts if isinstance(facts, InvocationFacts) else _NO_FACTS
        self.name: str | None = None
        self.agent: str | None = None
        self.above: Invocation | None = None
        self.root = self.top = self
        self.depth = 0
        self.is_direct = True
        self.steps: list[int] = []
        self.inner: list[Invocation] = []

    @property
    def is_agent(self) -> bool:
        """Return whether it is an agent: by its kind, or a graph with nothing above it."""
        if self.span[7] is _AGENT:
            return True
        return self.over is None and self.facts.agent_if_root and self.name is not None


def resolve(invocations: list[Invocation]) -> None:
    """Name the invocations of a tree and divide them into runs. Parents come before children."""
    _cut_leaked_contexts(invocations)
    _name(invocations)
    _assign(invocations)


def _cut_leaked_contexts(invocations: list[Invocation]) -> None:
    """A context that leaked out of a failed agent makes later runs its descendants; they are top-level runs."""
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
        over, span = node.over, node.span
        if over is None or node.below_tool or over not in failed_end:
            continue
        if span.start_ns >= failed_end[over] and span.end_ns > over.span.end_ns:
            node.over = None


def _name(invocations: list[Invocation]) -> None:
    """Give each its own name, else the one its manager calls it by."""
    for node in invocations:
        facts, over = node.facts, node.over
        if not facts.weak:
            node.name = facts.name
        if node.name is None and over is not None and facts.fallback_name is not None:
            manages = over.facts.manages
            if manages and over.facts.fallback_name is not None:
                if len(manages) == 1:
                    node.name = manages[0]
                elif facts.called_as in manages:
                    node.name = facts.called_as


def _assign(invocations: list[Invocation]) -> None:
    """Find top-level runs, then, parents first, what is the same invocation and what is a nested run."""
    first: dict[Invocation, tuple[int, str]] = {}
    weak: dict[Invocation, str] = {}
    for node in invocations:
        over = node.over
        if over is not None:
            node.top = over.top
            node.is_direct = over.is_direct and not node.below_tool
        name = node.facts.name
        if name is not None and node.is_direct:
            if node.facts.weak:
                weak[node.top] = name
            elif node.span.kind is _AGENT and (node.top not in first or node.at < first[node.top][0]):
                first[node.top] = (node.at, name)
    for node in invocations:
        over = node.over
        if over is None:
            node.agent = _name_of_top(node, first, weak)
            continue
        over.inner.append(node)
        if _is_same(node, over):
            node.root = over.root
        else:
            node.above = over.root
            node.depth = over.root.depth + 1
            node.agent = node.name or node.facts.name or node.facts.fallback_name


def _name_of_top(node: Invocation, first: dict[Invocation, tuple[int, str]], weak: dict[Invocation, str]) -> str | None:
    """The root agent's name, the first named agent's, the container's, the innermost weak one, a class name."""
    if node.name is not None and node.is_agent:
        return node.name
    return (first[node][1] if node in first else None) or node.name or weak.get(node) or node.facts.fallback_name


def _is_same(node: Invocation, over: Invocation) -> bool:
    """Return whether it is not below a tool, and unnamed, a workflow, of an enclosing name, or the container's agent."""
    root, name = over.root, node.name
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
