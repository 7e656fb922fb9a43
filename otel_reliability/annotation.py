"""Attributes that only the user can set on a run: its task, its success, its confidence."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from opentelemetry.trace import Span, get_current_span

from otel_reliability.conventions import notes
from otel_reliability.telemetry.guard import Guard

_ANNOTATE: Final = Guard("annotate")


def annotate(
    *,
    task_id: str | int | None = None,
    trial: int | None = None,
    success: bool | None = None,
    reward: float | None = None,
    confidence: float | None = None,
    cost: float | None = None,
    condition: str | None = None,
    violations: Iterable[str] | None = None,
    branches: Mapping[str, str | bool | int] | None = None,
    input_class: str | int | None = None,
    context_limit: int | None = None,
    span: Span | None = None,
) -> None:
    """Set `reliability.*` attributes of the run that the current span (or `span`) is part of;
    arguments left out change nothing.

    They are attributes of that span: they cost nothing where no span is recorded, and work in every
    deployment mode (in process, through a Collector, from a file). Where several spans of a run set
    one attribute, the span that started last wins.

    Args:
        task_id: what makes two runs attempts at the same work.
        trial: which attempt this is.
        success: whether the run did its task. An end without an error does not imply it.
        reward: the same as a number; a success from `outcome.reward_threshold` on.
        confidence: the agent's own confidence, 0 to 1.
        cost: US dollars the run cost.
        condition: baseline, fault, structure or prompt: how the run was disturbed, if it was.
        violations: constraints that the run broke, as `constraint:severity` (low, medium, high);
            empty: evaluated, and clean.
        branches: decisions by name, each with the branch that was chosen.
        input_class: the class of the input.
        context_limit: the context window of the model in use, in tokens.
        span: the span to set them on, if not the current one.

    >>> annotate(task_id="refund-7", success=True, branches={"refund": "granted"})

    """
    with _ANNOTATE:
        attributes: dict[str, Any] = {
            notes.TASK_ID: task_id,
            notes.TRIAL: trial,
            notes.SUCCESS: success,
            notes.REWARD: reward,
            notes.CONFIDENCE: confidence,
            notes.COST: cost,
            notes.CONDITION: condition,
            notes.VIOLATIONS: _strings(violations),
            notes.INPUT_CLASS: input_class,
            notes.CONTEXT_LIMIT: context_limit,
        }
        attributes.update(
            {
                notes.BRANCH_PREFIX + decision: branch
                for decision, branch in (branches or {}).items()
            }
        )
        target = get_current_span() if span is None else span
        target.set_attributes(
            {key: value for key, value in attributes.items() if value is not None}
        )


def _strings(violations: Iterable[str] | None) -> tuple[str, ...] | None:
    """Return a tuple; a single string becomes a tuple of one."""
    if violations is None or isinstance(violations, str):
        return None if violations is None else (violations,)
    return tuple(violations)
