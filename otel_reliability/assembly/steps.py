"""The steps of a run: model and tool calls, each once, in the order of the path, retries and
repeats marked.
"""

from __future__ import annotations

import fnmatch
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import asdict, replace

from otel_reliability import price_table
from otel_reliability.assembly.invocations import Invocation
from otel_reliability.assembly.span_tree import NONE, SpanTree
from otel_reliability.model.span import (
    KIND_CLIENT,
    KIND_SERVER,
    AgentSpan,
    Call,
    Kind,
    ModelFacts,
    SpanId,
    Tokens,
)
from otel_reliability.model.sums import known_sum
from otel_reliability.model.tools import EDITING, HANDOFF_MARK, has_word


class ModelSpan(Struct, frozen=True, gc=False):
    """A model call: the index of its span, and its facts."""

    at: int
    facts: ModelFacts


_NEAR: Final = 4
"""Siblings that a model call, or a tool call, is compared with."""
_REQUESTS: Final = frozenset({KIND_CLIENT, KIND_SERVER})
_SEPARATORS: Final = "_-./:"
MAX_OF_ID: Final = 64
"""Calls of one id with which a later one is compared: the latest. Where every call of a run of
10,000 has the same id, all pairs would take half a minute.
"""
Parallel: TypeAlias = Literal["canonical", "as_started"]


class Step(Struct, eq=False):
    """A tool call or a hand-off on its way into a path.

    `at`: the index of its span; `position`: its place among the calls of that span. `node`: the
    invocation it belongs to. `outer`: the call that it was made in.
    """

    at: int
    start_ns: int
    end_ns: int
    span_id: SpanId
    position: int
    call: Call
    node: Invocation | None
    handoff: bool = False
    outer: Step | None = None

    @property
    def order(self) -> tuple[int, int, SpanId, int]:
        return (self.start_ns, self.end_ns, self.span_id, self.position)

    @property
    def label(self) -> str:
        name = self.call.name or "?"
        return HANDOFF_MARK + name if self.handoff else name

    def absorb(self, other: Step) -> None:
        """Add a second report of this call: it failed if either says so, all else comes from the
        report that has it.
        """
        self.complete(other)
        self.call = replace(self.call, failed=self.call.failed or other.call.failed)
        self.end_ns = max(self.end_ns, other.end_ns)

    def complete(self, other: Step) -> None:
        """Take from another report of this call what this one leaves out."""
        own = self.call
        added = asdict(other.call)
        absent = {field: value for field, value in added.items() if getattr(own, field) is None}
        self.call = replace(own, **absent)


# --- One call reported twice ----------------------------------------------------------------------


def calls_once(tree: SpanTree, steps: list[Step], models: Sequence[ModelSpan]) -> list[Step]:
    """Return each call once. `steps` are in the order of the clock, `models` are the model calls
    of their run; nothing is done unless a tool lies in a tool, several scopes report tools, or a
    call id occurs twice.
    """
    if tree.in_tool and len(steps) > 1:
        steps = _without_nested_reports(tree, steps)
    if len(steps) > 1 and len({tree.spans[step.at].scope for step in steps}) > 1:
        steps = _without_reports_beside(tree, steps)
    ids = [
        step.call.call_id for step in steps if step.call.call_id is not None and not step.handoff
    ]
    if len(set(ids)) == len(ids):
        return steps
    return _without_replays(tree, _without_overlapping_ids(steps), models)


