"""A call counts once, for the agent that took it, although the run above a nested run has its steps too."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from operator import itemgetter, sub
from typing import Final

from otel_reliability.model.run import Run
from otel_reliability.model.span import TraceId
from otel_reliability.model.tool_calls import NO_TOOL_CALLS, ToolCall, ToolCalls

_AGENT: Final = ToolCalls.fields.index("agent")
_TRACE, _START, _END, _NESTED = (
    itemgetter(Run._fields.index(name)) for name in ("trace_id", "start_ns", "end_ns", "nested")
)


def own_calls(runs: Iterable[Run]) -> list[tuple[Run, ToolCalls]]:
    """Each run with the calls that its own agent took and that no run within it took.

    Nested runs settle together with the run above them, so one batch holds all that could count a call twice. An agent that
    calls itself takes calls under one name in both runs: the inner run, which is the shorter one, has them.
    """
    ordered = inner_first(runs)
    apart = calls_apart(ordered)
    return [
        (run, named(run.tool_calls, run.key.agent) if at not in apart else apart[at]) for at, run in enumerate(ordered)
    ]


def inner_first(runs: Iterable[Run]) -> list[Run]:
    """Nested runs before others, and the shorter ones first."""
    told = list(runs)
    took = list(map(sub, map(_END, told), map(_START, told)))
    ordered = [told[at] for at in sorted(range(len(told)), key=took.__getitem__)]
    if not any(map(_NESTED, ordered)):
        return ordered
    return [*(run for run in ordered if run.nested), *(run for run in ordered if not run.nested)]


def shared_traces(runs: Iterable[Run]) -> Collection[TraceId]:
    """The traces that several of these runs have. (Most often there are none.)"""
    traces = list(map(_TRACE, runs))
    if len(set(traces)) == len(traces):
        return ()
    return {trace for trace, number in Counter(traces).items() if number > 1}


def calls_apart(ordered: Sequence[Run]) -> dict[int, ToolCalls]:
    """Of runs, the inner ones first, the own calls of those that share their trace, by place: only they can share calls."""
    shared = shared_traces(ordered)
    if not shared:
        return {}
    taken: defaultdict[TraceId, Counter[ToolCall]] = defaultdict(Counter)
    return {
        at: ToolCalls.of(_not_within(run, named(run.tool_calls, run.key.agent), taken[run.trace_id]))
        for at, run in enumerate(ordered)
        if run.trace_id in shared
    }


def named(calls: Sequence[ToolCall] | None, agent: str) -> ToolCalls:
    """The calls that an agent of this name took. Those of a run are hardly ever another's."""
    if not calls:
        return NO_TOOL_CALLS
    known = ToolCalls.of(calls)
    return known if known.first[_AGENT] == agent else ToolCalls.of([call for call in known if call.agent == agent])


def _not_within(run: Run, own: Sequence[ToolCall], within: Counter[ToolCall]) -> tuple[ToolCall, ...]:
    """Of these calls of a run, those that no run within it took; `within` is told what it has of them."""
    left = tuple(call for call in own if not _pop(within, call))
    within.update(map(_same, own if run.nested else ()))
    return left


def _same(call: ToolCall) -> ToolCall:
    """The call as both runs have it: what precedes it in a run decides the marks of retries."""
    return call._replace(retry=False, repeat=False, chain=0)


def _pop(within: Counter[ToolCall], call: ToolCall) -> bool:
    same = _same(call)
    if within[same] <= 0:
        return False
    within[same] -= 1
    return True
