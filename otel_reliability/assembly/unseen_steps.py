"""Steps without a span of their own: messages name them, or the span of an agent does."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from otel_reliability.assembly.invocations import Invocation
from otel_reliability.assembly.span_tree import SpanTree
from otel_reliability.assembly.steps import ModelSpan, Step
from otel_reliability.model.flaws import LAST_NS
from otel_reliability.model.run import Tools
from otel_reliability.model.span import AgentSpan, conversation_of


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
    with_messages = [facts for _, facts in models if facts.messages]
    asked = [facts for _, facts in models if facts.asked_for_tools]
    captured = all(facts.calls for facts in asked) and (
        bool(asked) or len(with_messages) == len(models)
    )
    return Tools.MESSAGES if captured and models else Tools.UNOBSERVABLE


def message_steps(tree: SpanTree, models: Sequence[ModelSpan]) -> list[Step]:
    """Return calls read from messages: in the order they were asked for, at the end of their model
    call. Messages repeat what was said before: a call is taken where its id first occurs.
    """
    found: list[Step] = []
    known: set[str] = set()
    for i, facts in models:
        span = tree.spans[i]
        for position, call in enumerate(facts.calls):
            if call.call_id is not None:
                if call.call_id in known:
                    continue
                known.add(call.call_id)
            found.append(
                Step(i, span.end_ns, span.end_ns, span.span_id, position, call, tree.nodes[i])
            )
    found.sort(key=lambda step: step.order)
    return found


def lost_steps(tree: SpanTree, steps: Sequence[Step], models: Sequence[ModelSpan]) -> list[Step]:
    """Return the calls whose spans were lost: a model asked for several at once, spans of some of
    them arrived, and a model was called again with what they returned.

    Calls are distinguished by their ids, or by their names where spans have no ids. A call that the
    framework answers itself (a final answer, a hand-off) is followed by no model call, or is a
    hand-off: then nothing is said. A lost call stands beside the ones that were seen.
    """
    if any(step.handoff for step in steps):
        return []
    latest = max([tree.spans[i].start_ns for i, _ in models], default=0)
    by_id = {step.call.call_id: step for step in steps}
    if None in by_id:
        return _lost_by_name(
            tree, steps, [one for one in models if _is_followed(tree, one, latest)]
        )
    found: dict[str | None, Step] = {}
    for one in models:
        i, facts = one
        seen = [by_id[call.call_id] for call in facts.calls if call.call_id in by_id]
        if not seen or not _is_followed(tree, one, latest):
            continue
        beside = min(seen, key=lambda step: step.order)
        for position, call in enumerate(facts.calls):
            if call.call_id is not None and call.call_id not in by_id:
                found[call.call_id] = Step(
                    i, beside.start_ns, beside.end_ns, beside.span_id, position, call, beside.node
                )
    return list(found.values())


def _is_followed(tree: SpanTree, one: ModelSpan, latest: int) -> bool:
    return tree.spans[one.at].end_ns <= latest


def _lost_by_name(tree: SpanTree, steps: Sequence[Step], models: Iterable[ModelSpan]) -> list[Step]:
    """Return the calls that these models asked for beside others that were seen, and of whose tools
    there are fewer spans than calls.
    """
    left = Counter(step.call.name for step in steps)
    by_name = {step.call.name: step for step in reversed(steps)}
    known: set[str] = set()
    found: list[Step] = []
    for i, facts in models:
        beside = next((by_name[call.name] for call in facts.calls if call.name in by_name), None)
        for position, call in enumerate(facts.calls):
            if call.call_id is not None:
                if call.call_id in known:
                    continue
                known.add(call.call_id)
            if left[call.name] > 0:
                left[call.name] -= 1
            elif beside is not None and call.name is not None:
                found.append(
                    Step(
                        i,
                        beside.start_ns,
                        beside.end_ns,
                        beside.span_id,
                        position,
                        call,
                        beside.node,
                    )
                )
    return found


def has_unseen_call(tree: SpanTree, steps: Iterable[Step], models: Iterable[ModelSpan]) -> bool:
    """Return whether a model asked for tools, as its finish reason says, and none was called before
    the model of the same invocation was called again: the span of a call was lost. (A coding agent
    makes none for a call that its user rejects.)
    """
    starts = sorted(
        [*(step.start_ns for step in steps), *(node.span.start_ns for node in tree.invocations)]
    )
    latest: dict[Invocation | None, ModelSpan] = {}
    for one in sorted(models, key=lambda one: tree.spans[one.at].start_ns):
        node = tree.nodes[one.at]
        before = latest.get(node)
        latest[node] = one
        if before is None or not before.facts.asked_for_tools or before.facts.calls:
            continue
        asked = tree.spans[before.at]
        if conversation_of(asked) is not None:
            continue
        again = tree.spans[one.at].start_ns
        if asked.end_ns <= again and bisect_left(starts, asked.start_ns) == bisect_right(
            starts, again
        ):
            return True
    return False


def may_have_called(root: Invocation, unclaimed: Iterable[AgentSpan]) -> bool:
    """Return whether a run without a known call may have made one of those that belong to no run:
    one of its service that it encloses in time, or, where it has no step at all and so has lost
    them, any that began after it.
    """
    span = root.span
    end = span.end_ns if root.steps or root.inner else LAST_NS
    return root.run_above is None and any(
        span.start_ns <= call.start_ns
        and call.end_ns <= end
        and call.resource.service == span.resource.service
        for call in unclaimed
    )


def invocations_in(tree: SpanTree, members: Sequence[int]) -> list[Invocation]:
    """Return the invocations among some spans."""
    return [node for i in members if (node := tree.invocation_at.get(i)) is not None]
