"""The tool calls of a run: each once, in the order of the path, retries and repeats marked."""

from __future__ import annotations

import heapq
from bisect import bisect_right
from collections.abc import Sequence
from typing import Final, Literal, TypeAlias

from otel_reliability.assembly.model_calls import ModelSpan
from otel_reliability.assembly.span_tree import NONE, Invocation, SpanTree
from otel_reliability.model.span import Call, SpanId
from otel_reliability.model.tools import is_edit

Parallel: TypeAlias = Literal["canonical", "as_started"]
HANDOFF: Final = "→"
"""Precedes the agent's name in a path."""


class Step:
    """A tool call or a hand-off on its way into a path.

    `at`: the index of its span; `position`: its place among the calls of that span. `node`: the invocation it belongs to.
    `outer`: the call that it was made in; `inner`: the calls made in it.
    """

    __slots__ = ("at", "call", "end_ns", "handoff", "inner", "node", "outer", "position", "span_id", "start_ns")

    def __init__(
        self, at: int, start_ns: int, end_ns: int, span_id: SpanId, position: int, call: Call, node: Invocation | None
    ) -> None:
        self.at = at
        self.start_ns = start_ns
        self.end_ns = end_ns
        self.span_id = span_id
        self.position = position
        self.call = call
        self.node = node
        self.handoff = False
        self.outer: Step | None = None
        self.inner: list[Step] | None = None

    @property
    def order(self) -> tuple[int, int, SpanId, int]:
        """The order of the clock."""
        return (self.start_ns, self.end_ns, self.span_id, self.position)

    @property
    def canonical_order(self) -> tuple[str, int, SpanId, int]:
        """The order within a parallel group."""
        return (self.call.name or "", self.start_ns, self.span_id, self.position)

    @property
    def label(self) -> str:
        """Its name in a path."""
        name = self.call[0] or "?"
        return HANDOFF + name if self.handoff else name

    def absorb(self, other: Step) -> None:
        """Add a second report of this call: it failed if either says so, all else comes from the report that has it."""
        a, b = self.call, other.call
        self.call = Call(
            a.name if a.name is not None else b.name,
            a.call_id if a.call_id is not None else b.call_id,
            a.arguments if a.arguments is not None else b.arguments,
            a.failed or b.failed,
            a.result if a.result is not None else b.result,
            a.effect if a.effect is not None else b.effect,
        )
        self.end_ns = max(self.end_ns, other.end_ns)


# --- One call reported twice ------------------------------------------------------------------------------------------


def calls_once(tree: SpanTree, steps: list[Step]) -> list[Step]:
    """Return each call once. `steps` are in the order of the clock; nothing is done unless a tool lies in a tool, or a call id
    occurs twice.
    """
    if tree.in_tool and len(steps) > 1:
        steps = _without_nested_reports(tree, steps)
    ids = [step.call[1] for step in steps if step.call[1] is not None and not step.handoff]
    return steps if len(set(ids)) == len(ids) else _without_overlapping_ids(steps)


def _without_nested_reports(tree: SpanTree, steps: list[Step]) -> list[Step]:
    """A tool span in a tool span of the same name and no other call id is the same call; any other was made in it."""
    of: dict[int, list[Step]] = {}
    for step in steps:
        of.setdefault(step.at, []).append(step)
    home: dict[int, Step] = {}
    absorbed: set[Step] = set()
    for step in steps:
        chain: list[int] = []
        i = step.at
        while i != NONE and i not in home:
            if i in of:
                chain.append(i)
            i = tree.parent[i]
        outer = None if i == NONE else home[i]
        for i in reversed(chain):
            own, tool = of[i], tree.in_tool.get(i, NONE)
            enclosing = home.get(tool) if tool in of and i not in tree.in_model else None
            if enclosing is not None and len(own) == 1 and _is_same(enclosing, own[0]):
                enclosing.absorb(own[0])
                absorbed.add(own[0])
                outer = enclosing
            else:
                for one in own:
                    one.outer = outer
                outer = own[0]
            home[i] = outer
    return [step for step in steps if step not in absorbed] if absorbed else steps


def _is_same(outer: Step, inner: Step) -> bool:
    mine, theirs = outer.call, inner.call
    if outer.handoff or inner.handoff:
        return False
    if mine.call_id is not None and theirs.call_id is not None:
        return mine.call_id == theirs.call_id
    return mine.name == theirs.name