def _without_nested_reports(tree: SpanTree, steps: list[Step]) -> list[Step]:
    """A tool span in a tool span of the same name and no other call id is the same call; so is a
    request to a server (MCP), which may know the tool without a prefix. Any other was made in it.
    Where the inner ones are attempts, one after the other, the last tells whether the call failed.
    """
    of: dict[int, list[Step]] = {}
    reports: dict[Step, list[Step]] = {}
    for step in steps:
        of.setdefault(step.at, []).append(step)
    home: dict[int, Step] = {}
    absorbed: set[Step] = set()
    for step in steps:
        chain: list[int] = []
        i = step.at
        while i != NONE and i not in home:
            if i in of:
                chain.append(i)
            i = tree.parent[i]
        outer = None if i == NONE else home[i]
        for i in reversed(chain):
            own = of[i]
            tool = tree.in_tool.get(i, NONE)
            enclosing = home.get(tool) if tool in of and i not in tree.in_model else None
            if (
                enclosing is not None
                and len(own) == 1
                and _is_same(enclosing, own[0], is_request=tree.spans[i].span_kind in _REQUESTS)
            ):
                enclosing.complete(own[0])
                reports.setdefault(enclosing, []).append(own[0])
                absorbed.add(own[0])
                outer = enclosing
            else:
                for one in own:
                    one.outer = outer
                outer = own[0]
            home[i] = outer
    for step, inner in reports.items():
        step.end_ns = max(step.end_ns, *[one.end_ns for one in inner])
        if _ends_failed(inner):
            step.call = replace(step.call, failed=True)
    return [step for step in steps if step not in absorbed] if absorbed else steps


def _ends_failed(reports: Sequence[Step]) -> bool:
    """Return whether one of the reports of a call failed that no later attempt follows."""
    last = max(one.start_ns for one in reports)
    final = [one for one in reports if one.start_ns == last or one.end_ns > last]
    return any(one.call.failed for one in final)


def _without_reports_beside(tree: SpanTree, steps: list[Step]) -> list[Step]:
    """A tool span beside one of another scope, within its time, is the same call, unless names,
    ids or arguments differ. A call has one report of each scope.
    """
    beside: dict[int, list[Step]] = {}
    for step in steps:
        above = tree.kept_above(step.at)
        if above != NONE:
            beside.setdefault(above, []).append(step)
    absorbed: dict[Step, Step] = {}
    for siblings in beside.values():
        near: deque[tuple[Step, set[str]]] = deque(maxlen=_NEAR)
        for step in sorted(siblings, key=lambda step: (step.start_ns, -step.end_ns, step.span_id)):
            scope = tree.spans[step.at].scope
            for one, scopes in reversed(near):
                if scope not in scopes and _is_beside(tree, one, step):
                    scopes.add(scope)
                    one.absorb(step)
                    absorbed[step] = one
                    break
            else:
                near.append((step, {scope}))
    if not absorbed:
        return steps
    kept = [step for step in steps if step not in absorbed]
    _replace_outer(kept, absorbed)
    return kept


def _is_beside(tree: SpanTree, outer: Step, inner: Step) -> bool:
    mine = outer.call
    theirs = inner.call
    if not inner.start_ns < inner.end_ns <= outer.end_ns or (
        None not in (mine.arguments, theirs.arguments) and mine.arguments != theirs.arguments
    ):
        return False
    return _is_same(outer, inner, is_request=tree.spans[inner.at].span_kind in _REQUESTS)


def _is_same(outer: Step, inner: Step, *, is_request: bool) -> bool:
    mine = outer.call
    theirs = inner.call
    if outer.handoff or inner.handoff:
        return False
    if mine.call_id is not None and theirs.call_id is not None:
        return mine.call_id == theirs.call_id
    return mine.name == theirs.name or (is_request and _is_prefixed(mine.name, theirs.name))


def _is_prefixed(name: str | None, bare: str | None) -> bool:
    """Return whether a name is another one with a prefix.

    >>> _is_prefixed("mcp__weather__search", "search"), _is_prefixed("research", "search")
    (True, False)
    """
    if not name or not bare or len(name) <= len(bare) or not name.endswith(bare):
        return False
    return name[-len(bare) - 1] in _SEPARATORS


def _without_overlapping_ids(steps: list[Step]) -> list[Step]:
    """Calls that overlap in time and have one call id are one; one after the other, they are
    attempts.
    """
    return _joined(
        steps, lambda first, step: _overlap(first, step) and _names_agree(first, step), Step.absorb
    )


