"""Attributes that only the user can set on a run: its task, its success, its confidence."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

from opentelemetry.trace import Span, get_current_span, get_tracer

from otel_reliability.conventions import notes
from otel_reliability.telemetry.guard import Guard

_ANNOTATE: Final = Guard("annotate")
_NO_SPAN: Final = "no span"
_logger = logging.getLogger("otel_reliability")

lost: Final[Counter[str]] = Counter()
"""Calls of `annotate` that reached no run, by reason, since the process began."""


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
    outcome_key: str | int | None = None,
    span: Span | None = None,
) -> None:
    """Set `reliability.*` attributes of the run that the current span (or `span`) is part of;
    arguments left out change nothing.

    They are attributes of that span: they cost nothing where no span is recorded, and work in every
    deployment mode (in process, through a Collector, from a file). Where several spans of a run set
    one attribute, the span that started last wins. Where there is no span at all, they are lost:
    that is counted (`otel_reliability.annotation.lost`), and logged once. `reliability_run` brings
    a span.

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
        outcome_key: a business key (a ticket, an order) by which an outcome can name the run later.
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
            notes.OUTCOME_KEY: outcome_key,
        }
        attributes.update(
            {
                notes.BRANCH_PREFIX + decision: branch
                for decision, branch in (branches or {}).items()
            }
        )
        target = get_current_span() if span is None else span
        if not target.get_span_context().is_valid:
            _lose(_NO_SPAN)
            return
        target.set_attributes(
            {key: value for key, value in attributes.items() if value is not None}
        )


@contextmanager
def reliability_run(**annotations: Any) -> Generator[Callable[..., None]]:
    """Open a span around one run of an agent, and annotate that run; arguments are those of
    `annotate`.

    It yields `annotate` for this run, for what is known after it only. The agent's own spans become
    children of the span, so that the annotations reach the run wherever they are made; with two
    runs below it they reach neither.

    >>> with reliability_run(task_id="refund-7") as annotate_run:
    ...     answer = "refunded"  # run the agent here
    ...     annotate_run(success=answer == "refunded")
    """
    tracer = get_tracer("otel_reliability")
    with tracer.start_as_current_span(
        "reliability_run", record_exception=False, set_status_on_exception=False
    ) as span:
        annotate(span=span, **annotations)
        yield partial(annotate, span=span)


def _lose(reason: str) -> None:
    lost[reason] += 1
    if lost[reason] == 1:
        _logger.warning(
            "annotate was called where there is no span, so the annotation is lost. Call it inside "
            "the agent's run, or use `with reliability_run(...)` around the run. Further calls are "
            "counted in otel_reliability.annotation.lost and not logged."
        )


def _strings(violations: Iterable[str] | None) -> tuple[str, ...] | None:
    """Return a tuple; a single string becomes a tuple of one."""
    if violations is None or isinstance(violations, str):
        return None if violations is None else (violations,)
    return tuple(violations)
