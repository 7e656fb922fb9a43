"""One pass over the spans of a run: what they show, before any rule that needs several of them."""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Final, TypeAlias

from msgspec import Struct

from otel_reliability.assembly.span_tree import NONE, SpanTree
from otel_reliability.assembly.steps import (
    ModelSpan,
    Step,
    with_cache_added,
    with_reasoning_added,
    with_whole_input,
    with_whole_output,
)
from otel_reliability.model.span import (
    PAUSED,
    AgentSpan,
    Call,
    HandoffFacts,
    InvocationFacts,
    Kind,
    ModelFacts,
    RejectionFacts,
    Resource,
    ToolFacts,
)

Sender: TypeAlias = tuple[str, str, str]
"""Sender of a span: its scope, the version of the service, the version of the scope."""
Traits: TypeAlias = tuple[str | None, ...]
"""Fingerprints of an agent: kinds and values in turn."""
UsageSource: TypeAlias = tuple[str, str | None, str | None]
"""Scope, provider and model of a call: together they count its tokens in one way."""
_MODEL = Kind.MODEL
_TOOL = Kind.TOOL
_HANDOFF = Kind.HANDOFF
_OTHER = Kind.OTHER
_EVALUATION = Kind.EVALUATION
_COMPRESSION = Kind.COMPRESSION
_CHAIN = Kind.CHAIN
_NO_MODEL: Final = ModelFacts()
NO_RANK: Final = 1_000
"""The rank of no session: worse than any."""


