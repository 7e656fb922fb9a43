"""Attributes that users add to spans themselves: `reliability.*`.

A value out of range (a confidence of 1.7, a cost of "cheap") is refused by name and counts as
absent; it never becomes a number and never moves another field.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from otel_reliability.conventions import values
from otel_reliability.model.span import CONDITIONS, SEVERITIES, Notes, bounded

PREFIX: Final = "reliability."

TASK_ID: Final = "reliability.task.id"
TASK_IDS: Final = (
    "langfuse.experiment.item.id",
    "langsmith.reference_example_id",
    "test.case.name",
)
"""Attributes by which evaluations name the item of a data set, or the test case, that a run is an
attempt at: its task, where no other is given.
"""
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
OUTCOME_KEY: Final = "reliability.outcome.key"
USAGE_COST: Final = "reliability.usage.cost_usd"

_MAX_BRANCHES: Final = 64


def read(attributes: Mapping[str, Any]) -> Notes | None:
    """The notes of one span, None where it carries none.

    >>> read({"reliability.task.id": "7", "reliability.run.confidence": 1.7}).refused
    (('reliability.run.confidence', 'not a number from 0 to 1'),)
    """
    present = {key: attributes[key] for key in attributes if key.startswith(PREFIX)}
    if TASK_ID not in present:
        item = values.first(attributes, TASK_IDS, values.identifier)
        present |= {} if item is None else {TASK_ID: item}
    if not present:
        return None
    refused: list[tuple[str, str]] = []
    found: dict[str, Any] = {}
    for key, field, reader, reason in _NOTES:
        value = reader(present[key]) if key in present else None
        if value is not None and field is not None:
            found[field] = value
        elif value is None and key in present:
            refused.append((key, reason))
    violations = _violations(present, refused)
    branches = _branches(present, refused)
    return Notes(**found, violations=violations, branches=branches, refused=tuple(refused))


def _branches(
    present: Mapping[str, Any], refused: list[tuple[str, str]]
) -> tuple[tuple[str, str], ...]:
    found: list[tuple[str, str]] = []
    for key in sorted(key for key in present if key.startswith(BRANCH_PREFIX))[:_MAX_BRANCHES]:
        branch = values.word(present[key])
        if branch is None:
            refused.append((BRANCH_PREFIX + "*", "not a text, a whole number or a boolean"))
        else:
            found.append((bounded(key[len(BRANCH_PREFIX) :]), branch))
    return tuple(found)


def _violations(
    present: Mapping[str, Any], refused: list[tuple[str, str]]
) -> tuple[tuple[str, str], ...] | None:
    """An empty list is a clean run; a value of which nothing can be read says nothing, least of all
    that.
    """
    if VIOLATIONS not in present:
        return None
    value = values.parsed(present[VIOLATIONS])
    if value in ([], ()):
        return ()
    found: list[tuple[str, str]] = []
    for item in values.items(value) or ("",):
        constraint, _, severity = item.rpartition(":") if isinstance(item, str) else ("", "", "")
        known = severity.lower() if severity.lower() in SEVERITIES else "unknown"
        if not constraint:
            refused.append((VIOLATIONS, "not constraint:severity"))
            continue
        if known == "unknown":
            refused.append((VIOLATIONS, "severity not low, medium or high: weighed as medium"))
        found.append((bounded(constraint), known))
    return tuple(found) or None


def _share(value: object) -> float | None:
    found = values.number(value)
    return found if found is not None and 0.0 <= found <= 1.0 else None


def _condition(value: object) -> str | None:
    found = values.text(value)
    return found if found in CONDITIONS else None


_NOTES: Final = (
    (
        USAGE_COST,
        None,
        values.amount,
        "not a number from 0",
    ),  # of a model call, which reads it itself; checked here
    (TASK_ID, "task_id", values.identifier, "not a text or a whole number"),
    (TRIAL, "trial", values.integer, "not a whole number from 0"),
    (SUCCESS, "success", values.truth, "not true or false"),
    (REWARD, "reward", values.number, "not a number"),
    (CONFIDENCE, "confidence", _share, "not a number from 0 to 1"),
    (COST, "cost", values.amount, "not a number from 0"),
    (CONDITION, "condition", _condition, "not baseline, fault, structure or prompt"),
    (INPUT_CLASS, "input_class", values.identifier, "not a text or a whole number"),
    (CONTEXT_LIMIT, "context_limit", values.positive, "not a whole number from 1"),
    (OUTCOME_KEY, "outcome_key", values.identifier, "not a text or a whole number"),
)
"""Attribute, field of `Notes` (None: it is only checked), reader, and why a value is refused."""
