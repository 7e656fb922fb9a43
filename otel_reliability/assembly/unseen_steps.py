"""Steps without a span of their own: messages name them, or the span of an agent does."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from otel_reliability.assembly.invocations import Invocation
from otel_reliability.assembly.span_tree import SpanTree
from otel_reliability.assembly.steps import ModelSpan, Step
from otel_reliability.model.flaws import LAST_NS
from otel_reliability.model.run import Tools
from otel_reliability.model.span import AgentSpan, Call, conversation_of


def calls_of_agents(tree: SpanTree, root: Invocation, members: Sequence[int]) -> list[Step]:
    """Return the calls of nested agents of this run that represent their own tool call."""
    found: list[Step] = []
    for node in invocations_in(tree, members):
        call = node.facts.call
        if call is None or node is root or node.below_tool or node.root is not node:
            continue
        span = node.span
        call = replace(call, name=call.name or node.agent, failed=call.failed or span.failed)
        found.append(
            Step(node.at, span.start_ns, span.end_ns, span.span_id, 0, call, tree.nodes[node.at])
        )
    return found


def tools_of_messages(models: Sequence[ModelSpan]) -> Tools:
    """Return whether the messages hold every call that was asked for."""
    with_messages = [one for one in models if one.facts.messages]
    asked = [one for one in models if one.facts.asked_for_tools]
    captured = all(one.facts.calls for one in asked) and (
        bool(asked) or len(with_messages) == len(models)
    )
    return Tools.MESSAGES if captured and models else Tools.UNOBSERVABLE


def message_steps(
    tree: SpanTree, models: Sequence[ModelSpan], *, waits: bool = False
) -> list[Step]:
    """Return calls read from messages: in the order they were asked for, at the end of their model
    call. Messages repeat what was said before: a call is taken where its id first occurs. Where a
    run `waits`, those that the last one asked for are not executed yet.
    """
    found: list[Step] = []
    known: set[str] = set()
    last = _last(tree, models) if waits else None
    for one in models:
        if one is last:
            continue
        i = one.at
        span = tree.spans[i]
        for position, call in enumerate(one.facts.calls):
            if call.call_id is not None:
                if call.call_id in known:
                    continue
                known.add(call.call_id)
            found.append(
                Step(i, span.end_ns, span.end_ns, span.span_id, position, call, tree.nodes[i])
            )
    found.sort(key=lambda step: step.order)
    return found


def served_steps(tree: SpanTree, steps: Iterable[Step], models: Iterable[ModelSpan]) -> list[Step]:
    """Return the calls that providers executed in the course of model calls, at the end of these.
    A tool of which a span was seen, among the `steps`, has spans.
    """
    seen = {step.call.name for step in steps}
    return [
        Step(
            one.at,
            tree.spans[one.at].end_ns,
            tree.spans[one.at].end_ns,
            tree.spans[one.at].span_id,
            position,
            Call(name),
            tree.nodes[one.at],
        )
        for one in models
        for position, name in enumerate(one.facts.served)
        if name not in seen
    ]


def lost_steps(
    tree: SpanTree, root: Invocation | None, steps: Sequence[Step], models: Sequence[ModelSpan]
) -> list[Step]:
    """Return the calls whose spans were lost: a model asked for them, and was called again with
    what they returned, but fewer spans of calls arrived.

    Calls are distinguished by their ids, or by their names where spans have no ids. A call that the
    framework answers itself (a final answer, a hand-off) is followed by no model call, or is a
    hand-off: then nothing is said; nor where spans arrived that bear other ids, or other names. A
    lost call stands beside those that were seen. `steps` are in the order of the clock.
    """
    by_id = {step.call.call_id: step for step in steps}
    asked = [call.call_id for one in models for call in one.facts.calls]
    is_lost = any(call_id is None or call_id not in by_id for call_id in asked)
    if not is_lost or any(step.handoff for step in steps):
        return []
    latest = max([tree.spans[one.at].start_ns for one in models], default=0)
    found: dict[str | int, Step] = {}
    between = _Between(root, steps)
    for one, again_ns in _followed(tree, models):
        for step in _lost_before(tree, between, one, again_ns) if one.facts.calls else ():
            if step.call.call_id is None or step.call.call_id not in by_id:
                found.setdefault(step.call.call_id or len(found), step)
    if None in by_id:
        return list(found.values())
    for one in models:
        calls = one.facts.calls
        seen = [by_id[call.call_id] for call in calls if call.call_id in by_id]
        if not seen or tree.spans[one.at].end_ns > latest:
            continue
        beside = min(seen, key=lambda step: step.order)
        for position, call in enumerate(calls):
            if call.call_id is not None and call.call_id not in by_id:
                found[call.call_id] = _beside(beside, one.at, position, call)
    return list(found.values())


def _beside(seen: Step, at: int, position: int, call: Call) -> Step:
    return Step(at, seen.start_ns, seen.end_ns, seen.span_id, position, call, seen.node)


class _Between:
    """The steps, and the invocations below a root, that began between two times."""

    def __init__(self, root: Invocation | None, steps: Sequence[Step]) -> None:
        self._steps = steps
        self._starts = [step.start_ns for step in steps]
        self._begun: list[int] = []
        inside = [] if root is None else [*root.inner]
        while inside:
            node = inside.pop()
            self._begun.append(node.span.start_ns)
            inside.extend(node.inner)
        self._begun.sort()

    def steps(self, start_ns: int, end_ns: int) -> Sequence[Step]:
        first = bisect_left(self._starts, start_ns)
        return self._steps[first : bisect_right(self._starts, end_ns)]

    def has_agent(self, start_ns: int, end_ns: int) -> bool:
        return bisect_right(self._begun, end_ns) > bisect_right(self._begun, start_ns)


def _followed(tree: SpanTree, models: Iterable[ModelSpan]) -> Iterator[tuple[ModelSpan, int]]:
    """Yield the model calls that another one of the same invocation follows, and when that began.
    Coding agents are left out: they make no span for a call that their user rejects.
    """
    spans = tree.spans
    latest: dict[Invocation | None, ModelSpan] = {}
    for one in sorted(models, key=lambda one: spans[one.at].start_ns):
        node = tree.nodes[one.at]
        before = latest.get(node)
        latest[node] = one
        again_ns = spans[one.at].start_ns
        if before is None:
            continue
        asked = spans[before.at]
        if asked.end_ns <= again_ns and conversation_of(asked) is None:
            yield before, again_ns


def _lost_before(
    tree: SpanTree, between: _Between, one: ModelSpan, again_ns: int
) -> Iterator[Step]:
    """Yield the calls of a model that are not among those made before it was called again."""
    i = one.at
    calls = one.facts.calls
    asked = tree.spans[i]
    made = between.steps(asked.start_ns, again_ns)
    if len(made) >= len(calls):
        return
    left = Counter(step.call.name for step in made)
    names = {call.name for call in calls}
    if not names.issuperset(left):
        return
    if not made and between.has_agent(asked.start_ns, again_ns):
        return
    for position, call in enumerate(calls):
        if left[call.name] > 0:
            left[call.name] -= 1
        elif made:
            yield _beside(made[0], i, position, call)
        else:
            yield Step(i, asked.end_ns, asked.end_ns, asked.span_id, position, call, tree.nodes[i])


def _asks_unseen(one: ModelSpan) -> bool:
    """Return whether a model asked for tools, but nothing shows for which."""
    return one.facts.asked_for_tools and not one.facts.calls


def has_unseen_call(
    tree: SpanTree, root: Invocation | None, steps: Sequence[Step], models: Sequence[ModelSpan]
) -> bool:
    """Return whether a model asked for tools, as its finish reason says, and none was called before
    the model of the same invocation was called again: the span of a call was lost. `steps` are in
    the order of the clock.
    """
    if not any(_asks_unseen(one) for one in models):
        return False
    between = _Between(root, steps)
    for one, again_ns in _followed(tree, models):
        start_ns = tree.spans[one.at].start_ns
        if (
            _asks_unseen(one)
            and not between.steps(start_ns, again_ns)
            and not between.has_agent(start_ns, again_ns)
        ):
            return True
    return False


def ends_with_open_call(tree: SpanTree, models: Sequence[ModelSpan], *, waits: bool) -> bool:
    """Return whether a run without a span of a call ended with calls that were not executed: they
    wait for an approval, or for the application.

    Only the last model call asked for calls then, and the run says that it `waits`, or its
    framework makes a span of every call that it executes.
    """
    last = _last(tree, models)
    asks = [one for one in models if one.facts.asked_for_tools or one.facts.calls]
    return last is not None and asks == [last] and (waits or last.facts.emits_tools)


def _last(tree: SpanTree, models: Sequence[ModelSpan]) -> ModelSpan | None:
    return max(models, key=lambda one: (tree.spans[one.at].start_ns, one.at), default=None)


class UnclaimedCalls:
    """Tool calls that belong to no run, although there are agents beside them."""

    def __init__(self, calls: Iterable[AgentSpan]) -> None:
        self._of: dict[tuple[str, str], tuple[list[int], list[int]]] = {}
        for call in sorted(calls, key=lambda call: -call.start_ns):
            starts, ends = self._of.setdefault(call.resource.service, ([], []))
            starts.append(-call.start_ns)
            ends.append(min(call.end_ns, ends[-1]) if ends else call.end_ns)

    def may_be_of(self, root: Invocation) -> bool:
        """Return whether a run without a known call may have made one of them: one of its service
        that it encloses in time, or, where it has no step at all and so has lost them, any that
        began after it.
        """
        span = root.span
        found = self._of.get(span.resource.service)
        if found is None or root.run_above is not None:
            return False
        starts, first_ends = found
        later = bisect_right(starts, -span.start_ns)
        end = span.end_ns if root.steps or root.inner else LAST_NS
        return later > 0 and first_ends[later - 1] <= end


def invocations_in(tree: SpanTree, members: Sequence[int]) -> list[Invocation]:
    """Return the invocations among some spans."""
    return [node for i in members if (node := tree.invocation_at.get(i)) is not None]
