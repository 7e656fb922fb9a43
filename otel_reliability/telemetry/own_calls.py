"""A call counts once, for the agent that took it, although the run above a nested run has its steps too."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Final

from otel_reliability.model.run import Run
from otel_reliability.model.span import TraceId
from otel_reliability.model.tool_calls import NO_TOOL_CALLS, ToolCall, ToolCalls

_AGENT: Final = ToolCalls.fields.index("agent")


def own_calls(runs: Iterable[Run]) -> list[tuple[Run, ToolCalls]]:
    """Each run with the calls that its own agent took and that no run within it took.

    Nested runs settle together with the run above them, so one batch holds all that could count a call twice. An agent that
    calls itself takes calls under one name in both runs: the inner run, which is the shorter one, has them.
    """
    found = [(run, _named(run.tool_calls, run.key.agent)) for run in _inner_first(runs)]
    traces = [run.trace_id for run, _ in found]
    if len(set(traces)) == len(traces):
        return found
    shared = {trace for trace, number in Counter(traces).items() if number > 1}
    taken: defaultdict[TraceId, Counter[ToolCall]] = defaultdict(Counter)
    return [
        (run, ToolCalls.of(_not_within(run, named, taken[run.trace_id])) if run.trace_id in shared else named)
        for run, named in found
    ]


def _inner_first(runs: Iterable[Run]) -> list[Run]:
    """Nested runs before others, and the shorter ones first."""
    ordered = sorted(runs, key=_duration_ns)
    nested = [run for run in ordered if run.nested]
    return [*nested, *(run for run in ordered if not run.nested)] if nested else ordered


def _duration_ns(run: Run) -> int:
    return run.end_ns - run.start_ns


def _named(calls: Sequence[ToolCall] | None, agent: str) -> ToolCalls:
    """The calls that an agent of this name took. Those of a run are hardly ever another's."""
    if not calls:
        return NO_TOOL_CALLS
    known = ToolCalls.of(calls)
    return known if known.first[_AGENT] == agent else ToolCalls.of([call for call in known if call.agent == agent])


def _not_within(run: Run, named: Sequence[ToolCall], within: Counter[ToolCall]) -> tuple[ToolCall, ...]:
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
