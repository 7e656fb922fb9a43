"""How a run ended, and who says so. An end without an error is `completed`: unknown, not success."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from otel_reliability.assembly.invocations import Invocations
from otel_reliability.assembly.tree import NONE, Tree
from otel_reliability.config import OutcomeSettings
from otel_reliability.model.run import Outcome
from otel_reliability.model.span import Evaluation, Kind, Notes, ToolFacts

STEPS: Final = frozenset({Kind.MODEL, Kind.TOOL, Kind.HANDOFF, Kind.RETRIEVAL})
_PASS: Final = frozenset({"pass", "passed", "success", "successful", "correct", "true", "yes", "good", "1"})
_FAIL: Final = frozenset({"fail", "failed", "failure", "incorrect", "false", "no", "bad", "0"})
_SCORE_THRESHOLD: Final = 0.5


class Verdict(NamedTuple):
    """An outcome and its source: the attribute, evaluation or rule that spoke."""

    outcome: Outcome
    source: str


def judge(
    tree: Tree,
    invocations: Invocations,
    root: int,
    spans: Sequence[int],
    notes: Notes,
    evaluations: Iterable[Evaluation],
    settings: OutcomeSettings,
) -> Verdict:
    """The outcome of a run, from the first that speaks. `root` is NONE for implicit runs."""
    said = told(notes, evaluations, settings)
    if said is not None:
        return said
    if root == NONE:
        return _without_root(tree, spans)
    walked = _walk(tree, invocations, root)
    failed = next((i for i in walked if tree.spans[i].failed), None)
    if failed is not None:
        return Verdict(Outcome.FAILURE, "root_error" if failed == root else "agent_error")
    if _limited(tree, invocations, root, walked[-1], spans):
        return Verdict(Outcome.FAILURE, "limit")
    if any(tree.facts(i).hides_failure for i in walked) and _last_step_failed(tree, spans):
        return Verdict(Outcome.FAILURE, "last_step_error")
    if settings.fallback == "status":
        return Verdict(Outcome.SUCCESS, "status")
    return Verdict(Outcome.COMPLETED, "end")


def told(notes: Notes, evaluations: Iterable[Evaluation], settings: OutcomeSettings) -> Verdict | None:
    """What users and judges say, which beats every sign of our own."""
    if notes.success is not None:
        return Verdict(_outcome(notes.success), "reliability.run.success")
    if notes.reward is not None:
        return Verdict(_outcome(notes.reward >= settings.reward_threshold), "reliability.run.reward")
    by_name = {evaluation.name: evaluation for evaluation in evaluations}
    for name in settings.evaluations:
        passed = _passed(by_name[name]) if name in by_name else None
        if passed is not None:
            return Verdict(_outcome(passed), f"evaluation:{name}")
    return None


def _outcome(success: bool) -> Outcome:
    return Outcome.SUCCESS if success else Outcome.FAILURE


def _passed(evaluation: Evaluation) -> bool | None:
    """A pass/fail label, else a score from 0.5."""
    label = evaluation.label.strip().lower() if evaluation.label is not None else None
    if label in _PASS:
        return True
    if label in _FAIL:
        return False
    return None if evaluation.score is None else evaluation.score >= _SCORE_THRESHOLD


def _walk(tree: Tree, invocations: Invocations, root: int) -> list[int]:
    """The root, then again and again the last invocation that is part of the run itself or of a container."""
    inside: dict[int, int] = {}
    for i in invocations.order:
        over = invocations.encloser[i]
        if over == NONE or tree.below_tool[i]:
            continue
        if invocations.root[i] == invocations.root[over] or invocations.is_container(over):
            inside[over] = max(inside.get(over, NONE), i)
    walked = [root]
    while (last := inside.get(walked[-1])) is not None:
        walked.append(last)
    return walked


def _limited(tree: Tree, invocations: Invocations, root: int, last: int, spans: Sequence[int]) -> bool:
    """An explicit limit word of the root or the last agent, or a finish mark that never came (Q10)."""
    if tree.facts(root).limit_reached or tree.facts(last).limit_reached:
        return True
    if not tree.facts(root).expects_finish:
        return False
    return not any(_is_finish(tree, i) and tree.invocation[i] == root for i in spans)


def _is_finish(tree: Tree, i: int) -> bool:
    facts = tree.spans[i].facts
    return isinstance(facts, ToolFacts) and facts.finish


def _last_step_failed(tree: Tree, spans: Sequence[int]) -> bool:
    """For scopes that hide failures: ERROR on the step that ended last."""
    steps = [i for i in spans if tree.spans[i].kind in STEPS]
    if not steps:
        return False
    return tree.spans[max(steps, key=lambda i: (tree.spans[i].end_ns, i))].failed


def _without_root(tree: Tree, spans: Sequence[int]) -> Verdict:
    """A run whose root never came: its last topmost span tells of a failure, nothing tells of a success."""
    tops = [i for i in spans if tree.parent[i] == NONE]
    if tops and tree.spans[max(tops, key=lambda i: (tree.spans[i].end_ns, i))].failed:
        return Verdict(Outcome.FAILURE, "orphan_error")
    return Verdict(Outcome.UNKNOWN, "none")