def _without_replays(tree: SpanTree, steps: list[Step], models: Sequence[ModelSpan]) -> list[Step]:
    """Return calls without those that were not executed, but reported again under their id."""
    starts = sorted(tree.spans[one.at].start_ns for one in models)
    return _joined(steps, lambda first, step: _is_replay(tree, first, step, starts), Step.complete)


def _joined(
    steps: list[Step],
    is_one: Callable[[Step, Step], bool],
    join: Callable[[Step, Step], None],
) -> list[Step]:
    """Return calls in their order; one that `is_one` with an earlier one of its call id, of the
    last `MAX_OF_ID`, is left out, after the earlier was joined with it.
    """
    by_id: dict[str, deque[Step]] = {}
    absorbed: dict[Step, Step] = {}
    kept: list[Step] = []
    for step in sorted(steps, key=lambda step: step.order):
        call_id = step.call.call_id
        if call_id is None or step.handoff:
            kept.append(step)
            continue
        earlier = by_id.setdefault(call_id, deque(maxlen=MAX_OF_ID))
        first = next((one for one in earlier if is_one(one, step)), None)
        if first is None:
            earlier.append(step)
            kept.append(step)
        else:
            join(first, step)
            absorbed[step] = first
    _replace_outer(kept, absorbed)
    return kept


def _replace_outer(kept: Iterable[Step], absorbed: Mapping[Step, Step]) -> None:
    """Let calls be made in the report that is kept of the call that they were made in."""
    for step in kept:
        while step.outer is not None and step.outer in absorbed:
            step.outer = absorbed[step.outer]
        if step.outer is step:
            step.outer = None


def _is_replay(tree: SpanTree, first: Step, step: Step, starts: Sequence[int]) -> bool:
    """Return whether a call reports again what an earlier one under its id had reported: in another
    attempt at the run, or after it succeeded, with no model call between that may have asked again.

    Some frameworks number the calls of a response: the same id in the next response is another
    call.
    """
    if not _names_agree(first, step):
        return False
    if tree.attempt_of(first.at) != tree.attempt_of(step.at):
        return step.call.failed or not first.call.failed
    if first.call.failed or step.call.failed:
        return False
    return (
        first.call.arguments == step.call.arguments
        and first.call.result == step.call.result
        and bisect_right(starts, first.start_ns) == bisect_right(starts, step.start_ns)
    )


def _overlap(first: Step, second: Step) -> bool:
    """Return whether the later call started before the earlier ended; a call without duration
    overlaps only its equal.
    """
    return second.start_ns < first.end_ns or (
        second.start_ns == first.start_ns and second.end_ns == first.end_ns
    )


def _names_agree(first: Step, second: Step) -> bool:
    return (
        first.call.name is None or second.call.name is None or first.call.name == second.call.name
    )


# --- Path order -----------------------------------------------------------------------------------


def in_path_order(
    tree: SpanTree, steps: list[Step], models: Sequence[ModelSpan], parallel: Parallel
) -> list[Step]:
    """Return a call, then what was called inside it; parallel calls in canonical order.

    Calls issued together are a race: which span starts first is chance, so within such a group
    names decide.
    """
    last = 0
    for step in steps:
        if step.outer is not None or step.start_ns < last:
            break
        last = step.end_ns if step.end_ns > step.start_ns else step.start_ns + 1
    else:
        return steps  # one after the other
    inside: dict[Step | None, list[Step]] = {}
    for step in steps:
        inside.setdefault(step.outer, []).append(step)
    starts: dict[Invocation | None, list[int]] = {}
    for one in models:
        starts.setdefault(tree.nodes[one.at], []).append(tree.spans[one.at].start_ns)
    for each in starts.values():
        each.sort()
    path: list[Step] = []
    pending = _ordered(inside.pop(None, []), starts, parallel)[::-1]
    while pending:
        step = pending.pop()
        path.append(step)
        pending.extend(reversed(_ordered(inside.pop(step, []), starts, parallel)))
    return path


