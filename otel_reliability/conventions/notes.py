"""Attributes that users add to spans themselves: `reliability.*`.

A value out of range (a confidence of 1.7, a cost of "cheap") is refused by name and counts as absent; it never becomes
a number and never moves another field.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from otel_reliability.conventions import values
from otel_reliability.model.span import Notes, bounded

T = TypeVar("T")

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
"""Of one model call, which reads it itself; here it is only checked."""

CONDITIONS: Final = frozenset({"baseline", "fault", "structure", "prompt"})
SEVERITIES: Final = frozenset({"low", "medium", "high"})

_MAX_BRANCHES: Final = 64


def read(attributes: Mapping[str, Any]) -> Notes | None:
    """The notes of one span, None where it carries none.

    >>> read({"reliability.task.id": "7", "reliability.run.confidence": 1.7})
    Notes(task_id='7', ..., refused=(('reliability.run.confidence', 'not a number from 0 to 1'),))
    """
    present = {key: attributes[key] for key in attributes if key.startswith(PREFIX)}
    return _Reading(present).notes() if present else None


class _Reading:
    """Reads what is there and counts what is out of range."""

    def __init__(self, present: Mapping[str, Any]) -> None:
        self._present = present
        self._refused: list[tuple[str, str]] = []

    def notes(self) -> Notes:
        self._one(USAGE_COST, values.amount, "not a number from 0")
        return Notes(
            task_id=self._one(TASK_ID, values.identifier, "not a text or a whole number"),
            trial=self._one(TRIAL, values.integer, "not a whole number from 0"),
            success=self._one(SUCCESS, values.truth, "not true or false"),
            reward=self._one(REWARD, values.number, "not a number"),
            confidence=self._one(CONFIDENCE, _share, "not a number from 0 to 1"),
            cost=self._one(COST, values.amount, "not a number from 0"),
            condition=self._one(CONDITION, _condition, "not baseline, fault, structure or prompt"),
            violations=self._violations(),
            branches=self._branches(),
            input_class=self._one(INPUT_CLASS, values.identifier, "not a text or a whole number"),
            context_limit=self._one(CONTEXT_LIMIT, values.positive, "not a whole number from 1"),
            refused=tuple(self._refused),
        )

    def _one(self, key: str, reader: Callable[[object], T | None], reason: str) -> T | None:
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
            branch = values.word(value)
            if branch is None:
                self._refused.append((BRANCH_PREFIX + "*", "not a text, a whole number or a boolean"))
            else:
                found.append((bounded(key[len(BRANCH_PREFIX) :]), branch))
        return tuple(found)

    def _violations(self) -> tuple[tuple[str, str], ...] | None:
        """An empty list is a clean run; a value of which nothing can be read says nothing, least of all that."""
        if VIOLATIONS not in self._present:
            return None
        value = values.parsed(self._present[VIOLATIONS])
        if value in ([], ()):
            return ()
        found = [self._violation(item) for item in values.items(value) or ("",)]
        return tuple(violation for violation in found if violation is not None) or None

    def _violation(self, item: object) -> tuple[str, str] | None:
        constraint, _, severity = item.rpartition(":") if isinstance(item, str) else ("", "", "")
        if not constraint:
            self._refused.append((VIOLATIONS, "not constraint:severity"))
            return None
        if severity.lower() in SEVERITIES:
            return bounded(constraint), severity.lower()
        self._refused.append((VIOLATIONS, "severity not low, medium or high: weighed as medium"))
        return bounded(constraint), "unknown"


def _share(value: object) -> float | None:
    found = values.number(value)
    return found if found is not None and 0.0 <= found <= 1.0 else None


def _condition(value: object) -> str | None:
    found = values.text(value)
    return found if found in CONDITIONS else None