class Gathered(Struct, eq=False):
    """Facts of the spans of a run. Lists hold indices of spans, in order.

    - `timed`: those that a run may begin or end with. `models`, `steps`: model calls, tool calls
      and hand-offs, as each span reports them.
    - `annotated`: those with notes or evaluations. `evaluations`: those of judges and guardrails.
      `compressed`: those with compressions.
    - `pending`, `rejected`: calls that wait for an approval, and tools that were refused.
    - `session`, `rank`: the session that was named with the lowest rank; first that of the root.
    - `model_scopes`: how often another scope than before reports model calls. `model_scope`,
      `prompt`, `definitions`: those of the latest.
    - `beside_cache`, `beside_reasoning`: the scope, the provider and the model of calls whose input
      is what the cache did not hold, whose output is the answer only, as a call of them showed.
    - `responses`: the ids of the responses of models; `has_repeated_response`: one came twice.
    - `senders`, `traits`: who sent the spans, and how the agent is made.
    - `has_tool_spans`: tools have spans. `asked_silently`: a model may have asked for tools
      unnoticed. `is_unnamed`: a call has no name. `calls_itself`: an agent represents the
      call of itself. `is_remote`: spans come from another service than the first one's.
    """

    tree: SpanTree
    session: str | None = None
    rank: int = NO_RANK
    timed: list[int] = []
    models: list[ModelSpan] = []
    steps: list[Step] = []
    annotated: list[int] = []
    compressed: list[int] = []
    evaluations: list[int] = []
    pending: list[int] = []
    rejected: set[int] = set()
    beside_cache: set[UsageSource] = set()
    beside_reasoning: set[UsageSource] = set()
    responses: set[str] = set()
    has_repeated_response: bool = False
    senders: set[Sender] = set()
    traits: set[Traits] = set()
    model_scope: str | None = None
    model_scopes: int = 0
    prompt: str | None = None
    definitions: str | None = None
    has_tool_spans: bool = False
    asked_silently: bool = False
    is_unnamed: bool = False
    calls_itself: bool = False
    is_remote: bool = False

    # one branch per kind
    def read(self, members: Sequence[int], first: AgentSpan) -> None:  # noqa: C901
        """Read the spans of a run, in order. `first`: its root, else the first of them."""
        spans = self.tree.spans
        timed = self.timed
        service = first.resource.service
        scope: str | None = None
        resource: Resource | None = None
        for i in members:
            span = spans[i]
            kind = span.kind
            if span.notes is not None or span.evaluations:
                self.annotated.append(i)
            if kind is _COMPRESSION:
                self.compressed.append(i)
                continue
            session = span.session
            if session is not None and session.rank < self.rank:
                self.rank = session.rank
                self.session = session.id
            if kind is _OTHER:
                continue
            if kind is _EVALUATION:
                self.evaluations.append(i)
                continue
            timed.append(i)
            if span.scope is not scope or span.resource is not resource:
                scope = span.scope
                resource = span.resource
                self.senders.add((scope, resource.service_version, resource.scope_version))
                if resource.service != service:
                    self.is_remote = True
            if kind is _MODEL:
                self._add_model(i, span)
            elif kind is _TOOL:
                self._add_tool(i, span)
            elif kind is _HANDOFF:
                self._add_handoff(i, span)
            else:
                self._add_invocation(i, span)

    def count_whole(self) -> None:
        """Count the tokens of calls whole where another call of the same model showed that the
        cached part of the input, or the reasoning, is left out.
        """
        spans = self.tree.spans
        for position, one in enumerate(self.models):
            facts = one.facts
            given = spans[one.at].facts
            if not isinstance(given, ModelFacts):
                continue
            source = _usage_source(spans[one.at], facts)
            if source in self.beside_cache and facts.tokens.input == given.tokens.input:
                facts = facts if facts.tokens.input is None else with_cache_added(facts)
            if source in self.beside_reasoning and facts.tokens.output == given.tokens.output:
                facts = facts if facts.tokens.output is None else with_reasoning_added(facts)
            self.models[position] = ModelSpan(one.at, facts)

    def leave_out(self, apart: Container[int]) -> None:
        """Forget the steps of spans that are no work of the run."""
        self.timed = [i for i in self.timed if i not in apart]
        self.models = [one for one in self.models if one.at not in apart]
        self.steps = [one for one in self.steps if one.at not in apart]

    def _add_model(self, i: int, span: AgentSpan) -> None:
        facts = span.facts
        if type(facts) is not ModelFacts:
            facts = _NO_MODEL
        elif _may_leave_out(facts):
            facts = self._with_whole_usage(span, facts)
        self.models.append(ModelSpan(i, facts))
        response = facts.response_id
        if response is not None:
            if response in self.responses:
                self.has_repeated_response = True
            self.responses.add(response)
        if span.scope != self.model_scope:
            self.model_scope = span.scope
            self.model_scopes += 1
        if facts.emits_no_tools:
            self.asked_silently = True
        if facts.compressions:
            self.compressed.append(i)
        if facts.prompt is not self.prompt or facts.tools is not self.definitions:
            self.prompt = facts.prompt
            self.definitions = facts.tools
            self.traits.add(("prompt", facts.prompt, "tools", facts.tools))
        if facts.reasoning is not None:
            self.traits.add(("reasoning", facts.reasoning))

    def _with_whole_usage(self, span: AgentSpan, given: ModelFacts) -> ModelFacts:
        whole = with_whole_input(given)
        if whole is not given and whole.tokens.input is not None:
            self.beside_cache.add(_usage_source(span, given))
        facts = with_whole_output(whole)
        if facts is not whole:
            self.beside_reasoning.add(_usage_source(span, given))
        return facts

    def _add_tool(self, i: int, span: AgentSpan) -> None:
        facts = span.facts
        if type(facts) is ToolFacts:
            self.has_tool_spans = True
            calls = facts.calls
            if len(calls) > 1:
                calls = sorted(calls, key=_call_order)
            node = self.tree.nodes[i]
            for position, call in enumerate(calls):
                self.steps.append(
                    Step(i, span.start_ns, span.end_ns, span.span_id, position, call, node)
                )
                if call.name is None:
                    self.is_unnamed = True
        elif type(facts) is RejectionFacts:
            self.has_tool_spans = True
            if facts.pending:
                self.pending.append(i)
            else:
                self.rejected.add(self.tree.in_tool.get(i, NONE))

    def _add_handoff(self, i: int, span: AgentSpan) -> None:
        facts = span.facts
        target = facts.target if isinstance(facts, HandoffFacts) else None
        call = Call(target, failed=span.failed)
        node = self.tree.nodes[i]
        step = Step(i, span.start_ns, span.end_ns, span.span_id, 0, call, node)
        step.handoff = True
        self.steps.append(step)

    def _add_invocation(self, i: int, span: AgentSpan) -> None:
        """Add an agent, a workflow, a chain, or a retrieval."""
        facts = span.facts
        if type(facts) is InvocationFacts:
            if facts.emits_no_tools:
                self.asked_silently = True
            if facts.call is not None:
                self.calls_itself = True
            if facts.compressions:
                self.compressed.append(i)
            if facts.stopped == PAUSED and span.kind is _CHAIN:
                self.pending.append(i)
            if facts.version is not None or facts.prompt is not None or facts.tools is not None:
                self.traits.add(
                    ("version", facts.version, "prompt", facts.prompt, "tools", facts.tools)
                )
        elif type(facts) is ToolFacts:
            self.has_tool_spans = True


def _may_leave_out(facts: ModelFacts) -> bool:
    """Return whether the tokens of a call may not be all that it used."""
    return (
        facts.tokens.input == 0
        or facts.cached is not None
        or facts.cache_written is not None
        or facts.reasoned is not None
    )


def _usage_source(span: AgentSpan, facts: ModelFacts) -> UsageSource:
    return span.scope, facts.provider, facts.request_model or facts.model


def _call_order(call: Call) -> tuple[str, str]:
    return (call.name or "", call.call_id or "")