def _ordered(
    steps: list[Step], model_starts: dict[Invocation | None, list[int]], parallel: Parallel
) -> list[Step]:
    """Siblings in order: the parallel groups of each invocation, merged by their first calls."""
    if len(steps) < 2:
        return steps
    streams: dict[Invocation | None, list[Step]] = {}
    for step in sorted(steps, key=lambda step: step.order):
        streams.setdefault(step.node, []).append(step)
    groups = [
        group
        for node, stream in streams.items()
        for group in _groups(stream, model_starts.get(node, ()))
    ]
    if len(streams) > 1:
        groups.sort(key=lambda group: group[0].order)
    if parallel == "canonical":
        for group in groups:
            if len(group) > 1:
                group.sort(
                    key=lambda step: (
                        step.call.name or "",
                        step.start_ns,
                        step.span_id,
                        step.position,
                    )
                )
    return [step for group in groups for step in group]


def _groups(stream: list[Step], model_starts: Sequence[int]) -> list[list[Step]]:
    """A call joins the group if it starts before the group's earliest end, or with its last call,
    and no model call between.
    """
    groups: list[list[Step]] = []
    last = stream[0]
    earliest_end = 0
    for step in stream:
        is_together = step.start_ns < earliest_end or step.start_ns == last.start_ns
        if (
            groups
            and is_together
            and not (step.handoff or last.handoff)
            and (
                bisect_right(model_starts, step.start_ns)
                == bisect_right(model_starts, last.start_ns)
            )
        ):
            groups[-1].append(step)
            earliest_end = min(earliest_end, step.end_ns)
        else:
            groups.append([step])
            earliest_end = step.end_ns
        last = step
    return groups


# --- Retries and repeats --------------------------------------------------------------------------


class Mark(Struct, frozen=True):
    """Repetition of a call. `chain`: number of retries in a row up to this call."""

    retry: bool
    repeat: bool
    chain: int


Same: TypeAlias = tuple[str | None, bytes | None]
"""Tool and arguments of a call."""
FIRST: Final = Mark(retry=False, repeat=False, chain=0)
REPEAT: Final = Mark(retry=False, repeat=True, chain=0)
CYCLES: Final = (2, 3, 4)
"""Numbers of calls in a cycle."""


def marks(steps: Sequence[Step], effects: Sequence[bool]) -> list[Mark]:
    """Mark calls, which are in the order of the clock. `effects`: whether each call succeeded and
    changed something.

    A call is a retry if the latest earlier call of the same tool and arguments that ended before it
    started failed (where the arguments of either are unknown: of the same tool), and no edit of a
    file ended between the starts of the two. A success ends the chain. A repeat follows a success,
    with the same result where results are known, and no other call with an effect ended between the
    starts of the two. The calls of a cycle are neither edits nor effects between its rounds.
    """
    calls: list[Same] = [(step.call.name, step.call.arguments) for step in steps]
    if len({name for name, _ in calls}) == len(calls):
        return [FIRST] * len(calls)
    found: list[Mark] = [FIRST] * len(calls)
    ends = sorted(
        [(max(step.start_ns, step.end_ns), position) for position, step in enumerate(steps)]
    )
    latest: dict[Same, int] = {}
    latest_of_tool: dict[str | None, int] = {}
    ended = 0
    effective = _Changes()
    edits = _Changes()
    in_cycles: set[int] | None = None
    for position, (step, (name, arguments)) in enumerate(zip(steps, calls, strict=True)):
        started = (step.start_ns, position)
        while ended < len(ends) and ends[ended] < started:
            end = ends[ended]
            ended += 1
            _, before = end
            call = calls[before]
            tool, _ = call
            latest[call] = max(before, latest.get(call, -1))
            latest_of_tool[tool] = max(before, latest_of_tool.get(tool, -1))
            if effects[before]:
                effective.add(end, call)
                if has_word(tool or "", EDITING):
                    edits.add(end, call)
        if arguments is None:
            earlier = latest_of_tool.get(name, -1)
        else:
            earlier = max(latest.get((name, arguments), -1), latest.get((name, None), -1))
        mark = (
            FIRST
            if earlier < 0
            else _compared(step.call, steps[earlier].call, found[earlier].chain)
        )
        if mark is not FIRST and (edits if mark.retry else effective).has_other(
            calls[position], (steps[earlier].start_ns, earlier)
        ):
            in_cycles = _in_cycles(calls) if in_cycles is None else in_cycles
            mark = mark if position in in_cycles else FIRST
        found[position] = mark
    return found


