"""Which invocations are runs, which are part of one, and what each is called.

For every invocation of a tree this gives its effective name, the run it belongs to (the index of that run's root), and for
nested runs the run above. Nothing here looks at steps.
"""

from __future__ import annotations

from typing import Final

from otel_reliability.assembly.tree import NONE, Tree
from otel_reliability.model.span import Kind

MAX_NESTING: Final = 64
"""Runs nested deeper than this are taken as part of the run above: nobody's agents call each other that deep, and every
step counts once for each run it is in."""


class Invocations:
    """The invocations of one tree, sorted out. Lists are indexed like the tree's spans.

    - `encloser`: the invocation above, NONE for top-level ones (leaked ones among them).
    - `name`: the effective name, None where unnamed.
    - `root`: for an invocation, the root of the run it is part of.
    - `above`: for the root of a nested run, the root of the run above it.
    - `order`: the invocations, parents before children.
    - `agent`: for the root of a run, the name the run took (None: nothing named it).
    """

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.order = [i for i in tree.down if tree.is_invocation[i]]
        count = len(tree.spans)
        self.encloser = [NONE] * count
        self.name: list[str | None] = [None] * count
        self.root = [NONE] * count
        self.above = [NONE] * count
        self.agent: dict[int, str | None] = {}
        self._depth = [0] * count
        self._top = [NONE] * count
        self._clear = bytearray(count)
        self._enclose()
        self._cut_leaks()
        self._name()
        self._assign()

    @property
    def roots(self) -> list[int]:
        """The roots of runs, top-level and nested, parents before children."""
        return [i for i in self.order if self.root[i] == i]

    def is_agent(self, i: int) -> bool:
        """Whether an invocation is an agent: it says so, or it is a graph with nothing above it (Q1)."""
        if self.tree.spans[i].kind is Kind.AGENT:
            return True
        return self.encloser[i] == NONE and self.tree.facts(i).agent_if_root and self.name[i] is not None

    def is_container(self, i: int) -> bool:
        """Whether an invocation is a workflow and not the agent."""
        return not self.is_agent(i)

    def _enclose(self) -> None:
        for i in self.order:
            self.encloser[i] = self.tree.invocation[i]

    def _cut_leaks(self) -> None:
        """A context that leaked out of a failed agent makes later runs its descendants; they are not."""
        tree = self.tree
        failed_end: dict[int, int] = {}
        for i in self.order:
            span = tree.spans[i]
            if span.failed and span.kind is Kind.AGENT:
                for over in (i, self.encloser[i]):
                    if over != NONE:
                        failed_end[over] = min(failed_end.get(over, span.end_ns), span.end_ns)
        for i in self.order:
            over = self.encloser[i]
            if over == NONE or tree.below_tool[i] or over not in failed_end:
                continue
            span = tree.spans[i]
            if span.start_ns >= failed_end[over] and span.end_ns > tree.spans[over].end_ns:
                self.encloser[i] = NONE

    def _name(self) -> None:
        """Effective names: a strong name of its own, else the one its manager calls it by (Q38)."""
        for i in self.order:
            facts = self.tree.facts(i)
            if not facts.weak:
                self.name[i] = facts.name
            if self.name[i] is None and self.encloser[i] != NONE:
                self.name[i] = self._managed_name(i)

    def _managed_name(self, i: int) -> str | None:
        facts, over = self.tree.facts(i), self.tree.facts(self.encloser[i])
        if facts.fallback_name is None or not over.manages or over.fallback_name is None:
            return None
        if len(over.manages) == 1:
            return over.manages[0]
        return facts.called_as if facts.called_as in over.manages else None

    def _assign(self) -> None:
        """Top-level runs, then, parents first, what is the same invocation and what a nested run."""
        for i in self.order:
            over = self.encloser[i]
            if over == NONE:
                self._top[i], self._clear[i] = i, 1
            else:
                self._top[i] = self._top[over]
                self._clear[i] = self._clear[over] and not self.tree.below_tool[i]
        first_named, weak = self._first_named(), self._innermost_weak()
        for i in self.order:
            over = self.encloser[i]
            if over == NONE:
                self.root[i] = i
                self.agent[i] = self._top_name(i, first_named, weak)
            elif self._is_same(i, over):
                self.root[i] = self.root[over]
            else:
                self.root[i] = i
                self.above[i] = self.root[over]
                self._depth[i] = self._depth[self.root[over]] + 1
                self.agent[i] = self.name[i] or self.tree.facts(i).name or self.tree.facts(i).fallback_name

    def _is_same(self, i: int, over: int) -> bool:
        """Not below a tool, and unnamed, or a workflow, or of an encloser's name, or the container's agent."""
        if self._depth[self.root[over]] >= MAX_NESTING:
            return True
        if self.tree.below_tool[i]:
            return False
        name = self.name[i]
        if name is None or self.tree.spans[i].kind is not Kind.AGENT or self._bears_name_above(over, name):
            return True
        root = self.root[over]
        return (self.is_container(root) or self.name[root] is None) and self.agent.get(root) == name

    def _bears_name_above(self, over: int, name: str) -> bool:
        """Whether an encloser of the chain bears the name, up to the nearest tool."""
        for _ in range(MAX_NESTING):
            if self.name[over] == name:
                return True
            if self.tree.below_tool[over] or self.encloser[over] == NONE:
                return False
            over = self.encloser[over]
        return False

    def _first_named(self) -> dict[int, str]:
        """The first agent by start time with a name of its own, not below a tool, of each top-level invocation."""
        found: dict[int, str] = {}
        for i in sorted(self.order):
            facts = self.tree.facts(i)
            if facts.name is not None and not facts.weak and self._clear[i] and self.tree.spans[i].kind is Kind.AGENT:
                found.setdefault(self._top[i], facts.name)
        return found

    def _innermost_weak(self) -> dict[int, str]:
        """The innermost weak name of the chain that hangs below each top-level invocation (Q25)."""
        found: dict[int, str] = {}
        for i in self.order:
            facts = self.tree.facts(i)
            if facts.name is not None and facts.weak and self._clear[i]:
                found[self._top[i]] = facts.name
        return found

    def _top_name(self, i: int, first_named: dict[int, str], weak: dict[int, str]) -> str | None:
        """Which the run takes where this gives nothing."""
        if self.is_agent(i) and self.name[i] is not None:
            return self.name[i]
        return first_named.get(i) or self.name[i] or weak.get(i) or self.tree.facts(i).fallback_name
