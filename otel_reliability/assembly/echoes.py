"""Runs that two instrumentations report side by side: one process exports the spans of both, and
each makes a tree of its own of the same execution.

Which of two such runs is the better one cannot be said, so both stay and say so.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from operator import attrgetter
from typing import Final

from msgspec.structs import replace

from otel_reliability.assembly.span_tree import SpanTree
from otel_reliability.model.flaws import REPORTED_TWICE
from otel_reliability.model.run import ModelCall, Run, ToolCall

MAX_GAP_NS: Final = 100_000_000
"""Nanoseconds between two reports of one call: callbacks are called one after the other."""
MIN_CALLS: Final = 2
"""Calls of models and tools below which two runs are not known to be one."""


def marked(runs: list[Run], roots: Sequence[int], tree: SpanTree) -> list[Run]:
    """Return the runs, those marked that are reported twice. `roots`: where each begins."""
    top = [at for at, run in enumerate(runs) if not run.nested]
    if len(top) < 2:
        return runs
    spans = tree.spans
    top.sort(key=lambda at: (runs[at].trace_id, runs[at].start_ns, runs[at].run_id))
    twice = {
        at
        for pair in pairwise(top)
        if spans[roots[pair[0]]].scope != spans[roots[pair[1]]].scope
        and _are_one(runs[pair[0]], runs[pair[1]])
        for at in pair
    }
    return [
        replace(run, flaws=(*run.flaws, REPORTED_TWICE)) if at in twice else run
        for at, run in enumerate(runs)
    ]


def _are_one(one: Run, two: Run) -> bool:
    if one.trace_id != two.trace_id or one.path is None or one.path != two.path:
        return False
    if len(one.model_calls) + len(one.path) < MIN_CALLS:
        return False
    return _coincide(one.model_calls, two.model_calls) and _coincide(
        one.tool_calls or (), two.tool_calls or ()
    )


_START: Final = attrgetter("start_ns")


def _coincide(
    ones: Sequence[ModelCall] | Sequence[ToolCall], twos: Sequence[ModelCall] | Sequence[ToolCall]
) -> bool:
    """Return whether calls begin and end together, each with its like."""
    return len(ones) == len(twos) and all(
        abs(one.start_ns - two.start_ns) <= MAX_GAP_NS
        and abs(one.end_ns - two.end_ns) <= MAX_GAP_NS
        for one, two in zip(sorted(ones, key=_START), sorted(twos, key=_START), strict=True)
    )
