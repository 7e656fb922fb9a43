"""The tool calls that count for a run: a call counts once, for the agent that made it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator

from otel_reliability.model.run import Run, ToolCall
from otel_reliability.model.span import TraceId


def own_calls(runs: Iterable[Run]) -> Iterator[tuple[Run, list[ToolCall]]]:
    """Yield each run, nested and short ones first, with the calls that its own agent made and that no run inside it made.

    A run has the steps of its nested runs too. Nested runs become final together with the run above them, so one batch holds all
    runs that share a call. Of an agent that calls itself, the inner run, which is the shorter one, has the call.
    """
    made: defaultdict[TraceId, Counter[ToolCall]] = defaultdict(Counter)
    for run in sorted(runs, key=lambda run: (not run.nested, run.end_ns - run.start_ns)):
        agent, inside = run.key.agent, made.get(run.trace_id)
        calls = [call for call in run.tool_calls or () if call.agent == agent]
        own = [call for call in calls if not _remove(call, inside)] if inside else calls
        if run.nested:
            made[run.trace_id].update(map(_without_marks, calls))
        yield run, own


def _without_marks(call: ToolCall) -> ToolCall:
    """Return the call as both runs have it: whether it is a retry depends on the calls before it in a run."""
    return call._replace(retry=False, repeat=False, chain=0)


def _remove(call: ToolCall, calls: Counter[ToolCall]) -> bool:
    same = _without_marks(call)
    if calls[same] <= 0:
        return False
    calls[same] -= 1
    return True
