"""From a run to the row that windows keep of it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Any, Final

from otel_reliability.model.model_calls import ModelCall, ModelCalls
from otel_reliability.model.row import Retries, Row
from otel_reliability.model.run import Run
from otel_reliability.model.span import Evaluation
from otel_reliability.model.tool_calls import ToolCall, ToolCalls
from otel_reliability.model.tools import DEFAULT_RULES, Effect, ToolRules, effects_of
from otel_reliability.windows.paths import PathTable

CONSTRAINT: Final = "constraint."
SEVERITIES: Final = frozenset({"low", "medium", "high"})
CLEAN: Final = "none"
BY_STATUS: Final = "status"
"""The source of an outcome that is no more than an end without error."""

NO_EFFECTS: Final[frozenset[Effect]] = frozenset()
NO_RETRIES: Final = Retries(0, 0, None, 0, 0, 0)

_tuple: Final[Callable[..., Any]] = tuple.__new__  # pyright: ignore[reportUnknownMemberType,reportUnknownVariableType]


def row_of(run: Run, paths: PathTable, rules: ToolRules = DEFAULT_RULES) -> Row:
    """What a window keeps of a run. Its path is held in `paths` until it is released there.

    An incomplete run, and one whose tools cannot be observed, give no evidence to path metrics: their `path` and `effects`
    are None. Of a run without a task the effects are None too: it is compared with none. What most runs have in common (no
    retries, no effects) is one object, shared by their rows.
    """
    (  # at once: to ask for twenty fields one by one takes as long as all the rest
        run_id, _, _, _, session, task, _, condition, input_class, branches, _, _, incomplete, start_ns, end_ns, path, _,
        tool_calls, models, used, wrote, pressure, known, outcome, source, confidence, cost, violations, evaluations, weight,
        _, _,
    ) = run  # fmt: skip
    path = None if incomplete else path
    calls, model_calls = None if tool_calls is None else ToolCalls.of(tool_calls), ModelCalls.of(models)
    number = len(model_calls)
    fields = (
        end_ns,
        run_id,
        start_ns,
        task,
        input_class,
        condition,
        branches,
        None if path is None else paths.intern(path),
        None if calls is None else len(calls),
        None if calls is None else calls.failed,
        None if calls is None else retries_of(calls, model_calls),
        pressure,
        number,
        _sum(used, wrote),
        model_calls.duration_ns // number if number else None,
        outcome,
        confidence,
        cost,
        violations if not evaluations else violations_of(run),
        session,
        signals_of(evaluations) if evaluations else (),
        None if path is None or calls is None or task is None else effects_told(calls, rules),
        weight,
        known,
        source == BY_STATUS,
    )
    row: Row = _tuple(Row, fields)  # half of what calling the class takes
    return row


def effects_told(calls: ToolCalls, rules: ToolRules) -> frozenset[Effect]:
    """The effects of a run; none are one object."""
    return effects_of(calls, rules) or NO_EFFECTS


def retries_of(tool_calls: Sequence[ToolCall], model_calls: Sequence[ModelCall]) -> Retries:
    """The retries and repeats of a run.

    A retry costs its own time, and the tokens of the model call that asked for it: the last one to end before it began
    (which counts once, however many retries it asked for).
    """
    calls = ToolCalls.of(tool_calls)
    repeats = calls.repeats
    if not calls.retries:
        return NO_RETRIES if not repeats else NO_RETRIES._replace(repeats=repeats)
    retries = [call for call in calls if call.retry]
    longest = max(retries, key=lambda call: call.chain)
    return Retries(
        number=len(retries),
        longest_chain=longest.chain,
        tool=longest.name,
        tokens=_tokens_of(retries, model_calls),
        duration_ns=sum(call.end_ns - call.start_ns for call in retries),
        repeats=repeats,
    )


def violations_of(run: Run) -> tuple[tuple[str, str], ...] | None:
    """(constraint, severity) of what the run violated; empty: judged and clean; None: nobody judged it.

    Evaluations named `constraint.<name>` judge like `reliability.violations`, with label low, medium, high, or none.
    """
    if not run.evaluations:
        return run.violations
    judged = {
        evaluation.name.removeprefix(CONSTRAINT): evaluation.label.lower()
        for evaluation in sorted(run.evaluations, key=_rank)
        if evaluation.name.startswith(CONSTRAINT)
        and evaluation.label is not None
        and evaluation.label.lower() in SEVERITIES | {CLEAN}
    }
    if not judged:
        return run.violations
    found = {(name, severity) for name, severity in judged.items() if severity != CLEAN}
    return tuple(sorted({*(run.violations or ()), *found}))


def signals_of(evaluations: tuple[Evaluation, ...]) -> tuple[tuple[str, float], ...]:
    """(name, score) of the evaluations that have a score, sorted; of several of one name the greatest (time, score)."""
    if not evaluations:
        return ()
    scores = {one.name: one.score for one in sorted(evaluations, key=_rank) if one.score is not None}
    return tuple(sorted(scores.items()))


def _rank(evaluation: Evaluation) -> tuple[int, float, str]:
    return (evaluation.time_ns, float("-inf") if evaluation.score is None else evaluation.score, evaluation.label or "")


def _tokens_of(retries: Sequence[ToolCall], model_calls: Sequence[ModelCall]) -> int:
    calls = sorted(model_calls, key=lambda call: (call.end_ns, call.start_ns))
    ends = [call.end_ns for call in calls]
    asking = {bisect_right(ends, retry.start_ns) for retry in retries} - {0}
    return sum(_sum(calls[at - 1].input_tokens, calls[at - 1].output_tokens) or 0 for at in asking)


def _sum(left: int | None, right: int | None) -> int | None:
    return None if left is None and right is None else (left or 0) + (right or 0)
