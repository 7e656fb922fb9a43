"""Runs from the spans of a trace: one pure function for every shape.

One loop reads each span of a run once; rules that apply to few runs are skipped where they cannot
apply.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

from otel_reliability.assembly import conversations, outcome, reports
from otel_reliability.assembly.closed_ids import ClosedIds
from otel_reliability.assembly.cost import cost_of_run
from otel_reliability.assembly.invocations import Invocation
from otel_reliability.assembly.late_outcomes import ReportedOutcomes
from otel_reliability.assembly.orphans import UNTIMED, ImplicitRun, Orphans, decide
from otel_reliability.assembly.reports import Evaluated
from otel_reliability.assembly.span_tree import NONE, SpanTree
from otel_reliability.assembly.steps import (
    ContextLimits,
    ModelSpan,
    Parallel,
    Step,
    calls_once,
    in_path_order,
    marks,
    models_once,
)
from otel_reliability.assembly.units import Units
from otel_reliability.config import Settings
from otel_reliability.model.blake2 import blake2b
from otel_reliability.model.remembered import Remembered
from otel_reliability.model.run import (
    AgentKey,
    CloseReason,
    Compression,
    ModelCall,
    Run,
    ToolCall,
    Tools,
)
from otel_reliability.model.span import (
    STEPS,
    AgentSpan,
    Call,
    CompressionFacts,
    Evaluation,
    HandoffFacts,
    InvocationFacts,
    Kind,
    ModelFacts,
    RejectionFacts,
    Resource,
    Tokens,
    ToolFacts,
    TraceId,
    conversation_of,
    is_conversation,
    named_tuple,
)
from otel_reliability.model.sums import known_sum
from otel_reliability.model.tools import ToolRules, has_effect

UNKNOWN_AGENT: Final = "unknown"
MAX_FINGERPRINTS: Final = 64
"""Maximum fingerprints of a run, the first in sorted order."""
Fingerprints: TypeAlias = tuple[tuple[str, str], ...]
_Fingerprinted: TypeAlias = tuple[
    frozenset[tuple[str, str, str]], frozenset[tuple[str | None, ...]]
]
"""The senders of spans (scope, version of the service, version of the scope), and groups of kinds
and values in turn.
"""
_UNNAMED_SERVICE: Final = "unknown_service"
_AGENT = Kind.AGENT
_MODEL = Kind.MODEL
_TOOL = Kind.TOOL
_HANDOFF = Kind.HANDOFF
_OTHER = Kind.OTHER
_COMPRESSION: Final = Kind.COMPRESSION
_NO_ORPHANS: Final = Orphans({}, [], {}, {}, {})
_NOTHING_CLOSED: Final[Mapping[TraceId, ClosedIds]] = {}
_NO_MODEL: Final = ModelFacts()
_NO_RANK: Final = 1_000
_MAX_KEYS: Final = 4_096


class Rebuilt(NamedTuple):
    """The runs of a trace, top-level runs before the runs nested in them.

    - `roots`: for each run the index of its root, or of its first span, in `tree`.
    - `has_gap`: whether the local parent of any agent span is missing, so that it may still arrive.
    - `orphans`: the decisions about work with no invocation above it.
    - `units`: those of the tree. `evaluations`: those that arrived apart from spans, by target.
    - `lost_annotations`: the indices of spans whose annotations joined no run.
    """

    runs: list[Run]
    roots: list[int]
    tree: SpanTree
    has_gap: bool
    orphans: Orphans
    units: Units
    evaluations: Evaluated
    lost_annotations: list[int]


class Rebuild:
    """Assembles under one set of settings, with outcomes that were reported apart from spans. It
    holds caches and nothing else.

    >>> from otel_reliability.testing import agent, tool
    >>> [run.path for run in Rebuild(Settings())([tool(2, 1, "search"), agent(1)]).runs]
    [('search',)]
    """

    def __init__(self, settings: Settings, reported: ReportedOutcomes | None = None) -> None:
        self.reported = reported
        self._limits = ContextLimits(settings.context_limits)
        self._estimates_cost = settings.estimate_cost
        self._parallel: Parallel = settings.assembly.parallel
        self._outcome = settings.outcome
        self._rules = ToolRules(
            settings.tools.helpers, settings.tools.effects, settings.tools.reads
        )
        self._fingerprints = Remembered[_Fingerprinted, Fingerprints](_MAX_KEYS)
        self._keys = Remembered[
            tuple[str | None, int, tuple[tuple[str, str], ...]], tuple[Resource, AgentKey]
        ](_MAX_KEYS)

    def __call__(
        self,
        spans: Sequence[AgentSpan],
        evaluations: Iterable[Evaluation] = (),
        *,
        joined: bool = False,
        closed: Mapping[TraceId, ClosedIds] = _NOTHING_CLOSED,
    ) -> Rebuilt:
        """Return all runs of a trace, or of several that are `joined`.

        `evaluations` arrived apart from spans. `closed`: what is remembered of final runs, by
        trace.
        """
        if (
            any(map(conversation_of, spans))
            if joined
            else spans and is_conversation(spans[0].trace_id)
        ):
            spans = conversations.put_together(spans)
            joined = True
        tree = SpanTree(spans, joined=joined)
        units = Units(tree)
        orphans = _NO_ORPHANS
        has_gap = any(node.gap for node in tree.invocations if node.over is None)
        if tree.orphans:
            has_gap = has_gap or any(tree.has_gap(tree.top_of(i)) for i in tree.orphans)
            orphans = decide(tree, units, closed)
            if orphans.linked:
                tree.release()
                tree = SpanTree(tree.spans, orphans.linked, joined=joined)
                units = Units(tree)
        evaluated: Evaluated = {}
        if evaluations:
            evaluated = reports.targets(tree, units, evaluations, closed)
        runs: list[Run] = []
        roots: list[int] = []
        for root, members in _members(tree).items():
            if _is_run(tree, root, members):
                runs.append(self._build(tree, units, evaluated, root, members, root.agent, None))
                roots.append(root.at)
        for implicit in (*orphans.implicit, *orphans.keyed.values()):
            runs.append(
                self._build(
                    tree, units, evaluated, None, implicit.members, implicit.agent, implicit
                )
            )
            roots.append(implicit.members[0])
        lost = _lost_annotations(tree, orphans)
        tree.release()
        return Rebuilt(runs, roots, tree, has_gap, orphans, units, evaluated, lost)

    # --- One run ----------------------------------------------------------------------------------

    def _build(  # noqa: C901, PLR0912, PLR0915 (one loop that reads each span once)
        self,
        tree: SpanTree,
        units: Units,
        apart: Evaluated,
        root: Invocation | None,
        members: Sequence[int],
        agent: str | None,
        implicit: ImplicitRun | None,
    ) -> Run:
        """Build a run from the indices of its spans, in order. `root` is None for implicit runs."""
        spans = tree.spans
        nodes = tree.nodes
        first = spans[members[0]] if root is None else root.span
        key = self._key(agent, first)
        actors = _Actors(root, key[3])
        models: list[ModelSpan] = []
        steps: list[Step] = []
        start = first[4]
        end = first[5]
        model_scope = None
        model_scopes = 0
        scope = resource = prompt = definitions = None
        rank, session = (_NO_RANK, None) if root is None else first[12] or (_NO_RANK, None)
        annotated: list[int] = []
        compressed = [] if implicit is None else list(implicit.compressions)
        made_of: set[tuple[str | None, ...]] = set()
        senders: set[tuple[str, str, str]] = set()
        rejected: set[int] = set()
        pending: list[int] = []
        has_tool_spans = asked_silently = unnamed = calls_itself = is_remote = False
        for i in members:
            (
                _,
                span_id,
                _,
                _,
                since,
                until,
                _,
                kind,
                failed,
                facts,
                own_scope,
                own_resource,
                session_here,
                notes,
                evaluations,
                _,
                _,
                _,
            ) = spans[i]
            if notes is not None or evaluations:
                annotated.append(i)
            if kind is _COMPRESSION:
                compressed.append(i)
                continue
            if session_here is not None and session_here[0] < rank:
                rank, session = session_here
            if kind is _OTHER:
                continue
            if since < start:  # noqa: PLR1730 (a call of `min` costs more)
                start = since
            if until > end:  # noqa: PLR1730
                end = until
            if own_scope is not scope or own_resource is not resource:
                scope = own_scope
                resource = own_resource
                senders.add((scope, resource.service_version, resource.scope_version))
                is_remote = is_remote or resource.service != first[11].service
            if kind is _MODEL:
                if type(facts) is not ModelFacts:
                    facts = _NO_MODEL
                if own_scope is not model_scope and own_scope != model_scope:
                    model_scope = own_scope
                    model_scopes += 1
                models.append((i, facts))
                asked_silently = asked_silently or facts[9]
                if facts[12]:
                    compressed.append(i)
                if facts[10] is not prompt or facts[11] is not definitions:
                    prompt = facts[10]
                    definitions = facts[11]
                    made_of.add(("prompt", prompt, "tools", definitions))
            elif kind is _TOOL:
                if type(facts) is ToolFacts:
                    has_tool_spans = True
                    calls = facts[0] if len(facts[0]) == 1 else sorted(facts[0], key=_call_order)
                    for position, call in enumerate(calls):
                        steps.append(Step(i, since, until, span_id, position, call, nodes[i]))
                        unnamed = unnamed or call[0] is None
                elif type(facts) is RejectionFacts:
                    has_tool_spans = True
                    if facts.pending:
                        pending.append(i)
                    else:
                        rejected.add(tree.in_tool.get(i, NONE))
            elif kind is _HANDOFF:
                target = facts.target if isinstance(facts, HandoffFacts) else None
                step = Step(i, since, until, span_id, 0, Call(target, failed=failed), nodes[i])
                step.handoff = True
                steps.append(step)
            elif type(facts) is InvocationFacts:
                asked_silently = asked_silently or facts.emits_no_tools
                calls_itself = calls_itself or facts.call is not None
                if facts.compressions:
                    compressed.append(i)
                if facts.version is not None or facts.prompt is not None or facts.tools is not None:
                    made_of.add(
                        ("version", facts.version, "prompt", facts.prompt, "tools", facts.tools)
                    )
            elif type(facts) is ToolFacts:
                has_tool_spans = True
        if root is not None and first[5] > first[4]:
            detached = _detached(tree, root, members) if len(tree.invocations) > 1 else ()
            if detached:
                service = first[11].service
                models = [
                    each
                    for each in models
                    if each[0] not in detached or spans[each[0]].resource.service == service
                ]
            if detached or is_remote:
                start, end = _own_bounds(spans, root.span, set(members).difference(detached))
        if rejected:
            steps = [step for step in steps if step.at not in rejected]
        if calls_itself and root is not None and (called := _calls_of_agents(tree, root, members)):
            steps = sorted([*steps, *called], key=lambda step: step.order)
            unnamed = unnamed or any(step.call.name is None for step in called)
        if model_scopes > 1 or tree.in_model or tree.details:
            models = models_once(tree, models)
        notes = outcome.NO_NOTES
        evaluations = ()
        if annotated or apart:
            notes, evaluations = reports.reports_of(
                tree, units, root, members if apart else annotated, apart
            )
        attempt = first[11].attempt
        if attempt:
            nested = root is not None and root.above is not None
            notes = reports.of_attempt(notes, attempt, nested=nested)
        trace_id = first[0]
        root_id = first[1] if implicit is None else implicit.span_id_in(trace_id)
        model_calls, tokens_in, tokens_out, pressure = self._models(
            tree, models, actors, notes.context_limit
        )
        cost = notes.cost
        if cost is None and models:
            cost = cost_of_run(models, spans, estimate=self._estimates_cost)
        if tokens_in is None and tokens_out is None and root is not None:
            tokens_in, tokens_out = _totals_of_agents(tree, members)
            window = notes.context_limit or max(
                [self._limits.of(facts) or 0 for _, facts in models], default=0
            )
            if tokens_in is not None and window:
                pressure = min((tokens_in + (tokens_out or 0)) / window, 1.0)
        if steps:
            steps = calls_once(tree, steps)
        tools = Tools.OBSERVED
        if steps and not rejected and (lost := _lost_steps(tree, steps, models)):
            steps = sorted([*steps, *lost], key=lambda step: step.order)
            tools = Tools.MESSAGES
        lacks_steps = root is not None and root.above is not None and _lacks_its_steps(tree, root)
        if lacks_steps or (
            unnamed and any(step.call[0] is None and not step.handoff for step in steps)
        ):
            tools = Tools.UNOBSERVABLE
        elif (
            not steps
            and not has_tool_spans
            and (asked_silently or any(facts[3] for _, facts in models))
        ):
            tools = _tools_of_messages(models)
            if tools is Tools.MESSAGES:
                steps = _message_steps(tree, models)
        path = tool_calls = None
        arguments_known = True
        if tools is not Tools.UNOBSERVABLE:
            path, tool_calls, arguments_known = self._path(tree, units, steps, models, actors)
        if (session is None and root is not None and root.above is not None) or tree.others:
            session = _session_above(tree, units, root, members, rank, session)
        if self.reported:
            is_nested = root is not None and root.above is not None
            late = self.reported.of_run(
                trace_id, root_id, session, notes.outcome_key, start, nested=is_nested
            )
            evaluations = reports.latest([*evaluations, *late])
        waits = bool(pending) and _still_waits(tree, pending, members)
        seen = outcome.observed(tree, root, members, self._outcome, waits=waits)
        result = seen
        if annotated or evaluations or attempt:
            result = outcome.reported(notes, evaluations, self._outcome) or seen
        made_of.update(
            [("model", call[0]) for call in model_calls if call[0] is not None and not call[3]]
        )
        span_count = len(members) + (0 if implicit is None else len(implicit.compressions))
        return named_tuple(
            Run,
            (
                f"{trace_id.hex()}-{root_id.hex()}",
                trace_id,
                root_id if implicit is None else None,
                key,
                session,
                notes.task_id,
                notes.trial,
                notes.condition or "baseline",
                notes.input_class,
                notes.branches,
                root is not None and root.above is not None,
                implicit is not None,
                implicit is not None and implicit.incomplete,
                start,
                end,
                path,
                tools,
                tool_calls,
                model_calls,
                tokens_in,
                tokens_out,
                pressure,
                arguments_known,
                result.outcome,
                result.source,
                notes.confidence,
                cost,
                notes.violations,
                evaluations,
                weight(first[16], trace_id) if first[16] else 1,
                span_count,
                CloseReason.ROOT,
                self._fingerprints_of((frozenset(senders), frozenset(made_of))),
                _compressions(tree, compressed, actors) if compressed else (),
                seen.ended_in_error,
                request_of(spans, members, root),
                (),
                notes.outcome_key,
            ),
        )

    def _key(self, agent: str | None, span: AgentSpan) -> AgentKey:
        resource = span[11]
        extra = span[17]
        known = self._keys.get((agent, id(resource), extra))
        if known is not None and known[0] is resource:
            return known[1]
        service = resource.service_name
        named = agent or (
            UNKNOWN_AGENT if not service or service.startswith(_UNNAMED_SERVICE) else service
        )
        key = AgentKey(resource.service_namespace, service, resource.environment, named, extra)
        self._keys[agent, id(resource), extra] = (resource, key)
        return key

    def _fingerprints_of(self, found: _Fingerprinted) -> Fingerprints:
        """Return what spans show of how the agent is made."""
        known = self._fingerprints.get(found)
        if known is None:
            senders, made_of = found
            pairs = {(one[at], one[at + 1]) for one in made_of for at in range(0, len(one), 2)}
            for scope, service_version, scope_version in senders:
                pairs |= {
                    ("version", service_version),
                    ("framework", f"{scope} {scope_version}".strip()),
                }
            known = tuple(
                sorted((kind or "", value) for kind, value in pairs if value)[:MAX_FINGERPRINTS]
            )
            self._fingerprints[found] = known
        return known

    def _models(
        self, tree: SpanTree, models: list[ModelSpan], actors: _Actors, run_window: int | None
    ) -> tuple[tuple[ModelCall, ...], int | None, int | None, float | None]:
        """Return the calls, the sums of input and output tokens, and the greatest share of a
        context window.

        `run_window`: the context window that the user gives for the run, in tokens.
        """
        spans = tree.spans
        nodes = tree.nodes
        limits = self._limits
        tokens_in = tokens_out = pressure = None
        calls: list[ModelCall] = []
        for i, facts in models:
            model, asked, (used, wrote), _, _, _, window, *_ = facts
            span = spans[i]
            if used is not None:
                tokens_in = used if tokens_in is None else tokens_in + used
                limit = run_window or (limits[model, asked] if window is None else window)
                if limit is not None:
                    share = (used + (wrote or 0)) / limit
                    if pressure is None or share > pressure:
                        pressure = share
            if wrote is not None:
                tokens_out = wrote if tokens_out is None else tokens_out + wrote
            calls.append(
                named_tuple(
                    ModelCall,
                    (
                        model or asked,
                        used,
                        wrote,
                        span[8],
                        actors[nodes[i]],
                        span[4],
                        span[5],
                        facts.cached,
                    ),
                )
            )
        return (
            tuple(calls),
            tokens_in,
            tokens_out,
            None if pressure is None else min(pressure, 1.0),
        )

    def _path(
        self,
        tree: SpanTree,
        units: Units,
        steps: list[Step],
        models: list[ModelSpan],
        actors: _Actors,
    ) -> tuple[tuple[str, ...], tuple[ToolCall, ...], bool]:
        """Return the path, the tool calls in the order of the clock, and whether all arguments are
        known.
        """
        if not steps:
            return (), (), True
        handoffs = [step for step in steps if step.handoff]
        if handoffs:
            _name_handoffs(units, handoffs)
        path = in_path_order(tree, steps, models, self._parallel) if len(steps) > 1 else steps
        clocked = [step for step in steps if not step.handoff] if handoffs else steps
        calls: list[ToolCall] = []
        known = True
        rules = self._rules
        effects = [
            not step.call[3] and has_effect(step.call[0] or "?", step.call[5], rules)
            for step in clocked
        ]
        for step, (retry, repeat, chain), changes in zip(
            clocked, marks(clocked, effects), effects, strict=True
        ):
            name, _, arguments, failed, result, effect = step.call
            known = known and arguments is not None
            agent = actors[step.node]
            calls.append(
                named_tuple(
                    ToolCall,
                    (
                        name or "?",
                        not failed,
                        retry,
                        repeat,
                        chain,
                        agent,
                        step.start_ns,
                        step.end_ns,
                        arguments,
                        result,
                        effect,
                        changes,
                    ),
                )
            )
        return tuple([step.label for step in path]), tuple(calls), known


def _members(tree: SpanTree) -> dict[Invocation, list[int]]:
    """The spans of each run, in order: a run has the steps of the runs nested in it too."""
    invocations = tree.invocations
    if len(invocations) == 1 and len(invocations[0].steps) + 1 == len(tree.spans):
        return {invocations[0]: list(range(len(tree.spans)))}
    found: dict[Invocation, list[int]] = {}
    for node in invocations:
        root: Invocation | None = node.root
        while root is not None:
            found.setdefault(root, []).extend((node.at, *node.steps))
            root = root.above
    if tree.annotators:
        below = _first_runs_below(tree)
        for i in tree.annotators:
            if len(roots := below.get(i, ())) == 1:
                found[roots[0]].append(i)
    for members in found.values():
        members.sort()
    return found


def _still_waits(tree: SpanTree, pending: Sequence[int], members: Sequence[int]) -> bool:
    """Return whether nothing went on after the last of these calls that waited for somebody."""
    last = max(tree.spans[i].end_ns for i in pending)
    return not any(
        tree.spans[i].kind in STEPS and tree.spans[i].start_ns >= last
        for i in members
        if i not in pending
    )


def _lost_annotations(tree: SpanTree, orphans: Orphans) -> list[int]:
    """Return the spans with annotations that joined no run: of work in no run, and above several
    runs or none.
    """
    spans = tree.spans
    lost = [i for i in orphans.unclaimed if spans[i].notes is not None]
    noted = [i for i in tree.annotators if spans[i].notes is not None]
    below = _first_runs_below(tree) if noted else {}
    return [*lost, *(i for i in noted if len(below.get(i, ())) != 1)]


def _first_runs_below(tree: SpanTree) -> dict[int, list[Invocation]]:
    """The roots of the first two top-level runs below each span."""
    found: dict[int, list[Invocation]] = {}
    for node in tree.invocations:
        over = NONE if node.over is not None else tree.kept_above(node.at)
        while over != NONE and len(known := found.setdefault(over, [])) < 2:
            known.append(node)
            over = tree.kept_above(over)
    return found


def _is_run(tree: SpanTree, root: Invocation, members: Sequence[int]) -> bool:
    """Return whether the spans of a root are a run. A container, or a nested agent, that did
    nothing is none.
    """
    spans = tree.spans
    nested = root.above is not None
    if len(members) > 1 and not nested and root.span[7] is _AGENT:
        return True
    if nested and _lacks_its_steps(tree, root):
        return True
    acted = any(spans[i][7] in STEPS or (not nested and spans[i][7] is _AGENT) for i in members)
    return acted or (root.is_agent and (not nested or root.span[8]))


def request_of(
    spans: Sequence[AgentSpan], members: Iterable[int], root: Invocation | None
) -> bytes | None:
    """Return the sketch of the request of a run: its root's, else that of its first span with
    one.
    """
    if root is not None and root.facts.request is not None:
        return root.facts.request
    for i in members:
        facts = spans[i].facts
        if isinstance(facts, InvocationFacts | ModelFacts) and facts.request is not None:
            return facts.request
    return None


def _lacks_its_steps(tree: SpanTree, root: Invocation) -> bool:
    """Return whether a tool called an agent that has no spans below it, while calls that may be its
    own lie below its caller: its path is unknown.
    """
    over = root.over
    if over is None or not root.below_tool or root.name is None or root.steps or root.inner:
        return False
    spans = tree.spans
    start = root.span.start_ns
    end = root.span.end_ns
    return root.span.kind is _AGENT and any(
        spans[i].kind is _TOOL and start <= spans[i].start_ns and spans[i].end_ns <= end
        for i in over.steps
    )


class _Actors(dict[Invocation | None, str]):
    """The agent that executes the steps of an invocation: the nearest named one above them, within
    the run.
    """

    __slots__ = ("default", "root")

    def __init__(self, root: Invocation | None, default: str) -> None:
        self[root] = self[None] = self.default = default
        self.root = root

    def __missing__(self, node: Invocation) -> str:
        over: Invocation | None = node
        found = self.default
        while over is not None and over is not self.root:
            name = over.name or over.agent
            if name is not None and over.span.kind is _AGENT:
                found = name
                break
            over = over.over
        self[node] = found
        return found


# --- Rules that apply to few runs -----------------------------------------------------------------


def _detached(tree: SpanTree, root: Invocation, members: Sequence[int]) -> set[int]:
    """Return the spans of a run that lie in invocations which it started in the background."""
    if not tree.has_background:
        return set()
    return {
        i
        for i in members
        if (node := tree.innermost(i)) is not None
        and node.background is not None
        and node.background is not root.background
    }


def _own_bounds(
    spans: Sequence[AgentSpan], root: AgentSpan, members: Iterable[int]
) -> tuple[int, int]:
    """Return the start and the end of a run by the spans of its root's service: the clocks of
    others may differ, and their work may go on after it.
    """
    service = root.resource.service
    own = [
        spans[i]
        for i in members
        if spans[i].resource.service == service and spans[i].kind not in UNTIMED
    ]
    return min(span.start_ns for span in own), max(span.end_ns for span in own)


def _compressions(tree: SpanTree, at: Sequence[int], actors: _Actors) -> tuple[Compression, ...]:
    """Return the compressions of a run: spans of their own, and events of other spans. One inside
    another is the same.
    """
    found: list[Compression] = []
    for i in at:
        span = tree.spans[i]
        over = tree.parent[i]
        if span.kind is _COMPRESSION and over != NONE and tree.spans[over].kind is _COMPRESSION:
            continue
        facts = span.facts
        agent = actors[tree.innermost(i)]
        if isinstance(facts, CompressionFacts):
            facts = facts._replace(failed=span.failed, start_ns=span.start_ns, end_ns=span.end_ns)
            found.append(_compression(facts, agent))
        elif isinstance(facts, InvocationFacts | ModelFacts):
            found += [_compression(_before(span, each), agent) for each in facts.compressions]
    return tuple(sorted(found, key=lambda one: (one.end_ns, one.start_ns)))


def _before(span: AgentSpan, facts: CompressionFacts) -> CompressionFacts:
    """Return a compression that a span reports; one without a time came before the span."""
    if facts.end_ns:
        return facts
    return facts._replace(start_ns=span.start_ns, end_ns=span.start_ns)


def _compression(facts: CompressionFacts, agent: str) -> Compression:
    before, after, trigger, failed, start_ns, end_ns = facts
    return Compression(not failed, agent, start_ns, end_ns, before, after, trigger)


def _calls_of_agents(tree: SpanTree, root: Invocation, members: Sequence[int]) -> list[Step]:
    """The calls of nested agents of this run that represent their own tool call."""
    found: list[Step] = []
    for node in _invocations(tree, members):
        call = node.facts.call
        if call is None or node is root or node.below_tool or node.root is not node:
            continue
        span = node.span
        call = call._replace(name=call.name or node.agent, failed=call.failed or span.failed)
        found.append(
            Step(node.at, span.start_ns, span.end_ns, span.span_id, 0, call, tree.nodes[node.at])
        )
    return found


def _invocations(tree: SpanTree, members: Sequence[int]) -> list[Invocation]:
    return [node for i in members if (node := tree.invocation_at.get(i)) is not None]


def _tools_of_messages(models: Sequence[ModelSpan]) -> Tools:
    """Return whether the messages hold every call that was asked for."""
    with_messages = [facts for _, facts in models if facts.messages]
    asked = [facts for _, facts in models if facts.asked_for_tools]
    captured = all(facts.calls for facts in asked) and (
        bool(asked) or len(with_messages) == len(models)
    )
    return Tools.MESSAGES if captured and models else Tools.UNOBSERVABLE


def _message_steps(tree: SpanTree, models: Sequence[ModelSpan]) -> list[Step]:
    """Calls read from messages: in the order they were asked for, at the end of their model call.
    Messages tell what was said before, too: a call is taken where its id first occurs.
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