class _Changes:
    """The last two calls to end that changed something and differ from one another, each with its
    (end, position).
    """

    def __init__(self) -> None:
        self._last: list[tuple[tuple[int, int], Same]] = []

    def add(self, end: tuple[int, int], call: Same) -> None:
        before = self._last[-1:]
        if before and before[0][1] == call:
            before = self._last[:-1]
        self._last = [*before, (end, call)]

    def has_other(self, call: Same, since: tuple[int, int]) -> bool:
        """Return whether a call other than this one ended after a call that started at `since`,
        (start, position).
        """
        return any(end > since and other != call for end, other in self._last)


def _compared(call: Call, earlier: Call, chain: int) -> Mark:
    if earlier.failed:
        return Mark(retry=True, repeat=False, chain=chain + 1)
    known = call.arguments is not None and earlier.arguments is not None
    same_result = call.result is None or earlier.result is None or call.result == earlier.result
    return REPEAT if known and same_result and not call.failed else FIRST


def _in_cycles(calls: Sequence[Same]) -> set[int]:
    """Return the positions after the first round of cycles: of 2 to 4 different calls that occur
    twice in direct succession.
    """
    found: set[int] = set()
    for length in CYCLES:
        start = length
        for position in range(length, len(calls) + 1):
            if (
                position < len(calls)
                and calls[position] == calls[position - length]
                and calls[position][1] is not None
            ):
                continue
            if position - start >= length and len(set(calls[start : start + length])) == length:
                found.update(range(start, position))
            start = position + 1
    return found


# --- Model calls ----------------------------------------------------------------------------------


_NO_TOKENS: Final = Tokens()
"""Tokens of a call that reports none, or 0: no call has an empty input."""


def with_whole_input(facts: ModelFacts) -> ModelFacts:
    """Return a model call with what it used. No call has an empty input: 0 says that none was
    reported. The input that some report is what the cache did not hold, as Anthropic and Bedrock
    count it: where it is less than what was read from the cache and written to it.
    """
    given = facts.tokens.input
    if given is None:
        return facts
    cached = (facts.cached or 0) + (facts.cache_written or 0)
    if cached > given:
        return with_cache_added(facts)
    if given == 0 and not facts.tokens.output:
        return replace(facts, tokens=_NO_TOKENS)
    return facts


def with_whole_output(facts: ModelFacts) -> ModelFacts:
    """Return a model call with all that it wrote. The output that some report is the answer only,
    as Gemini counts it: where it is less than the tokens of the reasoning.
    """
    given = facts.tokens.output
    if given is None or facts.reasoned is None or facts.reasoned <= given:
        return facts
    return with_reasoning_added(facts)


def with_reasoning_added(facts: ModelFacts) -> ModelFacts:
    """Return a model call whose output is the answer only, with its reasoning."""
    wrote = known_sum((facts.tokens.output, facts.reasoned))
    return replace(facts, tokens=Tokens(facts.tokens.input, wrote))


def with_cache_added(facts: ModelFacts) -> ModelFacts:
    """Return a model call whose input is what the cache did not hold, with the whole of it."""
    used = known_sum((facts.tokens.input, facts.cached, facts.cache_written))
    return replace(facts, tokens=Tokens(used, facts.tokens.output))


