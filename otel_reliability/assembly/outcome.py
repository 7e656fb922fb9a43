"""The outcome of a run, and its source. An end without an error is `completed`: unknown, not success."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from otel_reliability.assembly.span_tree import NONE, Invocation, SpanTree
from otel_reliability.config import OutcomeSettings
from otel_reliability.model.run import Outcome
from otel_reliability.model.span import Evaluation, Kind, Notes, ToolFacts

STEPS: Final = frozenset({Kind.MODEL, Kind.TOOL, Kind.HANDOFF, Kind.RETRIEVAL})
_PASS: Final = frozenset({"pass", "passed", "success", "successful", "correct", "true", "yes", "good", "1"})
_FAIL: Final = frozenset({"fail", "failed", "failure", "incorrect", "false", "no", "bad", "0"})
_SCORE_THRESHOLD: Final = 0.5


class Result(NamedTuple):
    """An outcome and its source: the attribute, evaluation or rule that decided."""

    outcome: Outcome
    source: str


_COMPLETED: Final = Result(Outcome.COMPLETED, "end")
_BY_STATUS: Final = Result(Outcome.SUCCESS, "status")


def reported(notes: Notes, evaluations: Iterable[Evaluation], settings: OutcomeSettings) -> Result | None:
    """Return what users and evaluators report, which precedes every sign of the spans themselves."""
    if notes.success is not None:
        return Result(_outcome(notes.success), "reliability.run.success")
    if notes.reward is not None:
        return Result(_outcome(notes.reward >= settings.reward_threshold), "reliability.run.reward")
    by_name = {evaluation.name: evaluation for evaluation in evaluations}
    for name in settings.evaluations:
        passed = _passed(by_name[name]) if name in by_name else None
        if passed is not None:
            return Result(_outcome(passed), f"evaluation:{name}")
    return None


def observed(tree: SpanTree, root: Invocation | None, members: Sequence[int], settings: OutcomeSettings) -> Result:
    """Return the outcome by the run's spans: errors of the root and of the last invocations in it, limits, and errors that its
    scope hides. `root` is None for implicit runs.
    """
    spans = tree.spans
    if root is None:
        return _without_root(tree, members)
    node: Invocation | None = root
    last, hides_failure = root, False
    while node is not None:
        if node.span[8]:
            return Result(Outcome.FAILURE, "root_error" if node is root else "agent_error")
        last, hides_failure = node, hides_failure or node.facts.hides_failure
        node = _last_inside(node)
    if root.facts.limit_reached or last.facts.limit_reached:
        return Result(Outcome.FAILURE, "limit")
    if root.facts.expects_finish and not any(
        isinstance(facts := spans[i].facts, ToolFacts) and facts.finish for i in root.steps
    ):
        return Result(Outcome.FAILURE, "limit")
    if hides_failure and _has_failed(tree, [i for i in members if spans[i].kind in STEPS]):
        return Result(Outcome.FAILURE, "last_step_error")
    return _BY_STATUS if settings.fallback == "status" else _COMPLETED


def _last_inside(node: Invocation) -> Invocation | None:
    """The last invocation that is part of the same run, or any in a container; never one below a tool."""
    if not node.inner:
        return None
    inside = [one for one in node.inner if not one.below_tool and (one.root is node.root or not node.is_agent)]
    return max(inside, key=lambda one: one.at) if inside else None


def _without_root(tree: SpanTree, members: Sequence[int]) -> Result:
    """The outcome of a run whose root never arrived: its last topmost span may report a failure, nothing a success."""
    if _has_failed(tree, [i for i in members if tree.kept_above(i) == NONE]):
        return Result(Outcome.FAILURE, "orphan_error")
    return Result(Outcome.UNKNOWN, "none")


def _has_failed(tree: SpanTree, spans: Sequence[int]) -> bool:
    """Return whether the last of these spans to end failed."""
    return bool(spans) and tree.spans[max(spans, key=lambda i: (tree.spans[i].end_ns, i))].failed


def _outcome(success: bool) -> Outcome:
    return Outcome.SUCCESS if success else Outcome.FAILURE


def _passed(evaluation: Evaluation) -> bool | None:
    """A pass/fail label, else a score of 0.5 or more."""
    label = evaluation.label.strip().lower() if evaluation.label is not None else None
    if label in _PASS:
        return True
    if label in _FAIL:
        return False
    return None if evaluation.score is None else evaluation.score >= _SCORE_THRESHOLD