def _lost_steps(tree: SpanTree, steps: Sequence[Step], models: Sequence[ModelSpan]) -> list[Step]:
    """Return the calls whose spans were lost: a model asked for several at once, spans of some of
    them arrived, and a model was called again with what they returned.

    Calls are told apart by their ids, so nothing is said where a span has none. A call that the
    framework answers itself (a final answer, a hand-off) is followed by no model call, or is a
    hand-off: then nothing is said either. A lost call stands beside the ones that were seen.
    """
    by_id = {step.call.call_id: step for step in steps}
    if None in by_id or any(step.handoff for step in steps):
        return []
    latest = max([tree.spans[i].start_ns for i, _ in models], default=0)
    found: dict[str | None, Step] = {}
    for i, facts in models:
        seen = [by_id[call.call_id] for call in facts.calls if call.call_id in by_id]
        if not seen or tree.spans[i].end_ns > latest:
            continue
        beside = min(seen, key=lambda step: step.order)
        for position, call in enumerate(facts.calls):
            if call.call_id is not None and call.call_id not in by_id:
                found[call.call_id] = Step(
                    i, beside.start_ns, beside.end_ns, beside.span_id, position, call, beside.node
                )
    return list(found.values())


def _name_handoffs(units: Units, handoffs: Iterable[Step]) -> None:
    """A hand-off without a target goes to the next agent of its unit to start."""
    for step in handoffs:
        if step.call.name is None:
            following = units.next_agent(step.at)
            step.call = step.call._replace(name=None if following is None else following.name)