def models_once(tree: SpanTree, items: list[ModelSpan]) -> list[ModelSpan]:
    """Return each model call once: a model span inside a model span is one call; so are two of
    different scopes under one parent, of which one lies in time within the other, and two with one
    response id, unless their token counts differ. A log event adds what its span leaves out. An
    attempt at the run reports no call without an id that the run has not.
    """
    details = tree.details
    if details:
        items = [_completed(one, details.get(one.at, ())) for one in items]
    if tree.attempts:
        items = _without_attempts(tree, items)
    known = {one.at for one in items}
    inner: dict[int, list[ModelFacts]] = {}
    outer: list[ModelSpan] = []
    outermost = dict(tree.in_model)
    for one in items:
        i = one.at
        outer_at = outermost.get(i, NONE)
        if outer_at in known:
            while outermost.get(outer_at, NONE) in known:
                outer_at = outermost[outer_at]
            outermost[i] = outer_at
            inner.setdefault(outer_at, []).append(one.facts)
        else:
            outer.append(one)
    whole = [_completed(one, inner.get(one.at, ())) for one in outer]
    return _without_responses_twice(tree, _without_siblings(tree, whole))


def _completed(one: ModelSpan, inner: Sequence[ModelFacts]) -> ModelSpan:
    """Return a model call with what inner ones of it add."""
    return ModelSpan(one.at, _with_inner(one.facts, inner)) if inner else one


def _with_inner(outer: ModelFacts, inner: Sequence[ModelFacts]) -> ModelFacts:
    """Field by field the outer's value, else that of the inner ones (tokens: their sum). What one
    inner one alone knows of the cache says whether the outer's input is the whole; that of several,
    which may be attempts of which the outer counts the last, does not.
    """
    merged = asdict(outer)
    for one in inner:
        merged = {field: merged[field] or other for field, other in asdict(one).items()}
    whole = replace(
        ModelFacts(**merged),
        tokens=Tokens(
            outer.tokens.input
            if outer.tokens.input is not None
            else known_sum(facts.tokens.input for facts in inner),
            outer.tokens.output
            if outer.tokens.output is not None
            else known_sum(facts.tokens.output for facts in inner),
        ),
        calls=outer.calls or tuple([call for facts in inner for call in facts.calls]),
        cost=_cost_of(outer, inner),
        cached=known_sum(facts.cached for facts in inner) if outer.cached is None else outer.cached,
        cache_written=known_sum(facts.cache_written for facts in inner)
        if outer.cache_written is None
        else outer.cache_written,
    )
    return with_whole_input(whole) if len(inner) == 1 else whole


def _cost_of(outer: ModelFacts, inner: Sequence[ModelFacts]) -> float | None:
    """Return the reported cost of one call: the outer span's, else the sum over the inner ones
    where each that reports tokens reports one.
    """
    if outer.cost is not None:
        return outer.cost
    costs = [facts.cost for facts in inner if facts.cost is not None]
    counted = [facts for facts in inner if facts.cost is not None or facts.tokens.input is not None]
    return sum(costs) if costs and len(costs) == len(counted) else None


def _without_siblings(tree: SpanTree, items: list[ModelSpan]) -> list[ModelSpan]:
    kept: list[ModelSpan] = []
    by_parent: dict[int, list[int]] = {}
    for item in items:
        parent = tree.kept_above(item.at)
        siblings = by_parent.setdefault(parent, [])
        same = next(
            (at for at in reversed(siblings[-_NEAR:]) if _is_same_model_call(tree, kept[at], item)),
            None,
        )
        if same is None or parent == NONE:
            siblings.append(len(kept))
            kept.append(item)
        else:
            kept[same] = _completed(kept[same], [item.facts])
    return kept


def _without_attempts(tree: SpanTree, items: list[ModelSpan]) -> list[ModelSpan]:
    """Return model calls without those of attempts at the run that have no response id, but the
    tokens of a call of the run itself.
    """
    of_run = [one.facts.tokens for one in items if tree.attempt_of(one.at) == NONE]
    return [
        one
        for one in items
        if one.facts.response_id is not None
        or tree.attempt_of(one.at) == NONE
        or one.facts.tokens == _NO_TOKENS
        or one.facts.tokens not in of_run
    ]


