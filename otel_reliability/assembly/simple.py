"""The run that most telemetry tells: one agent, and beneath it model and tool calls, each told once.

What `Builder` gives for such a run, at a fraction of the cost: where there is one invocation, and no call inside another,
nothing has to be sorted out. Whatever might be anything else is left to `Builder`; tests hold these runs to its own.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import repeat
from operator import itemgetter
from typing import Final, Literal, NamedTuple

from otel_reliability.assembly import calls, outcome, retries
from otel_reliability.assembly.bundle import Bundle
from otel_reliability.assembly.calls import Item
from otel_reliability.assembly.judged import best
from otel_reliability.assembly.limits import ContextLimits
from otel_reliability.assembly.notes import NO_NOTES, merged
from otel_reliability.assembly.outcome import Verdict
from otel_reliability.assembly.sampling import weight
from otel_reliability.config import Settings
from otel_reliability.model.run import AgentKey, CloseReason, ModelCall, Outcome, Run, ToolCall, Tools
from otel_reliability.model.span import (
    AgentSpan,
    Call,
    Evaluation,
    InvocationFacts,
    Kind,
    ModelFacts,
    Notes,
    Session,
    SpanId,
    ToolFacts,
)

_AGENT, _MODEL, _TOOL, _CHAIN, _RETRIEVAL = Kind.AGENT, Kind.MODEL, Kind.TOOL, Kind.CHAIN, Kind.RETRIEVAL
_ORDER: Final = itemgetter(*(AgentSpan._fields.index(name) for name in ("start_ns", "end_ns", "span_id")))
"""`tree.span_order` within one trace."""
_COMPLETED: Final = Verdict(Outcome.COMPLETED, "end")
_BY_STATUS: Final = Verdict(Outcome.SUCCESS, "status")
_FIRST: Final = retries.Mark()
_NO_JUDGEMENTS: Final[tuple[Evaluation, ...]] = ()


class _Sorted:
    """The spans of a run by kind, in order, and what any of them may tell."""

    __slots__ = ("chains", "evaluations", "models", "notes", "parents", "root", "session", "tools")

    def __init__(self, root: AgentSpan) -> None:
        self.root = root
        self.models: list[AgentSpan] = []
        self.tools: list[AgentSpan] = []
        self.chains: list[AgentSpan] = []
        self.parents: set[SpanId | None] = set()
        self.session: Session | None = root.session
        self.notes: Notes = NO_NOTES
        self.evaluations = _NO_JUDGEMENTS


class _Models(NamedTuple):
    """The model calls, and what they sum up to."""

    calls: tuple[ModelCall, ...]
    input: int | None
    output: int | None
    pressure: float | None
    cost: float | None


class _Tools(NamedTuple):
    """The tool calls in the order of the clock, and their names in that of the path."""

    calls: tuple[ToolCall, ...]
    path: tuple[str, ...]
    arguments_known: bool


class SimpleBuilder:
    """Builds such runs under one set of settings."""

    def __init__(self, settings: Settings, limits: ContextLimits) -> None:
        self._outcome, self._limits = settings.outcome, limits
        self._parallel: Literal["canonical", "as_started"] = settings.assembly.parallel
        self._default = _BY_STATUS if settings.outcome.fallback == "status" else _COMPLETED

    def build(self, bundle: Bundle, reason: CloseReason) -> Run | None:
        """The run of a bundle; None where it is another kind of run, several, none, or not whole yet."""
        spans = sorted(bundle.spans.values(), key=_ORDER)
        found = _sorted_out(spans)
        if found is None or not is_top(bundle, found.root) or not _are_beneath(bundle, found):
            return None
        root = found.root
        facts = root.facts
        if not isinstance(facts, InvocationFacts) or not facts.name or facts.weak or _is_peculiar(facts):
            return None
        models = self._models(found, facts)
        tools = self._tools(found, facts) if models is not None else None
        if models is None or tools is None:
            return None
        resource, notes = root.resource, found.notes
        outcome, source = self._verdict(root, facts, found)
        return Run(
            f"{root.trace_id.hex()}-{root.span_id.hex()}",
            root.trace_id,
            root.span_id,
            AgentKey(resource.service_namespace, resource.service_name, resource.environment, facts.name, root.extra),
            None if found.session is None else found.session.id,
            notes.task_id,
            notes.trial,
            notes.condition or "baseline",
            notes.input_class,
            notes.branches,
            False,
            False,
            False,
            spans[0].start_ns,
            max([span.end_ns for span in spans]),
            tools.path,
            Tools.OBSERVED,
            tools.calls,
            models.calls,
            models.input,
            models.output,
            models.pressure,
            tools.arguments_known,
            outcome,
            source,
            notes.confidence,
            models.cost if notes.cost is None else notes.cost,
            notes.violations,
            found.evaluations,
            1 if root.threshold is None else weight(root.threshold, root.trace_id),
            len(spans),
            reason,
        )

    def _models(self, found: _Sorted, facts_of_root: InvocationFacts) -> _Models | None:
        """Model calls that are surely not one told by two instrumentations; None where they might be."""
        agent, told_limit, limit_of = facts_of_root.name or "", found.notes.context_limit, self._limits.of
        made: list[ModelCall] = []
        inputs: list[int] = []
        outputs: list[int] = []
        costs: list[float] = []
        pressure: float | None = None
        scope = found.models[0].scope if found.models else ""
        for span in found.models:
            facts = span.facts
            if not isinstance(facts, ModelFacts) or span.scope != scope:
                return None
            used, wrote = facts.tokens
            if used is not None:
                inputs.append(used)
                limit = told_limit or limit_of(facts)
                if limit is not None:
                    share = (used + (wrote or 0)) / limit
                    if pressure is None or share > pressure:
                        pressure = share
            if wrote is not None:
                outputs.append(wrote)
            if facts.cost is not None:
                costs.append(facts.cost)
            made.append(
                ModelCall(
                    facts.model or facts.request_model, used, wrote, span.failed, agent, span.start_ns, span.end_ns
                )
            )
        if not inputs and not outputs and facts_of_root.tokens is not None:
            return None
        return _Models(
            tuple(made),
            sum(inputs) if inputs else None,
            sum(outputs) if outputs else None,
            pressure if pressure is None or pressure < 1.0 else 1.0,
            float(sum(costs)) if costs else None,
        )

    def _tools(self, found: _Sorted, facts_of_root: InvocationFacts) -> _Tools | None:
        """Tool calls that are each another call, or none where that is surely observed; None where it is not sure."""
        spans = found.tools
        if not spans:
            return None if _may_be_hidden(found, facts_of_root) else _NO_TOOLS
        told: list[Call] = []
        for span in spans:
            facts = span.facts
            if not isinstance(facts, ToolFacts) or len(facts.calls) != 1 or not facts.calls[0].name:
                return None
            told.append(facts.calls[0])
        ids = [call.call_id for call in told if call.call_id is not None]
        if len(set(ids)) < len(ids):
            return None
        agent, known = facts_of_root.name or "", not any(call.arguments is None for call in told)
        marks = repeat(_FIRST) if _are_all_new(told, known) else retries.mark(_timed(spans, told))
        made = [
            ToolCall(
                call.name or "", not call.failed, retry, repeats, chain, agent, span.start_ns, span.end_ns,
                call.arguments, call.result, call.effect,
            )
            for span, call, (retry, repeats, chain) in zip(spans, told, marks, strict=False)
        ]  # fmt: skip
        path = [call.name or "" for call in told] if _in_turn(spans) else self._path(found, told)
        return _Tools(tuple(made), tuple(path), known)

    def _path(self, found: _Sorted, told: Sequence[Call]) -> list[str]:
        """Where calls overlap, the order of the path is not that of the clock."""
        items = [
            Item(at, (span.start_ns, span.end_ns, span.span_id, 0), call, 0)
            for at, (span, call) in enumerate(zip(found.tools, told, strict=True))
        ]
        starts = {0: [span.start_ns for span in found.models]}
        return [item.call.name or "" for item in calls.in_path_order(items, starts, self._parallel)]

    def _verdict(self, root: AgentSpan, facts: InvocationFacts, found: _Sorted) -> Verdict:
        if found.notes is not NO_NOTES or found.evaluations:
            said = outcome.told(found.notes, found.evaluations, self._outcome)
            if said is not None:
                return said
        if root.failed:
            return Verdict(Outcome.FAILURE, "root_error")
        return Verdict(Outcome.FAILURE, "limit") if facts.limit_reached else self._default


_NO_TOOLS: Final = _Tools((), (), True)


def is_top(bundle: Bundle, root: AgentSpan) -> bool:
    """Whether nothing of this process is missing above a span, and no agent span stands there."""
    parent, remote = root.parent_id, root.parent_remote
    if parent is None:
        return True
    parent, remote = bundle.above(parent, remote)
    return parent is None or (remote is True and parent not in bundle.spans)


def _sorted_out(spans: Sequence[AgentSpan]) -> _Sorted | None:
    """The spans by kind; None where there is not one agent, or anything but its calls and what contains them."""
    roots = [span for span in spans if span.kind is _AGENT]
    if len(roots) != 1:
        return None
    found = _Sorted(roots[0])
    models, tools, parents = found.models, found.tools, found.parents
    for span in spans:
        kind = span.kind
        if kind is _MODEL:
            models.append(span)
        elif kind is _TOOL:
            tools.append(span)
        elif kind is _CHAIN:
            found.chains.append(span)
        elif kind is _AGENT:
            continue
        elif kind is not _RETRIEVAL:
            return None
        parents.add(span.parent_id)
    _listen(spans, found)
    return found


def _listen(spans: Sequence[AgentSpan], found: _Sorted) -> None:
    """What the spans say of their run: the best session key, of one key the root's, then the first; notes; judgements."""
    notes: list[Notes] = []
    evaluations: list[Evaluation] = []
    session = found.session
    for span in spans:
        told = span.session
        if told is not None and (session is None or told.rank < session.rank):
            session = told
        if span.notes is not None:
            notes.append(span.notes)
        if span.evaluations:
            evaluations.extend(span.evaluations)
    found.session = session
    if notes:
        found.notes = merged(notes)
    if evaluations:
        found.evaluations = best(evaluations)


