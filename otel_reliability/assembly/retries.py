"""Which calls of a run are retries, and which are repeats."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import Final, TypeAlias

from otel_reliability.assembly.steps import Step
from otel_reliability.model.span import Call
from otel_reliability.model.tools import is_edit

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