def _without_overlapping_ids(steps: list[Step]) -> list[Step]:
    """Calls that overlap in time and have one call id are one; one after the other, they are attempts."""
    by_id: dict[str, list[Step]] = {}
    absorbed: dict[Step, Step] = {}
    kept: list[Step] = []
    for step in sorted(steps, key=lambda step: step.order):
        call_id = step.call.call_id
        if call_id is None or step.handoff:
            kept.append(step)
            continue
        others = by_id.setdefault(call_id, [])
        first = next((one for one in others if _overlap(one, step) and _names_agree(one, step)), None)
        if first is None:
            others.append(step)
            kept.append(step)
        else:
            first.absorb(step)
            absorbed[step] = first
    for step in kept:
        while step.outer is not None and step.outer in absorbed:
            step.outer = absorbed[step.outer]
        if step.outer is step:
            step.outer = None
    return kept


def _overlap(first: Step, second: Step) -> bool:
    """Return whether the later call started before the earlier ended; a call without duration overlaps only its equal."""
    return second.start_ns < first.end_ns or (second.start_ns == first.start_ns and second.end_ns == first.end_ns)


def _names_agree(first: Step, second: Step) -> bool:
    return first.call.name is None or second.call.name is None or first.call.name == second.call.name


# --- Path order -------------------------------------------------------------------------------------------------------


def in_path_order(tree: SpanTree, steps: list[Step], models: Sequence[ModelSpan], parallel: Parallel) -> list[Step]:
    """Return a call, then what was called inside it; parallel calls in canonical order.

    Calls issued together are a race: which span starts first is chance, so within such a group names decide.
    """
    last = 0
    for step in steps:
        if step.outer is not None or step.start_ns < last:
            break
        last = step.end_ns if step.end_ns > step.start_ns else step.start_ns + 1
    else:
        return steps  # one after the other
    tops: list[Step] = []
    for step in steps:
        if step.outer is None:
            tops.append(step)
        elif step.outer.inner is None:
            step.outer.inner = [step]
        else:
            step.outer.inner.append(step)
    starts: dict[Invocation | None, list[int]] = {}
    for i, _ in models:
        starts.setdefault(tree.nodes[i], []).append(tree.spans[i].start_ns)
    for each in starts.values():
        each.sort()
    path: list[Step] = []
    pending = _ordered(tops, starts, parallel)[::-1]
    while pending:
        step = pending.pop()
        path.append(step)
        if step.inner is not None:
            pending.extend(reversed(_ordered(step.inner, starts, parallel)))
            step.inner = None
    return path


def _ordered(steps: list[Step], model_starts: dict[Invocation | None, list[int]], parallel: Parallel) -> list[Step]:
    """Siblings in order: the parallel groups of each invocation, merged by their first calls."""
    if len(steps) < 2:
        return steps
    streams: dict[Invocation | None, list[Step]] = {}
    for step in sorted(steps, key=lambda step: step.order):
        streams.setdefault(step.node, []).append(step)
    groups = [_groups(stream, model_starts.get(node, [])) for node, stream in streams.items()]
    ordered: list[Step] = []
    for group in heapq.merge(*groups, key=lambda group: group[0].order):
        if len(group) > 1 and parallel == "canonical":
            group.sort(key=lambda step: step.canonical_order)
        ordered.extend(group)
    return ordered


def _groups(stream: list[Step], model_starts: list[int]) -> list[list[Step]]:
    """A call joins the group if it starts before the group's earliest end, or with its last call, and no model call between."""
    groups: list[list[Step]] = []
    earliest_end = 0
    for step in stream:
        if groups and _joins(step, groups[-1][-1], earliest_end, model_starts):
            groups[-1].append(step)
            earliest_end = min(earliest_end, step.end_ns)
        else:
            groups.append([step])
            earliest_end = step.end_ns
    return groups


def _joins(step: Step, last: Step, earliest_end: int, model_starts: list[int]) -> bool:
    if step.handoff or last.handoff or (step.start_ns >= earliest_end and step.start_ns != last.start_ns):
        return False
    return bisect_right(model_starts, step.start_ns) == bisect_right(model_starts, last.start_ns)


# --- Retries and repeats ------------------------------------------------------------------------------------------------


Mark: TypeAlias = tuple[bool, bool, int]
"""(retry, repeat, number of retries in a row up to this call)."""
Same: TypeAlias = tuple[str | None, bytes | None]
"""Tool and arguments of a call."""
FIRST: Final[Mark] = (False, False, 0)
REPEAT: Final[Mark] = (False, True, 0)
CYCLES: Final = (2, 3, 4)
"""Numbers of calls in a cycle."""


