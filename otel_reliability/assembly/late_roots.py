"""Roots that arrive after their runs are final.

A run that waits (for a person, for a job) longer than `idle_timeout` and `reopen` is final before
its root ends. It was emitted without a root, under the name of its service. When the root comes, it
names the run and completes it: windows and sessions follow, counters keep what they recorded and
count a revision. Spans are not kept so long: where steps came late too, those of the run are
unknown.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from otel_reliability.assembly.outcome import NO_NOTES, RunOutcome, of_root, reported
from otel_reliability.config import OutcomeSettings
from otel_reliability.model.flaws import LATE_ROOT
from otel_reliability.model.run import Run, Tools
from otel_reliability.model.span import AgentSpan, InvocationFacts, Kind, Tokens

_SEEN: Final = ("none", "orphan_error", "pending_call")
"""Sources of an outcome that a run has for want of a root."""
_NO_TOKENS: Final = Tokens()


def is_root(span: AgentSpan) -> bool:
    """Return whether a span completes a run: an agent, or a workflow with a name."""
    facts = span.facts
    if not isinstance(facts, InvocationFacts):
        return False
    return span.kind is Kind.AGENT or (span.kind is Kind.WORKFLOW and facts.name is not None)


def completed(run: Run, root: AgentSpan, settings: OutcomeSettings, *, lost_steps: bool) -> Run:
    """Return a run that had no root with it. `lost_steps`: steps of its trace came late, too."""
    facts = root.facts if isinstance(root.facts, InvocationFacts) else InvocationFacts()
    name = facts.name or facts.fallback_name or run.key.agent
    notes = root.notes or NO_NOTES
    result = reported(notes, run.evaluations, settings)
    seen = of_root(root, settings)
    if result is None:
        is_open = run.outcome_source in _SEEN
        result = seen if is_open else RunOutcome(run.outcome, run.outcome_source)
    cost = run.cost if notes.cost is None else notes.cost
    own = facts.tokens or _NO_TOKENS
    tokens = _most(run.input_tokens, own.input), _most(run.output_tokens, own.output)
    if lost_steps or tokens != (run.input_tokens, run.output_tokens):
        cost = notes.cost
    is_of_service = root.resource.service_name == run.key.service_name
    found = replace(
        run,
        root_span_id=root.span_id,
        key=run.key._replace(agent=name),
        session_id=run.session_id if root.session is None else root.session.id,
        task_id=run.task_id or notes.task_id,
        trial=run.trial if notes.trial is None else notes.trial,
        condition=notes.condition or run.condition,
        input_class=run.input_class or notes.input_class,
        branches=run.branches or notes.branches,
        confidence=run.confidence if notes.confidence is None else notes.confidence,
        cost=cost,
        violations=run.violations if notes.violations is None else notes.violations,
        outcome_key=run.outcome_key or notes.outcome_key,
        implicit=False,
        incomplete=False,
        start_ns=min(run.start_ns, root.start_ns) if is_of_service else run.start_ns,
        end_ns=max(run.end_ns, root.end_ns) if is_of_service else run.end_ns,
        input_tokens=tokens[0],
        output_tokens=tokens[1],
        outcome=result.outcome,
        outcome_source=result.source,
        ended_in_error=seen.ended_in_error,
        flaws=(*run.flaws, LATE_ROOT),
    )
    if lost_steps:
        return replace(found, path=None, tools=Tools.UNOBSERVABLE, tool_calls=None)
    calls = found.tool_calls
    if calls is None:
        return found
    before = run.key.agent
    renamed = [replace(call, agent=name) if call.agent == before else call for call in calls]
    return replace(found, tool_calls=tuple(renamed))


def _most(found: int | None, total: int | None) -> int | None:
    """Return the greater of two numbers of tokens, of those that are known."""
    return max([one for one in (found, total) if one is not None], default=None)
