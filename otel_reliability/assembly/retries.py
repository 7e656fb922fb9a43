"""Which calls of a run are retries, and which are repeats."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import Final, TypeAlias

from otel_reliability.assembly.steps import Step
from otel_reliability.model.span import Call

Mark: TypeAlias = tuple[bool, bool, int]
"""(retry, repeat, number of retries in a row up to this call)."""
FIRST: Final[Mark] = (False, False, 0)


def marks(steps: Sequence[Step]) -> list[Mark]:
    """Mark calls, which are in the order of the clock.

    A call is a retry if the latest earlier call of the same tool and arguments that ended before it started failed (where the
    arguments of either are unknown: of the same tool). A success ends the chain. A repeat follows a success, with the same
    result where results are known.
    """
    names = [step.call[0] for step in steps]
    if len(set(names)) == len(names):
        return [FIRST] * len(names)
    found: list[Mark] = []
    by_arguments: dict[tuple[str | None, bytes | None], int] = {}
    by_name: dict[str | None, int] = {}
    running: list[tuple[int, int]] = []
    for position, step in enumerate(steps):
        while running and running[0][0] <= step.start_ns:
            ended = heapq.heappop(running)[1]
            name, _, arguments = steps[ended].call[:3]
            if by_arguments.get((name, arguments), -1) < ended:
                by_arguments[name, arguments] = ended
            if by_name.get(name, -1) < ended:
                by_name[name] = ended
        call = step.call
        name, arguments = call[0], call[2]
        if arguments is None:
            earlier = by_name.get(name, -1)
        else:
            earlier = max(by_arguments.get((name, arguments), -1), by_arguments.get((name, None), -1))
        found.append(FIRST if earlier < 0 else _compared(call, steps[earlier].call, found[earlier][2]))
        heapq.heappush(running, (step.end_ns, position))
    return found


def _compared(call: Call, earlier: Call, chain: int) -> Mark:
    if earlier.failed:
        return (True, False, chain + 1)
    known = call.arguments is not None and earlier.arguments is not None
    same_result = call.result is None or earlier.result is None or call.result == earlier.result
    return (False, known and same_result and not call.failed, 0)
