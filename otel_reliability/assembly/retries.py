"""Which calls of a run are retries, and which are repeats."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import NamedTuple

from otel_reliability.model.span import Call


class Timed(NamedTuple):
    """A call with its times; `order` is the order of the clock."""

    order: tuple[int, int, bytes, int]
    start_ns: int
    end_ns: int
    call: Call


class Mark(NamedTuple):
    """What a call is to the calls before it. `chain`: how many retries stand in a row up to it."""

    retry: bool = False
    repeat: bool = False
    chain: int = 0


class _Last:
    """The latest call that has ended, per tool and arguments, per tool without known arguments, and per tool."""

    def __init__(self) -> None:
        self._exact: dict[tuple[str | None, bytes | None], int] = {}
        self._any: dict[str | None, int] = {}

    def ended(self, position: int, call: Call) -> None:
        """A call has ended; of several the latest in the order of the clock stands."""
        key = (call.name, call.arguments)
        self._exact[key] = max(self._exact.get(key, -1), position)
        self._any[call.name] = max(self._any.get(call.name, -1), position)

    def before(self, call: Call) -> int:
        """The latest earlier attempt at this call, -1 for none. Unknown arguments match any of the tool."""
        if call.arguments is None:
            return self._any.get(call.name, -1)
        exact = self._exact.get((call.name, call.arguments), -1)
        return max(exact, self._exact.get((call.name, None), -1))


def mark(calls: Sequence[Timed]) -> list[Mark]:
    """What each call is, for calls in the order of the clock.

    A retry repeats a call that failed: the latest earlier one of the same tool and arguments that ended before this one
    started. A success ends the chain. A repeat comes after a success, with the same result where results are known.
    """
    marks: list[Mark] = []
    last = _Last()
    running: list[tuple[int, int]] = []
    for position, timed in enumerate(calls):
        while running and running[0][0] <= timed.start_ns:
            _, done = heapq.heappop(running)
            last.ended(done, calls[done].call)
        earlier = last.before(timed.call)
        marks.append(Mark() if earlier < 0 else _compare(timed.call, calls[earlier].call, marks[earlier]))
        heapq.heappush(running, (timed.end_ns, position))
    return marks


def _compare(call: Call, earlier: Call, mark_of_earlier: Mark) -> Mark:
    if earlier.failed:
        return Mark(retry=True, chain=mark_of_earlier.chain + 1)
    known = call.arguments is not None and earlier.arguments is not None
    same_result = call.result is None or earlier.result is None or call.result == earlier.result
    return Mark(repeat=known and same_result and not call.failed)
