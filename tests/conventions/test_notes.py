"""What users add."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from otel_reliability.conventions import notes
from otel_reliability.model.span import Notes
from otel_reliability.testing import span
from tests.conventions.reading import read

GOOD: dict[str, Any] = {
    "reliability.task.id": "refund-7",
    "reliability.trial": 2,
    "reliability.run.success": True,
    "reliability.run.reward": 0.5,
    "reliability.run.confidence": 0.9,
    "reliability.run.cost": 0.02,
    "reliability.condition": "fault",
    "reliability.violations": ("pii:high", "tone:low"),
    "reliability.branch.route": "billing",
    "reliability.branch.escalate": True,
    "reliability.input.class": "vip",
    "reliability.context_limit": 8_000,
}
READ = Notes(
    task_id="refund-7",
    trial=2,
    success=True,
    reward=0.5,
    confidence=0.9,
    cost=0.02,
    condition="fault",
    violations=(("pii", "high"), ("tone", "low")),
    branches=(("escalate", "true"), ("route", "billing")),
    input_class="vip",
    context_limit=8_000,
)


def test_every_note_is_read() -> None:
    violations = "reliability.violations"
    texts = {key: str(value).lower() for key, value in GOOD.items() if key != violations}

    assert read(span(attributes=GOOD)).notes == READ
    assert notes.read({**texts, violations: '["pii:high", "tone:low"]'}) == READ


def test_a_span_without_notes_has_none() -> None:
    assert read(span(attributes={"my.reliability.task.id": "7", "reliabilit": 1})).notes is None


BAD: list[tuple[str, Any]] = [
    ("reliability.task.id", ["a"]),
    ("reliability.task.id", ""),
    ("reliability.trial", -1),
    ("reliability.trial", "first"),
    ("reliability.run.success", "perhaps"),
    ("reliability.run.reward", "high"),
    ("reliability.run.reward", float("nan")),
    ("reliability.run.confidence", 1.7),
    ("reliability.run.confidence", -0.1),
    ("reliability.run.confidence", True),
    ("reliability.run.confidence", float("nan")),
    ("reliability.run.cost", "cheap"),
    ("reliability.run.cost", -1),
    ("reliability.run.cost", float("inf")),
    ("reliability.condition", "chaos"),
    ("reliability.condition", 3),
    ("reliability.violations", "pii"),
    ("reliability.violations", 3),
    ("reliability.violations", ""),
    ("reliability.input.class", 1.5),
    ("reliability.context_limit", 0),
    ("reliability.usage.cost_usd", "cheap"),
]


@pytest.mark.parametrize(("key", "value"), BAD)
def test_evidence_that_cannot_stand_is_named_and_absent(key: str, value: object) -> None:
    found = notes.read({key: value})
    beside = notes.read({**GOOD, key: value})

    assert found is not None
    assert beside is not None
    assert replace(found, refused=()) == Notes()
    assert [name for name, _ in found.refused] == [key]
    assert all(reason for _, reason in found.refused)
    assert beside.refused == found.refused


def test_a_branch_that_is_no_word_is_named_without_its_decision() -> None:
    found = notes.read({"reliability.branch.route": 1.5, "reliability.branch.other": 3})

    assert found is not None
    assert found.branches == (("other", "3"),)
    assert found.refused == (("reliability.branch.*", "not a text, a whole number or a boolean"),)


def test_a_run_without_violations_is_clean_not_unjudged() -> None:
    """An empty list is a judgement; no list is none; a list of which nothing can be read is none
    either.
    """
    clean = notes.read({"reliability.violations": ()})
    unreadable = notes.read({"reliability.violations": ["x", 3]})

    assert clean is not None
    assert unreadable is not None
    assert (clean.violations, clean.refused) == ((), ())
    assert (unreadable.violations, len(unreadable.refused)) == (None, 2)


def test_a_violation_of_unknown_weight_still_counts() -> None:
    found = notes.read({"reliability.violations": '["policy:refunds:HIGH", "tone:odd"]'})

    assert found is not None
    assert found.violations == (("policy:refunds", "high"), ("tone", "unknown"))
    assert found.refused == (
        ("reliability.violations", "severity not low, medium or high: weighed as medium"),
    )


def test_branches_have_a_limit() -> None:
    found = notes.read({f"reliability.branch.{number:04}": 1 for number in range(1_000)})

    assert found is not None
    assert [name for name, _ in found.branches] == [f"{number:04}" for number in range(64)]


@pytest.mark.parametrize("key", notes.TASK_IDS)
def test_item_of_an_evaluation_is_the_task_where_no_other_is_given(key: str) -> None:
    found = notes.read({key: "item-7"})
    assert found is not None
    assert found.task_id == "item-7"

    both = notes.read({key: "item-7", "reliability.task.id": "refund"})
    assert both is not None
    assert both.task_id == "refund"

    assert notes.read({key: ["no", "word"]}) is None
    assert read(span(attributes={key: "item-7"})).notes == Notes(task_id="item-7")