def _are_beneath(bundle: Bundle, found: _Sorted) -> bool:
    """Whether all spans hang on the root, or on containers that do; places that tell a session are not looked at here."""
    around: set[SpanId | None] = {found.root.span_id}
    if found.parents == around:
        return not bundle.places or not _tells_session(bundle)
    for chain in found.chains:
        if _parent(bundle, chain.parent_id) not in around:
            return False
        around.add(chain.span_id)
    if not all(_parent(bundle, parent) in around for parent in found.parents):
        return False
    return not bundle.places or not _tells_session(bundle)


def _parent(bundle: Bundle, parent: SpanId | None) -> SpanId | None:
    """The agent span above."""
    return parent if parent is None or parent in bundle.spans else bundle.above(parent, None)[0]


def _tells_session(bundle: Bundle) -> bool:
    return any(place.session is not None for place in (bundle.places or {}).values())


def _is_peculiar(facts: InvocationFacts) -> bool:
    """Whether how the run ended is to be found among its steps."""
    return facts.expects_finish or facts.hides_failure


def _may_be_hidden(found: _Sorted, facts_of_root: InvocationFacts) -> bool:
    """Whether a run without tool spans may have called tools all the same."""
    containers = [facts for chain in found.chains if isinstance(facts := chain.facts, InvocationFacts)]
    if any(facts.emits_no_tools for facts in (facts_of_root, *containers)):
        return True
    asked = [facts for span in found.models if isinstance(facts := span.facts, ModelFacts)]
    return any(facts.asked_for_tools or facts.emits_no_tools for facts in asked)


def _are_all_new(told: Collection[Call], arguments_known: bool) -> bool:
    """Whether no call can be another attempt at an earlier one."""
    if len({call.name for call in told}) == len(told):
        return True
    return arguments_known and len({(call.name, call.arguments) for call in told}) == len(told)


def _timed(spans: Sequence[AgentSpan], told: Sequence[Call]) -> list[retries.Timed]:
    return [
        retries.Timed((span.start_ns, span.end_ns, span.span_id, 0), span.start_ns, span.end_ns, call)
        for span, call in zip(spans, told, strict=True)
    ]


def _in_turn(spans: Sequence[AgentSpan]) -> bool:
    """Whether each call began after the one before it had ended."""
    last_start = last_end = -1
    for span in spans:
        start = span.start_ns
        if start < last_end or start == last_start:
            return False
        last_start, last_end = start, span.end_ns
    return True
