"""The outcome of a run, with its source.

An end without an error is `completed`: unknown, not success.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import Struct

from otel_reliability.assembly.invocations import Invocation
from otel_reliability.assembly.span_tree import NONE, SpanTree
from otel_reliability.config import OutcomeSettings
from otel_reliability.model.run import Outcome
from otel_reliability.model.span import (
    OUTCOME,
    STEPS,
    AgentSpan,
    Evaluation,
    InvocationFacts,
    Kind,
    ModelFacts,
    Notes,
    SpanId,
    ToolFacts,
)
from otel_reliability.model.success_words import succeeded

NO_NOTES: Final = Notes()
_BROKEN: Final = "error"
"""The label of an evaluation that itself failed: it says nothing of the run."""
_SCORE_THRESHOLD: Final = 0.5


class RunOutcome(Struct, frozen=True, gc=False):
    """An outcome and its source: the attribute, evaluation or rule that decided."""

    outcome: Outcome
    source: str

    @property
    def ended_in_error(self) -> bool | None:
        """True if the run ended in an error, of an outcome that `observed` returned; None where its
        end was not observed, or it did not come to one.
        """
        return None if self.outcome in _NOT_ENDED else self.source in _ERRORS


_ERRORS: Final = frozenset({"root_error", "agent_error", "last_step_error", "orphan_error"})
"""The sources of outcomes that are errors: a limit that was reached is a failure, but none."""

_NOT_ENDED: Final = (Outcome.UNKNOWN, Outcome.PAUSED, Outcome.CANCELLED)
_COMPLETED: Final = RunOutcome(Outcome.COMPLETED, "end")
_PAUSED: Final = RunOutcome(Outcome.PAUSED, "pending_call")
_BY_STATUS: Final = RunOutcome(Outcome.SUCCESS, "status")


def reported(
    notes: Notes, evaluations: Iterable[Evaluation], settings: OutcomeSettings
) -> RunOutcome | None:
    """Return what users and evaluators report, which precedes every sign of
    the spans themselves. An outcome that was reported apart became known last: it comes first.
    """
    by_name = {evaluation.name: evaluation for evaluation in evaluations}
    if OUTCOME in by_name and (passed := _passed(by_name[OUTCOME])) is not None:
        return RunOutcome(_outcome(passed), OUTCOME)
    if notes.success is not None:
        return RunOutcome(_outcome(notes.success), "reliability.run.success")
    if notes.reward is not None:
        return RunOutcome(
            _outcome(notes.reward >= settings.reward_threshold), "reliability.run.reward"
        )
    for name in settings.evaluations:
        passed = _passed(by_name[name]) if name in by_name else None
        if passed is not None:
            return RunOutcome(_outcome(passed), f"evaluation:{name}")
    return None


def observed(
    tree: SpanTree,
    root: Invocation | None,
    members: Sequence[int],
    settings: OutcomeSettings,
    *,
    waits: bool = False,
) -> RunOutcome:
    """Return the outcome by the run's spans: errors of the root and of the last invocations in it,
    what stopped them, limits, a last model call that failed or was cancelled (no model gave an
    answer, whatever the root says), and errors that its scope hides. `root` is None for implicit
    runs. `waits`: its last call waits for a person.
    """
    spans = tree.spans
    if root is None:
        return _PAUSED if waits else _without_root(tree, members)
    node: Invocation | None = root
    last = root
    hides_failure = False
    while node is not None:
        if node.span.failed:
            return RunOutcome(Outcome.FAILURE, "root_error" if node is root else "agent_error")
        if node.facts.stopped is not None and not _is_resumed(tree, node):
            return RunOutcome(Outcome(node.facts.stopped), "stopped")
        last = node
        hides_failure = hides_failure or node.facts.hides_failure
        node = _last_inside(tree, node)
    if waits:
        return _PAUSED
    if root.facts.limit_reached or last.facts.limit_reached:
        return RunOutcome(Outcome.FAILURE, "limit")
    if root.facts.expects_finish and _is_cut_off(tree, root):
        return RunOutcome(Outcome.FAILURE, "limit")
    step = _last(tree, [i for i in members if spans[i].kind in STEPS])
    if step is not None and step.failed and (hides_failure or _left_unanswered(root, step)):
        return RunOutcome(Outcome.FAILURE, "last_step_error")
    if step is not None and _was_cancelled(root, step):
        return RunOutcome(Outcome.CANCELLED, "stopped")
    return _BY_STATUS if settings.fallback == "status" else _COMPLETED


def _left_unanswered(root: Invocation, failed: AgentSpan) -> bool:
    """Return whether a last step that failed is a model call whose answer the run ended without.
    One that outlives the root works in the background: the answer was there before.
    """
    return failed.kind is Kind.MODEL and failed.end_ns <= root.span.end_ns


def _was_cancelled(root: Invocation, last: AgentSpan) -> bool:
    """Return whether the last step is a model call whose caller stopped it, and the run with it."""
    facts = last.facts
    return isinstance(facts, ModelFacts) and facts.cancelled and last.end_ns <= root.span.end_ns


def of_root(root: AgentSpan, settings: OutcomeSettings) -> RunOutcome:
    """Return the outcome that the root of a run shows by itself."""
    facts = root.facts if isinstance(root.facts, InvocationFacts) else InvocationFacts()
    if root.failed:
        return RunOutcome(Outcome.FAILURE, "root_error")
    if facts.stopped is not None:
        return RunOutcome(Outcome(facts.stopped), "stopped")
    if facts.limit_reached:
        return RunOutcome(Outcome.FAILURE, "limit")
    return _BY_STATUS if settings.fallback == "status" else _COMPLETED


def _is_cut_off(tree: SpanTree, root: Invocation) -> bool:
    """Return whether the spans show that a limit of steps ended a run that expects a finish mark.

    Without the mark, and where steps have spans: a model call after the last step, which answers
    in its place. Where they have none: tool calls directly below. A mark that is only absent,
    since tool spans are lost or in another trace, shows nothing.
    """
    spans = tree.spans
    if any(isinstance(facts := spans[i].facts, ToolFacts) and facts.finish for i in root.steps):
        return False
    below = [i for i in root.steps if tree.kept_above(i) == root.at]
    chains = [spans[i].start_ns for i in below if spans[i].kind is Kind.CHAIN]
    if not chains:
        return any(spans[i].kind is Kind.TOOL for i in below)
    return any(spans[i].kind is Kind.MODEL and spans[i].start_ns > max(chains) for i in below)


def _last_inside(tree: SpanTree, node: Invocation) -> Invocation | None:
    """The last invocation that is part of the same run, or any in a container; never one below a
    tool, nor an attempt that was not brought to an end.
    """
    if not node.inner:
        return None
    inside = [
        one
        for one in node.inner
        if not one.below_tool
        and (one.root is node.root or not node.is_agent)
        and one.at not in tree.attempts
    ]
    return max(inside, key=lambda one: one.at) if inside else None


def _is_resumed(tree: SpanTree, node: Invocation) -> bool:
    """Return whether the same run went on below an invocation that had paused."""
    following = _last_inside(tree, node)
    return following is not None and following.span.start_ns >= node.span.end_ns


def _without_root(tree: SpanTree, members: Sequence[int]) -> RunOutcome:
    """The outcome of a run whose root never arrived: its last topmost span may report a failure,
    nothing a success.
    """
    topmost = _last(tree, [i for i in members if tree.kept_above(i) == NONE])
    if topmost is not None and topmost.failed:
        return RunOutcome(Outcome.FAILURE, "orphan_error")
    return RunOutcome(Outcome.UNKNOWN, "none")


def _last(tree: SpanTree, spans: Sequence[int]) -> AgentSpan | None:
    """Return the last of these spans to end; None without one."""
    ends = [(tree.spans[i].end_ns, i) for i in spans]
    return tree.spans[max(ends)[1]] if ends else None


def _outcome(success: bool) -> Outcome:
    return Outcome.SUCCESS if success else Outcome.FAILURE


def _passed(evaluation: Evaluation) -> bool | None:
    """A pass/fail label, else a score of 0.5 or more."""
    label = (evaluation.label or "").strip().lower()
    said = None if label == _BROKEN else succeeded(label)
    if said is not None:
        return said
    return None if evaluation.score is None else evaluation.score >= _SCORE_THRESHOLD


# --- Evaluations ----------------------------------------------------------------------------------


def latest(evaluations: Iterable[Evaluation]) -> tuple[Evaluation, ...]:
    """Return, sorted by name, the evaluation of each name with the greatest (time, score)."""
    found: dict[str, Evaluation] = {}
    for evaluation in evaluations:
        other = found.get(evaluation.name)
        if other is None or _rank(evaluation) > _rank(other):
            found[evaluation.name] = evaluation
    return tuple([found[name] for name in sorted(found)])


def _rank(evaluation: Evaluation) -> tuple[int, float, str, SpanId, str]:
    """Time and score; the rest keeps the order of arrival from deciding."""
    score = evaluation.score if evaluation.score is not None else -1.0
    return (
        evaluation.time_ns,
        score,
        evaluation.label or "",
        evaluation.span_id or b"",
        evaluation.response_id or "",
    )
