"""Runs from the spans of one unit: a pure function, so that arrival order, batching and duplicates cannot matter."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from otel_reliability.assembly import calls, models, outcome, retries
from otel_reliability.assembly.calls import Item
from otel_reliability.assembly.invocations import Invocations
from otel_reliability.assembly.judged import best
from otel_reliability.assembly.limits import ContextLimits
from otel_reliability.assembly.models import ModelItem
from otel_reliability.assembly.notes import merged
from otel_reliability.assembly.sampling import weight
from otel_reliability.assembly.simple import SimpleBuilder
from otel_reliability.assembly.tree import NONE, Tree
from otel_reliability.assembly.unit import Implicit, SpanKey
from otel_reliability.config import Settings
from otel_reliability.model.model_calls import ModelCall, ModelCalls
from otel_reliability.model.run import AgentKey, Run, Tools
from otel_reliability.model.span import (
    AgentSpan,
    Call,
    Evaluation,
    Kind,
    ModelFacts,
    Notes,
    Session,
    Tokens,
    ToolFacts,
)
from otel_reliability.model.tool_calls import ToolCall, ToolCalls

HANDOFF: Final = "→"
UNKNOWN_AGENT: Final = "unknown"
_UNNAMED_SERVICE: Final = "unknown_service"
_TOP_STEPS: Final = outcome.STEPS | {Kind.AGENT}
_LOOSE: Final = frozenset({Kind.MODEL, Kind.TOOL, Kind.HANDOFF, Kind.RETRIEVAL})


class Unit(NamedTuple):
    """What is built at once: spans, who stands above whom, and what lies outside.

    - `spans`: by what they are called here: their ids, unless several traces are joined.
    - `parents`: for each span the nearest span of the unit above it, through any other span.
    - `sessions`: session ids of the non-agent ancestors above, nearest first.
    - `evaluations`: judgements that arrived apart, with the span they belong to (None: to the unit's outermost run).
    - `implicit`: how to build spans that have no invocation above, None where they are nobody's.
    - `has_gap`: whether a local parent above the tops never came, so that an invocation may stand there.
    """

    spans: Mapping[SpanKey, AgentSpan]
    parents: Mapping[SpanKey, SpanKey | None]
    sessions: Sequence[Session] = ()
    evaluations: Sequence[tuple[Evaluation, SpanKey | None]] = ()
    implicit: Implicit | None = None
    has_gap: bool = False


class Built(NamedTuple):
    """The runs of a unit, and how many of its spans they used. `loose`: spans of work with no invocation above."""

    runs: list[Run]
    used: int
    loose: int
    loose_calls: int
    agents: frozenset[str]
    invocations: int

    def accounts(self, spans: int) -> dict[tuple[str, str], int]:
        """What became of so many spans, of which none is loose."""
        return {("used", ""): self.used, ("other", "no_run"): spans - self.used}


class Builder:
    """Builds runs under one set of settings."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._limits = ContextLimits(settings.context_limits)
        self.simple = SimpleBuilder(settings, self._limits)
        """The short way, where a bundle holds no more than one plain run."""

    def build(self, unit: Unit) -> Built:
        """All runs of a unit, top-level runs before the runs nested in them."""
        tree = Tree(unit.spans, unit.parents, has_gap=unit.has_gap)
        invocations = Invocations(tree)
        members = _members(tree, invocations)
        for root, over in _annotators(tree, invocations).items():
            members[root] = sorted({*members.get(root, ()), *over})
        runs: list[Run] = []
        used: set[int] = set()
        for root in invocations.roots:
            spans = members.get(root, [])
            run = self._run_of(tree, invocations, root, spans, unit)
            if run is not None:
                runs.append(run)
                used.update(spans)
        loose = _loose(tree)
        if unit.implicit is not None and loose:
            runs.append(
                self._run(
                    tree, invocations, NONE, loose, unit, unit.implicit.agent, nested=False, implicit=unit.implicit
                )
            )
            used.update(loose)
            loose = []
        return Built(
            runs,
            len(used),
            len(loose),
            sum(_is_own_call(tree.spans[i]) for i in loose),
            frozenset(name for i in invocations.order if (name := invocations.name[i]) and _is_agent(tree, i)),
            len(invocations.order),
        )

    def _run_of(self, tree: Tree, invocations: Invocations, root: int, spans: list[int], unit: Unit) -> Run | None:
        """The run of one root; None where it is no run: a container, or a nested agent, that did nothing."""
        nested = invocations.above[root] != NONE
        steps = outcome.STEPS if nested else _TOP_STEPS
        acted = any(tree.spans[i].kind in steps for i in spans)
        if not acted and (invocations.is_container(root) or (nested and not tree.spans[root].failed)):
            return None
        agent = invocations.agent[root]
        return self._run(tree, invocations, root, spans, unit, agent, nested=nested, implicit=None)

    def _run(
        self,
        tree: Tree,
        invocations: Invocations,
        root: int,
        spans: list[int],
        unit: Unit,
        agent: str | None,
        *,
        nested: bool,
        implicit: Implicit | None,
    ) -> Run:
        first = tree.spans[root if root != NONE else spans[0]]
        resource = first.resource
        key = AgentKey(
            resource.service_namespace,
            resource.service_name,
            resource.environment,
            agent or _service(resource.service_name),
            first.extra,
        )
        notes = merged(
            [note for i in _own(tree, invocations, root, spans) if (note := tree.spans[i].notes) is not None]
        )
        evaluations = _evaluations(tree, invocations, root, spans, unit, nested)
        steps = _Steps(tree, invocations, root, spans, key.agent, self._settings)
        verdict = outcome.judge(tree, invocations, root, spans, notes, evaluations, self._settings.outcome)
        tokens = _tokens(tree, invocations, root, spans, steps.models)
        anchor = first.span_id if implicit is None else implicit.id_in(first.trace_id)
        return Run(
            run_id=f"{first.trace_id.hex()}-{anchor.hex()}",
            trace_id=first.trace_id,
            root_span_id=None if implicit is not None else first.span_id,
            key=key,
            session_id=_session(tree, root, spans, unit, nested),
            task_id=notes.task_id,
            trial=notes.trial,
            condition=notes.condition or "baseline",
            input_class=notes.input_class,
            branches=notes.branches,
            nested=nested,
            implicit=implicit is not None,
            incomplete=implicit is not None and implicit.incomplete,
            start_ns=min(tree.spans[i].start_ns for i in spans if tree.spans[i].kind is not Kind.OTHER),
            end_ns=max(tree.spans[i].end_ns for i in spans if tree.spans[i].kind is not Kind.OTHER),
            path=steps.path,
            tools=steps.tools,
            tool_calls=steps.calls,
            model_calls=steps.model_calls,
            input_tokens=tokens.input,
            output_tokens=tokens.output,
            token_pressure=self._pressure(steps.models, tokens, notes),
            arguments_known=steps.arguments_known,
            outcome=verdict.outcome,
            outcome_source=verdict.source,
            confidence=notes.confidence,
            cost=notes.cost if notes.cost is not None else _cost(steps.models),
            violations=notes.violations,
            evaluations=evaluations,
            weight=weight(first.threshold, first.trace_id),
            span_count=len(spans),
        )

    def _pressure(self, items: Sequence[ModelItem], tokens: Tokens, notes: Notes) -> float | None:
        """The largest share of a context window that one model call filled, cut at 1."""
        shares: list[float] = []
        for item in items:
            limit = notes.context_limit or self._limits.of(item.facts)
            used = item.facts.tokens
            if limit is not None and used.input is not None:
                shares.append(min((used.input + (used.output or 0)) / limit, 1.0))
        if not shares and tokens.input is not None and all(item.facts.tokens == Tokens() for item in items):
            limits = [limit for item in items if (limit := self._limits.of(item.facts)) is not None]
            limit = notes.context_limit or max(limits, default=None)
            if limit is not None:
                shares.append(min((tokens.input + (tokens.output or 0)) / limit, 1.0))
        return max(shares, default=None)


class _Steps:
    """The steps of one run: its tool calls, its path, its model calls."""

    def __init__(
        self, tree: Tree, invocations: Invocations, root: int, spans: list[int], agent: str, settings: Settings
    ) -> None:
        self._tree, self._invocations, self._root, self._agent = tree, invocations, root, agent
        self.models = models.collect(tree, spans)
        self.model_calls = ModelCalls.of([self._model_call(item) for item in self.models])
        in_run = set(spans)
        items = calls.collect(
            tree, [i for i in tree.down if i in in_run] if len(spans) > 1 else spans, self._call_agents(spans)
        )
        self.tools = self._observed(spans, items)
        self.path: tuple[str, ...] | None = None
        self.calls: ToolCalls | None = None
        if self.tools is Tools.MESSAGES:
            items = list(self._message_items())
        if self.tools is not Tools.UNOBSERVABLE:
            self._take(items, settings)
        self.arguments_known = self.calls is None or None not in self.calls.column("arguments")

    def _call_agents(self, spans: Iterable[int]) -> dict[int, Call]:
        """Q11: nested agents of this run that stand for their own tool call."""
        found: dict[int, Call] = {}
        for i in spans:
            call = self._tree.facts(i).call if self._tree.is_invocation[i] else None
            if call is None or i == self._root or self._tree.below_tool[i]:
                continue
            if self._invocations.root[i] == i and self._invocations.above[i] != NONE:
                named = call.name or self._invocations.agent[i]
                found[i] = call._replace(name=named, failed=call.failed or self._tree.spans[i].failed)
        return found

    def _observed(self, spans: Sequence[int], items: Sequence[Item]) -> Tools:
        """Decided by the run's own spans alone."""
        if any(item.call.name is None and not item.handoff for item in items):
            return Tools.UNOBSERVABLE
        if items or any(isinstance(self._tree.spans[i].facts, ToolFacts) for i in spans):
            return Tools.OBSERVED
        silent = any(self._emits_no_tools(i) for i in spans)
        if not silent and not any(item.facts.asked_for_tools for item in self.models):
            return Tools.OBSERVED
        told = [item.facts for item in self.models if item.facts.messages]
        asked = [item.facts for item in self.models if item.facts.asked_for_tools]
        captured = all(facts.calls for facts in asked) and (bool(asked) or len(told) == len(self.models))
        return Tools.MESSAGES if captured and self.models else Tools.UNOBSERVABLE

    def _emits_no_tools(self, i: int) -> bool:
        facts = self._tree.spans[i].facts
        return (isinstance(facts, ModelFacts) and facts.emits_no_tools) or self._tree.facts(i).emits_no_tools

    def _message_items(self) -> Iterable[Item]:
        """Calls read from messages: in the order they were asked for, one after the other, where their model call ended."""
        for item in self.models:
            span = self._tree.spans[item.at]
            for position, call in enumerate(item.facts.calls):
                order = (span.end_ns, span.end_ns, span.span_id, position)
                yield Item(item.at, order, call, self._tree.invocation[item.at])

    def _take(self, items: list[Item], settings: Settings) -> None:
        self._name_handoffs(items)
        ordered = calls.in_path_order(items, self._model_starts(), settings.assembly.parallel)
        self.path = tuple(
            HANDOFF + (item.call.name or "?") if item.handoff else item.call.name or "?" for item in ordered
        )
        clocked = sorted((item for item in items if not item.handoff), key=lambda item: item.order)
        timed = [retries.Timed(item.order, item.start_ns, item.end_ns, item.call) for item in clocked]
        marked = zip(clocked, retries.mark(timed), strict=True)
        self.calls = ToolCalls.of([self._tool_call(item, mark) for item, mark in marked])

    def _name_handoffs(self, items: Iterable[Item]) -> None:
        """A hand-off to nobody known goes to the next agent to start (Q37)."""
        for item in items:
            if item.handoff and item.call.name is None:
                later = [
                    i for i in self._invocations.order
                    if self._tree.spans[i].kind is Kind.AGENT and self._tree.spans[i].start_ns >= item.start_ns
                ]  # fmt: skip
                following = min(later, default=None)
                item.call = item.call._replace(name=None if following is None else self._invocations.name[following])

    def _model_starts(self) -> dict[int, list[int]]:
        found: dict[int, list[int]] = {}
        for item in self.models:
            found.setdefault(self._tree.invocation[item.at], []).append(self._tree.spans[item.at].start_ns)
        for starts in found.values():
            starts.sort()
        return found

    def _agent_of(self, i: int) -> str:
        """The agent that took a step: the nearest named one above it, within this run."""
        above = self._tree.invocation[i]
        while above not in (NONE, self._root):
            named = self._invocations.name[above] or self._invocations.agent.get(above)
            if named is not None and self._tree.spans[above].kind is Kind.AGENT:
                return named
            above = self._invocations.encloser[above]
        return self._agent

    def _tool_call(self, item: Item, mark: retries.Mark) -> ToolCall:
        call = item.call
        return ToolCall(
            call.name or "?",
            not call.failed,
            mark.retry,
            mark.repeat,
            mark.chain,
            self._agent_of(item.index),
            item.start_ns,
            item.end_ns,
            call.arguments,
            call.result,
            call.effect,
        )

    def _model_call(self, item: ModelItem) -> ModelCall:
        span, facts = self._tree.spans[item.at], item.facts
        return ModelCall(
            facts.model or facts.request_model,
            facts.tokens.input,
            facts.tokens.output,
            span.failed,
            self._agent_of(item.at),
            span.start_ns,
            span.end_ns,
        )


def _members(tree: Tree, invocations: Invocations) -> dict[int, list[int]]:
    """The spans of each run, in order: a run has the steps of the runs nested in it too."""
    found: dict[int, list[int]] = {}
    for i in range(len(tree.spans)):
        over = i if tree.is_invocation[i] else tree.invocation[i]
        if over == NONE:
            continue
        root = invocations.root[over]
        while root != NONE:
            found.setdefault(root, []).append(i)
            root = invocations.above[root]
    return found


def _loose(tree: Tree) -> list[int]:
    """Work with no invocation above it, and the chains that hold it, in order; nothing where there is no work."""
    outside = [i for i in range(len(tree.spans)) if tree.invocation[i] == NONE and not tree.is_invocation[i]]
    if not any(tree.spans[i].kind in _LOOSE for i in outside):
        return []
    return [i for i in outside if tree.spans[i].kind in _LOOSE or tree.spans[i].kind is Kind.CHAIN]


def _is_agent(tree: Tree, i: int) -> bool:
    return tree.spans[i].kind is Kind.AGENT


def _is_own_call(span: AgentSpan) -> bool:
    """A tool call that was made here: SERVER and CONSUMER spans tell the far end of one."""
    facts = span.facts
    return isinstance(facts, ToolFacts) and bool(facts.calls) and span.span_kind not in (2, 5)


def _service(name: str) -> str:
    """`service.name` names the agent where nothing else does; the SDK's placeholder names nothing."""
    return UNKNOWN_AGENT if not name or name.startswith(_UNNAMED_SERVICE) else name


def _annotators(tree: Tree, invocations: Invocations) -> dict[int, list[int]]:
    """The spans above a run that only say something about it: notes and evaluations of a span that has no invocation above
    belong to the run below it, where that is one (a request handler that judges the run it made).
    """
    speaking = [
        i
        for i in range(len(tree.spans))
        if tree.spans[i].kind is Kind.OTHER and tree.invocation[i] == NONE and not tree.is_invocation[i]
    ]
    if not speaking:
        return {}
    below: dict[int, set[int]] = {}
    for root in invocations.roots:
        above = tree.parent[root] if invocations.encloser[root] == NONE else NONE
        while above != NONE:
            below.setdefault(above, set()).add(root)
            above = tree.parent[above]
    found: dict[int, list[int]] = {}
    for i in speaking:
        roots = below.get(i, set())
        if len(roots) == 1:
            found.setdefault(next(iter(roots)), []).append(i)
    return found


def _own(tree: Tree, invocations: Invocations, root: int, spans: Iterable[int]) -> Iterable[int]:
    """The spans whose innermost run is this one."""
    if root == NONE:
        return spans
    return (i for i in spans if _innermost(tree, invocations, i) in (root, NONE))


def _innermost(tree: Tree, invocations: Invocations, i: int) -> int:
    """The root of the innermost run a span lies in, NONE for a span above its run."""
    over = i if tree.is_invocation[i] else tree.invocation[i]
    return NONE if over == NONE else invocations.root[over]


def _evaluations(
    tree: Tree, invocations: Invocations, root: int, spans: Sequence[int], unit: Unit, nested: bool
) -> tuple[Evaluation, ...]:
    """The judgements of a run; of several of one name the greatest (time, score) stands."""
    own = set(_own(tree, invocations, root, spans))
    found = [evaluation for i in own for evaluation in tree.spans[i].evaluations]
    for evaluation, key in unit.evaluations:
        if key is None:
            if not nested:
                found.append(evaluation)
        elif tree.index.get(key) in own:
            found.append(evaluation)
    return best(found)


def _session(tree: Tree, root: int, spans: Sequence[int], unit: Unit, nested: bool) -> str | None:
    """The best key first; of one key the root's, then the steps' by start, then the ancestors'."""
    candidates: list[tuple[int, int, str]] = []
    ordered = [root, *spans] if root != NONE else list(spans)
    for position, i in enumerate(ordered):
        session = tree.spans[i].session
        if session is not None:
            candidates.append((session.rank, position, session.id))
    if not candidates and nested:
        above = tree.parent[root]
        while above != NONE:
            session = tree.spans[above].session
            if session is not None:
                candidates.append((session.rank, len(candidates), session.id))
            above = tree.parent[above]
    candidates.extend((session.rank, len(ordered) + n, session.id) for n, session in enumerate(unit.sessions))
    return min(candidates)[2] if candidates else None


def _tokens(
    tree: Tree, invocations: Invocations, root: int, spans: Sequence[int], items: Sequence[ModelItem]
) -> Tokens:
    """The model calls' tokens; only where none has any, the agents' own totals, outermost of a same-name chain."""
    found = models.total(items)
    if found != Tokens() or root == NONE:
        return found
    counted: set[int] = set()
    totals: list[Tokens] = []
    inside = set(spans)
    for i in (i for i in invocations.order if i in inside):
        over = invocations.encloser[i]
        same = over in counted and invocations.name[over] == invocations.name[i]
        own = tree.facts(i).tokens
        if same or own is not None:
            counted.add(i)
        if own is not None and not same:
            totals.append(own)
    inputs = [total.input for total in totals if total.input is not None]
    outputs = [total.output for total in totals if total.output is not None]
    return Tokens(sum(inputs) if inputs else None, sum(outputs) if outputs else None)


def _cost(items: Sequence[ModelItem]) -> float | None:
    """US dollars of the model calls that say so, where the run's own cost is not told."""
    costs = [item.facts.cost for item in items if item.facts.cost is not None]
    return float(sum(costs)) if costs else None
