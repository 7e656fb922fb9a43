"""What only the user knows of a run: its task, whether it succeeded, how sure it was."""

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
    """Say something about the run that the current span (or `span`) is part of; what is not said stays as it is.

    It is set as attributes `reliability.*` on that span, so it costs nothing where nobody records spans, and reaches every door:
    the process, a Collector, a file. Of several words on one thing within a run the latest span's counts.

    Args:
        task_id: what makes two runs attempts at the same work.
        trial: which attempt this is.
        success: whether the run did what it should. Only you know: an end without an error says nothing.
        reward: the same as a number; a success from `outcome.reward_threshold` on.
        confidence: how sure the agent said it was, 0 to 1.
        cost: US dollars the run cost.
        condition: baseline, fault, structure or prompt: how the run was disturbed, if it was.
        violations: constraints that the run broke, as `constraint:severity` (low, medium, high); empty: judged, and clean.
        branches: decisions by name, and which way each went.
        input_class: what kind of input this was.
        context_limit: the context window of the model in use, in tokens.
        span: the span to say it on, if not the current one.

    >>> annotate(task_id="refund-7", success=True, branches={"refund": "granted"})

    """
    with _ANNOTATE:
        said: dict[str, Any] = {
            notes.TASK_ID: task_id,
            notes.TRIAL: trial,
            notes.SUCCESS: success,
            notes.REWARD: reward,
            notes.CONFIDENCE: confidence,
            notes.COST: cost,
            notes.CONDITION: condition,
            notes.VIOLATIONS: _listed(violations),
            notes.INPUT_CLASS: input_class,
            notes.CONTEXT_LIMIT: context_limit,
        }
        said.update({notes.BRANCH_PREFIX + decision: way for decision, way in (branches or {}).items()})
        target = get_current_span() if span is None else span
        target.set_attributes({key: value for key, value in said.items() if value is not None})


def _listed(violations: Iterable[str] | None) -> tuple[str, ...] | None:
    """Several as they come; one that came alone as one."""
    if violations is None or isinstance(violations, str):
        return None if violations is None else (violations,)
    return tuple(violations)
