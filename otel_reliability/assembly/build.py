"""One run from its spans.

`Gathered` reads each span once. What follows asks it, rule by rule; rules that apply to few runs
are skipped where they cannot apply.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from otel_reliability.assembly import outcome, reports
from otel_reliability.assembly.cost import cost_of_run
from otel_reliability.assembly.extent import (
    Extent,
    extent,
    has_shifted_call,
    in_background,
    is_hollow,
    lacks_its_steps,
    own_extent,
)
from otel_reliability.assembly.gather import Gathered, Sender, Traits
from otel_reliability.assembly.invocations import Invocation
from otel_reliability.assembly.late_outcomes import ReportedOutcomes
from otel_reliability.assembly.orphans import ImplicitRun
from otel_reliability.assembly.outcome import latest
from otel_reliability.assembly.reports import Evaluated
from otel_reliability.assembly.sampling import sampling_weight
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
from otel_reliability.assembly.unseen_steps import (
    UnclaimedCalls,
    calls_of_agents,
    ends_with_open_call,
    has_unseen_call,
    invocations_in,
    lost_steps,
    message_steps,
    served_steps,
    tools_of_messages,
)
from otel_reliability.config import Settings
from otel_reliability.model.flaws import (
    CLOCK_SKEW,
    DROPPED,
    FIRST_CALL_MISSING,
    LOST_MODEL_CALLS,
    NEGATIVE_DURATION,
    RUN_REPLAYED,
    SESSION_FILE,
    SPLIT_TRACE,
    UNNAMED_AGENT,
)
from otel_reliability.model.remembered import Remembered
from otel_reliability.model.row import BASELINE
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
    ANSWERS_TOOL,
    PAUSED,
    STEPS,
    AgentSpan,
    CompressionFacts,
    Evaluation,
    InvocationFacts,
    Kind,
    ModelFacts,
    Notes,
    Resource,
    Tokens,
    is_no_name,
)
from otel_reliability.model.sums import known_sum
from otel_reliability.model.tools import ToolRules, has_effect

UNKNOWN_AGENT: Final = "unknown"
MAX_FINGERPRINTS: Final = 64
"""Maximum fingerprints of a run, the first in sorted order."""
Fingerprints: TypeAlias = tuple[tuple[str, str], ...]
_Fingerprinted: TypeAlias = tuple[frozenset[Sender], frozenset[Traits], frozenset[str]]
_AGENT = Kind.AGENT
_COMPRESSION: Final = Kind.COMPRESSION
RESPONSE_PREFIX: Final = "resp_"
"""Start of the ids that OpenAI gives to responses. As the id of a conversation, as the Agent
Framework writes it, such a one is the response that the run continues: another one in each turn.
"""
NO_CONVERSATIONS: Final = frozenset(
    {
        *("undefined", "unknown", "none", "N/A", "n/a", "NaN", "nan", "0", "-"),
        *("[object Object]", "00000000-0000-0000-0000-000000000000"),
    }
)
"""Ids that programs send where they know none: one conversation of all would be wrong."""
_MAX_KEYS: Final = 4_096
SECOND_NS: Final = 1_000_000_000
_NO_TOKENS: Final = Tokens()


class Linked(Struct, frozen=True, eq=False):
    """Spans with all that links them: their tree, its units, and evaluations that arrived apart.
    `unclaimed`: tool calls that belong to no run, beside agents.
    """

    tree: SpanTree
    units: Units
    evaluations: Evaluated
    unclaimed: UnclaimedCalls | None = None


class _Draft(Struct, eq=False):
    """A run that is being built: its spans, and what one pass over them found.

    - `root`: None for a run without one, which is `implicit` then.
    - `members`: its spans, in order. `first`: its root, else the first of them.
    - `actors`: the agents that execute its steps.
    """

    linked: Linked
    root: Invocation | None
    implicit: ImplicitRun | None
    members: Sequence[int]
    first: AgentSpan
    key: AgentKey
    actors: _Actors
    gathered: Gathered

    @property
    def is_nested(self) -> bool:
        return self.root is not None and self.root.run_above is not None


class _Usage(Struct, frozen=True, eq=False):
    """The model calls of a run, its tokens, and the greatest share of a context window.
    `lacks_calls`: its agent reports more tokens than these calls used.
    """

    calls: tuple[ModelCall, ...]
    input_tokens: int | None
    output_tokens: int | None
    pressure: float | None
    lacks_calls: bool


class _Path(Struct, frozen=True, eq=False):
    """The path of a run and its tool calls in the order of the clock; both None where they cannot
    be observed.
    """

    names: tuple[str, ...] | None
    calls: tuple[ToolCall, ...] | None
    arguments_known: bool


_NO_STEPS: Final = _Path((), (), arguments_known=True)
_UNOBSERVABLE: Final = _Path(None, None, arguments_known=True)


class RunBuilder:
    """Builds runs under one set of settings, with outcomes that were reported apart from spans. It
    holds caches and nothing else.
    """

    def __init__(self, settings: Settings, reported: ReportedOutcomes | None) -> None:
        self._reported = reported
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

    def build(self, linked: Linked, root: Invocation, members: Sequence[int]) -> Run:
        """Build the run of a root. `members`: its spans, in order."""
        return self._built(self._draft(linked, root, None, members, root.agent))

    def build_implicit(self, linked: Linked, run: ImplicitRun) -> Run:
        """Build a run without a root."""
        return self._built(self._draft(linked, None, run, run.members, run.agent))

    def _draft(
        self,
        linked: Linked,
        root: Invocation | None,
        implicit: ImplicitRun | None,
        members: Sequence[int],
        agent: str | None,
    ) -> _Draft:
        """Read the spans of a run once."""
        first = linked.tree.spans[members[0]] if root is None else root.span
        key = self._key(agent, first)
        gathered = Gathered(linked.tree)
        if implicit is not None:
            gathered.compressed.extend(implicit.compressions)
        elif first.session is not None:
            gathered.rank = first.session.rank
            gathered.session = first.session.id
        gathered.read(members, first)
        return _Draft(
            linked=linked,
            root=root,
            implicit=implicit,
            members=members,
            first=first,
            key=key,
            actors=_Actors(root, key.agent),
            gathered=gathered,
        )

    def _built(self, draft: _Draft) -> Run:
        tree = draft.linked.tree
        root = draft.root
        members = draft.members
        first = draft.first
        implicit = draft.implicit
        gathered = draft.gathered
        if gathered.evaluations and root is not None:
            gathered.leave_out(_judged_later(tree, root, gathered.evaluations, members))
        background = _background(draft)
        lasts = _extent(draft, background)
        notes, evaluations = _reports(draft)
        cut = _cut_by_sender(tree.spans, gathered.annotated) if gathered.annotated else ()
        models = _models(draft, background)
        usage = self._usage(draft, models, notes.context_limit, cut)
        steps, tools = _observed_steps(draft, models)
        path = _UNOBSERVABLE
        if tools is not Tools.UNOBSERVABLE:
            path = self._path(draft, steps, models)
        session = _session(draft)
        continues = _continued(models)
        if session is not None and session.startswith(RESPONSE_PREFIX):
            continues = continues or session
            session = None
        trace_id = first.trace_id
        root_id = first.span_id if implicit is None else implicit.span_id_in(trace_id)
        if self._reported:
            late = self._reported.of_run(
                trace_id,
                root_id,
                session,
                notes.outcome_key,
                lasts.start_ns,
                nested=draft.is_nested,
            )
            evaluations = latest([*evaluations, *late])
        waits = bool(gathered.pending) and _still_waits(tree, gathered.pending, members)
        seen = outcome.observed(tree, root, members, self._outcome, waits=waits)
        result = seen
        if gathered.annotated or evaluations or first.resource.attempt:
            result = outcome.reported(notes, evaluations, self._outcome) or seen
        cost = notes.cost
        if cost is None and models and not usage.lacks_calls:
            cost = cost_of_run(models, tree.spans, estimate=self._estimates_cost)
        return Run(
            run_id=f"{trace_id.hex()}-{root_id.hex()}",
            trace_id=trace_id,
            root_span_id=root_id if implicit is None else None,
            key=draft.key,
            session_id=session,
            task_id=notes.task_id,
            trial=notes.trial,
            condition=notes.condition or BASELINE,
            input_class=notes.input_class,
            branches=notes.branches,
            nested=draft.is_nested,
            implicit=implicit is not None,
            incomplete=implicit is not None and implicit.incomplete,
            start_ns=lasts.start_ns,
            end_ns=lasts.end_ns,
            path=path.names,
            tools=tools,
            tool_calls=path.calls,
            model_calls=usage.calls,
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            token_pressure=usage.pressure,
            arguments_known=path.arguments_known,
            outcome=result.outcome,
            outcome_source=result.source,
            confidence=notes.confidence,
            cost=cost,
            violations=notes.violations,
            evaluations=evaluations,
            weight=sampling_weight(first.threshold, trace_id) if first.threshold else 1,
            span_count=len(members) + (0 if implicit is None else len(implicit.compressions)),
            closed_by=CloseReason.ROOT,
            fingerprints=self._fingerprints_of(gathered, usage.calls),
            compressions=_compressions(draft) if gathered.compressed else (),
            ended_in_error=seen.ended_in_error,
            request=request_of(tree, members, root),
            flaws=_flaws(draft, cut, lacks_calls=usage.lacks_calls),
            outcome_key=notes.outcome_key,
            first_step=_first_step(models, steps)
            or (None if session is None else _first_moment(tree.spans, first, models, steps)),
            last_response=next(
                (id_ for one in reversed(models) if (id_ := one.facts.response_id)), None
            ),
            previous_response=continues,
        )

    def _key(self, agent: str | None, span: AgentSpan) -> AgentKey:
        resource = span.resource
        extra = span.extra
        known = self._keys.get((agent, id(resource), extra))
        if known is not None and known[0] is resource:
            return known[1]
        service = resource.service_name
        called = service.strip()
        named = agent or (UNKNOWN_AGENT if not called or is_no_name(called) else called)
        key = AgentKey(resource.service_namespace, service, resource.environment, named, extra)
        self._keys[agent, id(resource), extra] = (resource, key)
        return key

    def _fingerprints_of(self, gathered: Gathered, calls: Iterable[ModelCall]) -> Fingerprints:
        """Return what the spans and model calls of a run show of how its agent is made."""
        models = frozenset([call.model for call in calls if call.model and not call.failed])
        found = frozenset(gathered.senders), frozenset(gathered.traits), models
        known = self._fingerprints.get(found)
        if known is None:
            senders, traits, models = found
            pairs = {(one[at], one[at + 1]) for one in traits for at in range(0, len(one), 2)}
            pairs |= {("model", model) for model in models}
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

    def _usage(
        self,
        draft: _Draft,
        models: Sequence[ModelSpan],
        run_window: int | None,
        cut: Collection[int],
    ) -> _Usage:
        """Return what the model calls of a run used, else what its agents say they used. Where its
        agent says more, spans of model calls were lost, and what it says counts.

        `run_window`: the context window that the user gives for the run, in tokens. Where one of
        the spans that are `cut` lost the tokens of its call, those of the others are only a part
        of the run's.
        """
        root = draft.root
        actors = draft.actors
        spans = draft.linked.tree.spans
        nodes = draft.linked.tree.nodes
        limits = self._limits
        tokens_in = tokens_out = pressure = None
        calls: list[ModelCall] = []
        for one in models:
            facts = one.facts
            span = spans[one.at]
            used = facts.tokens.input
            wrote = facts.tokens.output
            if used is not None:
                tokens_in = used if tokens_in is None else tokens_in + used
                limit = run_window or limits.of(facts)
                if limit is not None:
                    share = (used + (wrote or 0)) / limit
                    if pressure is None or share > pressure:
                        pressure = share
            if wrote is not None:
                tokens_out = wrote if tokens_out is None else tokens_out + wrote
            calls.append(
                ModelCall(
                    model=facts.model or facts.request_model,
                    input_tokens=used,
                    output_tokens=wrote,
                    failed=span.failed,
                    agent=actors[nodes[one.at]],
                    start_ns=span.start_ns,
                    end_ns=span.end_ns,
                    cached_tokens=facts.cached,
                )
            )
        lacks_models = root is not None and root.facts.lacks_models
        if lacks_models or (
            cut and any(one.at in cut and one.facts.tokens == _NO_TOKENS for one in models)
        ):
            tokens_in = tokens_out = pressure = None
        if root is not None and root.facts.lacks_output:
            tokens_out = None
        if tokens_in is None and tokens_out is None and root is not None:
            tokens_in, tokens_out = _totals_of_agents(draft.linked.tree, draft.members)
            window = run_window or max([limits.of(one.facts) or 0 for one in models], default=0)
            if tokens_in is not None and window:
                pressure = (tokens_in + (tokens_out or 0)) / window
        total = _NO_TOKENS if root is None else root.facts.tokens or _NO_TOKENS
        most_in = _greater(tokens_in, total.input)
        most_out = _greater(tokens_out, total.output)
        return _Usage(
            calls=tuple(calls),
            input_tokens=most_in,
            output_tokens=most_out,
            pressure=None if pressure is None else min(pressure, 1.0),
            lacks_calls=lacks_models or (most_in, most_out) != (tokens_in, tokens_out),
        )

    def _path(self, draft: _Draft, steps: list[Step], models: list[ModelSpan]) -> _Path:
        linked = draft.linked
        actors = draft.actors
        if not steps:
            return _NO_STEPS
        handoffs = [step for step in steps if step.handoff]
        if handoffs:
            _name_handoffs(linked.units, handoffs)
        path = steps
        if len(steps) > 1:
            path = in_path_order(linked.tree, steps, models, self._parallel)
        clocked = [step for step in steps if not step.handoff] if handoffs else steps
        effects = [
            not step.call.failed
            and has_effect(step.call.name or "?", step.call.effect, self._rules)
            for step in clocked
        ]
        calls: list[ToolCall] = []
        arguments_known = True
        for step, mark, changes in zip(clocked, marks(clocked, effects), effects, strict=True):
            call = step.call
            if call.arguments is None:
                arguments_known = False
            calls.append(
                ToolCall(
                    name=call.name or "?",
                    ok=not call.failed,
                    retry=mark.retry,
                    repeat=mark.repeat,
                    chain=mark.chain,
                    agent=actors[step.node],
                    start_ns=step.start_ns,
                    end_ns=step.end_ns,
                    arguments=call.arguments,
                    result=call.result,
                    effect=call.effect,
                    has_effect=changes,
                )
            )
        return _Path(tuple([step.label for step in path]), tuple(calls), arguments_known)


# --- Parts of a run -------------------------------------------------------------------------------


def _background(draft: _Draft) -> Collection[int]:
    """Return the spans of a run that lie in invocations which it started in the background; none
    where its root has no extent of its own.
    """
    root = draft.root
    if root is None or root.span.end_ns <= root.span.start_ns:
        return ()
    return in_background(draft.linked.tree, root, draft.members)


def _judged_later(
    tree: SpanTree, root: Invocation, evaluations: Iterable[int], members: Iterable[int]
) -> Collection[int]:
    """Return the spans below evaluations that began after the end of a run: what a judge used to
    look at it is none of its work.
    """
    end = root.span.end_ns
    later = {i for i in evaluations if tree.spans[i].start_ns >= end}
    if not later or end <= root.span.start_ns:
        return ()
    found = set(later)
    for i in members:
        passed: list[int] = []
        above = i
        while above not in (NONE, root.at) and above not in found:
            passed.append(above)
            above = tree.parent[above]
        if above in found:
            found.update(passed)
    return found


def _extent(draft: _Draft, background: Collection[int]) -> Extent:
    tree = draft.linked.tree
    spans = tree.spans
    root = draft.root
    timed = draft.gathered.timed
    if root is None or root.span.end_ns <= root.span.start_ns:
        return extent(spans, timed)
    if background:
        timed = [i for i in timed if i not in background]
    if tree.attempts:
        end = root.span.end_ns
        timed = [i for i in timed if spans[i].start_ns <= end or tree.attempt_of(i) == NONE]
    if background or draft.gathered.is_remote:
        return own_extent(spans, root.span, timed)
    return extent(spans, timed)


def _reports(draft: _Draft) -> tuple[Notes, tuple[Evaluation, ...]]:
    """Return what users and evaluators report of a run."""
    notes = outcome.NO_NOTES
    evaluations = ()
    linked = draft.linked
    apart = linked.evaluations
    annotated = draft.gathered.annotated
    if annotated or apart:
        notes, evaluations = reports.reports_of(
            linked.tree, linked.units, draft.root, draft.members if apart else annotated, apart
        )
    attempt = draft.first.resource.attempt
    if attempt:
        notes = reports.of_attempt(notes, attempt, nested=draft.is_nested)
    return notes, evaluations


def _models(draft: _Draft, background: Collection[int]) -> list[ModelSpan]:
    """Return the model calls of a run, each once, without those that another service made in the
    background.
    """
    tree = draft.linked.tree
    gathered = draft.gathered
    if gathered.beside_cache or gathered.beside_reasoning:
        gathered.count_whole()
    models = gathered.models
    if background:
        service = draft.first.resource.service
        models = [
            one
            for one in models
            if one.at not in background or tree.spans[one.at].resource.service == service
        ]
    if (
        gathered.model_scopes > 1
        or gathered.has_repeated_response
        or tree.in_model
        or tree.details
        or tree.attempts
    ):
        return models_once(tree, models)
    return models


def _own_steps(draft: _Draft, models: list[ModelSpan]) -> tuple[list[Step], bool]:
    """Return the steps that spans of a run show, each once, and whether one may have no name."""
    tree = draft.linked.tree
    root = draft.root
    gathered = draft.gathered
    steps = gathered.steps
    has_unnamed = gathered.is_unnamed
    if gathered.rejected:
        steps = [step for step in steps if step.at not in gathered.rejected]
    if gathered.calls_itself and root is not None:
        called = calls_of_agents(tree, root, draft.members)
        if called:
            steps = sorted([*steps, *called], key=lambda step: step.order)
            has_unnamed = has_unnamed or any(step.call.name is None for step in called)
    return calls_once(tree, steps, models) if steps else steps, has_unnamed


def _observed_steps(draft: _Draft, models: list[ModelSpan]) -> tuple[list[Step], Tools]:
    """Return each step once, and how steps were observed: by their spans, else by messages. Calls
    that a provider executed itself are in messages only.
    """
    steps, tools = _executed_steps(draft, models)
    if tools is Tools.UNOBSERVABLE or not any(one.facts.served for one in models):
        return steps, tools
    served = served_steps(draft.linked.tree, steps, models)
    if not served:
        return steps, tools
    return sorted([*steps, *served], key=lambda step: step.order), Tools.MESSAGES


def _executed_steps(draft: _Draft, models: list[ModelSpan]) -> tuple[list[Step], Tools]:
    """Return the steps that the agent executed itself, each once, and how they were observed."""
    tree = draft.linked.tree
    root = draft.root
    gathered = draft.gathered
    steps, has_unnamed = _own_steps(draft, models)
    tools = Tools.OBSERVED
    if steps and not gathered.rejected and (lost := lost_steps(tree, root, steps, models)):
        steps = sorted([*steps, *lost], key=lambda step: step.order)
        tools = Tools.MESSAGES
    if root is not None and (
        is_hollow(root)
        or root.facts.lacks_tools
        or _works_unseen(root, gathered)
        or (root.run_above is not None and lacks_its_steps(tree, root))
    ):
        return steps, Tools.UNOBSERVABLE
    if has_unnamed and any(step.call.name is None and not step.handoff for step in steps):
        return steps, Tools.UNOBSERVABLE
    if steps and tools is Tools.OBSERVED and not gathered.rejected:
        is_whole = any(step.handoff for step in steps) or not has_unseen_call(
            tree, root, steps, models
        )
        return steps, tools if is_whole else Tools.UNOBSERVABLE
    if steps or gathered.has_tool_spans:
        return steps, tools
    unclaimed = draft.linked.unclaimed
    asks = gathered.asked_silently or any(one.facts.asked_for_tools for one in models)
    waits = bool(gathered.pending) or (root is not None and root.facts.stopped == PAUSED)
    if asks and not ends_with_open_call(tree, models, waits=waits):
        tools = tools_of_messages(models)
        if tools is Tools.MESSAGES:
            steps = message_steps(tree, models, waits=waits)
    elif unclaimed is not None and root is not None and unclaimed.may_be_of(root):
        tools = Tools.UNOBSERVABLE
    return steps, tools


def _works_unseen(root: Invocation, gathered: Gathered) -> bool:
    """Return whether a model answered an agent, as its tokens show, below which nothing lies: what
    it did in between, perhaps in another process, has no span.
    """
    return root.facts.tokens is not None and len(gathered.timed) == 1


def _first_step(models: Sequence[ModelSpan], steps: Sequence[Step]) -> str | None:
    """Return the id of the first response, else of the first call; None for one that several
    responses of the run have, which identifies none.
    """
    ids = [id_ for one in models if (id_ := one.facts.response_id) is not None]
    if ids:
        return ids[0] if ids.count(ids[0]) == 1 else None
    for step in steps:
        if step.call.call_id is not None:
            return f"{step.call.name} {step.call.call_id}"
    return None


def _first_moment(
    spans: Sequence[AgentSpan],
    first: AgentSpan,
    models: Sequence[ModelSpan],
    steps: Sequence[Step],
) -> str | None:
    """Return when a run without ids began, and its first step: no two runs of a conversation have
    the same times, unless one was exported twice. None where its clock shows whole seconds. Times
    are in microseconds, as some stores keep them.
    """
    at = models[0].at if models else steps[0].at if steps else None
    if at is None or not first.start_ns % SECOND_NS:
        return None
    times = (first.start_ns, spans[at].start_ns, spans[at].end_ns)
    return " ".join(["at", *[str(round(ns, -3) // 1_000) for ns in times]])


def _continued(models: Sequence[ModelSpan]) -> str | None:
    """Return the response that the first call of a run continues, which none of its own gave."""
    for one in models:
        previous = one.facts.previous_response
        if previous is not None:
            own = {other.facts.response_id for other in models}
            return None if previous in own else previous
    return None


def _still_waits(tree: SpanTree, pending: Sequence[int], members: Sequence[int]) -> bool:
    """Return whether nothing went on after the last of these calls that waited for a person."""
    last = max(tree.spans[i].end_ns for i in pending)
    return not any(
        tree.spans[i].kind in STEPS and tree.spans[i].start_ns >= last
        for i in members
        if i not in pending
    )


def request_of(tree: SpanTree, members: Iterable[int], root: Invocation | None) -> bytes | None:
    """Return the sketch of the request of a run: its root's, else that of its first span with
    one, or with a log event that has one.
    """
    if root is not None and root.facts.request is not None:
        return root.facts.request
    details = tree.details
    for i in members:
        facts = tree.spans[i].facts
        if (type(facts) is ModelFacts or type(facts) is InvocationFacts) and facts.request:
            return facts.request
        for one in details.get(i, ()) if details else ():
            if one.request:
                return one.request
    return None


class _Actors(dict[Invocation | None, str]):
    """The agent that executes the steps of an invocation: the nearest named one above them, within
    the run.
    """

    __slots__ = ("default", "root")

    def __init__(self, root: Invocation | None, default: str) -> None:
        self[root] = self[None] = self.default = default
        self.root = root

    def __missing__(self, node: Invocation) -> str:
        around: Invocation | None = node
        found = self.default
        while around is not None and around is not self.root:
            name = around.name or around.agent
            if name is not None and around.span.kind is _AGENT:
                found = name
                break
            around = around.enclosing
        self[node] = found
        return found


def _cut_by_sender(spans: Sequence[AgentSpan], annotated: Iterable[int]) -> frozenset[int]:
    """Return the spans of which the sender dropped attributes, events or links."""
    return frozenset(
        i for i in annotated if (notes := spans[i].notes) is not None and notes.dropped
    )


def _flaws(draft: _Draft, cut: Collection[int], *, lacks_calls: bool) -> tuple[str, ...]:
    """Return the flaws that only the spans of a run show."""
    root = draft.root
    attempts = draft.linked.tree.attempts
    found = (DROPPED,) if cut else ()
    facts = InvocationFacts() if root is None else root.facts
    if facts.lacks_tools or facts.lacks_models or facts.lacks_output:
        found = (*found, SESSION_FILE)
    elif lacks_calls or (root is not None and _works_unseen(root, draft.gathered)):
        found = (*found, LOST_MODEL_CALLS)
    elif root is not None and _goes_on(draft):
        found = (*found, FIRST_CALL_MISSING)
    if attempts and not attempts.keys().isdisjoint(draft.members):
        found = (*found, RUN_REPLAYED)
    if root is not None and is_hollow(root):
        found = (*found, SPLIT_TRACE)
    if root is not None and root.agent is None and root.span.kind is _AGENT:
        found = (*found, UNNAMED_AGENT)
    if draft.gathered.is_remote and has_shifted_call(draft.linked.tree, draft.members):
        found = (*found, CLOCK_SKEW)
    if draft.gathered.annotated and _ends_before_start(draft):
        found = (*found, NEGATIVE_DURATION)
    return found


def _goes_on(draft: _Draft) -> bool:
    """Return whether the first model call of a run answers what a tool returned, which the run
    called before: the model call that asked for it is not here.
    """
    models = draft.gathered.models
    steps = draft.gathered.steps
    if draft.is_nested or not models or not steps or models[0].facts.request != ANSWERS_TOOL:
        return False
    return steps[0].end_ns <= draft.linked.tree.spans[models[0].at].start_ns


def _ends_before_start(draft: _Draft) -> bool:
    """Return whether a span of a run, as it was sent, ended before it started."""
    spans = draft.linked.tree.spans
    return any(
        (notes := spans[i].notes) is not None and notes.ends_before_start
        for i in draft.gathered.annotated
    )


def _compressions(draft: _Draft) -> tuple[Compression, ...]:
    """Return the compressions of a run: spans of their own, and events of other spans. One inside
    another is the same.
    """
    tree = draft.linked.tree
    actors = draft.actors
    found: list[Compression] = []
    for i in draft.gathered.compressed:
        span = tree.spans[i]
        above = tree.parent[i]
        if span.kind is _COMPRESSION and above != NONE and tree.spans[above].kind is _COMPRESSION:
            continue
        facts = span.facts
        agent = actors[tree.innermost(i)]
        if isinstance(facts, CompressionFacts):
            facts = replace(facts, failed=span.failed, start_ns=span.start_ns, end_ns=span.end_ns)
            found.append(_compression(facts, agent))
        elif isinstance(facts, InvocationFacts | ModelFacts):
            found += [_compression(_before(span, each), agent) for each in facts.compressions]
    return tuple(sorted(found, key=lambda one: (one.end_ns, one.start_ns)))


def _before(span: AgentSpan, facts: CompressionFacts) -> CompressionFacts:
    """Return a compression that a span reports; one without a time came before the span."""
    if facts.end_ns:
        return facts
    return replace(facts, start_ns=span.start_ns, end_ns=span.start_ns)


def _compression(facts: CompressionFacts, agent: str) -> Compression:
    return Compression(
        ok=not facts.failed,
        agent=agent,
        start_ns=facts.start_ns,
        end_ns=facts.end_ns,
        tokens_before=facts.tokens_before,
        tokens_after=facts.tokens_after,
        trigger=facts.trigger,
    )


def _name_handoffs(units: Units, handoffs: Iterable[Step]) -> None:
    """A hand-off without a target goes to the next agent of its unit to start."""
    for step in handoffs:
        if step.call.name is None:
            following = units.next_agent(step.at)
            step.call = replace(step.call, name=None if following is None else following.name)


def _greater(found: int | None, total: int | None) -> int | None:
    """Return the greater of two numbers of tokens; None where nothing was found."""
    return found if found is None or total is None else max(found, total)


def _totals_of_agents(tree: SpanTree, members: Sequence[int]) -> tuple[int | None, int | None]:
    """The agents' own totals, of the outermost of a chain with one name."""
    own = {node: node.facts.tokens for node in invocations_in(tree, members)}
    totals = [
        tokens
        for node, tokens in own.items()
        if tokens is not None and not _is_counted_above(node, own)
    ]
    return known_sum(one.input for one in totals), known_sum(one.output for one in totals)


def _is_counted_above(node: Invocation, totals: Mapping[Invocation, Tokens | None]) -> bool:
    around = node.enclosing
    while around is not None and around in totals and around.name == node.name:
        if totals[around] is not None:
            return True
        around = around.enclosing
    return False


def _session(draft: _Draft) -> str | None:
    """Return the session id that the spans of a run name, else those of the runs that enclose it;
    or one of a better rank that a connecting span above its unit names.
    """
    root = draft.root
    tree = draft.linked.tree
    rank = draft.gathered.rank
    session = draft.gathered.session
    if session is None and root is not None and root.run_above is not None:
        above = tree.parent[root.at]
        while above != NONE:
            here = tree.spans[above].session
            if here is not None and here.rank < rank:
                rank = here.rank
                session = here.id
            above = tree.parent[above]
    if tree.others:
        found = draft.linked.units.session_above(draft.members[0] if root is None else root.at)
        if found is not None and found.rank < rank:
            session = found.id
    return None if session in NO_CONVERSATIONS else session