def _without_responses_twice(tree: SpanTree, items: list[ModelSpan]) -> list[ModelSpan]:
    """Return model calls without those that report the response of an earlier one: it was fetched,
    or replayed.
    """
    if _is_fixed(tree, items):
        return items
    kept: list[ModelSpan] = []
    by_id: dict[str, int] = {}
    for item in items:
        response = item.facts.response_id
        at = None if response is None else by_id.get(response)
        if at is not None and _same_tokens(kept[at].facts, item.facts):
            kept[at] = _completed(kept[at], [item.facts])
            continue
        if response is not None and at is None:
            by_id[response] = len(kept)
        kept.append(item)
    return kept


def _is_fixed(tree: SpanTree, items: Sequence[ModelSpan]) -> bool:
    """Return whether all responses of a run have one id, which a mock wrote: the last one came
    after a call of a tool that the first asked for. What is replayed goes on with another response.
    """
    ids = [(one.facts.response_id, one.at) for one in items if one.facts.response_id is not None]
    if len(ids) < 2 or len({response for response, _ in ids}) > 1 or tree.attempts:
        return False
    spans = tree.spans
    (_, first), (_, last) = ids[0], ids[-1]
    node = tree.nodes[last]
    steps = () if node is None else node.steps
    return any(
        spans[i].kind is Kind.TOOL
        and spans[first].end_ns <= spans[i].start_ns
        and spans[i].end_ns <= spans[last].start_ns
        for i in steps
    )


def _same_tokens(one: ModelFacts, two: ModelFacts) -> bool:
    return _agree(one.tokens.input, two.tokens.input) and _agree(
        one.tokens.output, two.tokens.output
    )


def _is_same_model_call(tree: SpanTree, one: ModelSpan, two: ModelSpan) -> bool:
    first = tree.spans[one.at]
    second = tree.spans[two.at]
    if first.scope == second.scope or not _within(first, second):
        return False
    return _same_tokens(one.facts, two.facts)


def _agree(one: int | None, two: int | None) -> bool:
    return one is None or two is None or one == two


def _within(a: AgentSpan, b: AgentSpan) -> bool:
    return (a.start_ns <= b.start_ns and b.end_ns <= a.end_ns) or (
        b.start_ns <= a.start_ns and a.end_ns <= b.end_ns
    )


# --- Context windows ------------------------------------------------------------------------------


_MAX_CACHE: Final = 4096


class ContextLimits(dict[tuple[str | None, str | None], int | None]):
    """Context windows in tokens, by the names of the model that answered and of the one that was
    asked for: that of the first that is known. None where neither is: then no pressure is claimed.
    It fills itself.

    Where neither a span nor the settings name one, it is that of the price table.

    >>> limits = ContextLimits({"gpt-4o*": 128_000})
    >>> (
    ...     limits.of(ModelFacts(model="gpt-4o-mini-2024-07-18")),
    ...     limits.of(ModelFacts(model="house-model-1")),
    ... )
    (128000, None)
    """

    def __init__(self, configured: Mapping[str, int]) -> None:
        super().__init__()
        self._configured = tuple(configured.items())

    def of(self, facts: ModelFacts) -> int | None:
        return (
            self[facts.model, facts.request_model]
            if facts.context_limit is None
            else facts.context_limit
        )

    def __missing__(self, names: tuple[str | None, str | None]) -> int | None:
        known = (self._named(name) for name in names if name is not None)
        found = next((limit for limit in known if limit is not None), None)
        if len(self) < _MAX_CACHE:
            self[names] = found
        return found

    def _named(self, name: str) -> int | None:
        for pattern, limit in self._configured:
            if fnmatch.fnmatchcase(name, pattern):
                return limit
        return price_table.context_window(name)
