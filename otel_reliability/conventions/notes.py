"""What users add to spans themselves (`reliability.*`, DESIGN §3.10), and evaluations that ride on spans.

Evidence that cannot stand (a confidence of 1.7, a cost of "cheap") is refused by name and counts as absent; it never becomes
a number and never moves another field.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from otel_reliability.conventions import values
from otel_reliability.model.span import Evaluation, Notes, RawEvent, RawSpan

PREFIX: Final = "reliability."

TASK_ID: Final = "reliability.task.id"
TRIAL: Final = "reliability.trial"
SUCCESS: Final = "reliability.run.success"
REWARD: Final = "reliability.run.reward"
CONFIDENCE: Final = "reliability.run.confidence"
COST: Final = "reliability.run.cost"
CONDITION: Final = "reliability.condition"
VIOLATIONS: Final = "reliability.violations"
BRANCH_PREFIX: Final = "reliability.branch."
INPUT_CLASS: Final = "reliability.input.class"
CONTEXT_LIMIT: Final = "reliability.context_limit"
USAGE_COST: Final = "reliability.usage.cost_usd"

EVALUATION_EVENT: Final = "gen_ai.evaluation.result"
CONDITIONS: Final = frozenset({"baseline", "fault", "structure", "prompt"})
SEVERITIES: Final = frozenset({"low", "medium", "high"})

_MAX_BRANCHES: Final = 64


def read(attributes: Mapping[str, Any]) -> Notes | None:
    """The notes of one span, None where it carries none.

    >>> read({"reliability.task.id": "7", "reliability.run.confidence": 1.7})  # doctest: +ELLIPSIS
    Notes(task_id='7', ..., refused=(('reliability.run.confidence', 'not a number from 0 to 1'),))
    """
    present = {key: attributes[key] for key in attributes if key.startswith(PREFIX)}
    if not present:
        return None
    reader = _NotesReader(present)
    return reader.notes()


class _NotesReader:
    def __init__(self, present: Mapping[str, Any]) -> None:
        self._present = present
        self._refused: list[tuple[str, str]] = []

    def notes(self) -> Notes:
        return Notes(
            task_id=self._one(TASK_ID, values.identifier, "not a text or a whole number"),
            trial=self._one(TRIAL, values.integer, "not a whole number from 0"),
            success=self._one(SUCCESS, values.truth, "not true or false"),
            reward=self._one(REWARD, values.number, "not a number"),
            confidence=self._one(CONFIDENCE, _share, "not a number from 0 to 1"),
            cost=self._one(COST, _amount, "not a number from 0"),
            condition=self._one(CONDITION, _condition, "not baseline, fault, structure or prompt"),
            violations=self._violations(),
            branches=self._branches(),
            input_class=self._one(INPUT_CLASS, values.identifier, "not a text or a whole number"),
            context_limit=self._one(CONTEXT_LIMIT, _positive, "not a whole number from 1"),
            refused=tuple(self._refused),
        )

    def _one(self, key: str, reader: Any, reason: str) -> Any:
        if key not in self._present:
            return None
        found = reader(self._present[key])
        if found is None:
            self._refused.append((key, reason))
        return found

    def _branches(self) -> tuple[tuple[str, str], ...]:
        found: list[tuple[str, str]] = []
        for key in sorted(key for key in self._present if key.startswith(BRANCH_PREFIX))[:_MAX_BRANCHES]:
            value = self._present[key]
            branch = str(value).lower() if isinstance(value, bool) else values.identifier(value)
            if branch is None:
                self._refused.append((BRANCH_PREFIX + "*", "not a text, a whole number or a boolean"))
            else:
                found.append((key[len(BRANCH_PREFIX) :], branch))
        return tuple(found)

    def _violations(self) -> tuple[tuple[str, str], ...] | None:
        if VIOLATIONS not in self._present:
            return None
        found: list[tuple[str, str]] = []
        for item in values.items(self._present[VIOLATIONS]):
            constraint, _, severity = item.rpartition(":") if isinstance(item, str) else ("", "", "")
            if not constraint:
                self._refused.append((VIOLATIONS, "not constraint:severity"))
                continue
            weight = severity.lower()
            if weight not in SEVERITIES:
                self._refused.append((VIOLATIONS, "severity not low, medium or high: weighed as medium"))
                weight = "unknown"
            found.append((constraint, weight))
        return tuple(found)


def _share(value: object) -> float | None:
    found = values.number(value)
    return found if found is not None and 0.0 <= found <= 1.0 else None


def _amount(value: object) -> float | None:
    found = values.number(value)
    return found if found is not None and found >= 0.0 else None


def _positive(value: object) -> int | None:
    return values.integer(value) or None


def _condition(value: object) -> str | None:
    return value if isinstance(value, str) and value in CONDITIONS else None


def evaluation(
    attributes: Mapping[str, Any], time_ns: int, trace_id: bytes | None, span_id: bytes | None
) -> Evaluation | None:
    """One `gen_ai.evaluation.result`, from an event's or a log record's attributes. Without a name it is none."""
    name = values.text(attributes.get("gen_ai.evaluation.name"))
    if name is None:
        return None
    return Evaluation(
        name,
        values.number(attributes.get("gen_ai.evaluation.score.value")),
        values.text(attributes.get("gen_ai.evaluation.score.label")),
        time_ns,
        trace_id,
        span_id,
        values.text(attributes.get("gen_ai.response.id")),
    )


def evaluations(span: RawSpan) -> tuple[Evaluation, ...]:
    """The evaluations that ride on a span as events."""
    if not span.events:
        return ()
    found = (_from_event(event, span) for event in span.events if event.name == EVALUATION_EVENT)
    return tuple(item for item in found if item is not None)


def _from_event(event: RawEvent, span: RawSpan) -> Evaluation | None:
    return evaluation(event.attributes, event.time_ns, span.trace_id, span.span_id)
