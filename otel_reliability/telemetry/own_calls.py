"""A call counts once, for the agent that took it, although the run above a nested run has its steps too."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator

from otel_reliability.model.run import Run, ToolCall
from otel_reliability.model.span import TraceId


def own_calls(runs: Iterable[Run]) -> Iterator[tuple[Run, tuple[ToolCall, ...]]]:
    """Each run with the calls that its own agent took and that no run within it took.

    Nested runs settle together with the run above them, so one batch holds all that could count a call twice. An agent that
    calls itself takes calls under one name in both runs: the inner run, which is the shorter one, has them.
    """
    runs = list(runs)
    shared = {trace for trace, number in Counter(run.trace_id for run in runs).items() if number > 1}
    taken: defaultdict[TraceId, Counter[ToolCall]] = defaultdict(Counter)
    for run in sorted(runs, key=lambda run: (not run.nested, run.end_ns - run.start_ns)):
        agent = run.key.agent
        named = tuple([call for call in run.tool_calls or () if call.agent == agent])
        yield run, _not_within(run, named, taken[run.trace_id]) if run.trace_id in shared else named


def _not_within(run: Run, named: tuple[ToolCall, ...], within: Counter[ToolCall]) -> tuple[ToolCall, ...]:
    """Of these calls of a run, those that no run within it took; `within` is told what it has of them."""
    own = tuple(call for call in named if not _pop(within, call))
    within.update(map(_same, named if run.nested else ()))
    return own


def _same(call: ToolCall) -> ToolCall:
    """The call as both runs have it: what precedes it in a run decides the marks of retries."""
    return call._replace(retry=False, repeat=False, chain=0)


def _pop(within: Counter[ToolCall], call: ToolCall) -> bool:
    same = _same(call)
    if within[same] <= 0:
        return False
    within[same] -= 1
    return True