def _totals_of_agents(tree: SpanTree, members: Sequence[int]) -> tuple[int | None, int | None]:
    """The agents' own totals, of the outermost of a chain with one name."""
    own = {node: node.facts.tokens for node in _invocations(tree, members)}
    totals = [
        tokens
        for node, tokens in own.items()
        if tokens is not None and not _is_counted_above(node, own)
    ]
    return known_sum(one.input for one in totals), known_sum(one.output for one in totals)


def _is_counted_above(node: Invocation, totals: Mapping[Invocation, Tokens | None]) -> bool:
    over = node.over
    while over is not None and over in totals and over.name == node.name:
        if totals[over] is not None:
            return True
        over = over.over
    return False


def _session_above(
    tree: SpanTree,
    units: Units,
    root: Invocation | None,
    members: Sequence[int],
    rank: int,
    session: str | None,
) -> str | None:
    """The session id of what lies above: of the enclosing runs for nested ones, then of the other
    spans above the unit.
    """
    spans = tree.spans
    parent = tree.parent
    if session is None and root is not None and root.above is not None:
        over = parent[root.at]
        while over != NONE:
            here = spans[over].session
            if here is not None and here[0] < rank:
                rank, session = here
            over = parent[over]
    found = units.session_above(members[0] if root is None else root.at) if tree.others else None
    return found.id if found is not None and found.rank < rank else session


def _call_order(call: Call) -> tuple[str, str]:
    return (call.name or "", call.call_id or "")


# --- Sampling -------------------------------------------------------------------------------------


_ALL: Final = 1 << 56
_MAX_WEIGHT: Final = 1 << 40


def weight(threshold: int | None, trace_id: bytes) -> int:
    """2^56 / (2^56 − T), rounded up or down by a hash of the trace id: whole, and right on average.

    >>> weight(None, b""), weight(1 << 55, bytes(16)), weight(0, bytes(16))
    (1, 2, 1)
    """
    if not threshold:
        return 1
    kept = _ALL - threshold
    if kept <= 0:
        return 1
    whole, rest = divmod(_ALL, kept)
    if rest:
        lot = int.from_bytes(blake2b(trace_id, digest_size=7).digest(), "big")
        whole += lot * kept < rest * _ALL
    return min(whole, _MAX_WEIGHT)