def marks(steps: Sequence[Step], effects: Sequence[bool]) -> list[Mark]:
    """Mark calls, which are in the order of the clock. `effects`: whether each call succeeded and changed something.

    A call is a retry if the latest earlier call of the same tool and arguments that ended before it started failed (where the
    arguments of either are unknown: of the same tool), and no edit of a file ended between the starts of the two. A success
    ends the chain. A repeat follows a success, with the same result where results are known, and no other call with an effect
    ended between the starts of the two. The calls of a cycle are neither edits nor effects between its rounds.
    """
    names = [step.call[0] for step in steps]
    if len(set(names)) == len(names):
        return [FIRST] * len(names)
    found: list[Mark] = []
    ended = _Ended(steps, effects)
    in_cycles: set[int] | None = None
    for position, step in enumerate(steps):
        ended.by(step.start_ns)
        earlier = ended.latest(*_same(step))
        mark = FIRST if earlier < 0 else _compared(step.call, steps[earlier].call, found[earlier][2])
        if mark is not FIRST and (ended.edits if mark[0] else ended.effects).since(earlier, _same(step)):
            if in_cycles is None:
                in_cycles = _in_cycles([_same(step) for step in steps])
            mark = mark if position in in_cycles else FIRST
        found.append(mark)
        ended.add(position)
    return found


class _Ended:
    """The calls that have ended by some time: the latest of each tool and arguments, those with an effect, and edits of files."""

    def __init__(self, steps: Sequence[Step], effects: Sequence[bool]) -> None:
        self._steps, self._has_effect = steps, effects
        self._by_arguments: dict[Same, int] = {}
        self._by_name: dict[str | None, int] = {}
        self._running: list[tuple[int, int]] = []
        self.effects, self.edits = _Changes(steps), _Changes(steps)

    def add(self, position: int) -> None:
        """Add a call that has started."""
        heapq.heappush(self._running, (self._steps[position].end_ns, position))

    def by(self, now_ns: int) -> None:
        """Move the time forward."""
        while self._running and self._running[0][0] <= now_ns:
            position = heapq.heappop(self._running)[1]
            same = _same(self._steps[position])
            self._by_arguments[same] = max(position, self._by_arguments.get(same, -1))
            self._by_name[same[0]] = max(position, self._by_name.get(same[0], -1))
            if self._has_effect[position]:
                self.effects.add(position)
                if is_edit(same[0] or ""):
                    self.edits.add(position)

    def latest(self, name: str | None, arguments: bytes | None) -> int:
        """Return the latest call of a tool with these arguments, or with unknown ones on either side; -1 where there is none."""
        if arguments is None:
            return self._by_name.get(name, -1)
        return max(self._by_arguments.get((name, arguments), -1), self._by_arguments.get((name, None), -1))


class _Changes:
    """Calls that changed something, in the order of their ends; of several equal calls in a row the last."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self._steps = steps
        self._positions: list[int] = []

    def add(self, position: int) -> None:
        """Add a call that has ended."""
        if self._positions and _same(self._steps[self._positions[-1]]) == _same(self._steps[position]):
            self._positions.pop()
        self._positions.append(position)

    def since(self, earlier: int, same: Same) -> bool:
        """Return whether a call other than the same one ended after a call started."""
        started = self._steps[earlier].start_ns
        for position in reversed(self._positions):  # neighbours differ, so two are enough
            if (self._steps[position].end_ns, position) <= (started, earlier):
                return False
            if _same(self._steps[position]) != same:
                return True
        return False


def _same(step: Step) -> Same:
    return step.call[0], step.call[2]


def _compared(call: Call, earlier: Call, chain: int) -> Mark:
    if earlier.failed:
        return (True, False, chain + 1)
    known = call.arguments is not None and earlier.arguments is not None
    same_result = call.result is None or earlier.result is None or call.result == earlier.result
    return REPEAT if known and same_result and not call.failed else FIRST


def _in_cycles(calls: Sequence[Same]) -> set[int]:
    """Return the positions after the first round of cycles: of 2 to 4 different calls that occur twice in direct succession."""
    found: set[int] = set()
    for length in CYCLES:
        start = length
        for position in range(length, len(calls) + 1):
            if position < len(calls) and calls[position] == calls[position - length] and calls[position][1] is not None:
                continue
            if position - start >= length and len(set(calls[start : start + length])) == length:
                found.update(range(start, position))
            start = position + 1
    return found
